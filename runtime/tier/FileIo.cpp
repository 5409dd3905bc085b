// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// preadv, pwritev and fallocate, and the same three through liburing.
#include "tier/FileIo.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <liburing.h>
#include <sched.h>

namespace quire::runtime {

static constexpr int punchMode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

static void runDirectly(int descriptor, IoRequest &request) {
  int64_t result;
  auto offset = static_cast<off_t>(request.offset);
  switch (request.kind) {
  case IoRequest::Kind::Read:
    result = ::preadv(descriptor, request.parts, request.partCount, offset);
    break;
  case IoRequest::Kind::Write:
    result = ::pwritev(descriptor, request.parts, request.partCount, offset);
    break;
  default:
    result = ::fallocate(descriptor, punchMode, offset, static_cast<off_t>(request.bytes));
    break;
  }
  request.result = result < 0 ? -errno : result;
}

namespace {

class PreadIo final : public FileIo {
public:
  explicit PreadIo(int descriptor) : descriptor_(descriptor) {}
  const char *name() const override { return "pread"; }
  void run(IoRequest *const *requests, size_t count) override {
    for (size_t i = 0; i < count; ++i)
      runDirectly(descriptor_, *requests[i]);
  }

private:
  int descriptor_;
};

/// Should the ring fail later, what it did not take, and all that follows, goes the
/// direct way.
class UringIo final : public FileIo {
public:
  explicit UringIo(int descriptor) : descriptor_(descriptor) {}
  ~UringIo() override { close(); }

  /// 0, or -errno.
  int open(unsigned depth) {
    depth_ = depth;
    int error = ::io_uring_queue_init(depth, &ring_, 0);
    open_ = error == 0;
    return error;
  }

  const char *name() const override { return open_ ? "uring" : "pread"; }
  void run(IoRequest *const *requests, size_t count) override;

private:
  void close() {
    if (open_)
      ::io_uring_queue_exit(&ring_);
    open_ = false;
  }
  void prepare(io_uring_sqe *entry, IoRequest &request);
  size_t reap();

  int descriptor_;
  unsigned depth_ = 0;
  bool open_ = false;
  io_uring ring_;
};

} // namespace

/// Of a request that has not ended; no system call returns it.
static constexpr int64_t underWay = INT64_MIN;

void UringIo::prepare(io_uring_sqe *entry, IoRequest &request) {
  switch (request.kind) {
  case IoRequest::Kind::Read:
    ::io_uring_prep_readv(entry, descriptor_, request.parts, static_cast<unsigned>(request.partCount), request.offset);
    break;
  case IoRequest::Kind::Write:
    ::io_uring_prep_writev(entry, descriptor_, request.parts, static_cast<unsigned>(request.partCount), request.offset);
    break;
  case IoRequest::Kind::Punch:
    ::io_uring_prep_fallocate(entry, descriptor_, punchMode, static_cast<off_t>(request.offset), static_cast<off_t>(request.bytes));
    break;
  }
  ::io_uring_sqe_set_data(entry, &request);
  request.result = underWay;
}

size_t UringIo::reap() {
  size_t ended = 0;
  io_uring_cqe *entry;
  while (::io_uring_peek_cqe(&ring_, &entry) == 0) {
    static_cast<IoRequest *>(::io_uring_cqe_get_data(entry))->result = entry->res;
    ::io_uring_cqe_seen(&ring_, entry);
    ++ended;
  }
  return ended;
}

void UringIo::run(IoRequest *const *requests, size_t count) {
  size_t prepared = 0, ended = 0;
  while (open_ && ended < count) {
    io_uring_sqe *entry;
    while (prepared < count && prepared - ended < depth_ && (entry = ::io_uring_get_sqe(&ring_)))
      prepare(entry, *requests[prepared++]);
    int error = ::io_uring_submit_and_wait(&ring_, 1);
    ended += reap();
    if (error >= 0 || error == -EINTR)
      continue;
    // What the kernel has taken must end before its buffers may be used again.
    size_t notTaken = ::io_uring_sq_ready(&ring_);
    if (prepared - ended > notTaken && (error == -EAGAIN || error == -EBUSY))
      continue;
    while (prepared - ended > notTaken) {
      ::sched_yield();
      ended += reap();
    }
    close();
  }
  if (ended == count)
    return;
  for (size_t i = 0; i < count; ++i)
    if (i >= prepared || requests[i]->result == underWay)
      runDirectly(descriptor_, *requests[i]);
}

bool parseFileIoKind(std::string_view text, FileIoKind &out) {
  if (text == "auto")
    out = FileIoKind::Auto;
  else if (text == "uring")
    out = FileIoKind::Uring;
  else if (text == "pread")
    out = FileIoKind::Pread;
  else
    return false;
  return true;
}

std::unique_ptr<FileIo> createFileIo(FileIoKind kind, int descriptor, unsigned depth, Status &status) {
  status = success();
  if (kind != FileIoKind::Pread) {
    auto uring = std::make_unique<UringIo>(descriptor);
    int error = uring->open(depth);
    if (error == 0)
      return uring;
    if (kind == FileIoKind::Uring) {
      status = failure(QUIRE_IO_ERROR, "the system gives no io_uring: %s", std::strerror(-error));
      return nullptr;
    }
  }
  return std::make_unique<PreadIo>(descriptor);
}

} // namespace quire::runtime
