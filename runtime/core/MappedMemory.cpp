// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mapping with optional alignment to huge pages.
#include "core/MappedMemory.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace quire::runtime {

static constexpr size_t smallPage = 4096;
static constexpr size_t hugePage = size_t(2) << 20;

uint64_t physicalMemory() {
  long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : UINT64_MAX;
}

MappedMemory::MappedMemory(MappedMemory &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

MappedMemory &MappedMemory::operator=(MappedMemory &&other) noexcept {
  if (this != &other) {
    unmap();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    mapped_ = std::exchange(other.mapped_, 0);
  }
  return *this;
}

MappedMemory::~MappedMemory() { unmap(); }

void MappedMemory::unmap() {
  if (data_)
    ::munmap(data_, mapped_);
  data_ = nullptr;
  size_ = mapped_ = 0;
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
  data_ = base;
  size_ = bytes;
  mapped_ = whole;
  return success();
}

} // namespace quire::runtime
