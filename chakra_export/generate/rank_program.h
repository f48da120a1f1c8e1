// Writes down what one rank of a made-up workload does, in the order of its launches.
//
//   stream 0   [forward] -------------> [forward]
//                  | data                ^ data
//   stream 1       +--> [all-reduce] ----+--> [send]
//   stream 2                   [receive]               from lower ranks; 3: from higher ones
//
// A receive occupies nothing, it only waits. A computation waits for the one before it, and so does
// a collective or send: simulators run one of each at a time, and which goes first must not be
// theirs to choose, or ranks whose collectives become ready in different orders would wait for each
// other.
#ifndef CHAKRA_EXPORT_GENERATE_RANK_PROGRAM_H_
#define CHAKRA_EXPORT_GENERATE_RANK_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/generate/work_cost.h"
#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

// A message between two ranks. The k-th that a rank sends with a tag meets the k-th receive of it.
struct PeerMessage {
  // The other rank.
  int64_t peer = 0;
  int64_t bytes = 0;
  int32_t tag = 0;
};

class RankProgram {
 public:
  // What the graph has no place for, of one node.
  struct Note {
    WorkCost cost;
    // kNoMicrobatch for work that is of none.
    int64_t microbatch = kNoMicrobatch;
  };
  static constexpr int64_t kNoMicrobatch = -1;

  RankProgram(int64_t rank, ExecutionGraphBuilder* builder);

  // Returns the group's index for collectives.
  GroupIndex AddGroup(const ProcessGroup& group) { return builder_->AddGroup(group); }

  // Each returns the new node, which also waits for those of `after`, whose results it uses.
  NodeIndex Compute(absl::string_view name, const WorkCost& cost, int64_t duration_ns,
                    absl::Span<const NodeIndex> after);
  NodeIndex Collective(absl::string_view name, ChakraProtoMsg::CollectiveCommType type,
                       int64_t bytes, GroupIndex group, absl::Span<const NodeIndex> after);
  NodeIndex Send(absl::string_view name, const PeerMessage& message,
                 absl::Span<const NodeIndex> after);
  NodeIndex Receive(absl::string_view name, const PeerMessage& message,
                    absl::Span<const NodeIndex> after);

  // Of the nodes to come.
  int64_t microbatch() const { return microbatch_; }
  void set_microbatch(int64_t microbatch) { microbatch_ = microbatch; }

  // In the order of the nodes.
  const std::vector<Note>& notes() const { return notes_; }
  int64_t communication_count() const { return communication_count_; }
  // Of all computation.
  int64_t compute_ns() const { return compute_ns_; }
  int64_t operations() const { return operations_; }

 private:
  // Ids count up from 1.
  NodeIndex Add(ExecutionNode node, const WorkCost& cost, absl::Span<const NodeIndex> after);
  // Adds a node that runs after all those before it on its stream.
  NodeIndex AddInOrder(const ExecutionNode& node, const WorkCost& cost,
                       absl::Span<const NodeIndex> after, NodeIndex* last);

  const int64_t rank_;
  ExecutionGraphBuilder* const builder_;
  const ResourceIndex compute_;
  const ResourceIndex communication_;
  NodeIndex last_compute_ = kNoNodeIndex;
  NodeIndex last_communication_ = kNoNodeIndex;
  int64_t microbatch_ = kNoMicrobatch;
  std::vector<Note> notes_;
  int64_t communication_count_ = 0;
  int64_t compute_ns_ = 0;
  int64_t operations_ = 0;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_RANK_PROGRAM_H_
