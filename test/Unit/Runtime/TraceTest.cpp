// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trace files: round trip, shape for viewers, damage; and the times in them.
#include "PageTraces.h"
#include "TieredPool.h"
#include "ToyFolder.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace quire::runtime;
using namespace quire::test;

namespace {

using Kind = TraceEvent::Kind;
using Outcome = TraceEvent::Outcome;

Trace everyKind() {
  Trace trace(20);
  trace.pages = 12;
  trace.pageBytes = 4096;
  trace.fastPages = 5;
  trace.numbering = {4, 3, true};
  int64_t now = 0;
  for (uint8_t kind = 0; kind <= static_cast<uint8_t>(Kind::Observe); ++kind)
    for (uint8_t outcome = 0; outcome < 2; ++outcome) {
      TraceEvent made{};
      made.kind = static_cast<Kind>(kind);
      made.page = kind;
      made.ns = now += 1234567;
      if (made.kind != Kind::Step) {
        made.layer = kind * 2;
        made.outcome = made.kind == Kind::Demand ? static_cast<Outcome>(outcome + 2) : Outcome::None;
        made.duration = made.kind == Kind::Demand && outcome == 0 ? 0 : made.kind == Kind::Load || made.kind == Kind::Demand ? 98765 : 0;
      }
      made.mass = made.kind == Kind::Observe ? 0.1f : 0;
      trace.record(made);
    }
  trace.record(event(Kind::Free, 1, 999999999));
  trace.record(event(Kind::Free, 2, (int64_t(1) << 52) - 1));
  trace.record(event(Kind::Free, 3)); // no room
  return trace;
}

std::string errorOf(const std::string &text) {
  Trace out(0);
  Status status = Trace::parse("t.json", text, out);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), QUIRE_BAD_ARTEFACT);
  return status.text();
}

const std::string header = R"({"displayTimeUnit":"ns","otherData":{"format":"quire-trace","version":1,"pages":4,"page_bytes":64,)"
                           R"("fast_pages":2,"blocks":0,"groups":1,"group_major":false,"dropped":0},"traceEvents":[)"
                           "\n";
const std::string demand = R"({"name":"demand","ph":"i","pid":1,"tid":1,"ts":1.5,"s":"t","args":{"page":3,"layer":0}})";

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

} // namespace

