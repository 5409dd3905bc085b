// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Distributions in closed form, and generators of traces.
#include "Workloads.h"

#include "residency/Digests.h"

#include <algorithm>
#include <cmath>

namespace quire::kvbench {

using runtime::Trace;
using runtime::TraceEvent;
using Kind = TraceEvent::Kind;

double Random::normal() {
  double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * M_PI * uniform());
}

double Random::exponential(double mean) { return -mean * std::log(1 - uniform()); }

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

static constexpr double chatMean = 500, chatSigma = 0.8;
static const double chatMu = std::log(chatMean) - chatSigma * chatSigma / 2;

const char *lengthsName(Lengths lengths) {
  static constexpr const char *names[] = {"fixed", "U(0,1]", "U[0.2,1]", "U[0.4,1]", "chat"};
  return names[static_cast<size_t>(lengths)];
}

static double leastShare(Lengths lengths) {
  return lengths == Lengths::From20 ? 0.2 : lengths == Lengths::From40 ? 0.4 : 0;
}

int64_t drawLength(Lengths lengths, int64_t most, Random &random) {
  if (lengths == Lengths::Fixed)
    return most;
  double tokens;
  if (lengths == Lengths::Chat) {
    tokens = std::exp(chatMu + chatSigma * random.normal());
  } else {
    double least = leastShare(lengths);
    tokens = (least + (1 - least) * random.uniform()) * static_cast<double>(most);
  }
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(tokens)), 1, most);
}

