// SPDX-License-Identifier: Apache-2.0
// Carries out collectives: members join, chunks queue for their dimensions, run through their
// phases and exchange messages.
//
//   rank 3, comm stream 0   dimension 0:  running [chunk 2]   waiting [chunk 3, chunk 0]
//                           dimension 1:  running [chunk 1]   waiting []
//
// Chunk 3 has not begun; chunk 0 is back from dimension 1 for its last phase. A rank works on at
// most active-chunks-per-dimension chunks of a collective at once in each dimension; the others
// wait in the order they came. Ranks that join late keep the others waiting: what arrives early is
// kept for them.
#ifndef ASTRA_BRIDGE_ENGINE_COLLECTIVE_RUNNER_H_
#define ASTRA_BRIDGE_ENGINE_COLLECTIVE_RUNNER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/engine/collective_algorithm.h"
#include "astra_bridge/engine/collective_plan.h"
#include "astra_bridge/engine/custom_algorithm.h"
#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/link_network.h"
#include "astra_bridge/engine/ring_lockstep.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/workload.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// What a collective is, the same for all its members.
struct CollectiveShape {
  CollectiveKind op = CollectiveKind::kAllReduce;
  int64_t bytes = 0;
  // Number of the group in the group table.
  uint32_t group = 0;
  // Algorithms and dimensions that take part, as in WorkloadNode.
  int32_t algorithms = kSystemAlgorithms;
  uint64_t involved_dimensions = ~uint64_t{0};

  using Key = std::tuple<CollectiveKind, int64_t, uint32_t, int32_t, uint64_t>;
  Key key() const { return {op, bytes, group, algorithms, involved_dimensions}; }
};

// A collective that has been joined and is not over.
struct OpenCollective {
  // Ranks that have not joined yet.
  std::vector<int32_t> missing_ranks;
  // Ranks that have joined and are not done, and the position of the node of each.
  std::vector<int32_t> waiting_ranks;
  std::vector<uint32_t> waiting_nodes;
};

// Whether the order of the events of one instant may have made a difference in a simulation.
struct OrderWatch {
  bool mattered = false;
};

class CollectiveRunner {
 public:
  // All must outlive this object. Without `order`
  // (null) events of one instant happen in AstraSim's order; with it short cuts that do not keep
  // that order are taken, and it is told when order mattered. `on_done` is told
  // when a rank's part of a collective is over, and by which node, given by its position among
  // those of the rank; it may let the rank join the next one at once. `issue` issues an operation of a
  // custom algorithm, none of which is over at once.
  CollectiveRunner(const Workload& workload, const GroupTable& groups, const Topology& topology,
                   const SystemConfig& system, const SimulationOptions& options, OrderWatch* order,
                   LinkNetwork& network, EventQueue& events,
                   std::function<void(int32_t rank, uint32_t node)> on_done,
                   std::function<void(int32_t rank, uint32_t operation)> issue);
  ~CollectiveRunner();

  // Lets a rank join the next collective of the node's group that it has not joined yet. The node
  // is given by its position among those of the rank, and occupies that comm stream. Fails when the
  // rank is not in the group, and when the collective cannot be carried out or is another one for
  // the members that came before.
  absl::Status Join(int32_t rank, uint32_t node, int32_t comm_stream);

  // To be called for events kPrepared, kReduce, kTaken and kMemberDone.
  void OnPrepared(uint32_t stream);
  void OnReduce(uint32_t stream);
  void OnReceived(uint32_t stream);
  void OnMemberDone(uint32_t collective, int32_t member);

  // Hands a message that has arrived to its receiver. False when it is of no collective.
  bool Deliver(uint32_t message);

  // Returns an operation of a custom algorithm that is under way, and ends it. Its peer is a rank.
  const WorkloadNode& operation(uint32_t number) const {
    return operations_[number - kFirstOperation].node;
  }
  void OnOperationDone(uint32_t number);
  // Returns the position of the node whose collective the operation is of, among those of its rank.
  uint32_t NodeOfOperation(uint32_t number) const {
    const Stream& stream = streams_[operations_[number - kFirstOperation].stream];
    return collectives_[stream.collective]->members[stream.member].node;
  }

