#include "cluster/probe/probe_node.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr double kNsPerS = 1e9;
// A pair takes two questions, and of who is asked two answers and the times when those left. Every
// host asks as often as it is asked; what is above five is slack for jitter.
constexpr double kPacketsPerPair = 5.5;
constexpr double kAnswerShare = 3.0 / 5.0;
// How many answers may be sent at once.
constexpr double kMaxBurst = 16;
// So long after a clock was set, in windows, nothing is used: however windows of two nodes overlap,
// none then holds probes from before and after.
constexpr int64_t kQuietWindows = 2;
// Who was silent for so long may begin anew with lower sequence numbers: its clock was set back.
constexpr int64_t kForgetAskerNs = 60000000000;
// What the kernel says is believed up to so much after the program's own reading.
constexpr int64_t kMaxKernelDelayNs = 1000000000;
// Times that readers of probes accept.
constexpr int64_t kMaxTimeNs = int64_t{1} << 62;

bool IsTime(int64_t time_ns) { return time_ns > 0 && time_ns < kMaxTimeNs; }

bool IsAnswered(const TwoWayProbe& probe) { return probe.src_received_ns != 0; }

int64_t RoundTripNs(const TwoWayProbe& probe) {
  return (probe.src_received_ns - probe.src_sent_ns) - (probe.dst_sent_ns - probe.dst_received_ns);
}

// Moves a reading that was taken before the packet left to what the kernel says.
void Refine(int64_t kernel_ns, int64_t* sent_ns) {
  if (kernel_ns >= *sent_ns && kernel_ns - *sent_ns < kMaxKernelDelayNs) *sent_ns = kernel_ns;
}

}  // namespace

ProbeNode::ProbeNode(ProbeNodeOptions options, const ClockReading& start, Send send)
    : options_(std::move(options)),
      send_(std::move(send)),
      random_(options_.seed + options_.node_id),
      // Above all that an earlier daemon of this host has used.
      next_sequence_(static_cast<uint64_t>(start.before_ns) & ~uint64_t{1}),
      turn_ns_(start.second_ns),
      neighbours_(options_.neighbours.size()),
      answers_(kMaxBurst),
      answers_at_ns_(start.second_ns) {
  MERIDIAN_CHECK(!neighbours_.empty() && options_.packets_per_s > 0 && options_.window_ns > 0);
  for (const uint32_t node : options_.all_nodes) {
    if (node != options_.node_id) askers_[node];
  }
  next_pair_ns_ = turn_ns_;
  next_wake_ns_ = turn_ns_;
}

void ProbeNode::Wake(const ClockReading& now) {
  NoteStep(now);
  // A pair's second question is due a short time after its first.
  if (!pairs_.empty() && !pairs_.back().second_asked &&
      now.second_ns >= pairs_.back().begun_ns + options_.pair_gap_ns) {
    Ask(&pairs_.back(), 1, now);
  }
  if (now.second_ns >= next_pair_ns_) BeginPair(now);
  FinishPairs(now, false);
  ScheduleWake();
}

void ProbeNode::NoteStep(const ClockReading& now) {
  if (!step_detector_.IsStep(now)) return;
  ++steps_;
  ++counts_.own_steps;
  pairs_.clear();
  windows_.clear();
  for (Neighbour& neighbour : neighbours_) {
    neighbour.quiet_until_ns = now.second_ns + kQuietWindows * options_.window_ns;
  }
}

void ProbeNode::NoteNeighbourSteps(size_t neighbour, uint32_t steps, const ClockReading& now) {
  const std::optional<uint32_t> before = std::exchange(neighbours_[neighbour].steps, steps);
  if (before.value_or(steps) == steps) return;
  ++counts_.neighbour_steps;
  neighbours_[neighbour].quiet_until_ns = now.second_ns + kQuietWindows * options_.window_ns;
  for (auto& [id, window] : windows_) window.probes[neighbour].clear();
}

void ProbeNode::BeginPair(const ClockReading& now) {
  const int64_t turn_ns = static_cast<int64_t>(kPacketsPerPair / options_.packets_per_s * kNsPerS);
  // One pair a turn at a random moment of its first half, so that hosts do not stay in step.
  turn_ns_ = std::max(turn_ns_ + turn_ns, now.second_ns - turn_ns);
  next_pair_ns_ =
      turn_ns_ + static_cast<int64_t>(random_() % static_cast<uint64_t>(turn_ns / 2 + 1));
  Pair pair;
  pair.neighbour = next_neighbour_;
  next_neighbour_ = (next_neighbour_ + 1) % neighbours_.size();
  pair.sequence = next_sequence_;
  next_sequence_ += 2;
  pair.begun_ns = now.second_ns;
  pairs_.push_back(pair);
  Ask(&pairs_.back(), 0, now);
}