static double normalBelow(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

double meanLength(Lengths lengths, int64_t most) {
  double longest = static_cast<double>(most);
  if (lengths == Lengths::Fixed)
    return longest;
  if (lengths != Lengths::Chat)
    return (1 + leastShare(lengths)) / 2 * longest;
  double z = (std::log(longest) - chatMu) / chatSigma;
  return chatMean * normalBelow(z - chatSigma) + longest * (1 - normalBelow(z));
}

static constexpr int64_t firstSlots = 16;

int64_t doublingSlots(int64_t tokens, int64_t most) {
  int64_t slots = firstSlots;
  while (slots < tokens)
    slots *= 2;
  return std::min(slots, most);
}

int64_t doublingCopies(int64_t tokens, int64_t most) {
  int64_t copied = 0;
  for (int64_t slots = firstSlots; slots < std::min(tokens, most); slots *= 2)
    copied += slots;
  return copied;
}

//===----------------------------------------------------------------------===//
// Traces
//===----------------------------------------------------------------------===//

namespace {

/// Records events of one sequence while its computation goes on.
class Recorder {
public:
  Recorder(const TraceShape &shape, size_t events) : shape_(shape), trace_(events) {
    trace_.pages = shape.pages();
    trace_.pageBytes = shape.pageBytes;
    trace_.numbering = {shape.blocks, shape.groups, true};
  }

  void step() { add(Kind::Step, 1); }
  void read(uint32_t block, uint32_t group) {
    add(Kind::Demand, trace_.numbering.page(block, group), group);
    now_ += shape_.pageNs;
  }
  void write(uint32_t block, uint32_t group) {
    add(Kind::Write, trace_.numbering.page(block, group), group);
    now_ += shape_.pageNs;
  }
  void observe(uint32_t block, uint32_t group, double mass) {
    add(Kind::Observe, trace_.numbering.page(block, group), group, static_cast<float>(mass));
  }
  Trace take() { return std::move(trace_); }
  size_t events() const { return trace_.events().size(); }

private:
  void add(Kind kind, uint32_t page, uint32_t group = 0, float mass = 0) {
    TraceEvent event{};
    event.kind = kind;
    event.page = page;
    event.layer = group;
    event.ns = now_;
    event.mass = mass;
    trace_.record(event);
  }

  TraceShape shape_;
  Trace trace_;
  int64_t now_ = 0;
};

/// Ranks 0 .. count-1 with probability in proportion to 1 / (rank + 1).
class Zipf {
public:
  explicit Zipf(uint32_t count) {
    double sum = 0;
    for (uint32_t rank = 0; rank < count; ++rank)
      sums_.push_back(sum += 1.0 / (rank + 1));
  }
  uint32_t draw(Random &random) const {
    double value = random.uniform() * sums_.back();
    return static_cast<uint32_t>(std::upper_bound(sums_.begin(), sums_.end(), value) - sums_.begin());
  }

private:
  std::vector<double> sums_;
};

bool has(const std::vector<uint32_t> &list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<uint32_t> shuffledBlocks(uint32_t count, Random &random) {
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < count; ++i)
    order[i] = i;
  for (uint32_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

} // namespace

Trace denseTrace(const TraceShape &shape) {
  Recorder recorder(shape, size_t(shape.steps) * (shape.pages() + 1));
  for (uint32_t step = 0; step < shape.steps; ++step) {
    recorder.step();
    for (uint32_t group = 0; group < shape.groups; ++group)
      for (uint32_t block = 0; block < shape.blocks; ++block)
        recorder.read(block, group);
  }
  return recorder.take();
}

Trace sparseTrace(const TraceShape &shape, const SparseAttention &attention, uint64_t seed) {
  Random random(seed);
  Zipf zipf(shape.blocks);
  std::vector<std::vector<uint32_t>> ranked, chosen(shape.groups);
  for (uint32_t group = 0; group < shape.groups; ++group)
    ranked.push_back(shuffledBlocks(shape.blocks, random));
  Recorder recorder(shape, size_t(shape.steps) * (2 * size_t(attention.topk) * shape.groups + 1));
  for (uint32_t step = 0; step < shape.steps; ++step) {
    recorder.step();
    for (uint32_t group = 0; group < shape.groups; ++group) {
      std::vector<uint32_t> next = {0, shape.blocks - 2, shape.blocks - 1};
      for (uint32_t block : chosen[group])
        if (!has(next, block) && next.size() < attention.topk && random.uniform() < attention.sticky)
          next.push_back(block);
      while (next.size() < attention.topk)
        if (uint32_t block = ranked[group][zipf.draw(random)]; !has(next, block))
          next.push_back(block);
      chosen[group] = next;
      for (size_t i = 0; i < next.size(); ++i) {
        recorder.read(next[i], group);
        recorder.observe(next[i], group, 1.0 / static_cast<double>(2 * (i + 1)));
      }
    }
  }
  return recorder.take();
}

namespace {

/// Keys of one group of layers, by one head, and what its queries look for.
class KeyedGroup {
public:
  KeyedGroup(uint32_t blocks, const KeyedAttention &attention, Random &random)
      : attention_(attention), keyShape_{1, attention.channels}, centres_(blocks * channels()), keys_(blocks * blockTokens() * channels()),
        digests_(blocks * keyShape_.digestValues()), bounds_(blocks), best_(blocks) {
    for (float &value : centres_)
      value = static_cast<float>(random.normal());
    for (size_t block = 0; block < blocks; ++block) {
      runtime::digestReset(keyShape_, &digests_[block * keyShape_.digestValues()]);
      for (size_t token = 0; token < blockTokens(); ++token) {
        float *key = &keys_[(block * blockTokens() + token) * channels()];
        for (size_t c = 0; c < channels(); ++c)
          key[c] = static_cast<float>(std::sqrt(attention.alike) * static_cast<double>(centres_[block * channels() + c]) +
                                      std::sqrt(1 - attention.alike) * random.normal());
        runtime::digestAdd(keyShape_, key, &digests_[block * keyShape_.digestValues()]);
      }
    }
  }

  void look(const std::vector<uint32_t> &interests, Random &random) {
    query_.assign(channels(), 0);
    for (float &value : query_)
      value = static_cast<float>(random.normal());
    for (uint32_t block : interests)
      for (size_t c = 0; c < channels(); ++c)
        query_[c] += centres_[block * channels() + c];
  }

  /// Of each block.
  std::vector<double> shares() const {
    std::vector<double> scores(keys_.size() / channels()), shares(bounds_.size());
    double most = -1e300;
    for (size_t i = 0; i < scores.size(); ++i) {
      for (size_t c = 0; c < channels(); ++c)
        scores[i] += static_cast<double>(query_[c]) * static_cast<double>(keys_[i * channels() + c]);
      scores[i] /= std::sqrt(static_cast<double>(channels()));
      most = std::max(most, scores[i]);
    }
    for (size_t i = 0; i < scores.size(); ++i)
      shares[i / blockTokens()] += std::exp(scores[i] - most);
    double sum = 0;
    for (double value : shares)
      sum += value;
    for (double &value : shares)
      value /= sum;
    return shares;
  }

  /// The blocks with the greatest bounds.
  std::vector<uint32_t> named(size_t count) {
    count = runtime::digestTop(keyShape_, query_.data(), 1, digests_.data(), bounds_.size(), count, bounds_.data(), best_.data());
    return {best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

private:
  size_t channels() const { return static_cast<size_t>(attention_.channels); }
  size_t blockTokens() const { return static_cast<size_t>(attention_.blockTokens); }

  KeyedAttention attention_;
  runtime::KeyShape keyShape_;
  std::vector<float> centres_, keys_, digests_, query_;
  std::vector<double> bounds_;
  std::vector<uint32_t> best_;
};

/// Blocks that are looked for, which change from step to step.
class Interests {
public:
  Interests(uint32_t blocks, size_t count, double sticky, Random &random)
      : ranked_(shuffledBlocks(blocks, random)), zipf_(blocks), count_(count), sticky_(sticky) {}

  const std::vector<uint32_t> &next(Random &random) {
    std::vector<uint32_t> kept;
    for (uint32_t block : now_)
      if (random.uniform() < sticky_)
        kept.push_back(block);
    while (kept.size() < count_)
      if (uint32_t block = ranked_[zipf_.draw(random)]; !has(kept, block))
        kept.push_back(block);
    return now_ = kept;
  }

private:
  std::vector<uint32_t> ranked_, now_;
  Zipf zipf_;
  size_t count_;
  double sticky_;
};

} // namespace

/// The first block, the last two, and those with the largest shares; by their places.
static std::vector<uint32_t> readBlocks(const std::vector<double> &shares, uint32_t topk) {
  uint32_t blocks = static_cast<uint32_t>(shares.size());
  std::vector<uint32_t> order(blocks), read = {0, blocks - 2, blocks - 1};
  for (uint32_t i = 0; i < blocks; ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return shares[a] != shares[b] ? shares[a] > shares[b] : a < b; });
  for (size_t i = 0; i < order.size() && read.size() < topk; ++i)
    if (!has(read, order[i]))
      read.push_back(order[i]);
  std::sort(read.begin(), read.end());
  return read;
}

KeyedTrace keyedTrace(const TraceShape &shape, const KeyedAttention &attention, uint64_t seed) {
  Random random(seed);
  size_t common = attention.interests / 2;
  Interests shared(shape.blocks, common, attention.sticky, random);
  std::vector<KeyedGroup> groups;
  std::vector<Interests> own;
  for (uint32_t group = 0; group < shape.groups; ++group) {
    groups.emplace_back(shape.blocks, attention, random);
    own.emplace_back(shape.blocks, attention.interests - common, attention.sticky, random);
  }
  KeyedTrace made{Trace(0), {}};
  Recorder recorder(shape, size_t(shape.steps) * (2 * size_t(attention.topk) * shape.groups + 1));
  for (uint32_t step = 0; step < shape.steps; ++step) {
    recorder.step();
    std::vector<uint32_t> together = shared.next(random);
    for (uint32_t group = 0; group < shape.groups; ++group) {
      std::vector<uint32_t> interests = own[group].next(random);
      interests.insert(interests.end(), together.begin(), together.end());
      groups[group].look(interests, random);
      runtime::NamedPages named{recorder.events(), groups[group].named(attention.topk)};
      for (uint32_t &block : named.pages)
        block = group * shape.blocks + block;
      made.named.push_back(std::move(named));
      std::vector<double> shares = groups[group].shares();
      for (uint32_t block : readBlocks(shares, attention.topk)) {
        recorder.read(block, group);
        recorder.observe(block, group, shares[block]);
      }
    }
  }
  made.trace = recorder.take();
  return made;
}

Trace dialogueTrace(const TraceShape &shape, const Dialogue &dialogue, uint64_t seed) {
  Random random(seed);
  uint32_t turnBlocks = shape.blocks / dialogue.turns, decodes = shape.steps / dialogue.turns;
  Recorder recorder(shape, size_t(dialogue.turns) * (decodes + 1) * (2 * size_t(shape.pages()) + 1));
  for (uint32_t turn = 0; turn < dialogue.turns; ++turn) {
    uint32_t begin = turn * turnBlocks, end = begin + turnBlocks;
    recorder.step();
    for (uint32_t group = 0; group < shape.groups; ++group) {
      for (uint32_t block = 0; block < begin; ++block)
        recorder.read(block, group);
      for (uint32_t block = begin; block < end; ++block)
        recorder.write(block, group);
    }
    uint32_t recent = turn >= dialogue.recentTurns ? (turn + 1 - dialogue.recentTurns) * turnBlocks : 0;
    for (uint32_t step = 0; step < decodes; ++step) {
      recorder.step();
      for (uint32_t group = 0; group < shape.groups; ++group) {
        std::vector<uint32_t> blocks = {0};
        if (recent > 1)
          blocks.push_back(recent - 1 - Zipf(recent - 1).draw(random));
        for (uint32_t block = std::max(recent, 1u); block < end; ++block)
          blocks.push_back(block);
        for (uint32_t block : blocks) {
          recorder.read(block, group);
          recorder.observe(block, group, block == 0 ? 0.3 : 0.7 / static_cast<double>(end + 1 - block));
        }
      }
    }
  }
  return recorder.take();
}

Trace documentTrace(const TraceShape &shape, uint32_t topk, uint64_t seed) {
  constexpr uint32_t chunk = 8, questionSteps = 16, places = 4;
  Random random(seed);
  Recorder recorder(shape, size_t(shape.groups) * (3 * size_t(shape.blocks) + size_t(shape.steps) * 2 * (topk + 1)) +
                               shape.steps + shape.blocks);
  for (uint32_t begin = 0; begin < shape.blocks; begin += chunk) {
    uint32_t end = std::min(begin + chunk, shape.blocks);
    recorder.step();
    for (uint32_t group = 0; group < shape.groups; ++group) {
      for (uint32_t block = begin >= 2 * chunk ? begin - 2 * chunk : 0; block < begin; ++block)
        recorder.read(block, group);
      for (uint32_t block = begin; block < end; ++block)
        recorder.write(block, group);
    }
  }
  std::vector<uint32_t> asked;
  for (uint32_t step = 0; step < shape.steps; ++step) {
    if (step % questionSteps == 0) {
      asked = {0};
      uint32_t length = topk / places;
      for (uint32_t place = 0; place < places; ++place) {
        uint32_t first = static_cast<uint32_t>(random.below(shape.blocks - length));
        for (uint32_t block = first; block < first + length; ++block)
          if (!has(asked, block))
            asked.push_back(block);
      }
    }
    recorder.step();
    for (uint32_t group = 0; group < shape.groups; ++group)
      for (uint32_t block : asked) {
        recorder.read(block, group);
        recorder.observe(block, group, 1.0 / static_cast<double>(asked.size()));
      }
  }
  return recorder.take();
}

} // namespace quire::kvbench
