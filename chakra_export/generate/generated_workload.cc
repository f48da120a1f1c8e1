#include "chakra_export/generate/generated_workload.h"

#include <utility>

#include "chakra_export/graph/transitive_reduction.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {

absl::StatusOr<ExecutionGraph> BuildWorkloadGraph(const GeneratedWorkload& workload) {
  ExecutionGraphBuilder builder;
  for (int64_t rank = 0; rank < workload.rank_count(); ++rank) {
    RankProgram program(rank, &builder);
    workload.AddRank(rank, &program);
  }
  ExecutionGraph graph = std::move(builder).Build();
  RETURN_IF_ERROR(RemoveTransitiveEdges(&graph).status());
  return graph;
}

}  // namespace meridian