TEST(Trace, RoundTripIsExact) {
  TemporaryFolder temporary;
  std::string path = temporary / "trace.json";
  Trace trace = everyKind(), back(0);
  ASSERT_TRUE(trace.write(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  Status status = Trace::read(path, back);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(back.pages, trace.pages);
  EXPECT_EQ(back.pageBytes, trace.pageBytes);
  EXPECT_EQ(back.fastPages, trace.fastPages);
  EXPECT_EQ(back.numbering.blocks, 4u);
  EXPECT_EQ(back.numbering.groups, 3u);
  EXPECT_TRUE(back.numbering.isGroupMajor);
  EXPECT_EQ(trace.dropped(), 1u);
  EXPECT_EQ(back.dropped(), 1u);
  ASSERT_EQ(back.events().size(), trace.events().size());
  for (size_t i = 0; i < back.events().size(); ++i) {
    const TraceEvent &a = trace.events()[i], &b = back.events()[i];
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.outcome, b.outcome);
    EXPECT_EQ(a.page, b.page);
    EXPECT_EQ(a.layer, b.layer);
    EXPECT_EQ(a.ns, b.ns) << i;
    EXPECT_EQ(a.duration, b.duration);
    EXPECT_EQ(a.mass, b.mass);
  }
}

TEST(Trace, IsWhatViewersExpect) {
  TemporaryFolder temporary;
  std::string path = temporary / "trace.json";
  ASSERT_TRUE(everyKind().write(path).ok());
  nlohmann::json whole = nlohmann::json::parse(readFile(path));
  EXPECT_EQ(whole["otherData"]["page_bytes"], 4096);
  int loads = 0;
  for (const auto &entry : whole["traceEvents"]) {
    EXPECT_TRUE(entry["name"].is_string() && entry["pid"].is_number() && entry["tid"].is_number());
    if (entry["ph"] == "M")
      continue;
    EXPECT_TRUE(entry["ts"].is_number() && entry["args"].is_object());
    EXPECT_TRUE(entry["ph"] == "X" ? entry["dur"].is_number() : entry["ph"] == "i" && entry["s"] == "t") << entry;
    if (entry["name"] == "load") {
      ++loads;
      EXPECT_EQ(entry["ph"], "X");
      EXPECT_DOUBLE_EQ(entry["dur"], 98.765); // microseconds
      EXPECT_EQ(entry["tid"], 2);
    }
  }
  EXPECT_EQ(loads, 2);
}

/// Renaming over them would take the place of a device or of a link that others use.
TEST(Trace, PipesAndLinksStay) {
  TemporaryFolder temporary;
  std::string pipe = temporary / "pipe", file = temporary / "file", link = temporary / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(everyKind().write(pipe).ok());
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::string got(65536, 0);
  ssize_t bytes = ::read(reader, got.data(), got.size());
  ::close(reader);
  writeFile(file, "old");
  std::filesystem::create_symlink(file, link);
  ASSERT_TRUE(everyKind().write(link).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  ASSERT_GT(bytes, 0);
  EXPECT_EQ(readFile(file), got.substr(0, static_cast<size_t>(bytes)));
}

TEST(Trace, FileAppearsWholeOrNotAtAll) {
  TemporaryFolder temporary;
  std::string path = temporary / "trace.json";
  writeFile(path, "old");
  std::filesystem::create_directory(path + ".partial");
  Status status = everyKind().write(path);
  EXPECT_EQ(status.code(), QUIRE_IO_ERROR);
  EXPECT_NE(status.text().find("trace.json.partial: "), std::string::npos) << status.text();
  EXPECT_EQ(readFile(path), "old");
  std::filesystem::remove(path + ".partial");
  ASSERT_TRUE(everyKind().write(path).ok());
  EXPECT_EQ(Trace(0).write(temporary / "no/such/folder").code(), QUIRE_IO_ERROR);
  std::filesystem::create_directory(temporary / "folder");
  EXPECT_EQ(everyKind().write(temporary / "folder").code(), QUIRE_IO_ERROR);
  EXPECT_FALSE(std::filesystem::exists(std::string(temporary / "folder") + ".partial"));
  Trace out(0);
  EXPECT_FALSE(Trace::read(temporary / "missing.json", out).ok());
}

TEST(Trace, EmptyTraceAndOneEvent) {
  Trace out(0);
  ASSERT_TRUE(Trace::parse("t", header + "]}\n", out).ok());
  EXPECT_TRUE(out.events().empty());
  ASSERT_TRUE(Trace::parse("t", header + demand + "\n]}", out).ok()); // no line end at the end
  ASSERT_EQ(out.events().size(), 1u);
  EXPECT_EQ(out.events()[0].ns, 1500);
}

TEST(Trace, DamagedFilesAreRefusedByLineAndField) {
  const std::string end = "\n]}\n";
  EXPECT_EQ(errorOf(""), "t.json: line 1: expected ]} at the end, but the file ends");
  EXPECT_EQ(errorOf("{}\n"), "t.json: line 1: expected a header that ends in \"traceEvents\":[, as quire writes it, but got none");
  EXPECT_EQ(errorOf(header + demand + "\n"), "t.json: line 3: expected ]} at the end, but the file ends");
  EXPECT_EQ(errorOf(header + demand + "," + end), "t.json: line 3: expected an event after the comma, but got ]}");
  EXPECT_EQ(errorOf(header + demand + "\n" + demand + end), "t.json: line 3: expected ]}, as no comma came before, but got more");
  EXPECT_EQ(errorOf(header + demand + end + "x"), "t.json: line 4: expected nothing after ]}, but got more");
  EXPECT_EQ(errorOf(header + "[1]" + end), "t.json: line 2: event: expected an object, but got [1]");
  EXPECT_EQ(errorOf(header + replaced(demand, "\"page\":3", "\"page\":4") + end),
            "t.json: line 2: args.page: expected an integer of 0 to 3, but got 4");
  EXPECT_EQ(errorOf(header + replaced(demand, "\"page\":3", "\"page\":-1") + end),
            "t.json: line 2: args.page: expected an integer of 0 to 3, but got -1");
  EXPECT_EQ(errorOf(header + replaced(demand, ",\"layer\":0", "") + end), "t.json: line 2: missing 'args.layer'");
  EXPECT_EQ(errorOf(header + replaced(demand, "\"layer\":0", "\"layer\":0,\"slot\":1") + end), "t.json: line 2: unknown key \"args.slot\"");
  EXPECT_EQ(errorOf(header + replaced(demand, "\"layer\":0", "\"layer\":0,\"outcome\":\"lost\"") + end),
            "t.json: line 2: args.outcome: expected hit, late or miss, but got \"lost\"");
  EXPECT_EQ(errorOf(header + replaced(demand, "\"layer\":0", "\"layer\":0,\"mass\":0.5") + end),
            "t.json: line 2: args.mass: expected none, as the event is no observe, but got one");
  EXPECT_EQ(errorOf(header + replaced(demand, "\"ph\":\"i\"", "\"ph\":\"B\"") + end), "t.json: line 2: ph: expected X, i or M, but got \"B\"");
  EXPECT_EQ(errorOf(header + replaced(demand, "\"ph\":\"i\"", "\"ph\":\"X\"") + end), "t.json: line 2: missing 'dur'");
  EXPECT_EQ(errorOf(header + replaced(demand, "1.5", "-1") + end),
            "t.json: line 2: ts: expected microseconds of 0 to 4503599627370, but got -1");
  EXPECT_EQ(errorOf(header + replaced(demand, "1.5", "1e300") + end),
            "t.json: line 2: ts: expected microseconds of 0 to 4503599627370, but got 1e+300");
  EXPECT_NE(errorOf(header + replaced(demand, "demand", "read") + end).find("name: expected step, demand, write"), std::string::npos);
  EXPECT_EQ(errorOf(header + replaced(demand, "\"tid\":1", "\"pid\":1") + end), "t.json: line 2: key \"pid\" comes twice");
  EXPECT_NE(errorOf(header + demand.substr(0, 40) + end).find("t.json: line 2: not valid JSON: column"), std::string::npos);
}

TEST(Trace, DamagedHeadersAreRefused) {
  auto of = [](const std::string &from, const std::string &to) { return errorOf(replaced(header, from, to) + "]}\n"); };
  EXPECT_EQ(of("quire-trace", "other"), "t.json: line 1: otherData.format: expected \"quire-trace\", but got \"other\"");
  EXPECT_EQ(of("\"version\":1", "\"version\":2"), "t.json: line 1: otherData.version: expected 1, but got 2");
  EXPECT_EQ(of("\"pages\":4", "\"pages\":0"), "t.json: line 1: otherData.pages: expected at least 1, but got 0");
  EXPECT_EQ(of("\"pages\":4", "\"pages\":67108865"), "t.json: line 1: otherData.pages: expected an integer of 0 to 67108864, but got 67108865");
  EXPECT_EQ(of("\"pages\":4,", ""), "t.json: line 1: missing 'otherData.pages'");
  EXPECT_EQ(of("\"blocks\":0", "\"blocks\":3"), "t.json: line 1: otherData.groups: expected blocks times groups to be the number of pages, but got 1");
  EXPECT_EQ(of("\"groups\":1", "\"groups\":0"), "t.json: line 1: otherData.groups: expected blocks times groups to be the number of pages, but got 0");
  EXPECT_EQ(of("false", "0"), "t.json: line 1: otherData.group_major: expected true or false, but got 0");
  EXPECT_EQ(of("\"dropped\":0", "\"dropped\":0,\"more\":1"), "t.json: line 1: unknown key \"otherData.more\"");
  EXPECT_EQ(of("\"otherData\":{", "\"otherData\":3,\"x\":{"), "t.json: line 1: unknown key \"x\"");
}

TEST(Trace, EveryCutAndEveryFlippedByteIsRefusedOrReadInRange) {
  TemporaryFolder temporary;
  std::string path = temporary / "trace.json";
  ASSERT_TRUE(everyKind().write(path).ok());
  std::string whole = readFile(path);
  for (size_t length = 0; length + 1 < whole.size(); length += 7) {
    Trace out(0);
    EXPECT_FALSE(Trace::parse("t", std::string_view(whole).substr(0, length), out).ok()) << length;
  }
  for (size_t at = 0; at < whole.size(); at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x11);
    Trace out(0);
    if (Trace::parse("t", damaged, out).ok())
      for (const TraceEvent &read : out.events())
        EXPECT_TRUE(read.kind == Kind::Step || read.page < out.pages);
  }
}

/// Loads and stores lie in the trace where the slow tier worked on them, one batch after the other.
TEST(Trace, TransfersTakeTheirTime) {
  quire_slow_tier_options slow = {};
  slow.struct_size = sizeof(slow);
  slow.where = "throttled:400us,1GB/s";
  slow.bytes = 1 << 20;
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = 9 * static_cast<uint64_t>(toyInfo().layers[0].block_bytes);
  options.slow = &slow;
  quire_pool *made = nullptr;
  ASSERT_EQ(quire_pool_create(&toyInfo(), &options, &made), QUIRE_OK) << quire_last_error();
  quire::serving::PoolPointer pool(made);
  quire::serving::ModelPointer model = makeModel();
  ASSERT_EQ(quire_pool_trace(pool.get(), 10000), QUIRE_OK);
  quire::serving::ExecutorPointer executor = makeExecutor(model.get(), pool.get(), 1, 64, 1);
  quire_sequence sequence = 0;
  ASSERT_EQ(quire_sequence_create(pool.get(), &sequence), QUIRE_OK);
  std::vector<int64_t> known;
  appendStep(executor.get(), sequence, std::vector<int64_t>(64, 3), known);
  for (int i = 0; i < 3; ++i)
    appendStep(executor.get(), sequence, {5}, known);
  ASSERT_EQ(quire_pool_settle(pool.get()), QUIRE_OK);
  std::map<Kind, int64_t> seen;
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const TraceEvent &event : pool->pool->trace()->events())
    if (event.kind == Kind::Load || event.kind == Kind::Store) {
      ++seen[event.kind];
      EXPECT_GE(event.duration, 400000);
      spans.push_back({event.ns, event.ns + event.duration});
    }
  EXPECT_GT(seen[Kind::Load], 3);
  EXPECT_GT(seen[Kind::Store], 3);
  std::sort(spans.begin(), spans.end());
  for (size_t i = 1; i < spans.size(); ++i)
    EXPECT_TRUE(spans[i] == spans[i - 1] || spans[i].first >= spans[i - 1].second) << i;
}