void ProbeNode::Ask(Pair* pair, int which, const ClockReading& now) {
  TwoWayProbe& probe = pair->probes[which];
  probe.src = options_.node_id;
  probe.dst = options_.neighbours[pair->neighbour];
  probe.src_sent_ns = now.before_ns;
  if (which == 1) pair->second_asked = true;
  ProbePacket packet;
  packet.kind = ProbePacket::Kind::kQuestion;
  packet.sequence = pair->sequence + static_cast<uint64_t>(which);
  SendPacket(packet, options_.neighbours[pair->neighbour], "");
}

void ProbeNode::FinishPairs(const ClockReading& now, bool all) {
  while (!pairs_.empty() &&
         (all || now.second_ns - pairs_.front().begun_ns >= options_.timeout_ns)) {
    Finish(pairs_.front());
    pairs_.pop_front();
  }
}

void ProbeNode::Finish(const Pair& pair) {
  if (pair.begun_ns < neighbours_[pair.neighbour].quiet_until_ns) return;
  const TwoWayProbe& first = pair.probes[0];
  const TwoWayProbe& second = pair.probes[1];
  const int64_t window_id = first.src_sent_ns / options_.window_ns;
  ProbeWindow& window = windows_[window_id];
  window.window_id = window_id;
  window.probes.resize(neighbours_.size());
  std::vector<TwoWayProbe>& probes = window.probes[pair.neighbour];
  if (IsAnswered(first) && IsAnswered(second)) {
    const int64_t there_ns =
        (second.dst_received_ns - first.dst_received_ns) - (second.src_sent_ns - first.src_sent_ns);
    const int64_t back_ns =
        (second.src_received_ns - first.src_received_ns) - (second.dst_sent_ns - first.dst_sent_ns);
    if (std::max(std::abs(there_ns), std::abs(back_ns)) <= options_.max_pair_change_ns) {
      // Clean ones come in twos: a single one stood in for them.
      if (probes.size() == 1) probes.clear();
      probes.insert(probes.end(), {first, second});
      counts_.clean += 2;
      return;
    }
  }
  for (const TwoWayProbe& probe : pair.probes) {
    if (probe.src_sent_ns == 0) continue;
    if (!IsAnswered(probe)) {
      ++counts_.lost;
      continue;
    }
    ++counts_.queued;
    if (probes.empty()) {
      probes = {probe};
    } else if (probes.size() == 1 && RoundTripNs(probe) < RoundTripNs(probes[0])) {
      probes[0] = probe;
    }
  }
}

void ProbeNode::Receive(const ProbePacket& packet, const Address& from, int64_t received_ns,
                        const ClockReading& now) {
  NoteStep(now);
  ++counts_.packets_received;
  if (packet.dst != options_.node_id || !askers_.contains(packet.src)) {
    ++counts_.misdirected;
    return;
  }
  if (packet.kind == ProbePacket::Kind::kQuestion) {
    Answer(packet, from, received_ns, now);
    return;
  }
  Pair* const pair = FindPair(packet.sequence);
  if (pair == nullptr) {
    ++counts_.replayed;
    return;
  }
  if (options_.neighbours[pair->neighbour] != packet.src) {
    ++counts_.misdirected;
    return;
  }
  const size_t neighbour = pair->neighbour;
  if (packet.kind == ProbePacket::Kind::kAnswer) {
    TwoWayProbe& probe = pair->probes[packet.sequence & 1];
    if (IsAnswered(probe) || probe.src_sent_ns == 0) {
      ++counts_.replayed;
      return;
    }
    if (!IsTime(packet.first_ns) || !IsTime(packet.second_ns) || !IsTime(received_ns) ||
        packet.second_ns < packet.first_ns || received_ns < probe.src_sent_ns) {
      ++counts_.misdirected;
      return;
    }
    probe.dst_received_ns = packet.first_ns;
    probe.dst_sent_ns = packet.second_ns;
    probe.src_received_ns = received_ns;
  } else {
    const int64_t sent_ns[2] = {packet.first_ns, packet.second_ns};
    for (int i = 0; i < 2; ++i) {
      if (IsAnswered(pair->probes[i]) && IsTime(sent_ns[i])) {
        Refine(sent_ns[i], &pair->probes[i].dst_sent_ns);
      }
    }
  }
  NoteNeighbourSteps(neighbour, packet.steps, now);
}

