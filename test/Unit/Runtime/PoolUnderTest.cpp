// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Creation of pools from shapes, and what is left of them.
#include "PoolUnderTest.h"

#include "tier/HostTier.h"
#include "tier/StackedTier.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace quire::test {

using namespace runtime;

//===----------------------------------------------------------------------===//
// What tiers were given
//===----------------------------------------------------------------------===//

RecordingTier::RecordingTier(std::unique_ptr<Tier> inner, std::shared_ptr<StoreRecord> record)
    : Tier(inner->name(), inner->slots().members(), inner->pageBytes()), inner_(std::move(inner)), record_(std::move(record)) {
  *record_ = StoreRecord();
  record_->slots.resize(slots().total());
}

void RecordingTier::run(Transfer *const *transfers, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (record_->before)
      record_->before();
    Transfer &transfer = *transfers[i];
    std::optional<StoreRecord::Content> &content = record_->slots[transfer.slot];
    if (transfer.kind == Transfer::Kind::Store)
      content.reset();
    inner_->run(&transfers[i], 1);
    if (!transfer.status.ok())
      continue;
    if (transfer.kind == Transfer::Kind::Erase)
      content.reset();
    if (transfer.kind == Transfer::Kind::Store) {
      ++record_->stores;
      content = {transfer.tag, std::vector<char>(transfer.page, transfer.page + pageBytes())};
      record_->ever[{transfer.slot, transfer.tag}] = content->page;
    }
    if (transfer.kind != Transfer::Kind::Load)
      continue;
    ++record_->loads;
    bool same = content && content->tag == transfer.tag && std::equal(content->page.begin(), content->page.end(), transfer.page);
    if (!same)
      record_->mismatch = "slot " + std::to_string(transfer.slot) + " gave what was not stored";
  }
}

