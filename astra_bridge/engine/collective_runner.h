// Carries out collectives: members join, chunks queue for their dimensions, run through their
// phases and exchange messages.
//
//   rank 3, stream 0    dimension 0:  running [chunk 2]   waiting [chunk 3, chunk 0 on its way
//   back]
//                       dimension 1:  running [chunk 1]   waiting []
//
// A rank works on at most active-chunks-per-dimension chunks of a collective at once in each
// dimension; the others wait in the order they came. Ranks that join late keep the others waiting:
// what arrives early is kept for them.
#ifndef ASTRA_BRIDGE_ENGINE_COLLECTIVE_RUNNER_H_
#define ASTRA_BRIDGE_ENGINE_COLLECTIVE_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/engine/collective_algorithm.h"
#include "astra_bridge/engine/collective_plan.h"
#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/group_table.h"
#include "astra_bridge/engine/link_network.h"
#include "astra_bridge/engine/plan_cache.h"
#include "astra_bridge/engine/sequence_set.h"
#include "astra_bridge/engine/simulation_options.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/transfer_log.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// Told when a rank's part of a collective is over; may let the rank join the next one at once.
class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  virtual void OnCollectiveDone(int32_t rank, uint32_t node) = 0;
};

// A rank's part of a collective.
struct CollectiveCall {
  CollectiveShape shape;
  int32_t rank = 0;
  // Its position among the members of the group.
  int32_t member = 0;
  // Position of the node among those of its rank.
  uint32_t node = 0;
  // Which of the rank's comm streams it occupies.
  int32_t comm_stream = 0;
};

// A collective that has been joined and is not over.
struct OpenCollective {
  // Not joined yet.
  std::vector<int32_t> missing_ranks;
  // Joined and not done, and the node of each.
  std::vector<int32_t> waiting_ranks;
  std::vector<uint32_t> waiting_nodes;
};

class CollectiveRunner {
 public:
  // All must outlive this object. Without a log (null) nothing is written down.
  CollectiveRunner(const Workload& workload, const GroupTable& groups, const Topology& topology,
                   const SystemConfig& system, const SimulationOptions& options, TransferLog* log,
                   LinkNetwork& network, EventQueue& events, CollectiveListener& listener);
  ~CollectiveRunner();

  // Lets a rank join the next collective of its group that it has not joined yet. Fails when the
  // collective cannot be, or is another for the members that came before.
  absl::Status Join(const CollectiveCall& call);

  // For the events of these kinds.
  void OnPrepared(uint32_t stream);
  void OnReduce(uint32_t stream);
  void OnTaken(uint32_t stream);
  void OnMemberDone(uint32_t collective, int32_t member);

  // Hands a message that has arrived to its receiver. False when it is of no collective.
  bool Deliver(uint32_t message);

  // What is not over, in no particular order.
  std::vector<OpenCollective> OpenCollectives() const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Member {
    uint32_t node = 0;
    int32_t comm_stream = 0;
    int64_t joined_ns = -1;
    int32_t next_chunk = 0;
    int32_t chunks_done = 0;
  };

  // Shared by its members.
  struct Collective {
    PlanCache::Entry* entry = nullptr;
    uint32_t group = 0;
    // It is so many'th of its group, from 0 on.
    int64_t ordinal = 0;
    // Who came first, for messages.
    int32_t first_rank = 0;
    uint32_t first_node = 0;
    std::vector<Member> members;
    std::vector<int32_t> join_order;
    int64_t complete_ns = 0;
    int32_t members_done = 0;
    bool lockstep_tried = false;
    bool in_lockstep = false;
    // Of the member that came first. Absent: it is simulated.
    std::optional<int64_t> fixed_duration_ns;
    // Its number in the log. Absent: it is not there, or not yet.
    std::optional<size_t> transfer;
    // Number of the first double binary tree, by dimension.
    std::vector<int32_t> first_tree;
    // By member and chunk, while the chunk is under way.
    std::vector<uint32_t> streams;
  };

