// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading of configuration files, from the events of yaml-cpp's parser: nothing is built that the table does not know.
#include "config/Keys.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

namespace quire::config {

using runtime::failure;
using runtime::Status;
using runtime::success;

static constexpr size_t maxFileBytes = size_t(1) << 20;
static constexpr size_t maxShown = 40; // characters of a text in an error

namespace {

/// A refused file, from wherever in the parser.
struct Refusal {
  YAML::Mark mark;
  std::string text;
};

} // namespace

static std::string shown(const std::string &text) {
  std::string out = "'";
  for (size_t i = 0; i < text.size() && i < maxShown; ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    out += c >= 0x20 && c < 0x7f ? static_cast<char>(c) : '?';
  }
  return out + (text.size() > maxShown ? "...'" : "'");
}

/// What can stand after `prefix` ("" or "memory.").
static std::string namesBelow(const std::string &prefix) {
  std::string text, last;
  for (const Key &key : allKeys()) {
    std::string name = key.name;
    if (name.rfind(prefix, 0) != 0)
      continue;
    name = name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size());
    if (name != last)
      text += (text.empty() ? "" : ", ") + name;
    last = std::move(name);
  }
  return text;
}

namespace {

/// Maps are sections of the table, so that nothing nests deeper than it does.
/// Aliases are refused, so that nothing is larger than the file.
class Reader : public YAML::EventHandler {
public:
  Reader(Config &out, Keys keys) : out_(out), keys_(keys) {}

  void OnDocumentStart(const YAML::Mark &) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    refuseAnchor(mark, anchor);
    if (sections_.empty() && !begun_)
      return; // an empty document
    refuseValue(mark, "nothing");
  }

  void OnAlias(const YAML::Mark &mark, YAML::anchor_t) override {
    throw Refusal{mark, "expected a value, but got an alias; write it out"};
  }

  void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor, const std::string &text) override {
    refuseAnchor(mark, anchor);
    refuseTag(mark, tag);
    if (!key_ && !section_ && !sections_.empty())
      return takeName(mark, text);
    bool plain = tag != "!"; // not in quotes
    using Type = Key::Type;
    if (!key_ || (isList(*key_) && !list_) ||
        (!plain && (key_->type == Type::Count || key_->type == Type::Ratio || key_->type == Type::Switch ||
                    key_->type == Type::Counts)))
      refuseValue(mark, plain ? shown(text) : "a text");
    if (!parseValue(*key_, text, value_))
      refuseValue(mark, shown(text));
    if (std::string why = keys_ == Keys::Implemented ? refusalOf(*key_, value_) : ""; !why.empty())
      throw Refusal{mark, why};
    if (name_ == "block.tokens")
      tokensAt_ = mark;
    if (name_ == "block.layers_per_block")
      layersAt_ = mark;
    if (!list_)
      finishKey();
  }

  void OnSequenceStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuseAnchor(mark, anchor);
    refuseTag(mark, tag);
    if (!key_ || !isList(*key_) || list_)
      refuseValue(mark, "a list");
    list_ = true;
    if (key_->type == Key::Type::Tiers)
      value_ = std::vector<std::string>();
    else
      value_ = std::vector<int64_t>();
  }

  void OnSequenceEnd() override { finishKey(); }

  void OnMapStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuseAnchor(mark, anchor);
    refuseTag(mark, tag);
    if (sections_.empty() && !begun_)
      sections_.push_back("");
    else if (section_)
      sections_.push_back(name_ + ".");
    else
      refuseValue(mark, "a map");
    begun_ = true;
    section_ = false;
  }

  void OnMapEnd() override { sections_.pop_back(); }

  /// After the document.
  void checkAll() const {
    const char *key;
    std::string why;
    if (checkTogether(out_, key, why))
      return;
    std::string section = std::string(key).substr(0, std::string(key).rfind('.') + 1);
    auto at = seen_.find(key);
    if (at == seen_.end()) // the other of the two that disagree
      at = seen_.lower_bound(section);
    throw Refusal{at == seen_.end() ? YAML::Mark() : at->second, std::string(key) + ": " + why};
  }

  /// Of the values of block.tokens and block.layers_per_block, which only a model can judge.
  std::optional<YAML::Mark> tokensAt() const { return tokensAt_; }
  std::optional<YAML::Mark> layersAt() const { return layersAt_; }

