#include "astra_bridge/engine/ring_lockstep.h"

#include <cstddef>
#include <deque>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "astra_bridge/engine/collective_algorithm.h"
#include "astra_bridge/engine/event_queue.h"

namespace meridian {
namespace {

// The one member that stands for all.
class Member {
 public:
  // Returns how a message of so many bytes gets from the member at position 0 to another, if that
  // is alike for all members.
  using StepTo = absl::FunctionRef<std::optional<RingStep>(int32_t to_position, int64_t bytes)>;

  Member(const CollectivePlan& plan, StepTo step_to, const SystemConfig& system)
      : plan_(plan),
        phase_(plan.phases[0]),
        step_to_(step_to),
        system_(system),
        links_(kFirstOwnLink + phase_.size) {}

  // Returns when it is done; nullopt when members may differ, or order may matter.
  std::optional<int64_t> Run() {
    StartChunks();
    Event event;
    while (events_.Pop(&event)) {
      switch (event.kind) {
        case EventKind::kReduce:
          Schedule(chunks_[event.subject].reduction_ns, EventKind::kPrepared, event.subject);
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
        default:
          return std::nullopt;
      }
      if (gave_up_) return std::nullopt;
    }
    return events_.now_ns();
  }

 private:
  // The links: to the switch and from it, or one to each position.
  enum LinkNumber : uint32_t { kToSwitch, kFromSwitch, kFirstOwnLink };

  struct Chunk : AlgorithmHost {
    Chunk(Member* member, uint32_t number)
        : member(member), number(number), state(member->phase_) {}

    void Prepare(int64_t reduce_bytes) override {
      if (reduce_bytes > 0) {
        reduction_ns = ReductionNs(reduce_bytes, member->system_.local_memory_bandwidth);
      }
      member->Schedule(member->phase_.endpoint_delay_ns,
                       reduce_bytes > 0 ? EventKind::kReduce : EventKind::kPrepared, number);
    }
    void Send(int32_t to_position, uint32_t sequence, int64_t bytes) override {
      member->SendMessage(this, to_position, sequence, bytes);
    }
    void Expect(uint32_t) override {}
    void Finish() override { finished = true; }

    Member* member;
    uint32_t number;
    ExchangeState state;
    int64_t reduction_ns = 0;
    // When it last had a packet prepared, and when it last received one.
    int64_t prepared_ns = -1;
    int64_t received_ns = -1;
    bool finished = false;
  };

  struct Message {
    Chunk* chunk = nullptr;
    int32_t to_position = 0;
    uint32_t sequence = 0;
    RingStep step;
    int32_t links_crossed = 0;
  };

  struct Link {
    bool busy = false;
    // Messages that wait for it, in the order in which they came.
    std::vector<uint32_t> waiting;
    // When the last message came to it, and that message's receiver.
    int64_t entered_ns = -1;
    int32_t to_position = 0;
  };

  void Schedule(int64_t delay_ns, EventKind kind, uint32_t subject) {
    events_.Schedule(events_.now_ns() + delay_ns, kind, subject);
  }

