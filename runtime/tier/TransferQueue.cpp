// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nodes in intrusive lists: one list a class, and one a group of slots.
#include "tier/TransferQueue.h"

#include "core/Random.h"

#include <algorithm>

namespace quire::runtime {

TransferQueue::TransferQueue(size_t capacity) {
  capacity = std::max<size_t>(capacity, 1);
  size_t buckets = 1;
  while (buckets < capacity)
    buckets *= 2;
  buckets_.resize(buckets);
  nodes_.resize(capacity);
  for (size_t i = 0; i < capacity; ++i)
    append(free_, static_cast<uint32_t>(i));
}

TransferQueue::List &TransferQueue::listOf(const Node &node) {
  return waiting_[static_cast<size_t>(node.urgency)];
}

void TransferQueue::append(List &list, uint32_t index) {
  Node &node = nodes_[index];
  node.previous = list.tail;
  node.next = none;
  (list.tail == none ? list.head : nodes_[list.tail].next) = index;
  list.tail = index;
  ++list.size;
}

void TransferQueue::remove(List &list, uint32_t index) {
  Node &node = nodes_[index];
  (node.previous == none ? list.head : nodes_[node.previous].next) = node.next;
  (node.next == none ? list.tail : nodes_[node.next].previous) = node.previous;
  --list.size;
}

uint32_t TransferQueue::takeNode() {
  if (free_.head == none) {
    nodes_.emplace_back();
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  uint32_t index = free_.head;
  remove(free_, index);
  return index;
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

TransferQueue::List &TransferQueue::bucketOf(const Node &node) {
  uint64_t state = reinterpret_cast<uintptr_t>(node.tier) ^ (uint64_t(node.transfer->slot) << 32);
  return buckets_[splitMix(state) & (buckets_.size() - 1)];
}

void TransferQueue::enterBucket(uint32_t index) {
  List &bucket = bucketOf(nodes_[index]);
  nodes_[index].slotPrevious = bucket.tail;
  nodes_[index].slotNext = none;
  (bucket.tail == none ? bucket.head : nodes_[bucket.tail].slotNext) = index;
  bucket.tail = index;
}

void TransferQueue::leaveBucket(uint32_t index) {
  Node &node = nodes_[index];
  List &bucket = bucketOf(node);
  (node.slotPrevious == none ? bucket.head : nodes_[node.slotPrevious].slotNext) = node.slotNext;
  (node.slotNext == none ? bucket.tail : nodes_[node.slotNext].slotPrevious) = node.slotPrevious;
}

bool TransferQueue::conflict(const Node &a, const Node &b) {
  return a.tier == b.tier && a.transfer->slot == b.transfer->slot &&
         !(a.transfer->kind == Transfer::Kind::Load && b.transfer->kind == Transfer::Kind::Load);
}

/// The earliest one that must end before this one may begin.
uint32_t TransferQueue::firstConflict(uint32_t index) {
  for (uint32_t i = bucketOf(nodes_[index]).head; i != index; i = nodes_[i].slotNext)
    if (conflict(nodes_[i], nodes_[index]))
      return i;
  return none;
}

/// Moves all that must run before this one into the class, those that must run
/// before them included.
void TransferQueue::raiseConflicts(uint32_t index, Urgency urgency) {
  uint32_t last = nodes_[index].slotPrevious;
  while (last != none && !conflict(nodes_[last], nodes_[index]))
    last = nodes_[last].slotPrevious;
  if (last == none)
    return;
  for (uint32_t i = bucketOf(nodes_[index]).head;; i = nodes_[i].slotNext) {
    const Node &node = nodes_[i];
    bool before = conflict(node, nodes_[index]) || conflict(node, nodes_[last]);
    if (before && node.state == State::Waiting && node.urgency > urgency)
      move(i, urgency);
    if (i == last)
      return;
  }
}

void TransferQueue::move(uint32_t index, Urgency urgency) {
  remove(listOf(nodes_[index]), index);
  nodes_[index].urgency = urgency;
  append(listOf(nodes_[index]), index);
}

//===----------------------------------------------------------------------===//
// From the owner
//===----------------------------------------------------------------------===//

void TransferQueue::push(Tier &tier, Transfer &transfer, Urgency urgency) {
  uint32_t index = takeNode();
  Node &node = nodes_[index];
  node.transfer = &transfer;
  node.tier = &tier;
  node.state = State::Waiting;
  node.urgency = urgency;
  transfer.ticket = index;
  enterBucket(index);
  raiseConflicts(index, urgency);
  append(listOf(node), index);
}

/// The node of a transfer that waits, or none. A ticket may be of another time.
uint32_t TransferQueue::waitingNode(const Transfer &transfer) const {
  uint32_t index = transfer.ticket;
  bool waits = index < nodes_.size() && nodes_[index].transfer == &transfer && nodes_[index].state == State::Waiting;
  return waits ? index : none;
}

void TransferQueue::promote(Transfer &transfer) {
  uint32_t index = waitingNode(transfer);
  if (index == none || nodes_[index].urgency == Urgency::Demand)
    return;
  raiseConflicts(index, Urgency::Demand);
  move(index, Urgency::Demand);
}

bool TransferQueue::cancel(Transfer &transfer) {
  uint32_t index = waitingNode(transfer);
  if (index == none)
    return false;
  remove(listOf(nodes_[index]), index);
  leaveBucket(index);
  nodes_[index].state = State::Free;
  nodes_[index].transfer = nullptr;
  append(free_, index);
  return true;
}

//===----------------------------------------------------------------------===//
// To and from the tier
//===----------------------------------------------------------------------===//

TransferQueue::List *TransferQueue::mostUrgentList() {
  for (List &list : waiting_)
    if (list.size)
      return &list;
  return nullptr;
}

bool TransferQueue::waiting() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const List &list) { return list.size != 0; });
}