  // Returns what is not over, in no particular order, but for custom ones, whose receives wait.
  std::vector<OpenCollective> OpenCollectives() const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // How all collectives of one shape are carried out.
  struct PlannedShape {
    CollectiveShape shape;
    CollectivePlan plan;
    // Null for the algorithms of the plan. Else the plan is one chunk and phase, which this fills.
    const CustomAlgorithm* custom = nullptr;
    // How long a short cut says that it lasts. Absent until it is asked; then empty when it declines.
    std::optional<std::optional<int64_t>> short_cut_ns;
  };

  struct Member {
    // Position of its node among those of its rank.
    uint32_t node = 0;
    int32_t comm_stream = 0;
    // When it joined; -1 before.
    int64_t joined_ns = -1;
    // The first chunk that it has not begun.
    int32_t next_chunk = 0;
    int32_t chunks_done = 0;
  };

  // One execution of a collective, shared by its members.
  struct Collective {
    PlannedShape* planned = nullptr;
    uint32_t group = 0;
    // How many collectives of its group came before it.
    int64_t ordinal = 0;
    // The members, indexed by their position in the group.
    std::vector<Member> members;
    // Positions of the members in the order in which they joined.
    std::vector<int32_t> join_order;
    // When the last member joined.
    int64_t complete_ns = 0;
    int32_t members_done = 0;
    bool lockstep_tried = false;
    bool in_lockstep = false;
    // WorkloadNode::fixed_ns of the member that came first.
    int64_t fixed_ns = kSimulated;
    // Number of the collective's first double binary tree in each dimension.
    std::vector<int32_t> first_tree;
    // Number of the stream of chunk c of member m at m * chunks + c; kNone when it is not under
    // way.
    std::vector<uint32_t> streams;
  };

  // Sequence numbers of messages that arrived before they were expected.
  using EarlyMessages = absl::flat_hash_set<uint32_t>;

  // A chunk under way at a member.
  struct Stream {
    // Number of the collective, and position of the member in it.
    uint32_t collective = 0;
    int32_t member = 0;
    int32_t chunk = 0;
    uint32_t phase = 0;
    // Position of the member in the ring of the phase.
    int32_t position = 0;
    // False while it waits for the next phase.
    bool is_running = false;
    // The next stream in the queue of a dimension.
    uint32_t next = kNone;
    // How long the reduction takes of the packet that is prepared with one.
    int64_t reduction_ns = 0;
    // How many first packets of the phase are being prepared that a short cut makes needless.
    int32_t packets_to_drop = 0;
    // When it last had a packet prepared in this phase, and when it last received one.
    int64_t prepared_ns = -1;
    int64_t received_ns = -1;
    PhaseState state;
    EarlyMessages early;
    // With a custom algorithm, in place of all that.
    std::optional<CustomState> custom;
  };

  // An operation of a custom algorithm that is under way.
  struct Operation {
    uint32_t stream = 0;
    // Position among those of the member.
    uint32_t position = 0;
    WorkloadNode node;
  };

  // The chunks of a rank and comm stream in one dimension: how many are running, and the streams of
  // those that wait, linked from the first to the last.
  struct Queue {
    int32_t running = 0;
    uint32_t first = kNone;
    uint32_t last = kNone;
  };

  // What a message is for: a phase of a chunk at a member. kNone: it is of no collective.
  struct Mail {
    uint32_t collective = kNone;
    int32_t member = 0;
    int32_t chunk = 0;
    uint32_t phase = 0;
    uint32_t sequence = 0;
  };
  // Collective, member, chunk, phase.
  using PhaseKey = std::tuple<uint32_t, int32_t, int32_t, uint32_t>;

  // The collectives of a group that not all members have joined.
  struct OpenGroup {
    // Their numbers, oldest first.
    std::deque<uint32_t> collectives;
    // How many all members have joined, before these.
    int64_t closed = 0;
    // How many collectives each member has joined, indexed by its position in the group.
    std::vector<int64_t> joins;
  };

  // The collective that occupies a comm stream of a rank, and the position of the rank in it.
  struct Current {
    uint32_t collective = kNone;
    int32_t member = 0;
  };

  class StreamHost;

  // Returns the plan of such a collective. Errors are those of PlanCollective.
  absl::StatusOr<PlannedShape*> PlanOf(const CollectiveShape& shape);
  // Plans a collective that has a custom algorithm.
  absl::Status PlanCustom(PlannedShape* planned);
  // Returns the collective that the member joins, a new one for the first. `rank` and `node` are
  // the member's.
  absl::StatusOr<uint32_t> FindCollective(const CollectiveShape& shape, int32_t member,
                                          int32_t rank, uint32_t node);
  uint32_t NewCollective(int32_t first_rank, uint32_t first_node, int64_t ordinal,
                         PlannedShape* planned);
  // Returns what to say of a member that means another collective than the first.
  absl::Status NotTheSame(const Collective& collective, const CollectiveShape& shape) const;

