#include "astra_bridge/engine/ring_lockstep.h"

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "astra_bridge/engine/collective_algorithm.h"
#include "astra_bridge/engine/event_queue.h"

namespace meridian {
namespace {

// The one member that stands for all. The detail of its events is their turn: by how many places
// the order of the members has been turned.
class Member {
 public:
  Member(const CollectivePlan& plan, const RingStep& step, int32_t active_chunks,
         double local_memory_bandwidth)
      : plan_(plan),
        phase_(plan.phases[0]),
        step_(step),
        reduction_ns_(ReductionNs(phase_.message_bytes, local_memory_bandwidth)),
        active_chunks_(active_chunks),
        links_(step.links) {}

  std::optional<LockstepResult> Run() {
    StartChunks();
    Event event;
    while (events_.Pop(&event)) {
      if (!IsAlikeWithinInstant(event)) return std::nullopt;
      turn_ = static_cast<int32_t>(event.detail);
      switch (event.kind) {
        case EventKind::kReduce:
          Schedule(reduction_ns_, EventKind::kPrepared, event.subject, turn_);
          break;
        case EventKind::kPrepared:
          OnPrepared(event.subject);
          break;
        case EventKind::kCrossed:
          OnCrossed(event.subject);
          break;
        case EventKind::kLinkFree:
          OnLinkFree(event.subject);
          break;
        case EventKind::kTaken:
        case EventKind::kNodeDone:
        case EventKind::kMemberDone:
        case EventKind::kSendDone:
        case EventKind::kRankIsDue:
          return std::nullopt;
      }
      if (gave_up_) return std::nullopt;
    }
    return LockstepResult{events_.now_ns(), turn_};
  }

 private:
  struct Chunk : AlgorithmHost {
    Chunk(Member* member, uint32_t number)
        : member(member), number(number), state(member->phase_) {}

    void Prepare(int64_t reduce_bytes) override {
      member->Schedule(member->phase_.endpoint_delay_ns,
                       reduce_bytes > 0 ? EventKind::kReduce : EventKind::kPrepared, number,
                       member->turn_);
    }
    void Send(int32_t, uint32_t sequence, int64_t) override {
      member->SendMessage({this, sequence, 0});
    }
    void Expect(uint32_t) override {}
    void Finish() override { finished = true; }

    Member* member;
    uint32_t number;
    ExchangeState state;
    bool finished = false;
  };

  struct Message {
    Chunk* chunk = nullptr;
    uint32_t sequence = 0;
    int32_t links_crossed = 0;
  };

  struct Link {
    bool busy = false;
    std::deque<uint32_t> waiting;
  };

  bool IsAlikeWithinInstant(const Event& event) {
    if (event.time_ns != instant_ns_) {
      instant_ns_ = event.time_ns;
      instant_turn_ = event.detail;
    }
    return event.detail == instant_turn_;
  }

  void Schedule(int64_t delay_ns, EventKind kind, uint32_t subject, int32_t turn) {
    const uint32_t detail = static_cast<uint32_t>(turn % phase_.size);
    if (kind == EventKind::kPrepared || kind == EventKind::kReduce) {
      events_.ScheduleOnRank(0, events_.now_ns() + delay_ns, kind, subject, detail);
    } else {
      events_.Schedule(events_.now_ns() + delay_ns, kind, subject, detail);
    }
  }

  void StartChunks() {
    while (running_ < active_chunks_ && next_chunk_ < plan_.chunks) {
      ++running_;
      ++next_chunk_;
      uint32_t number = static_cast<uint32_t>(chunks_.size());
      if (!free_chunks_.empty()) {
        number = free_chunks_.back();
        free_chunks_.pop_back();
        chunks_[number] = Chunk(this, number);
      } else {
        chunks_.emplace_back(this, number);
      }
      chunks_[number].state.Start(phase_, chunks_[number]);
    }
  }

  void OnPrepared(uint32_t number) {
    Chunk& chunk = chunks_[number];
    chunk.state.OnPrepared(phase_, 0, chunk);
    if (!chunk.finished) return;
    free_chunks_.push_back(number);
    --running_;
    StartChunks();
  }

  void SendMessage(const Message& message) {
    uint32_t number = static_cast<uint32_t>(messages_.size());
    if (free_messages_.empty()) {
      messages_.push_back(message);
    } else {
      number = free_messages_.back();
      free_messages_.pop_back();
      messages_[number] = message;
    }
    if (links_.empty()) {
      Schedule(step_.crossing_ns, EventKind::kCrossed, number, turn_ + 1);
    } else {
      EnterLink(0, number);
    }
  }

