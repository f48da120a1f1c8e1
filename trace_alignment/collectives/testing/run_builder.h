// SPDX-License-Identifier: Apache-2.0
// Makes up the collectives of a run, event by event:
//
//   RunBuilder run(/*nodes=*/2);
//   const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
//   run.Add({op, /*run=*/7, /*rank=*/0, /*start_ps=*/100, /*end_ps=*/200});
//   run.Add({op, 7, 1, 150, 201});
//   const CollectiveTable table = run.Build();
#ifndef TRACE_ALIGNMENT_COLLECTIVES_TESTING_RUN_BUILDER_H_
#define TRACE_ALIGNMENT_COLLECTIVES_TESTING_RUN_BUILDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/collective_table.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"

namespace meridian {

struct MadeUpEvent {
  uint32_t op = 0;
  int64_t run = 0;
  int64_t rank = 0;
  int64_t start_ps = 0;
  int64_t end_ps = 0;
};

// A run ready for BuildCollectiveTable.
struct ResolvedRun {
  std::vector<ProfileCollectives> profiles;
  RankResolution ranks;
  RunResolution runs;
};

class RunBuilder {
 public:
  // Ranks are numbered through, node by node; a rank's device has the rank's number.
  explicit RunBuilder(uint32_t nodes, uint32_t devices_per_node = 1);

  // Adds an op to the program that all nodes run: one that has groups, or one that has pairs. The
  // first is called "op.0".
  uint32_t AddOp(CollectiveKind kind, const IdGroups& groups, int64_t operand_bytes = 0);
  uint32_t AddPairsOp(CollectiveKind kind, const std::vector<SourceTargetPair>& pairs,
                      int64_t operand_bytes = 0);

  // The correlation id of the n-th event, from 1, is n.
  void Add(const MadeUpEvent& made_up);

  // For tests that change what the builder cannot say.
  std::vector<ProfileCollectives>& profiles() { return profiles_; }

  // Takes the profiles out of the builder. Executions are matched by their run, always.
  ResolvedRun Resolve();
  absl::StatusOr<CollectiveTable> TryBuild();
  // Stops the program when there is no table.
  CollectiveTable Build();

 private:
  uint32_t AddToAll(const CollectiveOp& op);

  const uint32_t devices_per_node_;
  std::vector<ProfileCollectives> profiles_;
  uint64_t events_ = 0;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_TESTING_RUN_BUILDER_H_
