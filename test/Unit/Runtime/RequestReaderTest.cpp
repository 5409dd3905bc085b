// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The JSON lines reader: what it takes, and the error for all that it does not.
#include "serving/RequestReader.h"
#include "ToyReference.h"

#include <gtest/gtest.h>

using namespace quire::serving;
using quire::test::toyInfo;

static Request read(const std::string &line) {
  RequestReader reader(toyInfo());
  Request request;
  EXPECT_TRUE(reader.read(line, request));
  return request;
}

static void expectError(const std::string &line, const std::string &text) {
  Request request = read(line);
  EXPECT_EQ(request.error.rfind("line 1: ", 0), 0u) << line << " gave " << request.error;
  EXPECT_NE(request.error.find(text), std::string::npos) << line << " gave " << request.error;
}

TEST(RequestReader, Everything) {
  Request r = read(R"({"id":"a.B_-9","prompt":[0,96,5],"max_new_tokens":7,"stop":[1,2],"temperature":0.5,"top_k":3,)"
                   R"("top_p":0.25,"seed":18446744073709551615,"inputs":{},"tenant":"t-1"})");
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.id, "a.B_-9");
  EXPECT_EQ(r.idKind, Request::IdKind::Text);
  EXPECT_EQ(r.line, 1);
  EXPECT_EQ(r.prompt, (std::vector<int64_t>{0, 96, 5}));
  EXPECT_EQ(r.maxNewTokens, 7);
  EXPECT_EQ(r.stop, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.sampling.topK, 3);
  EXPECT_EQ(r.sampling.topP, 0.25);
  EXPECT_EQ(r.sampling.seed, UINT64_MAX);
  EXPECT_EQ(r.tenant, "t-1");
}

TEST(RequestReader, Defaults) {
  Request r = read(R"({"prompt":[1],"id":-12})");
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.id, "-12");
  EXPECT_EQ(r.idKind, Request::IdKind::Integer);
  EXPECT_EQ(r.maxNewTokens, defaultMaxNewTokens);
  EXPECT_EQ(r.sampling.temperature, 0);
  std::string prompt = "1";
  for (int i = 1; i < 250; ++i)
    prompt += ",1";
  EXPECT_EQ(read("{\"id\":1,\"prompt\":[" + prompt + "]}").maxNewTokens, 6);
}

TEST(RequestReader, BlankLinesAreCounted) {
  RequestReader reader(toyInfo());
  Request request;
  EXPECT_FALSE(reader.read("", request));
  EXPECT_FALSE(reader.read(" \t\r", request));
  EXPECT_TRUE(reader.read("{\"id\": 1, \"prompt\": [1]}\r", request));
  EXPECT_EQ(request.error, "");
  EXPECT_EQ(request.line, 3);
  EXPECT_TRUE(reader.read("x", request));
  EXPECT_EQ(request.error.rfind("line 4: not valid JSON: ", 0), 0u) << request.error;
}