  void EnterLink(uint32_t link, uint32_t message) {
    if (links_[link].busy) {
      links_[link].waiting.push_back(message);
      return;
    }
    links_[link].busy = true;
    // Behind its first link a message is with its receiver.
    Schedule(step_.crossing_ns, EventKind::kCrossed, message, turn_ + (link == 0 ? 1 : 0));
    Schedule(step_.sending_ns, EventKind::kLinkFree, link, turn_);
  }

  void OnLinkFree(uint32_t link) {
    links_[link].busy = false;
    if (links_[link].waiting.empty()) return;
    const uint32_t message = links_[link].waiting.front();
    links_[link].waiting.pop_front();
    EnterLink(link, message);
  }

  void OnCrossed(uint32_t number) {
    Message& message = messages_[number];
    if (++message.links_crossed < step_.links) {
      EnterLink(static_cast<uint32_t>(message.links_crossed), number);
      return;
    }
    free_messages_.push_back(number);
    Chunk* chunk = message.chunk;
    // All members are in step: a message that comes has been expected since its like was sent.
    if (!chunk->state.Expects(message.sequence)) {
      gave_up_ = true;
      return;
    }
    chunk->state.OnReceived(phase_, *chunk);
  }

  const CollectivePlan& plan_;
  const CollectivePhase& phase_;
  const RingStep step_;
  const int64_t reduction_ns_;
  const int32_t active_chunks_;

  EventQueue events_{/*ranks=*/1};
  // Turn of the event under way.
  int32_t turn_ = 0;
  // The instant under way, and the turn that all its events must have.
  int64_t instant_ns_ = -1;
  uint32_t instant_turn_ = 0;
  bool gave_up_ = false;

  int32_t next_chunk_ = 0;
  int32_t running_ = 0;
  // A deque, whose elements keep their address: messages point at them.
  std::deque<Chunk> chunks_;
  std::vector<uint32_t> free_chunks_;
  std::vector<Message> messages_;
  std::vector<uint32_t> free_messages_;
  std::vector<Link> links_;
};

// Returns how a message of a ring goes from one rank to another; nullopt when it would not have its
// links to itself.
std::optional<RingStep> StepBetween(int32_t source, int32_t destination, int64_t bytes,
                                    const Topology& topology, const LinkNetwork& network) {
  RingStep step;
  if (!network.is_aware()) {
    step.crossing_ns = network.UncongestedNs(source, destination, bytes);
    return step;
  }
  const int32_t dimension = topology.FirstDifference(source, destination);
  const int32_t from = topology.Coordinate(source, dimension);
  const int32_t to = topology.Coordinate(destination, dimension);
  if (source + (to - from) * topology.stride(dimension) != destination) return std::nullopt;
  const NetworkDimension& block = topology.dimension(dimension);
  step.links = topology.Hops(dimension, from, to);
  // Further along a ring the ways of several members overlap.
  if (step.links > 1 && block.shape != BlockShape::kSwitch) return std::nullopt;
  const LinkTimes times = LinkTimesOf(block, bytes);
  step.crossing_ns = times.crossing_ns;
  step.sending_ns = times.sending_ns;
  return step;
}

}  // namespace

int32_t MemberAhead(const CollectivePhase& phase, int32_t member, int32_t steps) {
  const int32_t stride = phase.stride == 0 ? 1 : phase.stride;
  const int32_t position = member / stride % phase.size;
  const int32_t ahead = ((position + steps) % phase.size + phase.size) % phase.size;
  return member + (ahead - position) * stride;
}

std::optional<LockstepResult> RunInLockstep(const CollectivePlan& plan, const GroupTable& groups,
                                            uint32_t group, const Topology& topology,
                                            const LinkNetwork& network,
                                            const SystemConfig& system) {
  const CollectivePhase& phase = plan.phases[0];
  if (plan.phases.size() > 1 || phase.algorithm.kind != CollectiveAlgorithm::Kind::kRing) {
    return std::nullopt;
  }
  std::optional<RingStep> common;
  for (int32_t member = 0; member < groups.size(group); ++member) {
    const int32_t next = MemberAhead(phase, member, phase.direction);
    const std::optional<RingStep> step =
        StepBetween(groups.rank(group, member), groups.rank(group, next), phase.message_bytes,
                    topology, network);
    if (!step.has_value() || (common.has_value() && !(*step == *common))) return std::nullopt;
    common = step;
  }
  return RunRingInLockstep(plan, *common, system.active_chunks_per_dimension,
                           system.local_memory_bandwidth);
}

std::optional<LockstepResult> RunRingInLockstep(const CollectivePlan& plan, const RingStep& step,
                                                int32_t active_chunks,
                                                double local_memory_bandwidth) {
  return Member(plan, step, active_chunks, local_memory_bandwidth).Run();
}

}  // namespace meridian
