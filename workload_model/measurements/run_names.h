// SPDX-License-Identifier: Apache-2.0
// Where runs were measured: what the names of their files tell, or a table of them.
#ifndef WORKLOAD_MODEL_MEASUREMENTS_RUN_NAMES_H_
#define WORKLOAD_MODEL_MEASUREMENTS_RUN_NAMES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload_model/models/models.h"

namespace meridian {

// What the name of a file tells.
struct RunName {
  WorkloadCell cell;
  int64_t rank = 0;
  // The name without the rank: the same for all ranks of one run.
  std::string run;
};

// Returns what a file's name tells: by named groups of a pattern (RE2: nodes, size and, if there are
// such, threads, ranks_per_node and rank) or, without one, in the form of the published data,
// bfs_exectrace_16-16-1-20-0.txt for 16 nodes, 16 ranks, 1 thread, size 20 and rank 0. A rank that the
// pattern does not name is a number at the end, as of A-mpiP: NAME_3. What is given by `known` (of the
// cell: --size of all, or a table) need not be told.
absl::StatusOr<RunName> ReadRunName(const std::string& path, const std::string& pattern,
                                    const std::optional<WorkloadCell>& known = std::nullopt);

// Reads a table of cells: lines "file,nodes,size" or "file,nodes,size,threads", where the file is named
// without its folders; a first line that begins with "file" is a header. InvalidArgument with file
// and line for others.
absl::StatusOr<std::map<std::string, WorkloadCell>> ParseCells(absl::string_view text,
                                                               const std::string& name);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_RUN_NAMES_H_
