// SPDX-License-Identifier: Apache-2.0
// A made-up workload: what each of its ranks does. Ranks are written down one at a time, so that a
// workload of any size takes the memory of one rank.
#ifndef CHAKRA_EXPORT_GENERATE_GENERATED_WORKLOAD_H_
#define CHAKRA_EXPORT_GENERATE_GENERATED_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class ChakraWorkloadReport;

// What a piece of computation costs, free of any machine: simulators with a roofline price it from
// this, others take the duration that it has at a given speed.
struct WorkCost {
  // Arithmetic operations; a multiplication and an addition are two.
  int64_t operations = 0;
  // Read from memory and written to it.
  int64_t bytes = 0;
  // How long it takes by the roofline of a device, where the workload has one.
  int64_t duration_ns = 0;
};

// Returns how long the operations take at so many of them (10^12) per second, to the nearest
// nanosecond.
int64_t DurationNs(const WorkCost& cost, double tflops);

// A message between two ranks. The k-th that a rank sends with a tag meets the k-th receive of it.
struct PeerMessage {
  // The other rank.
  int64_t peer = 0;
  int64_t bytes = 0;
  int32_t tag = 0;
};

// Writes down what one rank does, in the order of its launches.
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
class RankProgram {
 public:
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

  // What each node costs; nothing for communication.
  const std::vector<WorkCost>& costs() const { return costs_; }

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
  std::vector<WorkCost> costs_;
};

class GeneratedWorkload {
 public:
  virtual ~GeneratedWorkload() = default;

  virtual int64_t rank_count() const = 0;

  // Writes down what the rank does. Simulators that run one computation and one communication of a
  // rank at a time run all ranks to the end.
  virtual void AddRank(int64_t rank, RankProgram* program) const = 0;
};

// Returns the graph of all ranks, without edges that others imply.
absl::StatusOr<ExecutionGraph> BuildWorkloadGraph(const GeneratedWorkload& workload);

// Writes PREFIX.<rank>.et and PREFIX.comm_groups.json. Ranks are built and written one after the
// other. No file is replaced before all are on the disk; what an earlier workload left under the
// prefix is removed. Computations have num_ops and tensor_size, which rooflines need. The same
// workload gives the same bytes. `progress` is called before each rank and may be null.
absl::StatusOr<ChakraWorkloadReport> WriteGeneratedWorkload(
    FileSystem& file_system, const GeneratedWorkload& workload, const std::string& prefix,
    const std::function<void(int64_t rank)>& progress = nullptr);

// Which sizes a made-up workload may have. Each check returns InvalidArgument that names the flag
// and what to do about it.
inline constexpr int64_t kMaxGeneratedRanks = 16384;
// All ranks together have at most this many nodes, some 8 GB of traces. What a workload may have is
// estimated before it is written down, from above.
inline constexpr int64_t kMaxGeneratedNodes = 50000000;

// Refuses a value that is out of range: "--hidden=0: expected 1 to 1048576".
absl::Status CheckRange(absl::string_view flag, int64_t value, int64_t low, int64_t high);
absl::Status CheckTflops(double tflops);

// Refuses a value that is no multiple: "--layers=10 does not divide by --pp=4; 8 or 12 would".
absl::Status CheckDivides(absl::string_view flag, int64_t value, absl::string_view divisor_text,
                          int64_t divisor);

// Refuses too many: "the workload would have 16,385 ranks; at most 16,384: REMEDY".
absl::Status CheckCount(absl::int128 count, absl::string_view what, int64_t most,
                        absl::string_view remedy);
// Refuses computation of one rank that takes more than three years.
absl::Status CheckDuration(double ns, absl::string_view remedy);
absl::Status CheckComputation(absl::int128 operations, double tflops, absl::string_view remedy);
// Refuses fewer than kMinAllGatherBytes.
absl::Status CheckAllGatherBytes(int64_t bytes, absl::string_view remedy);

// Where the ranks of a job with three kinds of parallelism are: tensor parallel ranks are next to
// each other, then come the data parallel copies, then the stages of the pipeline.
//
//   rank = tensor index + tensor parallel * (data index + data parallel * stage)
//
//                 2 x 2 x 2     stage 0   stage 1
//       data index 0             0  1      4  5      tensor groups {0, 1}, {2, 3}, {4, 5}, {6, 7}
//       data index 1             2  3      6  7      data groups   {0, 2}, {1, 3}, {4, 6}, {5, 7}
//
// Copies that share the sequences of a batch (context parallel) are next to each other among the data
// parallel ones.
class RankLayout {
 public:
  // Each degree of parallelism is at least 1; so many of the data parallel copies share sequences,
  // which divides their number.
  RankLayout(int64_t tensor_parallel, int64_t data_parallel, int64_t pipeline_parallel,
             int64_t context_parallel = 1)
      : tensor_parallel_(tensor_parallel),
        data_parallel_(data_parallel),
        pipeline_parallel_(pipeline_parallel),
        context_parallel_(context_parallel) {}

  int64_t rank_count() const { return tensor_parallel_ * data_parallel_ * pipeline_parallel_; }

  int64_t Stage(int64_t rank) const { return rank / (tensor_parallel_ * data_parallel_); }

  // Returns the rank that has the same indices in another stage.
  int64_t InStage(int64_t rank, int64_t stage) const {
    return rank + (stage - Stage(rank)) * tensor_parallel_ * data_parallel_;
  }

  // Return the group in which the rank computes one layer, and that of the copies with which it
  // sums gradients. Groups are numbered from 1 on, tensor groups first; a group of all ranks has no
  // name.
  ProcessGroup TensorGroup(int64_t rank) const { return Row(rank, 1, tensor_parallel_, 1); }
  ProcessGroup DataGroup(int64_t rank) const {
    return Row(rank, tensor_parallel_, data_parallel_, 1 + named_tensor_groups());
  }
  // Returns the group of ranks that have the same indices in all stages. Numbered behind those.
  ProcessGroup StageGroup(int64_t rank) const {
    return Row(rank, tensor_parallel_ * data_parallel_, pipeline_parallel_,
               1 + named_tensor_groups() + named_data_groups());
  }
  // Returns the group with which it shares sequences: the data group if that is all of it. Numbered
  // behind the others.
  ProcessGroup ContextGroup(int64_t rank) const {
    if (context_parallel_ == data_parallel_) return DataGroup(rank);
    return Row(rank, tensor_parallel_, context_parallel_,
               1 + named_tensor_groups() + named_data_groups());
  }

  // How many of these groups have a name and more than one rank.
  int64_t named_tensor_groups() const { return NamedGroups(tensor_parallel_); }
  int64_t named_data_groups() const { return NamedGroups(data_parallel_); }
  int64_t named_stage_groups() const { return NamedGroups(pipeline_parallel_); }
  int64_t named_context_groups() const {
    return context_parallel_ == data_parallel_ ? 0 : NamedGroups(context_parallel_);
  }

 private:
  // Returns the group of every stride-th rank, so many together, that the rank is in. Such groups are
  // numbered from the first number on, in the order of their first ranks.
  ProcessGroup Row(int64_t rank, int64_t stride, int64_t count, int64_t first_number) const;

  int64_t NamedGroups(int64_t group_size) const {
    return group_size == 1 || group_size == rank_count() ? 0 : rank_count() / group_size;
  }

  int64_t tensor_parallel_;
  int64_t data_parallel_;
  int64_t pipeline_parallel_;
  int64_t context_parallel_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_GENERATED_WORKLOAD_H_
