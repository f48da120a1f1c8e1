#include "cluster/probe/probe_node.h"

#include <algorithm>
#include <utility>

#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr double kNsPerS = 1e9;
// A question takes an answer, and of who is asked the time when that left. Every host asks as often
// as it is asked; what is above three is slack for jitter.
constexpr double kPacketsPerQuestion = 3.3;
constexpr double kPacketsPerAnswer = 2;
constexpr double kAnswerShare = kPacketsPerAnswer / 3;
// How many packets of answers may be sent at once.
constexpr double kMaxBurst = 24;
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
      next_sequence_(static_cast<uint64_t>(start.before_ns)),
      turn_ns_(start.second_ns),
      next_question_ns_(start.second_ns),
      neighbours_(options_.neighbours.size()),
      answers_(kMaxBurst),
      answers_at_ns_(start.second_ns) {
  MERIDIAN_CHECK(!neighbours_.empty() && options_.packets_per_s > 0 && options_.window_ns > 0);
  for (const uint32_t node : options_.partners) {
    if (node != options_.node_id) askers_[node];
  }
}

void ProbeNode::Wake(const ClockReading& now) {
  NoteStep(now);
  if (now.second_ns >= next_question_ns_) Ask(now);
  FinishQuestions(now, false);
}

void ProbeNode::NoteStep(const ClockReading& now) {
  if (!step_detector_.IsStep(now)) return;
  ++steps_;
  ++counts_.own_steps;
  questions_.clear();
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
  for (auto& [id, window] : windows_) {
    window.probes.erase(std::remove_if(window.probes.begin(), window.probes.end(),
                                       [&](const TwoWayProbe& probe) {
                                         return probe.dst == options_.neighbours[neighbour];
                                       }),
                        window.probes.end());
  }
}

void ProbeNode::Ask(const ClockReading& now) {
  const int64_t turn_ns =
      static_cast<int64_t>(kPacketsPerQuestion / options_.packets_per_s * kNsPerS);
  // One question a turn at a random moment of its first half, so that hosts do not stay in step.
  turn_ns_ = std::max(turn_ns_ + turn_ns, now.second_ns - turn_ns);
  next_question_ns_ =
      turn_ns_ + static_cast<int64_t>(random_() % static_cast<uint64_t>(turn_ns / 2 + 1));
  Question& question = questions_.emplace_back();
  question.neighbour = next_neighbour_;
  next_neighbour_ = (next_neighbour_ + 1) % neighbours_.size();
  question.sequence = next_sequence_++;
  question.begun_ns = now.second_ns;
  question.probe.src = options_.node_id;
  question.probe.dst = options_.neighbours[question.neighbour];
  question.probe.src_sent_ns = now.before_ns;
  ProbePacket packet;
  packet.kind = ProbePacket::Kind::kQuestion;
  packet.sequence = question.sequence;
  SendPacket(packet, options_.neighbours[question.neighbour]);
}

void ProbeNode::FinishQuestions(const ClockReading& now, bool all) {
  while (!questions_.empty() &&
         (all || now.second_ns - questions_.front().begun_ns >= options_.timeout_ns)) {
    const Question question = questions_.front();
    questions_.pop_front();
    if (question.begun_ns < neighbours_[question.neighbour].quiet_until_ns) continue;
    const int64_t window_id = question.probe.src_sent_ns / options_.window_ns;
    ProbeWindow& window = windows_[window_id];
    window.window_id = window_id;
    const bool is_answered = IsAnswered(question.probe);
    ++(is_answered ? counts_.answered : counts_.lost);
    if (is_answered) window.probes.push_back(question.probe);
  }
}

void ProbeNode::Receive(const ProbePacket& packet, int64_t received_ns, const ClockReading& now) {
  NoteStep(now);
  ++counts_.packets_received;
  if (!Take(packet, received_ns, now)) ++counts_.refused;
}