void TransferQueue::start(uint32_t index) {
  remove(listOf(nodes_[index]), index);
  nodes_[index].state = State::Running;
}

size_t TransferQueue::begin(Transfer **out, size_t mostUrgent, size_t most, Tier *&tier) {
  List *list = mostUrgentList();
  if (!list)
    return 0;
  most = nodes_[list->head].urgency == Urgency::Demand ? mostUrgent : most;
  tier = nodes_[list->head].tier;
  size_t count = 0;
  while (count < most && list->head != none) {
    uint32_t index = list->head;
    if (nodes_[index].tier != tier || firstConflict(index) != none)
      break;
    start(index);
    out[count++] = nodes_[index].transfer;
  }
  return count;
}

bool TransferQueue::beginOne(uint64_t random, Transfer *&transfer, Tier *&tier) {
  List *list = mostUrgentList();
  if (!list)
    return false;
  uint32_t index = list->head;
  for (size_t steps = random % list->size; steps; --steps)
    index = nodes_[index].next;
  // Those that it waits for are in the same class, and the earliest of them waits for nothing.
  for (uint32_t blocking; (blocking = firstConflict(index)) != none;)
    index = blocking;
  start(index);
  transfer = nodes_[index].transfer;
  tier = nodes_[index].tier;
  return true;
}

void TransferQueue::finish(Transfer *const *transfers, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t index = transfers[i]->ticket;
    leaveBucket(index);
    nodes_[index].state = State::Finished;
    append(finished_, index);
  }
}

size_t TransferQueue::takeFinished(Transfer **out, size_t most) {
  size_t count = 0;
  for (; count < most && finished_.head != none; ++count) {
    uint32_t index = finished_.head;
    out[count] = nodes_[index].transfer;
    remove(finished_, index);
    nodes_[index].state = State::Free;
    nodes_[index].transfer = nullptr;
    append(free_, index);
  }
  return count;
}

} // namespace quire::runtime
