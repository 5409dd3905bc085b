// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Configuration files from outside: whatever they hold, they are read or refused, and what is read is printed the same.
#include "config/Config.h"

#include <cstdio>
#include <cstdlib>

using namespace quire::config;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  for (Keys keys : {Keys::All, Keys::Implemented}) {
    Config read, again;
    if (!parseConfig(text, "input", read, keys).ok())
      continue;
    std::string printed = printConfig(read, keys);
    quire::runtime::Status status = parseConfig(printed, "printed", again, keys);
    if (!status.ok() || !diff(read, again).empty()) {
      std::fprintf(stderr, "%s\n%s\n", status.text().c_str(), printed.c_str());
      std::abort();
    }
  }
  return 0;
}