bool ProbeNode::Take(const ProbePacket& packet, int64_t received_ns, const ClockReading& now) {
  if (packet.dst != options_.node_id || !askers_.contains(packet.src)) return false;
  if (packet.kind == ProbePacket::Kind::kQuestion) return Answer(packet, received_ns, now);
  Question* const question = FindQuestion(packet.sequence);
  if (question == nullptr || question->probe.dst != packet.src || !IsTime(packet.first_ns)) {
    return false;
  }
  TwoWayProbe& probe = question->probe;
  if (packet.kind == ProbePacket::Kind::kSentTime) {
    if (!IsAnswered(probe)) return false;
    Refine(packet.first_ns, &probe.dst_sent_ns);
  } else {
    if (IsAnswered(probe) || !IsTime(packet.second_ns) || !IsTime(received_ns) ||
        packet.second_ns < packet.first_ns || received_ns < probe.src_sent_ns) {
      return false;
    }
    probe.dst_received_ns = packet.first_ns;
    probe.dst_sent_ns = packet.second_ns;
    probe.src_received_ns = received_ns;
  }
  NoteNeighbourSteps(question->neighbour, packet.steps, now);
  return true;
}

bool ProbeNode::Answer(const ProbePacket& packet, int64_t received_ns, const ClockReading& now) {
  Asker& asker = askers_[packet.src];
  // What comes again, or behind a newer one, is not answered.
  if (packet.sequence <= asker.sequence && now.second_ns - asker.last_ns <= kForgetAskerNs) {
    return false;
  }
  asker = {packet.sequence, now.second_ns};
  if (!MayAnswer(now)) {
    ++counts_.over_rate;
    return true;
  }
  ProbePacket answer;
  answer.kind = ProbePacket::Kind::kAnswer;
  answer.sequence = packet.sequence;
  answer.first_ns = received_ns;
  // The reading was finished before the answer leaves.
  answer.second_ns = std::max(received_ns, now.before_ns);
  SendPacket(answer, packet.src);
  return true;
}

bool ProbeNode::MayAnswer(const ClockReading& now) {
  const double passed_s = static_cast<double>(now.second_ns - answers_at_ns_) / kNsPerS;
  answers_ = std::min(kMaxBurst, answers_ + passed_s * options_.packets_per_s * kAnswerShare);
  answers_at_ns_ = now.second_ns;
  if (answers_ < kPacketsPerAnswer) return false;
  answers_ -= kPacketsPerAnswer;
  return true;
}

void ProbeNode::Sent(const ProbePacket& packet, int64_t sent_ns) {
  if (packet.src != options_.node_id || !IsTime(sent_ns)) return;
  if (packet.kind == ProbePacket::Kind::kQuestion) {
    Question* const question = FindQuestion(packet.sequence);
    if (question != nullptr) Refine(sent_ns, &question->probe.src_sent_ns);
    return;
  }
  const auto asker = askers_.find(packet.dst);
  if (packet.kind != ProbePacket::Kind::kAnswer || asker == askers_.end() ||
      asker->second.sequence != packet.sequence) {
    return;
  }
  ProbePacket time;
  time.kind = ProbePacket::Kind::kSentTime;
  time.sequence = packet.sequence;
  time.first_ns = sent_ns;
  SendPacket(time, packet.dst);
}

std::vector<ProbeWindow> ProbeNode::TakeWindows(const ClockReading& now, bool all) {
  FinishQuestions(now, all);
  std::vector<ProbeWindow> finished;
  // What is still under way was begun after this.
  const int64_t open_id = (now.before_ns - options_.timeout_ns) / options_.window_ns;
  while (!windows_.empty() && (all || windows_.begin()->first < open_id)) {
    finished.push_back(std::move(windows_.begin()->second));
    windows_.erase(windows_.begin());
  }
  return finished;
}

void ProbeNode::SendPacket(ProbePacket packet, uint32_t dst) {
  packet.src = options_.node_id;
  packet.dst = dst;
  packet.steps = steps_;
  ++counts_.packets_sent;
  send_(packet);
}

ProbeNode::Question* ProbeNode::FindQuestion(uint64_t sequence) {
  for (Question& question : questions_) {
    if (question.sequence == sequence) return &question;
  }
  return nullptr;
}

}  // namespace meridian
