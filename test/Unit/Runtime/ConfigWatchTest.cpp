// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A configuration that is changed while a run goes on.
#include "TieredPool.h"
#include "ToyFolder.h"

#include "config/Config.h"
#include "serving/ConfigWatch.h"
#include "serving/SlowTierSettings.h"

#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace quire::test;
using namespace quire::serving;

namespace {

/// A model that tells nothing about what it attends to.
struct SilentInfo {
  SilentInfo() : layers(toyInfo().layers, toyInfo().layers + toyInfo().layer_count), info(toyInfo()) {
    for (quire_model_layer &layer : layers)
      layer.query_heads = 0;
    info.layers = layers.data();
  }
  std::vector<quire_model_layer> layers;
  quire_model_info info;
};

class ConfigWatching : public ::testing::Test {
protected:
  void SetUp() override {
    writeFile(path_, "prefetch: {window_size: 3}\n");
    quire::config::Config config;
    ASSERT_TRUE(quire::config::readConfig(path_, config).ok());
    applyConfig(config, options_);
    options_.config = path_;
    watch_.emplace(options_, pool_.pool.get());
  }

  /// What it says about the file's new text.
  std::string after(const std::string &text) {
    writeFile(path_, text);
    return look();
  }
  std::string look() {
    ::testing::internal::CaptureStderr();
    watch_->look();
    return ::testing::internal::GetCapturedStderr();
  }
  int64_t window() const {
    quire_pool_tuning tuning = {};
    tuning.struct_size = sizeof(tuning);
    EXPECT_EQ(quire_pool_get_tuning(pool_.pool.get(), &tuning), QUIRE_OK);
    return tuning.prefetch_window;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "c.yaml";
  SilentInfo silent_;
  TieredPool pool_ = makeTieredPool({}, silent_.info);
  RunOptions options_;
  std::optional<ConfigWatch> watch_;
};

} // namespace

TEST_F(ConfigWatching, ChangesAreTakenAndSaid) {
  EXPECT_EQ(look(), "");
  EXPECT_EQ(after("prefetch: {window_size: 5}\n"), "quire-run: prefetch.window_size: 3 -> 5\n");
  EXPECT_EQ(window(), 5);
  EXPECT_EQ(watch_->current().prefetch.windowSize, 5);
  EXPECT_EQ(look(), "") << "it is said once";
}

TEST_F(ConfigWatching, TheCommandLineHasTheLastWord) {
  options_.slow.prefetchWindow = 1;
  options_.limits.maxBatch = 4;
  watch_.emplace(options_, pool_.pool.get());
  EXPECT_EQ(after("prefetch: {window_size: 5}\nserving: {max_batch: 3}\ndialogue: {recent_turns: 5}\n"), "quire-run: dialogue.recent_turns: 3 -> 5\n");
  EXPECT_EQ(watch_->current().prefetch.windowSize, 1);
  EXPECT_EQ(window(), 1) << "as the command line has it, once the pool is tuned";
  EXPECT_EQ(watch_->current().dialogue.recentTurns, 5);
}

TEST_F(ConfigWatching, AWrongFileChangesNothing) {
  EXPECT_EQ(after("prefetch: {window_size: many}\n"),
            "quire-run: warning: " + path_ + ":1:25: prefetch.window_size: expected a whole number of 0 to 1024, but got 'many'; the run goes on as before\n");
  EXPECT_EQ(after("prefetch: {window_size: 7, strategy: hotspot}\n"),
            "quire-run: warning: " + path_ + ": prefetch strategy: hotspot and hybrid need a model that tells what it attends to, but no layer of this one does; the run goes on as before\n");
  EXPECT_EQ(window(), 3);
  EXPECT_EQ(watch_->current().prefetch.windowSize, 3);
  std::filesystem::remove(path_);
  EXPECT_EQ(look(), "") << "as while an editor replaces it";
  EXPECT_EQ(after("prefetch: {window_size: 4}\n"), "quire-run: prefetch.window_size: 3 -> 4\n");
  EXPECT_EQ(window(), 4);
}

TEST_F(ConfigWatching, AnotherFileOfTheSameTimeIsRead) {
  EXPECT_EQ(after("prefetch: {window_size: 5}\n"), "quire-run: prefetch.window_size: 3 -> 5\n");
  auto time = std::filesystem::last_write_time(path_);
  std::string other = path_ + ".new";
  writeFile(other, "prefetch: {window_size: 6}\n");
  std::filesystem::last_write_time(other, time);
  std::filesystem::rename(other, path_);
  EXPECT_EQ(look(), "quire-run: prefetch.window_size: 5 -> 6\n");
}

/// To open a pipe would wait for whoever writes to it, in the middle of a step's work.
TEST_F(ConfigWatching, WhatIsNoFileIsNotRead) {
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  int other = ::open(path_.c_str(), O_RDWR | O_CLOEXEC); // so that a defect fails here and does not hang
  ASSERT_GE(other, 0);
  std::string text = "prefetch: {window_size: 9}\n";
  ASSERT_EQ(::write(other, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  int left = 0;
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(::ioctl(other, FIONREAD, &left), 0);
    ::close(other);
  });
  std::string told = "quire-run: warning: " + path_ + ": expected a regular file, but got something else; the run goes on as before\n";
  EXPECT_EQ(look(), told);
  EXPECT_EQ(look(), "") << "it is said once";
  closer.join();
  EXPECT_EQ(left, static_cast<int>(text.size())) << "nobody read it";
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(look(), told);
  std::filesystem::remove(path_);
  EXPECT_EQ(after("prefetch: {window_size: 4}\n"), "quire-run: prefetch.window_size: 3 -> 4\n");
}

TEST_F(ConfigWatching, APipeIsReadOnce) {
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  watch_.emplace(options_, pool_.pool.get());
  std::filesystem::remove(path_);
  EXPECT_EQ(after("prefetch: {window_size: 4}\n"), "") << "it was never watched";
}

TEST_F(ConfigWatching, WhatIsFixedIsSaidOnce) {
  std::string told = after("serving: {max_batch: 3}\nprefetch: {window_size: 5}\n");
  EXPECT_NE(told.find("quire-run: warning: serving.max_batch needs a new run; it stays 8\n"), std::string::npos) << told;
  EXPECT_NE(told.find("quire-run: prefetch.window_size: 3 -> 5\n"), std::string::npos) << told;
  EXPECT_EQ(after("serving: {max_batch: 4}\nprefetch: {window_size: 6}\n"), "quire-run: prefetch.window_size: 5 -> 6\n");
}

/// What a slow tier gets of a configuration, and gives back to it.
TEST(SlowTierSettings, CodecsByKeys) {
  std::pair<const char *, const char *> cases[] = {{"{}", nullptr},
                                                   {"compress: {quant: int8_g128}", "int8_g128"},
                                                   {"compress: {quant: int4_g128}", "int4_g128"},
                                                   {"compress: {quant: fp8}", "fp8_e4m3"},
                                                   {"compress: {sparse: {ratio: 8}}", "sparse_8_1_bitmap"},
                                                   {"compress: {sparse: {ratio: 8, index: index}}", "sparse_8_1_index"},
                                                   {"compress: {sparse: {ratio: 1, index: index}}", nullptr}};
  for (auto [text, codec] : cases) {
    quire::config::Config read, again;
    ASSERT_TRUE(quire::config::parseConfig(text, "f.yaml", read).ok());
    SlowTierSettings settings;
    settings.take(read);
    EXPECT_STREQ(settings.describe().options.codec, codec) << text;
    EXPECT_EQ(settings.codecKey() != nullptr, codec != nullptr);
    settings.give(again);
    EXPECT_TRUE(quire::config::diff(read, again).empty()) << text;
  }
}