  // A chunk under way at a member.
  struct Stream {
    uint32_t collective = 0;
    int32_t member = 0;
    int32_t chunk = 0;
    uint32_t phase = 0;
    int32_t position = 0;
    bool is_running = false;
    // The next in the queue of a dimension.
    uint32_t next = kNone;
    // Of the packet that is prepared with a reduction.
    int64_t reduction_ns = 0;
    std::variant<std::monostate, ExchangeState, TreeState> state;
    // Messages that arrived before they were expected.
    SequenceSet early;
  };

  // Of a rank, comm stream and dimension.
  struct Queue {
    int32_t running = 0;
    uint32_t first = kNone;
    uint32_t last = kNone;
  };

  // What a message is for.
  struct Mail {
    uint32_t collective = kNone;
    int32_t member = 0;
    int32_t chunk = 0;
    uint32_t phase = 0;
    uint32_t sequence = 0;
  };
  // Collective, member, chunk, phase.
  using PhaseKey = std::tuple<uint32_t, int32_t, int32_t, uint32_t>;

  class StreamHost;

  // Returns the collective that the call joins, a new one for the first of its members.
  absl::StatusOr<uint32_t> FindCollective(const CollectiveCall& call);
  uint32_t NewCollective(const CollectiveCall& call, int64_t ordinal, PlanCache::Entry* entry);
  absl::Status CheckSame(const Collective& collective, const CollectiveCall& call) const;

  int32_t RankOf(const Collective& collective, int32_t member) const {
    return groups_.rank(collective.group, member);
  }
  int32_t RankOf(const Stream& stream) const {
    return RankOf(*collectives_[stream.collective], stream.member);
  }
  const CollectivePhase& PhaseOf(const Stream& stream) const;
  Queue& QueueOf(int32_t rank, int32_t comm_stream, int32_t dimension);
  // All members have joined.
  void OnComplete(uint32_t collective);
  // As in Transfer.
  static uint64_t OddTreesOf(const Collective& collective);
  int64_t ReductionNsOf(int64_t bytes);

  // Starts chunks of a queue while there is room: first those of the collective in the comm stream
  // that have not begun, then those that wait.
  void StartWaiting(int32_t rank, int32_t comm_stream, int32_t dimension);
  // Returns a stream for the member's next chunk if it has one that begins in this dimension, else
  // kNone.
  uint32_t NextChunk(uint32_t collective, int32_t member, int32_t dimension);
  void FreeStream(uint32_t stream);
  void StartPhase(uint32_t stream);
  void FinishPhase(uint32_t stream);
  void OnReceived(uint32_t stream);
  void FinishMember(uint32_t collective, int32_t member);

  // Takes the short cut if it is exact, now that the first packet of the collective is ready.
  void TryLockstep(uint32_t collective);

  const Workload& workload_;
  const GroupTable& groups_;
  const Topology& topology_;
  const SystemConfig& system_;
  const SimulationOptions& options_;
  TransferLog* const log_;
  LinkNetwork& network_;
  EventQueue& events_;
  CollectiveListener& listener_;

  PlanCache plans_;
  // Those not in use are kept for their memory.
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<uint32_t> free_collectives_;
  // By group: those that not all members have joined, oldest first, and how many came before.
  struct OpenGroup {
    std::deque<uint32_t> collectives;
    int64_t closed = 0;
    // By member.
    std::vector<int64_t> joins;
  };
  std::vector<OpenGroup> open_groups_;
  // Trees taken so far, by operation and dimension.
  std::vector<int32_t> trees_taken_;

  std::vector<Stream> streams_;
  std::vector<uint32_t> free_streams_;
  std::vector<Queue> queues_;
  // By rank and comm stream: the collective that occupies it, if any, and who the rank is there.
  struct Current {
    uint32_t collective = kNone;
    int32_t member = 0;
  };
  std::vector<Current> current_;
  // By message.
  std::vector<Mail> mail_;
  // Messages for chunks that have not begun their phase.
  absl::flat_hash_map<PhaseKey, SequenceSet> early_;

  // The last answer of ReductionNsOf.
  int64_t known_reduction_bytes_ = 0;
  int64_t known_reduction_ns_ = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_COLLECTIVE_RUNNER_H_
