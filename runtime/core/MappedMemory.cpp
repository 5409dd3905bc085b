// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mapping with optional alignment to huge pages.
#include "core/MappedMemory.h"

#include "core/ControlGroup.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace quire::runtime {

static constexpr size_t smallPage = 4096;

size_t MappedMemory::systemPage() {
  long size = ::sysconf(_SC_PAGESIZE);
  return size > 0 ? static_cast<size_t>(size) : smallPage;
}

uint64_t physicalMemory(const std::string &root) {
  long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  uint64_t machine = pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : UINT64_MAX;
  return std::min(machine, groupMemory(root).limit);
}

static uint64_t availableOnMachine(const std::string &root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string line;
  unsigned long long kib;
  while (std::getline(file, line))
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1)
      return uint64_t(kib) << 10;
  return UINT64_MAX;
}

uint64_t availableMemory(const std::string &root) { return std::min(availableOnMachine(root), groupMemory(root).available); }

MappedMemory::MappedMemory(MappedMemory &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)), file_(std::exchange(other.file_, -1)) {}

MappedMemory &MappedMemory::operator=(MappedMemory &&other) noexcept {
  if (this != &other) {
    unmap();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    mapped_ = std::exchange(other.mapped_, 0);
    file_ = std::exchange(other.file_, -1);
  }
  return *this;
}

MappedMemory::~MappedMemory() { unmap(); }

void MappedMemory::unmap() {
  if (data_)
    ::munmap(data_, mapped_);
  if (file_ >= 0)
    ::close(file_);
  data_ = nullptr;
  size_ = mapped_ = 0;
  file_ = -1;
}

Status MappedMemory::map(size_t bytes, Pages pages) {
  unmap();
  // A mapping below one huge page gains nothing from the larger alignment.
  bool huge = pages == Pages::Huge && bytes >= hugePage;
  size_t slack = huge ? hugePage : 0;
  if (bytes > SIZE_MAX - hugePage - smallPage)
    return failure(QUIRE_OUT_OF_MEMORY, "cannot map %zu bytes", bytes);
  size_t whole = bytes == 0 ? smallPage : (bytes + smallPage - 1) & ~(smallPage - 1);
  void *start =
      ::mmap(nullptr, whole + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    return failure(QUIRE_OUT_OF_MEMORY, "cannot map %zu bytes: %s", bytes, std::strerror(errno));
  char *base = static_cast<char *>(start);
  if (huge) {
    size_t offset = -reinterpret_cast<uintptr_t>(base) & (hugePage - 1);
    if (offset)
      ::munmap(base, offset);
    if (slack - offset)
      ::munmap(base + offset + whole, slack - offset);
    base += offset;
    ::madvise(base, whole, MADV_HUGEPAGE); // advice only: failure is no error
  }
  if (pages == Pages::Single)
    ::madvise(base, whole, MADV_NOHUGEPAGE); // fails where the system has no huge pages
  data_ = base;
  size_ = bytes;
  mapped_ = whole;
  return success();
}

Status MappedMemory::mapShared(size_t bytes) {
  unmap();
  if (bytes > SIZE_MAX - smallPage)
    return failure(QUIRE_OUT_OF_MEMORY, "cannot map %zu bytes", bytes);
  size_t whole = bytes == 0 ? smallPage : (bytes + smallPage - 1) & ~(smallPage - 1);
  auto failed = [&](const char *what) {
    Status status = failure(QUIRE_OUT_OF_MEMORY, "cannot %s a file of %zu bytes in memory: %s", what, bytes, std::strerror(errno));
    unmap();
    return status;
  };
  file_ = ::memfd_create("quire-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file_ < 0)
    return failed("make");
  if (::ftruncate(file_, static_cast<off_t>(whole)) != 0)
    return failed("extend");
  void *start = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (start == MAP_FAILED)
    return failed("map");
  data_ = static_cast<char *>(start);
  size_ = bytes;
  mapped_ = whole;
  // After the mapping, which stays writable.
  if (::fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
    return failed("seal");
  ::madvise(data_, mapped_, MADV_HUGEPAGE); // advice only: failure is no error
  return success();
}

Status MappedMemory::openShared(int &descriptor) const {
  if (file_ < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "the memory is not shared");
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", file_);
  int opened = ::open(path, O_RDONLY | O_CLOEXEC);
  if (opened < 0)
    return failure(QUIRE_IO_ERROR, "cannot open the memory for reading: %s", std::strerror(errno));
  descriptor = opened;
  return success();
}

/// Bytes that are worth a thread of their own.
static constexpr size_t populateShare = size_t(64) << 20;

/// 0, or the error. Writes the pages' own zeros where the system has no call for it.
static int populateRange(char *begin, size_t bytes) {
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
  if (bytes == 0 || ::madvise(begin, bytes, MADV_POPULATE_WRITE) == 0)
    return 0;
  if (errno != EINVAL)
    return errno;
  for (size_t at = 0; at < bytes; at += smallPage)
    *static_cast<volatile char *>(begin + at) = 0;
  return 0;
}

size_t MappedMemory::wholePages(size_t offset, size_t bytes) {
  size_t begin = (offset + smallPage - 1) & ~(smallPage - 1), end = (offset + bytes) & ~(smallPage - 1);
  return begin < end ? end - begin : 0;
}

bool MappedMemory::giveBack(size_t offset, size_t bytes) {
  size_t whole = wholePages(offset, bytes);
  return whole == 0 || ::madvise(data_ + ((offset + smallPage - 1) & ~(smallPage - 1)), whole, MADV_DONTNEED) == 0;
}

Status MappedMemory::commit(size_t offset, size_t bytes) {
  size_t begin = offset & ~(smallPage - 1), end = (offset + bytes + smallPage - 1) & ~(smallPage - 1);
  if (int error = populateRange(data_ + begin, std::min(end, mapped_) - begin))
    return failure(QUIRE_OUT_OF_MEMORY, "cannot commit %zu bytes: %s", bytes, std::strerror(error));
  return success();
}

Status MappedMemory::populate(size_t offset, size_t bytes) {
  size_t cores = std::max(1u, std::thread::hardware_concurrency());
  size_t count = std::min(cores, std::max<size_t>(1, bytes / populateShare));
  size_t share = (bytes / count + hugePage - 1) & ~(hugePage - 1);
  std::vector<int> errors(count, 0);
  std::vector<std::thread> threads;
  auto run = [&](size_t i) {
    size_t begin = std::min(bytes, i * share), end = std::min(bytes, begin + share);
    errors[i] = populateRange(data_ + offset + begin, end - begin);
  };
  for (size_t i = 1; i < count; ++i) {
    try {
      threads.emplace_back(run, i);
    } catch (const std::system_error &) {
      run(i);
    }
  }
  run(0);
  for (std::thread &thread : threads)
    thread.join();
  for (int error : errors)
    if (error)
      return failure(QUIRE_OUT_OF_MEMORY, "cannot commit %zu bytes: %s", bytes, std::strerror(error));
  return success();
}

} // namespace quire::runtime