  int32_t RankOf(const Collective& collective, int32_t member) const {
    return groups_.rank(collective.group, member);
  }
  int32_t RankOf(const Stream& stream) const {
    return RankOf(*collectives_[stream.collective], stream.member);
  }
  const CollectivePhase& PhaseOf(const Stream& stream) const {
    return collectives_[stream.collective]->planned->plan.phases[stream.phase];
  }
  // Returns where the collective keeps the number of the stream of a member's chunk.
  static uint32_t& StreamOf(Collective& collective, int32_t member, int32_t chunk) {
    return collective
        .streams[static_cast<size_t>(member) * collective.planned->plan.chunks + chunk];
  }
  Current& CurrentOf(int32_t rank, int32_t comm_stream) {
    return current_[static_cast<size_t>(rank) * options_.comm_streams + comm_stream];
  }
  Queue& QueueOf(int32_t rank, int32_t comm_stream, int32_t dimension) {
    const size_t queue = static_cast<size_t>(rank) * options_.comm_streams + comm_stream;
    return queues_[queue * topology_.dimension_count() + dimension];
  }
  // Called when all members have joined.
  void OnComplete(uint32_t collective);

  // Starts chunks of a queue while there is room: first those of the collective in the comm stream
  // that have not begun, then those that wait.
  void StartWaiting(int32_t rank, int32_t comm_stream, int32_t dimension);
  // Returns a stream for the member's next chunk if it has one that begins in this dimension, else
  // kNone.
  uint32_t NextChunk(uint32_t collective, int32_t member, int32_t dimension);
  void FreeStream(uint32_t stream);
  void StartPhase(uint32_t stream);
  // Issues what a custom algorithm has ready.
  void IssueOperations(uint32_t stream);
  void FinishPhase(uint32_t stream);
  void FinishMember(uint32_t collective, int32_t member);

  // Tells `order_` if the stream received and had prepared something in one instant and its state
  // depends on which was first.
  void CheckOrder(const Stream& stream);
  // Takes the short cut if it is exact, now that the first packet of the collective is ready.
  void TryLockstep(uint32_t collective);

  const Workload& workload_;
  const GroupTable& groups_;
  const Topology& topology_;
  const SystemConfig& system_;
  const SimulationOptions& options_;
  OrderWatch* const order_;
  LinkNetwork& network_;
  EventQueue& events_;
  const std::function<void(int32_t rank, uint32_t node)> on_done_;
  const std::function<void(int32_t rank, uint32_t operation)> issue_;

  // Custom algorithms by kind, once a collective has used them.
  std::array<std::optional<CustomAlgorithm>, kSimulatedCollectives> custom_;
  absl::flat_hash_map<CollectiveShape::Key, std::unique_ptr<PlannedShape>> plans_;
  // All collectives, indexed by number; unused ones are kept to reuse their memory.
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<uint32_t> free_collectives_;
  // The open collectives of each group, indexed by the group's number.
  std::vector<OpenGroup> open_groups_;
  // Trees taken so far, by operation and dimension.
  std::vector<int32_t> trees_taken_;
  // When the last tree was taken.
  int64_t tree_taken_ns_ = -1;
  // When a chunk of a rank last finished one of several phases, indexed by rank.
  std::vector<int64_t> phase_finished_ns_;

  std::vector<Stream> streams_;
  std::vector<uint32_t> free_streams_;
  // Indexed by number less kFirstOperation; unused ones are kept.
  std::deque<Operation> operations_;
  std::vector<uint32_t> free_operations_;
  // Queues of each rank, comm stream and dimension; QueueOf computes the index.
  std::vector<Queue> queues_;
  // What each rank's comm stream is doing; CurrentOf computes the index.
  std::vector<Current> current_;
  // Whether each group has links of its own (ring_lockstep.h); empty until that is asked for.
  std::vector<bool> own_links_;
  // What each message is for, indexed by its number in the network.
  std::vector<Mail> mail_;
  // Messages for chunks that have not begun their phase.
  absl::flat_hash_map<PhaseKey, EarlyMessages> early_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_COLLECTIVE_RUNNER_H_
