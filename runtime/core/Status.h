// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The result of an internal operation: a status code and, on failure, the text that the C interface reports.
#ifndef QUIRE_RUNTIME_CORE_STATUS_H
#define QUIRE_RUNTIME_CORE_STATUS_H

#include "quire/runtime.h"

#include <string>
#include <utility>

namespace quire::runtime {

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(quire_status code, std::string text) : code_(code), text_(std::move(text)) {}

  bool ok() const { return code_ == QUIRE_OK; }
  quire_status code() const { return code_; }
  const std::string &text() const { return text_; }

private:
  quire_status code_ = QUIRE_OK;
  std::string text_;
};

/// A failure whose text is printf-formatted.
Status failure(quire_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

inline Status success() { return Status(); }

} // namespace quire::runtime

/// Returns from the enclosing function when `expression` failed.
#define QUIRE_TRY(expression)                                                                                          \
  do {                                                                                                                 \
    ::quire::runtime::Status quireTried = (expression);                                                                \
    if (!quireTried.ok())                                                                                              \
      return quireTried;                                                                                               \
  } while (false)

#endif // QUIRE_RUNTIME_CORE_STATUS_H
