// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pool whose blocks tell what they hold: every stored position gets a mark of its tokens and its tenant.
#ifndef QUIRE_TEST_UNIT_RUNTIME_SHARINGPOOL_H
#define QUIRE_TEST_UNIT_RUNTIME_SHARINGPOOL_H

#include "TestPool.h"
#include "abi/Handles.h"

#include <cstring>
#include <numeric>

namespace quire::test {

constexpr int64_t blockTokens = 16;

inline std::vector<int64_t> tokensFrom(int64_t first, int64_t count) {
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class SharingPool {
public:
  explicit SharingPool(runtime::Pool::Options options = {}, int64_t blocks = 16) {
    options.bytes = static_cast<uint64_t>(blocks * quire_model_block_bytes(&toyInfo()));
    options.prefixCache = true;
    std::unique_ptr<runtime::Pool> made;
    runtime::Status status = runtime::Pool::create(toyInfo(), options, made);
    EXPECT_TRUE(status.ok()) << status.text();
    pool_.reset(new quire_pool{std::move(made), {}});
  }

  quire_pool *get() const { return pool_.get(); }
  runtime::Pool &inner() const { return *pool_->pool; }

  quire_tenant tenant(const std::string &name, int64_t timeToLive = 0) {
    quire_tenant_options options = {sizeof(options), name.data(), name.size(), timeToLive};
    quire_tenant out = 0;
    EXPECT_EQ(quire_tenant_create(get(), &options, &out), QUIRE_OK) << quire_last_error();
    return out;
  }
  quire_sequence sequence(quire_tenant tenant, bool resumed = false) {
    quire_sequence_options options = {sizeof(options), tenant, resumed};
    quire_sequence out = 0;
    EXPECT_EQ(quire_sequence_create_with(get(), &options, &out), QUIRE_OK) << quire_last_error();
    return out;
  }
  void release(quire_sequence sequence) {
    EXPECT_EQ(quire_sequence_release(get(), sequence), QUIRE_OK) << quire_last_error();
  }
  int64_t match(quire_sequence sequence, const std::vector<int64_t> &tokens) {
    int64_t matched = -1;
    EXPECT_EQ(quire_sequence_match_prefix(get(), sequence, tokens.data(), static_cast<int64_t>(tokens.size()), &matched),
              QUIRE_OK)
        << quire_last_error();
    return matched;
  }
  void publish(quire_sequence sequence, const std::vector<int64_t> &tokens) {
    EXPECT_EQ(quire_sequence_publish(get(), sequence, tokens.data(), static_cast<int64_t>(tokens.size())), QUIRE_OK)
        << quire_last_error();
  }
  int64_t length(quire_sequence sequence) {
    int64_t out = -1;
    EXPECT_EQ(quire_sequence_length(get(), sequence, &out), QUIRE_OK);
    return out;
  }
  std::vector<int32_t> table(quire_sequence sequence) {
    const int32_t *blocks = nullptr;
    int64_t count = 0;
    EXPECT_EQ(quire_sequence_table(get(), sequence, &blocks, &count), QUIRE_OK);
    return std::vector<int32_t>(blocks, blocks + count);
  }
  quire_tenant_stats stats(quire_tenant tenant) {
    quire_tenant_stats out = {};
    out.struct_size = sizeof(out);
    EXPECT_EQ(quire_tenant_get_stats(get(), tenant, &out), QUIRE_OK) << quire_last_error();
    return out;
  }

  /// What position `position` of a sequence with these tokens must hold.
  static uint64_t mark(uint64_t owner, const std::vector<int64_t> &tokens, int64_t position) {
    uint64_t value = owner * 0x9e3779b97f4a7c15u + 0xca9a5;
    for (int64_t i = 0; i <= position; ++i)
      value = (value ^ static_cast<uint64_t>(tokens[static_cast<size_t>(i)])) * 0x100000001b3u + 1;
    return value;
  }
  char *place(quire_sequence sequence, int64_t position) {
    void *address = nullptr;
    EXPECT_EQ(quire_pool_block_address(get(), 0, table(sequence)[static_cast<size_t>(position / blockTokens)], &address),
              QUIRE_OK);
    return static_cast<char *>(address) + position % blockTokens * 8;
  }
  /// Stores tokens[length ..) as a step would; false when there is no room.
  bool store(quire_sequence sequence, uint64_t owner, const std::vector<int64_t> &tokens) {
    int64_t begin = length(sequence), end = static_cast<int64_t>(tokens.size());
    quire_status status = quire_sequence_reserve(get(), sequence, end - begin);
    if (status != QUIRE_OK) {
      EXPECT_EQ(status, QUIRE_OUT_OF_BLOCKS) << quire_last_error();
      return false;
    }
    for (int64_t position = begin; position < end; ++position) {
      uint64_t value = mark(owner, tokens, position);
      std::memcpy(place(sequence, position), &value, sizeof(value));
    }
    EXPECT_EQ(quire_sequence_commit(get(), sequence, end - begin), QUIRE_OK) << quire_last_error();
    return true;
  }
  void expectHolds(quire_sequence sequence, uint64_t owner, const std::vector<int64_t> &tokens) {
    ASSERT_EQ(length(sequence), static_cast<int64_t>(tokens.size()));
    for (int64_t position = 0; position < length(sequence); ++position) {
      uint64_t value;
      std::memcpy(&value, place(sequence, position), sizeof(value));
      ASSERT_EQ(value, mark(owner, tokens, position)) << "position " << position;
    }
  }

private:
  serving::PoolPointer pool_;
};

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_SHARINGPOOL_H
