// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Formatting of failures and names of status codes.
#include "core/Status.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace quire::runtime {

Status failure(quire_status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0)
    std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return Status(code, std::move(text));
}

} // namespace quire::runtime

extern "C" const char *quire_status_name(quire_status status) {
  // C may hand over any number, which an enumeration of C++ may not hold.
  int number;
  static_assert(sizeof(number) == sizeof(status));
  std::memcpy(&number, &status, sizeof(number));
  switch (number) {
  case QUIRE_OK:
    return "ok";
  case QUIRE_INVALID_ARGUMENT:
    return "invalid argument";
  case QUIRE_STALE_HANDLE:
    return "stale handle";
  case QUIRE_OUT_OF_BLOCKS:
    return "out of blocks";
  case QUIRE_OUT_OF_MEMORY:
    return "out of memory";
  case QUIRE_TOO_LONG:
    return "too long";
  case QUIRE_IO_ERROR:
    return "input/output error";
  case QUIRE_BAD_ARTEFACT:
    return "bad artefact";
  case QUIRE_WRONG_VERSION:
    return "wrong version";
  case QUIRE_UNSUPPORTED_CPU:
    return "unsupported cpu";
  case QUIRE_INVARIANT_BROKEN:
    return "invariant broken";
  case QUIRE_NO_SPACE:
    return "no space";
  case QUIRE_PAGE_LOST:
    return "page lost";
  }
  return "unknown status";
}