  void StartChunks() {
    while (running_ < system_.active_chunks_per_dimension && next_chunk_ < plan_.chunks) {
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
    chunk.prepared_ns = events_.now_ns();
    CheckOrder(chunk);
    chunk.state.OnPrepared(phase_, 0, chunk);
    if (!chunk.finished) return;
    free_chunks_.push_back(number);
    --running_;
    StartChunks();
  }

  void SendMessage(Chunk* chunk, int32_t to_position, uint32_t sequence, int64_t bytes) {
    const std::optional<RingStep> step = step_to_(to_position, bytes);
    if (!step.has_value()) {
      gave_up_ = true;
      return;
    }
    const Message message = {chunk, to_position, sequence, *step, 0};
    uint32_t number = static_cast<uint32_t>(messages_.size());
    if (free_messages_.empty()) {
      messages_.push_back(message);
    } else {
      number = free_messages_.back();
      free_messages_.pop_back();
      messages_[number] = message;
    }
    if (step->links == 0) {
      Schedule(step->crossing_ns, EventKind::kCrossed, number);
    } else {
      EnterLink(step->links == 1 ? kFirstOwnLink + static_cast<uint32_t>(to_position) : kToSwitch,
                number);
    }
  }

  void EnterLink(uint32_t link_number, uint32_t number) {
    Link& link = links_[link_number];
    const Message& message = messages_[number];
    // The link from the switch carries what other members send.
    if (link_number == kFromSwitch && link.entered_ns == events_.now_ns() &&
        link.to_position != message.to_position) {
      gave_up_ = true;
    }
    link.entered_ns = events_.now_ns();
    link.to_position = message.to_position;
    if (link.busy) {
      link.waiting.push_back(number);
    } else {
      StartLink(link_number, number);
    }
  }

  void StartLink(uint32_t link, uint32_t number) {
    const Message& message = messages_[number];
    links_[link].busy = true;
    Schedule(message.step.crossing_ns, EventKind::kCrossed, number);
    Schedule(message.step.sending_ns, EventKind::kLinkFree, link);
  }

  void OnLinkFree(uint32_t link_number) {
    Link& link = links_[link_number];
    link.busy = false;
    if (link.waiting.empty()) return;
    const uint32_t number = link.waiting.front();
    link.waiting.erase(link.waiting.begin());
    StartLink(link_number, number);
  }

  // Gives up when it depends on the order within an instant what the chunk does: with one message
  // at a time a packet is prepared only after what was received before.
  void CheckOrder(const Chunk& chunk) {
    if (phase_.parallel > 1 && chunk.prepared_ns == chunk.received_ns) {
      gave_up_ = true;
    }
  }

  void OnCrossed(uint32_t number) {
    Message& message = messages_[number];
    if (++message.links_crossed < message.step.links) {
      EnterLink(kFromSwitch, number);
      return;
    }
    free_messages_.push_back(number);
    Chunk* chunk = message.chunk;
    chunk->received_ns = events_.now_ns();
    CheckOrder(*chunk);
    // All members are in step: a message that comes has been expected since its like was sent.
    if (!chunk->state.Expects(message.sequence)) {
      gave_up_ = true;
      return;
    }
    chunk->state.OnReceived(phase_, *chunk);
  }

  const CollectivePlan& plan_;
  const CollectivePhase& phase_;
  const StepTo step_to_;
  const SystemConfig& system_;

  EventQueue events_{/*ranks=*/1};
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
  if (network.shares_fairly()) return std::nullopt;
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

// Whether the messages of a collective go from each member to the next.
bool IsRing(const WorkloadNode& node, bool is_world, const Workload& workload,
            const NetworkConfig& network, const SystemConfig& system) {
  const std::vector<CollectiveAlgorithm>& algorithms = node.algorithms == kSystemAlgorithms
                                                           ? system.algorithms_of(node.op)
                                                           : workload.algorithms[node.algorithms];
  if (algorithms.size() != 1) return !is_world;
  return algorithms[0].kind == CollectiveAlgorithm::Kind::kRing &&
         (!is_world || network.dimensions.size() == 1);
}

}  // namespace

int32_t MemberAhead(const CollectivePhase& phase, int32_t member, int32_t distance) {
  if (distance == 0) return member;
  const int32_t stride = phase.stride == 0 ? 1 : phase.stride;
  const int32_t position = member / stride % phase.size;
  return member + (ReceiverOf(phase, position, distance % phase.size) - position) * stride;
}

std::optional<int64_t> OrderFreeDurationNs(const CollectivePlan& plan, const GroupTable& groups,
                                           uint32_t group, const Topology& topology,
                                           const LinkNetwork& network, const SystemConfig& system) {
  const CollectivePhase& phase = plan.phases[0];
  if (plan.phases.size() > 1 ||
      phase.algorithm.kind == CollectiveAlgorithm::Kind::kDoubleBinaryTree) {
    return std::nullopt;
  }
  const int32_t members = groups.size(group);
  // How a message of one size at a time gets to each position, indexed by position.
  std::vector<std::optional<RingStep>> steps(phase.size);
  std::vector<int64_t> known_bytes(phase.size, -1);
  const auto step_to = [&](int32_t to_position, int64_t bytes) {
    std::optional<RingStep>& step = steps[to_position];
    if (known_bytes[to_position] == bytes) return step;
    known_bytes[to_position] = bytes;
    for (int32_t member = 0; member < members; ++member) {
      const std::optional<RingStep> found = StepBetween(
          groups.rank(group, member), groups.rank(group, MemberAhead(phase, member, to_position)),
          bytes, topology, network);
      if (!found.has_value() || (member > 0 && !(*found == *step))) {
        step = std::nullopt;
        break;
      }
      step = found;
      // Behind a switch, and among the fully connected, all are as far from each other.
      const BlockShape shape = topology.dimension(0).shape;
      if (topology.dimension_count() == 1 &&
          (shape == BlockShape::kSwitch || shape == BlockShape::kFullyConnected)) {
        break;
      }
    }
    return step;
  };
  return Member(plan, step_to, system).Run();
}

std::optional<int64_t> FairRingNs(const CollectivePlan& plan, const GroupTable& groups,
                                  uint32_t group, const LinkNetwork& network,
                                  const SystemConfig& system) {
  const CollectivePhase& phase = plan.phases[0];
  // Chunks that are under way at once would share links.
  if (plan.phases.size() > 1 || phase.algorithm.kind != CollectiveAlgorithm::Kind::kRing ||
      std::min(system.active_chunks_per_dimension, plan.chunks) > 1) {
    return std::nullopt;
  }
  RingStep step;
  for (int32_t member = 0; member < groups.size(group); ++member) {
    const int64_t ns = network.UncongestedNs(
        groups.rank(group, member), groups.rank(group, MemberAhead(phase, member, phase.direction)),
        phase.message_bytes);
    if (member > 0 && ns != step.crossing_ns) return std::nullopt;
    step.crossing_ns = ns;
  }
  return Member(
             plan, [&](int32_t, int64_t) { return std::make_optional(step); }, system)
      .Run();
}

std::vector<bool> GroupsWithOwnLinks(const Workload& workload, const GroupTable& groups,
                                     const NetworkConfig& network, LinkPaths& paths,
                                     const SystemConfig& system) {
  constexpr int64_t kNobody = -1, kMessages = -2;
  const size_t count = groups.groups().size();
  std::vector<bool> own(count, true), is_seen(count);
  // Groups, or kMessages, by one-way link.
  std::vector<int64_t> owners(2 * network.links.size(), kNobody);
  const auto take = [&](int32_t from, int32_t to, int64_t taker) {
    for (const uint32_t link : paths.Find(from, to).links) {
      for (const int64_t group : {owners[link], taker}) {
        if (owners[link] != kNobody && group >= 0) own[group] = false;
      }
      owners[link] = taker;
    }
  };
  for (size_t r = 0; r < workload.ranks.size(); ++r) {
    const int32_t rank = static_cast<int32_t>(r);
    for (const WorkloadNode& node : workload.ranks[r].nodes()) {
      if (node.type == WorkloadNodeType::kSend) take(rank, node.peer, kMessages);
      if (node.type != WorkloadNodeType::kCollective) continue;
      const absl::StatusOr<Membership> place = groups.Find(rank, node.group);
      if (!place.ok()) continue;
      const uint32_t group = place->group;
      const bool is_world = groups.groups()[group].members.empty();
      if (!IsRing(node, is_world, workload, network, system)) return std::vector<bool>(count);
      if (is_seen[group]) continue;
      is_seen[group] = true;
      const int32_t size = groups.size(group);
      for (int32_t i = 0; i < size; ++i) {
        take(groups.rank(group, i), groups.rank(group, (i + 1) % size), group);
      }
    }
  }
  return own;
}

}  // namespace meridian
