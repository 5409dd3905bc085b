// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generation, text and bytes of programs.
#include "PoolProgram.h"

#include "core/Random.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>

namespace quire::test {

namespace {

constexpr const char *fieldNames[shapeFields] = {"tier", "blocks", "fast", "slow", "layers", "policy", "window",
                                                 "poison", "zero", "shuffle", "prefix", "bits", "seed", "export", "codec", "stable"};

struct Kind {
  const char *name;
  unsigned weight; // among random operations
};
constexpr Kind kinds[opKinds] = {
    {"create", 50}, {"release", 30}, {"move", 10},   {"fork", 50},    {"truncate", 50}, {"reserve", 25},
    {"write", 50},  {"step", 200},   {"abort", 12},  {"invoke", 12},  {"read", 30},     {"pin", 30},
    {"unpin", 28},  {"match", 50},   {"publish", 80}, {"allocate", 15}, {"retain", 8},  {"drop", 18},
    {"fill", 12},   {"tenant", 24},  {"end", 8},     {"act", 16},     {"advance", 40},  {"window", 6},
    {"settle", 8},  {"trace", 3},    {"report", 2},  {"stale", 12},   {"fault", 12},    {"recover", 20},
    {"crash", 3},    {"pins", 20},    {"unpins", 14}, {"turn", 20},     {"dialogue", 8}, {"unload", 16},
    {"weigh", 6},    {"resize", 12},  {"tune", 8},   {"export", 4},
    {"compact", 20}, {"prune", 14},  {"ask", 20}};

struct Random {
  uint64_t state;
  uint64_t below(uint64_t limit) { return runtime::splitMix(state) % limit; }
};

std::array<uint8_t, shapeFields> randomShape(Random &random) {
  Program made;
  made[ShapeField::Tier] = static_cast<uint8_t>(std::array<int, 8>{0, 0, 1, 1, 3, 1, 7, 2}[random.below(8)]);
  for (size_t i = 1; i < shapeFields; ++i)
    made.shape[i] = static_cast<uint8_t>(random.below(256));
  made[ShapeField::Policy] = static_cast<uint8_t>(random.below(4));
  for (ShapeField field : {ShapeField::Poison, ShapeField::ZeroOnFree, ShapeField::Shuffle, ShapeField::Export, ShapeField::StableVa})
    made[field] = random.below(3) == 0;
  made[ShapeField::PrefixCache] = random.below(3) != 0;
  made[ShapeField::Codec] = random.below(4) == 0 ? static_cast<uint8_t>(1 + random.below(2)) : 0;
  made[ShapeField::HashBits] = random.below(8) == 0 ? static_cast<uint8_t>(1 + random.below(6)) : 0;
  return made.shape;
}

} // namespace

const char *opName(OpKind kind) { return kinds[static_cast<size_t>(kind)].name; }

Program randomProgram(uint64_t seed, size_t ops) {
  Random random{seed};
  random.below(1); // seeds that follow each other are not alike
  Program program;
  program.shape = randomShape(random);
  bool faults = program[ShapeField::Tier] != 0 && random.below(2) == 0;
  std::array<unsigned, opKinds> upTo{};
  for (size_t i = 0; i < opKinds; ++i) {
    unsigned weight = !faults && OpKind(i) == OpKind::Fault ? 0 : kinds[i].weight;
    upTo[i] = weight + (i ? upTo[i - 1] : 0);
  }
  // What begins empty should not stay so.
  for (int i = 0; i < 3; ++i)
    program.ops.push_back({i == 0 && random.below(2) ? OpKind::NewTenant : OpKind::Create, static_cast<uint8_t>(random.below(4)), 0, 0});
  while (program.ops.size() < ops) {
    auto drawn = static_cast<unsigned>(random.below(upTo.back()));
    auto kind = static_cast<size_t>(std::upper_bound(upTo.begin(), upTo.end(), drawn) - upTo.begin());
    Op op{OpKind(kind), static_cast<uint8_t>(random.below(256)), static_cast<uint8_t>(random.below(256)),
          static_cast<uint8_t>(random.below(256))};
    program.ops.push_back(op);
  }
  program.ops.resize(ops);
  return program;
}

Program serverProgram(uint8_t tier) {
  Program program;
  program[ShapeField::Tier] = tier;
  program[ShapeField::Fast] = 3;
  program[ShapeField::Slow] = 24;
  program[ShapeField::Window] = 3;
  program[ShapeField::PrefixCache] = 1;
  program[ShapeField::ZeroOnFree] = 1;
  program[ShapeField::Seed] = 5;
  auto add = [&](OpKind kind, int a, int b = 0, int c = 0) {
    program.ops.push_back({kind, static_cast<uint8_t>(a), static_cast<uint8_t>(b), static_cast<uint8_t>(c)});
  };
  add(OpKind::NewTenant, 1, 1);
  for (int round = 0; round < 5; ++round) {
    add(OpKind::Create, 1);
    add(OpKind::Match, 0, 0, 20);
    for (int i = 0; i < 4; ++i)
      add(OpKind::Step, 1 << (round + i) % 3 | 1, 5 + i, 17 * i + round);
    add(OpKind::Recover, 0);
    add(OpKind::Publish, round, 0, 0);
    add(OpKind::Fork, round, 9, 1);
    add(OpKind::Step, 3, 2, round);
    add(OpKind::Step, 4, 3, 0);
    add(OpKind::Read, round);
    add(OpKind::Recover, 0);
    add(OpKind::Truncate, 1, 6);
    if (round > 1)
      add(OpKind::Release, 1);
  }
  return program;
}

std::string printProgram(const Program &program) {
  std::ostringstream text;
  text << "pool";
  for (size_t i = 0; i < shapeFields; ++i)
    text << ' ' << fieldNames[i] << '=' << int(program.shape[i]);
  text << '\n';
  for (const Op &op : program.ops)
    text << opName(op.kind) << ' ' << int(op.a) << ' ' << int(op.b) << ' ' << int(op.c) << '\n';
  return text.str();
}

static bool parseShape(std::istringstream &line, Program &out) {
  std::string word;
  line >> word;
  if (word != "pool")
    return false;
  for (size_t i = 0; i < shapeFields; ++i) {
    std::string name = std::string(fieldNames[i]) + "=";
    unsigned value = 256;
    if (!(line >> word) || word.compare(0, name.size(), name) != 0 || std::sscanf(word.c_str() + name.size(), "%u", &value) != 1 || value > 255)
      return false;
    out.shape[i] = static_cast<uint8_t>(value);
  }
  return !(line >> word);
}

static bool parseOp(std::istringstream &line, Program &out) {
  std::string name, rest;
  unsigned a, b, c;
  if (!(line >> name >> a >> b >> c) || (line >> rest) || std::max({a, b, c}) > 255)
    return false;
  for (size_t kind = 0; kind < opKinds; ++kind)
    if (name == kinds[kind].name) {
      out.ops.push_back({OpKind(kind), static_cast<uint8_t>(a), static_cast<uint8_t>(b), static_cast<uint8_t>(c)});
      return true;
    }
  return false;
}

bool parseProgram(std::string_view text, Program &out, std::string &error) {
  Program made;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    if (number == 1 ? !parseShape(words, made) : !parseOp(words, made)) {
      error = "line " + std::to_string(number) + ": expected " + (number == 1 ? "pool FIELD=BYTE..." : "OPERATION BYTE BYTE BYTE") + ", but got '" + line + "'";
      return false;
    }
  }
  out = std::move(made);
  return true;
}

Program programFromBytes(const uint8_t *data, size_t size, size_t mostOps) {
  Program program;
  for (size_t i = 0; i < shapeFields && i < size; ++i)
    program.shape[i] = data[i];
  for (size_t at = shapeFields; at < size && program.ops.size() < mostOps; at += 4) {
    auto byte = [&](size_t i) { return at + i < size ? data[at + i] : uint8_t(0); };
    program.ops.push_back({OpKind(byte(0) % opKinds), byte(1), byte(2), byte(3)});
  }
  return program;
}

std::vector<uint8_t> programToBytes(const Program &program) {
  std::vector<uint8_t> bytes(program.shape.begin(), program.shape.end());
  for (const Op &op : program.ops)
    bytes.insert(bytes.end(), {static_cast<uint8_t>(op.kind), op.a, op.b, op.c});
  return bytes;
}

} // namespace quire::test