private:
  [[noreturn]] void refuseValue(const YAML::Mark &mark, const std::string &got) const {
    if (key_)
      throw Refusal{mark, std::string(key_->name) + ": expected " +
                              (isList(*key_) && !list_ ? "a list" : expectedOf(*key_)) + ", but got " + got};
    std::string what = section_ ? name_ + ": expected a map" : sections_.empty() ? "expected a map" : "expected a key";
    throw Refusal{mark, what + ", but got " + got};
  }

  void refuseAnchor(const YAML::Mark &mark, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor)
      throw Refusal{mark, "expected a value, but got an anchor; write it out"};
  }

  /// "?" is what is plain, "!" what is in quotes.
  void refuseTag(const YAML::Mark &mark, const std::string &tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Refusal{mark, "expected a value without a tag, but got " + shown(tag)};
  }

  void takeName(const YAML::Mark &mark, const std::string &text) {
    name_ = sections_.back() + text;
    section_ = false;
    if (text.find('.') == std::string::npos)
      for (const Key &key : allKeys()) {
        if (name_ == key.name)
          key_ = &key;
        else if (std::string_view(key.name).substr(0, name_.size() + 1) == name_ + ".")
          section_ = true;
      }
    if (!key_ && !section_)
      throw Refusal{mark, "unknown key " + shown(name_) + ": expected " + namesBelow(sections_.back())};
    if (!seen_.emplace(name_, mark).second)
      throw Refusal{mark, "key " + name_ + " comes twice"};
    if (key_ && !isFor(*key_, keys_))
      throw Refusal{mark, refusalOf(*key_)};
  }

  void finishKey() {
    key_->set(out_, value_);
    key_ = nullptr;
    list_ = false;
  }

  Config &out_;
  Keys keys_;
  bool begun_ = false;
  std::vector<std::string> sections_; // open maps, as prefixes of keys
  std::string name_;                  // last key or section that was named
  const Key *key_ = nullptr;          // whose value comes next
  bool section_ = false;              // whose map comes next
  bool list_ = false;                 // inside the value of key_
  Value value_;
  std::optional<YAML::Mark> tokensAt_, layersAt_;
  std::map<std::string, YAML::Mark> seen_;
};

} // namespace

static std::string placeOf(const std::string &name, const YAML::Mark &mark) {
  return name + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

static Status refused(const std::string &name, const YAML::Mark &mark, const std::string &text) {
  return failure(QUIRE_INVALID_ARGUMENT, "%s: %s", placeOf(name, mark).c_str(), text.c_str());
}

Status parseConfig(std::string_view text, const std::string &name, Config &out, Keys keys) {
  if (text.size() > maxFileBytes)
    return failure(QUIRE_INVALID_ARGUMENT, "%s: expected at most %zu bytes, but got %zu", name.c_str(), maxFileBytes,
                   text.size());
  Config read;
  Reader reader(read, keys);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(reader)) {
      reader.checkAll();
      struct Second : Reader { // whatever comes is too much
        using Reader::Reader;
        void OnDocumentStart(const YAML::Mark &mark) override {
          throw Refusal{mark, "expected one document, but got another"};
        }
      } second(read, keys);
      parser.HandleNextDocument(second);
    }
  } catch (const Refusal &refusal) {
    return refused(name, refusal.mark, refusal.text);
  } catch (const YAML::Exception &error) {
    return refused(name, error.mark, "not valid YAML: " + error.msg);
  }
  if (reader.tokensAt())
    read.blockTokensPlace = placeOf(name, *reader.tokensAt());
  if (reader.layersAt())
    read.layersPerBlockPlace = placeOf(name, *reader.layersAt());
  out = std::move(read);
  return success();
}

Status readConfig(const std::string &path, Config &out, Keys keys) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    return failure(QUIRE_IO_ERROR, "%s: %s", path.c_str(), std::strerror(errno));
  std::string text(maxFileBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()))
    return failure(QUIRE_IO_ERROR, "%s: %s", path.c_str(), std::strerror(errno));
  return parseConfig(text, path, out, keys);
}

Status reload(const std::string &path, const Config &before, const Config &current, Reload &out, Keys keys) {
  Reload result{current, {}, {}};
  QUIRE_TRY(readConfig(path, result.file, keys));
  for (const Key &key : allKeys()) {
    Value was = key.get(before), is = key.get(result.file);
    if (was == is || was != key.get(current))
      continue;
    result.changes.push_back({key.name, printValue(key, was), printValue(key, is), key.reloadable});
    if (key.reloadable)
      key.set(result.config, is);
  }
  out = std::move(result);
  return success();
}

} // namespace quire::config
