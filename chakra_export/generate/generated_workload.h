// A made-up workload: what each of its ranks does. Ranks are written down one at a time, so that
// one of any size takes the memory of a rank.
#ifndef CHAKRA_EXPORT_GENERATE_GENERATED_WORKLOAD_H_
#define CHAKRA_EXPORT_GENERATE_GENERATED_WORKLOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "chakra_export/generate/rank_program.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

class GeneratedWorkload {
 public:
  virtual ~GeneratedWorkload() = default;

  virtual int64_t rank_count() const = 0;

  // Of all ranks, known without writing them down.
  virtual int64_t node_count() const = 0;

  // Writes down what the rank does. Simulators that run one computation and one communication of a
  // rank at a time run all ranks to the end.
  virtual void AddRank(int64_t rank, RankProgram* program) const = 0;
};

// Returns the graph of all ranks, without edges that others imply.
absl::StatusOr<ExecutionGraph> BuildWorkloadGraph(const GeneratedWorkload& workload);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_GENERATED_WORKLOAD_H_
