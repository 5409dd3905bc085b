// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of block contents: chains of keyed hashes that nobody outside this process can compute or predict.
#ifndef QUIRE_RUNTIME_SHARE_BLOCKKEY_H
#define QUIRE_RUNTIME_SHARE_BLOCKKEY_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace quire::runtime {

/// 256 bits of BLAKE2b (libsodium's crypto_generichash), keyed by a secret that
/// each process draws for itself. Every field is preceded by its length, so that
/// no two different inputs are the same bytes.
using BlockKey = std::array<unsigned char, 32>;

/// What keeps tenants apart.
using Salt = std::array<unsigned char, 32>;

/// The same name gives the same salt, in this process.
Salt deriveSalt(const void *name, size_t bytes);

/// Equal to no other.
Salt randomSalt();

/// Key of the block with these tokens after the block with key `parent`; null:
/// the first of a sequence.
BlockKey chainKey(const Salt &salt, const BlockKey *parent, const int64_t *tokens, size_t count);

/// Zeroes memory that held a secret; never optimised away.
void eraseSecret(void *memory, size_t bytes);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_SHARE_BLOCKKEY_H