TEST(RequestReader, Errors) {
  expectError("{", "not valid JSON");
  expectError("{}{}", "not valid JSON");
  expectError("\xff", "not valid JSON");
  expectError("{\"id\":\"\xff\"}", "not valid JSON");
  expectError("[1]", "request: expected an object, but got an array");
  expectError("3", "request: expected an object, but got 3");
  expectError("{}", "missing 'id'");
  expectError(R"({"id":1})", "missing 'prompt'");
  for (const char *id : {"\"\"", "\"a b\"", "\"a/b\"", "\"..\\u0000\"", "1.5", "null", "true", "[1]", "1e3",
                         "123456789012345678901234567890", "\"ä\""})
    expectError(std::string("{\"prompt\":[1],\"id\":") + id + "}", "id: expected an integer or 1 to 64 characters");
  expectError("{\"prompt\":[1],\"id\":\"" + std::string(65, 'a') + "\"}", "id: expected");
  expectError(R"({"id":1,"prompt":[]})", "prompt: expected at least one token id");
  expectError(R"({"id":1,"prompt":"x"})", "prompt: expected an array of token ids, but got \"x\"");
  expectError(R"({"id":1,"prompt":[1,97]})", "prompt[1]: expected an integer of 0 to 96, but got 97");
  expectError(R"({"id":1,"prompt":[-1]})", "prompt[0]: expected an integer of 0 to 96, but got -1");
  expectError(R"({"id":1,"prompt":[1.0]})", "prompt[0]: expected an integer");
  expectError(R"({"id":1,"prompt":[null]})", "prompt[0]: expected an integer");
  expectError(R"({"id":1,"prompt":[18446744073709551615]})", "prompt[0]: expected an integer");
  expectError(R"({"id":1,"prompt":[1],"stop":[97]})", "stop[0]: expected an integer of 0 to 96, but got 97");
  expectError(R"({"id":1,"prompt":[1],"stop":4})", "stop: expected an array");
  expectError(R"({"id":1,"prompt":[1],"max_new_tokens":0})", "max_new_tokens: expected an integer of 1 to");
  expectError(R"({"id":1,"prompt":[1],"max_new_tokens":"4"})", "max_new_tokens: expected an integer");
  expectError(R"({"id":1,"prompt":[1],"max_new_tokens":true})", "max_new_tokens: expected an integer");
  expectError(R"({"id":1,"prompt":[1],"max_new_tokens":256})",
              "length: 1 prompt tokens and 256 new ones are beyond the model's 256 positions");
  expectError(R"({"id":1,"prompt":[1],"temperature":-0.1})", "temperature: expected a number of at least 0");
  expectError(R"({"id":1,"prompt":[1],"temperature":"hot"})", "temperature: expected a number");
  expectError(R"({"id":1,"prompt":[1],"temperature":1e999})", "");
  expectError(R"({"id":1,"prompt":[1],"top_p":0})", "top_p: expected a number above 0");
  expectError(R"({"id":1,"prompt":[1],"top_p":1.01})", "top_p: expected a number above 0");
  expectError(R"({"id":1,"prompt":[1],"top_k":-1})", "top_k: expected an integer of 0");
  expectError(R"({"id":1,"prompt":[1],"seed":-1})", "seed: expected an integer of 0");
  expectError(R"({"id":1,"prompt":[1],"seed":1.5})", "seed: expected an integer of 0");
  expectError(R"({"id":1,"prompt":[1],"tenant":""})", "tenant: expected 1 to 64 characters");
  expectError(R"({"id":1,"prompt":[1],"tenant":7})", "tenant: expected 1 to 64 characters");
  expectError(R"({"id":1,"prompt":[1],"max_tokens":4})", "unknown key \"max_tokens\": expected id, prompt");
  expectError(R"({"id":1,"prompt":[1],"prompt":[2]})", "key \"prompt\" comes twice");
  expectError(R"({"id":1,"prompt":[1],"inputs":{"pixels":"a.npy"}})",
              "inputs: this model takes no input but tokens, but got \"pixels\"");
  expectError(R"({"id":1,"prompt":[1],"inputs":3})", "inputs: expected an object of file names");
  expectError(R"({"id":1,"prompt":[1],"turns":1})", "turns: expected an array of positions in the prompt, but got 1");
  expectError(R"({"id":1,"prompt":[1,2,3],"turns":[0]})", "turns[0]: expected an integer of 1 to 3, but got 0");
  expectError(R"({"id":1,"prompt":[1,2,3],"turns":[2,2]})", "turns[1]: expected an integer of 3 to 3, but got 2");
  expectError(R"({"id":1,"prompt":[1,2,3],"paragraphs":[3,1]})", "paragraphs[1]: expected no more of them, as the one before ends with the prompt, but got 1");
  expectError(R"({"id":1,"prompt":[1,2,3],"turns":[1,3,4]})", "turns[2]: expected no more of them, as the one before ends with the prompt, but got 4");
  expectError(R"({"id":1,"prompt":[1,2,3],"turns":[4]})", "turns[0]: expected an integer of 1 to 3, but got 4");
}

TEST(RequestReader, WhatIsNotJsonIsTold) {
  expectError("x", "not valid JSON: column 1: expected a value, but got 'x': invalid literal");
  expectError("{", "not valid JSON: column 2: expected string literal, but got end of input");
  expectError("{}{}", "not valid JSON: column 3: expected end of input, but got '{'");
  expectError(R"({"id" 1})", "column 7: expected ':', but got number literal");
  expectError(R"({"id":1 "prompt":[1]})", "expected ',' or '}', but got string literal");
  expectError(R"({"id":1,"prompt":[1 2]})", "expected ',' or ']', but got number literal");
  expectError(R"({"id":1,"prompt":]})", "expected '[', '{', or a literal, but got ']'");
  expectError(R"({"id":1,"seed":1e999})", "expected a number within the range of double precision, but got 1e999");
  expectError("{\"id\":\"\xff\"",
              "column 8: expected a value, but got byte 0xff: invalid string: ill-formed UTF-8 byte");
  expectError("{\"id\":\"a\tb\"}", "but got byte 0x09: invalid string: control character U+0009 (HT)");
  expectError("{\"id\":nil}", "column 8: expected a value, but got 'i': invalid literal");
  expectError("[1,\"a\" x", "column 8: expected ',' or ']', but got 'x': invalid literal");
  std::string open = read("{\"id\":\"" + std::string(100000, 'a')).error;
  EXPECT_NE(open.find("but got end of input: invalid string: missing closing quote"), std::string::npos) << open;
  EXPECT_LT(open.size(), 200u);
}

