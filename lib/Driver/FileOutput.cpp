// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files and folders that appear whole or not at all.
#include "lib/Driver/FileOutput.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace quire {

static constexpr llvm::StringLiteral temporarySuffix = ".tmp";
static constexpr llvm::StringLiteral asideSuffix = ".old";

static std::string temporaryName(llvm::StringRef path) {
  while (path.size() > 1 && llvm::sys::path::is_separator(path.back()))
    path = path.drop_back();
  return (path + temporarySuffix + llvm::Twine(llvm::sys::Process::getProcessId())).str();
}

/// A device, a pipe or a terminal is written into, not replaced.
static bool writeInto(llvm::StringRef path, std::string &error, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::CD_OpenExisting, llvm::sys::fs::FA_Write, llvm::sys::fs::OF_None);
  if (!code) {
    write(os);
    os.close();
    code = os.error();
    os.clear_error();
  }
  if (code)
    error = (path + ": " + code.message()).str();
  return !code;
}

bool writeFileAtomically(llvm::StringRef given, std::string &error, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  llvm::SmallString<256> path(given);
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(given, status) && llvm::sys::fs::exists(status)) {
    if (status.type() != llvm::sys::fs::file_type::regular_file)
      return writeInto(given, error, write);
    (void)llvm::sys::fs::real_path(given, path); // the file behind a link is replaced, not the link
  }
  std::string temporary = temporaryName(path);
  std::error_code code;
  llvm::sys::RemoveFileOnSignal(temporary);
  {
    llvm::raw_fd_ostream os(temporary, code);
    if (!code) {
      write(os);
      os.close();
      code = os.error();
      os.clear_error();
    }
  }
  if (!code)
    code = llvm::sys::fs::rename(temporary, path);
  if (code)
    llvm::sys::fs::remove(temporary);
  llvm::sys::DontRemoveFileOnSignal(temporary);
  if (code)
    error = (given + ": " + code.message()).str();
  return !code;
}

static constexpr llvm::StringLiteral modelFiles[] = {"manifest.json", "model.so", "report.json", "weights.bin"};

/// What an interrupt removes after the files in it; empty: nothing.
static char interruptedFolder[4096];

static void onInterrupt() {
  if (*interruptedFolder)
    ::rmdir(interruptedFolder);
  ::_exit(130);
}

/// Files of the folder are removed by LLVM's handler, which then calls ours.
static void removeOnInterrupt(llvm::StringRef folder) {
  if (folder.size() >= sizeof(interruptedFolder))
    return;
  std::memcpy(interruptedFolder, folder.data(), folder.size());
  interruptedFolder[folder.size()] = 0;
  for (llvm::StringRef name : modelFiles)
    llvm::sys::RemoveFileOnSignal((folder + "/" + name).str());
  llvm::sys::SetInterruptFunction(onInterrupt);
}

static void keepOnInterrupt(llvm::StringRef folder) {
  *interruptedFolder = 0;
  for (llvm::StringRef name : modelFiles)
    llvm::sys::DontRemoveFileOnSignal((folder + "/" + name).str());
  llvm::sys::SetInterruptFunction(nullptr);
}

/// Removes temporary folders for `wanted` whose processes were killed, and brings back a model that such a process had only moved aside.
static void clearAbandoned(llvm::StringRef wanted) {
  llvm::StringRef parent = llvm::sys::path::parent_path(wanted);
  std::string prefix = (llvm::sys::path::filename(wanted) + temporarySuffix).str();
  std::error_code code;
  for (llvm::sys::fs::directory_iterator entry(parent.empty() ? "." : parent, code), end; !code && entry != end; entry.increment(code)) {
    llvm::StringRef name = llvm::sys::path::filename(entry->path());
    if (!name.consume_front(prefix))
      continue;
    bool aside = name.consume_back(asideSuffix);
    pid_t process;
    if (name.getAsInteger(10, process) || process <= 0 || ::kill(process, 0) == 0 || errno != ESRCH)
      continue;
    if (!aside || llvm::sys::fs::exists(wanted) || llvm::sys::fs::rename(entry->path(), wanted))
      llvm::sys::fs::remove_directories(entry->path());
  }
}

/// A folder that this compiler wrote: nothing but the four files of a model, and a manifest that says so.
static bool isModelFolder(llvm::StringRef path) {
  std::error_code code;
  for (llvm::sys::fs::directory_iterator entry(path, code), end; !code && entry != end; entry.increment(code))
    if (!llvm::is_contained(modelFiles, llvm::sys::path::filename(entry->path())))
      return false;
  llvm::SmallString<256> manifest(path);
  llvm::sys::path::append(manifest, "manifest.json");
  auto text = llvm::MemoryBuffer::getFile(manifest);
  if (code || !text)
    return false;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse((*text)->getBuffer());
  if (!value) {
    llvm::consumeError(value.takeError());
    return false;
  }
  const llvm::json::Object *object = value->getAsObject();
  return object && object->getString("format") == llvm::StringRef("quire-model");
}

bool PendingFolder::create(llvm::StringRef path, std::string &error) {
  wanted = path.str();
  while (wanted.size() > 1 && llvm::sys::path::is_separator(wanted.back()))
    wanted.pop_back();
  llvm::SmallString<256> behind;
  if (llvm::sys::fs::is_symlink_file(wanted) && !llvm::sys::fs::real_path(wanted, behind))
    wanted = behind.str().str();
  if (llvm::sys::fs::exists(wanted) && !isModelFolder(wanted)) {
    error = wanted + ": exists and is not a model folder; it is left as it is";
    wanted.clear();
    return false;
  }
  llvm::StringRef parent = llvm::sys::path::parent_path(wanted);
  if (!parent.empty() && !llvm::sys::fs::is_directory(parent)) {
    error = wanted + ": cannot be written: there is no folder " + parent.str();
    wanted.clear();
    return false;
  }
  clearAbandoned(wanted);
  temporary = temporaryName(wanted);
  removeOnInterrupt(temporary); // before there is anything to remove
  if (std::error_code code = llvm::sys::fs::create_directory(temporary, /*IgnoreExisting=*/false, llvm::sys::fs::perms::all_all)) {
    keepOnInterrupt(temporary);
    error = temporary + ": " + code.message();
    temporary.clear();
    return false;
  }
  return true;
}

/// Two folders change names in one step, so that there is a model at every moment; false where the file system cannot.
static bool swapNames(const std::string &one, const std::string &other) {
#ifdef RENAME_EXCHANGE
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
#else
  return false;
#endif
}

bool PendingFolder::commit(std::string &error) {
  keepOnInterrupt(temporary);
  std::string old;
  if (llvm::sys::fs::exists(wanted)) {
    if (swapNames(temporary, wanted))
      return true; // what has the temporary name now is removed with this object
    old = temporary + asideSuffix.str();
    if (std::error_code code = llvm::sys::fs::rename(wanted, old)) {
      error = wanted + ": " + code.message();
      return false;
    }
  }
  if (std::error_code code = llvm::sys::fs::rename(temporary, wanted)) {
    error = wanted + ": " + code.message();
    if (!old.empty())
      llvm::sys::fs::rename(old, wanted);
    return false;
  }
  temporary.clear();
  if (!old.empty())
    llvm::sys::fs::remove_directories(old);
  return true;
}

PendingFolder::~PendingFolder() {
  if (temporary.empty())
    return;
  keepOnInterrupt(temporary);
  llvm::sys::fs::remove_directories(temporary);
}

} // namespace quire