/// What may succeed when it is repeated is, three times.
size_t RecordingMover::take(Transfer **out, size_t most) {
  size_t count = inner_->take(out, most);
  for (size_t i = 0; i < count; ++i) {
    const Transfer &transfer = *out[i];
    if (transfer.kind != Transfer::Kind::Load)
      continue;
    if (transfer.status.code() == QUIRE_IO_ERROR && ++record_->failedLoads[transfer.tag] < 4)
      continue;
    record_->failedLoads.erase(transfer.tag);
    if (!transfer.status.ok() && record_->lost)
      record_->lost(static_cast<uint32_t>(transfer.tag), transfer.tag);
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

std::string slotFileOf(pid_t process) {
  std::string folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string();
  return folder + "/quire-pool-model-" + std::to_string(process);
}

static std::string slotFile() { return slotFileOf(::getpid()); }

PoolUnderTest::PoolUnderTest(const Program &program)
    : program_(program), layersPerPage_(1 + program[ShapeField::Layers] % markLayers), record_(std::make_shared<StoreRecord>()) {
  script_.layersPerPage = layersPerPage_;
  setMarkForm(codec() == Codec::None ? MarkForm::Bits : codec() == Codec::Fp8E4M3 ? MarkForm::Fp8 : MarkForm::OneOfTwo);
}

Codec PoolUnderTest::codec() const {
  constexpr Codec codecs[] = {Codec::None, Codec::Fp8E4M3, Codec::Sparse8Bitmap};
  return hasSlowTier() ? codecs[program_[ShapeField::Codec] % 3] : Codec::None;
}

PoolUnderTest::~PoolUnderTest() {
  executor_.reset();
  pool_.reset();
  if (hasFile())
    ::unlink(slotFile().c_str());
}

FileTierOptions PoolUnderTest::fileOptions(uint64_t pageBytes) const {
  FileTierOptions options;
  options.path = slotFile();
  options.slots = slowSlots() - memorySlots();
  options.pageBytes = pageBytes;
  options.keep = true;
  options.direct = false;
  options.io = FileIoKind::Pread;
  options.depth = 2;
  return options;
}

template <typename Inner>
std::unique_ptr<Tier> PoolUnderTest::watched(std::unique_ptr<Inner> inner) {
  FaultPlan plan;
  plan.seed = program_[ShapeField::Seed];
  stored_.push_back(inner.get());
  auto faults = std::make_unique<FaultTier>(std::move(inner), plan, *clock_);
  faults_.push_back(faults.get());
  return faults;
}

Status PoolUnderTest::makeTier(uint64_t pageBytes, std::unique_ptr<Tier> &out) {
  pageBytes_ = pageBytes;
  faults_.clear();
  stored_.clear();
  std::vector<std::unique_ptr<Tier>> tiers;
  Status status;
  if (hasMemory()) {
    HostTierOptions options;
    options.slots = memorySlots();
    options.pageBytes = pageBytes;
    options.checksum = true;
    options.commit = false;
    std::unique_ptr<HostTier> host = HostTier::create(options, status);
    QUIRE_TRY(status);
    tiers.push_back(watched(std::move(host)));
  }
  if (hasFile()) {
    std::unique_ptr<FileTier> file = FileTier::open(fileOptions(pageBytes), status);
    QUIRE_TRY(status);
    tiers.push_back(watched(std::move(file)));
  }
  std::unique_ptr<Tier> tier = tiers.size() == 1 ? std::move(tiers.front()) : std::make_unique<StackedTier>(std::move(tiers));
  out = std::make_unique<RecordingTier>(std::move(tier), record_);
  return success();
}

std::string PoolUnderTest::open() {
  const quire_model_info &info = markInfo();
  PageGeometry geometry;
  Status status = PageGeometry::make(info, layersPerPage_, geometry);
  if (!status.ok())
    return status.text();
  bool tiered = hasSlowTier();
  uint64_t fast = fastPages();
  if (stableVa())
    geometry.separate(MappedMemory::systemPage());
  Pool::Options options;
  options.codec = codec();
  options.digests = true;
  options.bytes = tiered ? fast * geometry.pageStride : (3 + program_[ShapeField::Blocks] % 20) * static_cast<uint64_t>(quire_model_block_bytes(&info));
  options.order.shuffle = program_[ShapeField::Shuffle] % 2;
  options.order.seed = program_[ShapeField::Seed];
  options.poison = poisons();
  options.zeroOnFree = erases();
  options.prefixCache = prefixCache();
  options.exportable = exportable();
  options.stableVa = stableVa();
  unsigned bits = program_[ShapeField::HashBits];
  options.prefix.hashBits = bits ? bits : 256;
  options.layersPerPage = layersPerPage_;
  options.paging.policy = PolicyKind(program_[ShapeField::Policy] % 4);
  options.paging.prefetchWindow = program_[ShapeField::Window] % 6;
  clock_ = std::make_shared<VirtualClock>();
  options.clock = clock_;
  if (tiered)
    options.slowTier = [&](uint64_t pageBytes, std::unique_ptr<Tier> &tier, std::unique_ptr<Mover> &mover) {
      QUIRE_TRY(makeTier(pageBytes, tier));
      mover = createSteppedMover(*clock_, Pager::transfersFor(fast), program_[ShapeField::Seed] + (lives_ << 8));
      mover = std::make_unique<RecordingMover>(std::move(mover), record_);
      return success();
    };
  std::unique_ptr<Pool> made;
  status = Pool::create(info, options, made);
  if (!status.ok())
    return status.text();
  pool_.reset(new quire_pool{std::move(made), {}});
  ++lives_;
  planned_ = false;
  quire_model *model = nullptr;
  quire_executor *executor = nullptr;
  quire_executor_options limits = {sizeof(limits), 1, 64, 8, 0, 0};
  if (quire_model_from_info(&info, &script_, &model) != QUIRE_OK)
    return quire_last_error();
  model_.reset(model);
  if (quire_executor_create(model, pool_.get(), &limits, &executor) != QUIRE_OK)
    return quire_last_error();
  executor_.reset(executor);
  return {};
}

void PoolUnderTest::plan(const Fault &fault) {
  faults_[program_[ShapeField::Tier] / 4 % faults_.size()]->add(fault);
  planned_ = true;
}

uint64_t PoolUnderTest::injected() const {
  uint64_t count = 0;
  for (size_t kind = 0; kind < Fault::kinds; ++kind)
    for (const FaultTier *faults : faults_)
      count += faults->injected(Fault::Kind(kind));
  return count;
}

bool PoolUnderTest::slowIsBlank() {
  const TierSlots &slots = pager()->slow().slots();
  for (size_t member = 0; member < stored_.size(); ++member) {
    std::vector<char> bytes(stored_[member]->storedBytes());
    for (uint32_t slot = 0; slot < slots.members()[member].slots; ++slot) {
      if (!stored_[member]->readStored(slot, bytes.data()).ok())
        return false;
      if (std::any_of(bytes.end() - static_cast<std::ptrdiff_t>(pageBytes_), bytes.end(), [](char byte) { return byte != 0; }))
        return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Crashes
//===----------------------------------------------------------------------===//

/// Each entry of the file is one that was stored, whole; and without damage each that was stored is there.
std::string PoolUnderTest::compareFile(bool damaged) {
  FileTierOptions options = fileOptions(pageBytes_);
  options.mode = SlotFile::Mode::Existing;
  Status status;
  std::unique_ptr<FileTier> file = FileTier::open(options, status);
  if (!file)
    return "the file that a pool left cannot be opened: " + status.text();
  std::vector<FileTier::Entry> entries;
  if (file->recover(entries) != 0)
    return "the file that a pool left cannot be read";
  uint32_t first = memorySlots(); // the file's slots come after those of memory
  auto known = std::count_if(record_->slots.begin() + first, record_->slots.end(), [](const auto &content) { return content.has_value(); });
  if (!damaged && entries.size() != static_cast<size_t>(known))
    return "the file that a pool left lacks what was stored";
  std::vector<char> page(pageBytes_);
  for (const FileTier::Entry &entry : entries) {
    Transfer transfer, *one = &transfer;
    transfer.slot = entry.slot;
    transfer.page = page.data();
    transfer.tag = entry.tag;
    file->run(&one, 1);
    const std::optional<StoreRecord::Content> &content = record_->slots[first + entry.slot];
    bool current = content && content->tag == entry.tag;
    auto stored = record_->ever.find({first + entry.slot, entry.tag});
    if (!transfer.status.ok() || !(current || damaged) || stored == record_->ever.end() || stored->second != page)
      return "slot " + std::to_string(entry.slot) + " of the file that a pool left holds what was not stored";
  }
  return {};
}

std::string PoolUnderTest::crash(int file) {
  executor_.reset();
  pool_.reset();
  faults_.clear();
  stored_.clear();
  if (!hasFile())
    return {};
  std::error_code ignored;
  if (file == 1)
    std::filesystem::resize_file(slotFile(), std::filesystem::file_size(slotFile(), ignored) / 2, ignored);
  std::string error = compareFile(planned_ || file == 1);
  if (file == 2)
    ::unlink(slotFile().c_str());
  return error;
}

} // namespace quire::test