void ProbeNode::Answer(const ProbePacket& packet, const Address& from, int64_t received_ns,
                       const ClockReading& now) {
  Asker& asker = askers_[packet.src];
  if (IsReplay(&asker, packet.sequence, from, now)) {
    ++counts_.replayed;
    if (from != asker.address) ++counts_.replayed_elsewhere;
    return;
  }
  if (!MayAnswer(now)) {
    ++counts_.over_rate;
    return;
  }
  ProbePacket answer;
  answer.kind = ProbePacket::Kind::kAnswer;
  answer.sequence = packet.sequence;
  answer.first_ns = received_ns;
  // The reading was finished before the answer leaves.
  answer.second_ns = std::max(received_ns, now.before_ns);
  if ((packet.sequence & 1) == 0) {
    asker.pair_sequence = packet.sequence;
    asker.first_sent_ns = 0;
  }
  SendPacket(answer, packet.src, from);
}

bool ProbeNode::IsReplay(Asker* asker, uint64_t sequence, const Address& from,
                         const ClockReading& now) {
  if (now.second_ns - asker->last_ns > kForgetAskerNs) asker->seen = 0;
  if (asker->seen == 0 || sequence > asker->newest_sequence) {
    const uint64_t ahead = asker->seen == 0 ? 64 : sequence - asker->newest_sequence;
    asker->seen = (ahead < 64 ? asker->seen << ahead : 0) | 1;
    asker->newest_sequence = sequence;
    asker->address = from;
  } else {
    const uint64_t behind = asker->newest_sequence - sequence;
    if (behind >= 64 || (asker->seen >> behind & 1) != 0) return true;
    asker->seen |= uint64_t{1} << behind;
  }
  asker->last_ns = now.second_ns;
  return false;
}

bool ProbeNode::MayAnswer(const ClockReading& now) {
  const double passed_s = static_cast<double>(now.second_ns - answers_at_ns_) / kNsPerS;
  answers_ = std::min(kMaxBurst, answers_ + passed_s * options_.packets_per_s * kAnswerShare);
  answers_at_ns_ = now.second_ns;
  // An answer brings half a packet of sent times with it.
  constexpr double kPacketsPerAnswer = 1.5;
  if (answers_ < kPacketsPerAnswer) return false;
  answers_ -= kPacketsPerAnswer;
  return true;
}

void ProbeNode::Sent(const ProbePacket& packet, int64_t sent_ns) {
  if (packet.src != options_.node_id || !IsTime(sent_ns)) return;
  if (packet.kind == ProbePacket::Kind::kQuestion) {
    Pair* const pair = FindPair(packet.sequence);
    if (pair != nullptr && pair->probes[packet.sequence & 1].src_sent_ns != 0) {
      Refine(sent_ns, &pair->probes[packet.sequence & 1].src_sent_ns);
    }
    return;
  }
  const auto asker = askers_.find(packet.dst);
  if (packet.kind != ProbePacket::Kind::kAnswer || asker == askers_.end() ||
      asker->second.pair_sequence != (packet.sequence & ~uint64_t{1})) {
    return;
  }
  if ((packet.sequence & 1) == 0) {
    asker->second.first_sent_ns = sent_ns;
    return;
  }
  ProbePacket times;
  times.kind = ProbePacket::Kind::kSentTimes;
  times.sequence = packet.sequence;
  times.first_ns = asker->second.first_sent_ns;
  times.second_ns = sent_ns;
  SendPacket(times, packet.dst, asker->second.address);
}

std::vector<ProbeWindow> ProbeNode::TakeWindows(const ClockReading& now, bool all) {
  FinishPairs(now, all);
  std::vector<ProbeWindow> finished;
  // What is still under way was begun after this.
  const int64_t open_id = (now.before_ns - options_.timeout_ns) / options_.window_ns;
  while (!windows_.empty() && (all || windows_.begin()->first < open_id)) {
    finished.push_back(std::move(windows_.begin()->second));
    windows_.erase(windows_.begin());
  }
  return finished;
}

void ProbeNode::SendPacket(ProbePacket packet, uint32_t dst, const Address& to) {
  packet.src = options_.node_id;
  packet.dst = dst;
  packet.steps = steps_;
  ++counts_.packets_sent;
  send_(packet, to);
}

ProbeNode::Pair* ProbeNode::FindPair(uint64_t sequence) {
  for (Pair& pair : pairs_) {
    if (pair.sequence == (sequence & ~uint64_t{1})) return &pair;
  }
  return nullptr;
}

void ProbeNode::ScheduleWake() {
  // Pairs that are over can wait for the next.
  next_wake_ns_ = next_pair_ns_;
  if (!pairs_.empty() && !pairs_.back().second_asked) {
    next_wake_ns_ = std::min(next_wake_ns_, pairs_.back().begun_ns + options_.pair_gap_ns);
  }
}

}  // namespace meridian
