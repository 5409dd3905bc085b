// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order of transfers, for movers: classes of urgency, and slots whose transfers must not overtake each other.
#ifndef QUIRE_RUNTIME_TIER_TRANSFERQUEUE_H
#define QUIRE_RUNTIME_TIER_TRANSFERQUEUE_H

#include "tier/Mover.h"

#include <array>
#include <vector>

namespace quire::runtime {

/// Two transfers of one slot of one tier conflict unless both are loads; those run in
/// the order in which they were pushed. To keep that, whatever is pushed or promoted
/// takes those before it that conflict along into its class. So at any time, of two
/// that conflict the earlier is in the same class and before the later, or in a more
/// urgent one, and the first of the most urgent class waits for nothing.
///
/// Each operation is O(1), and O(transfers of one slot) where they conflict. Not safe
/// for threads by itself.
class TransferQueue {
public:
  using Urgency = Mover::Urgency;

  /// Takes memory only when more than `capacity` transfers are here.
  explicit TransferQueue(size_t capacity);

  void push(Tier &tier, Transfer &transfer, Urgency urgency);
  void promote(Transfer &transfer);
  /// True: it was waiting and is gone.
  bool cancel(Transfer &transfer);

  bool waiting() const;

  /// The next batch: transfers of one tier and one class in their order, none of
  /// which conflict. At most `mostUrgent` demands, or `most` others.
  size_t begin(Transfer **out, size_t mostUrgent, size_t most, Tier *&tier);

  /// One of the most urgent class; `random` says which. False: none waits.
  bool beginOne(uint64_t random, Transfer *&transfer, Tier *&tier);

  /// What has begun and ended.
  void finish(Transfer *const *transfers, size_t count);

  size_t finished() const { return finished_.size; }
  size_t takeFinished(Transfer **out, size_t most);

private:
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr size_t classes = 3;
  enum class State : uint8_t { Free, Waiting, Running, Finished };

  struct Node {
    Transfer *transfer = nullptr;
    Tier *tier = nullptr;
    uint32_t previous = none, next = none;         // of the list for its state
    uint32_t slotPrevious = none, slotNext = none; // of its bucket, in the order of pushing; waiting and running ones
    State state = State::Free;
    Urgency urgency = Urgency::Demand;
  };
  struct List {
    uint32_t head = none, tail = none;
    size_t size = 0;
  };

  List &listOf(const Node &node);
  void append(List &list, uint32_t index);
  void remove(List &list, uint32_t index);
  uint32_t takeNode();
  List &bucketOf(const Node &node);
  void enterBucket(uint32_t index);
  void leaveBucket(uint32_t index);
  static bool conflict(const Node &a, const Node &b);
  uint32_t firstConflict(uint32_t index);
  void raiseConflicts(uint32_t index, Urgency urgency);
  void move(uint32_t index, Urgency urgency);
  void start(uint32_t index);
  uint32_t waitingNode(const Transfer &transfer) const;
  List *mostUrgentList();

  std::vector<Node> nodes_; // by ticket
  std::vector<List> buckets_; // by a hash of tier and slot; a power of two
  List free_;
  std::array<List, classes> waiting_;
  List finished_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_TRANSFERQUEUE_H