TEST(RequestReader, LengthLimitIsInclusive) {
  EXPECT_EQ(read(R"({"id":1,"prompt":[1],"max_new_tokens":255})").error, "");
  std::string prompt = "1";
  for (int i = 1; i < 256; ++i)
    prompt += ",1";
  expectError("{\"id\":1,\"prompt\":[" + prompt + "]}", "length: 256 prompt tokens and 1 new ones");
}

TEST(RequestReader, ErrorsKeepTheId) {
  Request r = read(R"({"id":"q7","prompt":[1],"extra":1})");
  EXPECT_EQ(r.id, "q7");
  EXPECT_NE(r.error, "");
  EXPECT_EQ(read("{\"prompt\":[1]}").idKind, Request::IdKind::None);
}

TEST(RequestReader, IdsAreUsedOnce) {
  RequestReader reader(toyInfo());
  Request request;
  ASSERT_TRUE(reader.read(R"({"id":7,"prompt":[1]})", request));
  EXPECT_EQ(request.error, "");
  ASSERT_TRUE(reader.read(R"({"id":"7","prompt":[1]})", request)); // both would be 7.npy
  EXPECT_EQ(request.error, "line 2: id '7' was used by an earlier request");
}

TEST(RequestReader, DeepNesting) {
  std::string lists(1 << 20, '['), ends(1 << 20, ']'), objects;
  for (int i = 0; i < 200000; ++i)
    objects += "{\"a\":";
  for (const std::string &deep : {lists, lists + ends, objects, "{\"id\":1,\"prompt\":" + lists + ends + "}",
                                  "{\"id\":1,\"prompt\":[1],\"inputs\":" + objects})
    expectError(deep, "expected at most 32 levels of arrays and objects, but got more");
  EXPECT_EQ(read("{\"id\":1,\"prompt\":" + lists).id, "1");
  std::string deepest = "{\"id\":1,\"prompt\":" + std::string(31, '[') + std::string(31, ']') + "}";
  expectError(deepest, "prompt[0]: expected an integer of 0 to 96, but got an array");
}

TEST(RequestReader, KeysComeOnce) {
  Request r = read(R"({"id":"a","id":"b","prompt":[1]})");
  EXPECT_EQ(r.error, "line 1: key \"id\" comes twice");
  EXPECT_EQ(r.id, "a");
  EXPECT_EQ(r.idKind, Request::IdKind::Text);
  r = read(R"({"prompt":[1],"prompt":[2],"seed":1,"seed":2,"id":7})");
  EXPECT_EQ(r.error, "line 1: key \"prompt\" comes twice");
  EXPECT_EQ(r.id, "7");
  r = read(R"({"id":"no id","id":"b","prompt":[1]})");
  EXPECT_EQ(r.error, "line 1: key \"id\" comes twice");
  EXPECT_EQ(r.idKind, Request::IdKind::None);
  for (const char *key : {"max_new_tokens", "stop", "temperature", "top_k", "top_p", "seed", "inputs", "x"})
    expectError("{\"id\":1,\"prompt\":[1],\"" + std::string(key) + "\":1,\"" + key + "\":1}",
                "key \"" + std::string(key) + "\" comes twice");
  expectError(R"({"id":1,"prompt":[1],"inputs":{"a":1,"a":{"b":1,"b":{"c":2,"c":3},"d":4}}})", "key \"a\" comes twice");
  // The id counts as used, and a mistake of the text comes first.
  RequestReader reader(toyInfo());
  ASSERT_TRUE(reader.read(R"({"id":"a","id":"b","prompt":[1]})", r));
  ASSERT_TRUE(reader.read(R"({"id":"a","prompt":[1]})", r));
  EXPECT_EQ(r.error, "line 2: id 'a' was used by an earlier request");
  ASSERT_TRUE(reader.read(R"({"id":"b","prompt":[1]})", r));
  EXPECT_EQ(r.error, "");
  expectError(R"({"id":1,"id":2,)", "not valid JSON: column ");
}
