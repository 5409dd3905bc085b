// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keyed hashing with libsodium.
#include "share/BlockKey.h"

#include <sodium.h>

#include <stdexcept>

namespace quire::runtime {

static_assert(crypto_generichash_KEYBYTES == 32 && crypto_generichash_BYTES == 32, "BLAKE2b with 256 bits");

namespace {

struct Secret {
  std::array<unsigned char, 32> bytes;
  Secret() {
    if (sodium_init() < 0)
      throw std::runtime_error("libsodium cannot be used");
    randombytes_buf(bytes.data(), bytes.size());
  }
};

/// A hash over fields; lives on the stack.
class Framed {
public:
  explicit Framed(const char (&purpose)[16]) {
    static const Secret secret;
    crypto_generichash_init(&state_, secret.bytes.data(), secret.bytes.size(), sizeof(BlockKey));
    add(purpose, sizeof(purpose));
  }
  void add(const void *data, size_t bytes) {
    uint64_t length = bytes;
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char *>(&length), sizeof(length));
    crypto_generichash_update(&state_, static_cast<const unsigned char *>(data), bytes);
  }
  std::array<unsigned char, 32> finish() {
    std::array<unsigned char, 32> out;
    crypto_generichash_final(&state_, out.data(), out.size());
    sodium_memzero(&state_, sizeof(state_));
    return out;
  }

private:
  crypto_generichash_state state_;
};

constexpr char nameLabel[16] = "quire name";
constexpr char blockLabel[16] = "quire block";

} // namespace

Salt deriveSalt(const void *name, size_t bytes) {
  Framed hash(nameLabel);
  hash.add(name, bytes);
  return hash.finish();
}

Salt randomSalt() {
  if (sodium_init() < 0)
    throw std::runtime_error("libsodium cannot be used");
  Salt salt;
  randombytes_buf(salt.data(), salt.size());
  return salt;
}

BlockKey chainKey(const Salt &salt, const BlockKey *parent, const int64_t *tokens, size_t count) {
  Framed hash(blockLabel);
  hash.add(salt.data(), salt.size());
  hash.add(parent ? parent->data() : nullptr, parent ? parent->size() : 0);
  hash.add(tokens, count * sizeof(*tokens));
  return hash.finish();
}

void eraseSecret(void *memory, size_t bytes) { sodium_memzero(memory, bytes); }

} // namespace quire::runtime
