// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: K and V in blocks, as numbers.
#include "abi/Handles.h"
#include "compress/StoredRows.h"

using namespace quire::runtime;

static Status findRow(const quire_model_info &info, int64_t layer, int64_t head, int64_t token, StoredRow &out) {
  auto check = [](const char *what, int64_t value, int64_t count) {
    if (value >= 0 && value < count)
      return success();
    return failure(QUIRE_INVALID_ARGUMENT, "%s: expected 0 to %lld, but got %lld", what,
                   static_cast<long long>(count - 1), static_cast<long long>(value));
  };
  QUIRE_TRY(check("layer", layer, info.layer_count));
  QUIRE_TRY(check("head", head, info.layers[layer].kv_heads));
  QUIRE_TRY(check("token", token, info.block_tokens));
  out = {&info.layers[layer], info.block_tokens, false, head, token};
  return success();
}

extern "C" {

quire_status quire_block_load_row(const quire_model_info *info, int64_t layer, const void *block, int64_t head,
                                  int64_t token, float *key, float *value) {
  if (!info || !block || !key || !value)
    return nullArgument("info, block, key and value");
  StoredRow row{};
  Status status = findRow(*info, layer, head, token, row);
  if (!status.ok())
    return report(status);
  loadRow(row, static_cast<const char *>(block), key);
  row.value = true;
  loadRow(row, static_cast<const char *>(block), value);
  return QUIRE_OK;
}

quire_status quire_block_store_row(const quire_model_info *info, int64_t layer, void *block, int64_t head,
                                   int64_t token, const float *key, const float *value) {
  if (!info || !block || !key || !value)
    return nullArgument("info, block, key and value");
  StoredRow row{};
  Status status = findRow(*info, layer, head, token, row);
  if (!status.ok())
    return report(status);
  storeRow(row, key, static_cast<char *>(block));
  row.value = true;
  storeRow(row, value, static_cast<char *>(block));
  return QUIRE_OK;
}
}
