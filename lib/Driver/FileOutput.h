// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files and folders that appear whole or not at all.
#ifndef QUIRE_LIB_DRIVER_FILEOUTPUT_H
#define QUIRE_LIB_DRIVER_FILEOUTPUT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace quire {

/// Writes a temporary file beside `path` and renames it. On failure nothing is left behind, `error` says why, and false is returned.
bool writeFileAtomically(llvm::StringRef path, std::string &error, llvm::function_ref<void(llvm::raw_ostream &)> write);

/// A folder that is filled under a temporary name; `commit` gives it its name in place of what was there. Uncommitted, it is removed, by an
/// interrupt too; what a killed process left is removed by the next one that writes the same folder. One exists at a time.
class PendingFolder {
public:
  /// False, with the reason, when the temporary folder cannot be made or `path` holds something that is no model folder.
  bool create(llvm::StringRef path, std::string &error);
  bool commit(std::string &error);
  llvm::StringRef path() const { return temporary; }
  ~PendingFolder();

private:
  std::string temporary, wanted;
};

} // namespace quire

#endif // QUIRE_LIB_DRIVER_FILEOUTPUT_H
