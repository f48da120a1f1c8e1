// SPDX-License-Identifier: Apache-2.0
// Which node a profile belongs to. A node is one file, one process, one clock.
#ifndef XLA_PROFILER_XPLANE_NODE_IDS_H_
#define XLA_PROFILER_XPLANE_NODE_IDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

struct NodeIdInputs {
  // One file per node.
  std::vector<std::string> files;
  // What the user said; empty, or one per file.
  std::vector<int64_t> given;
  // What each file's clock snapshots say; empty, or one per file.
  std::vector<std::optional<int64_t>> from_snapshots;
};

struct AssignedNodeId {
  int64_t id = 0;
  // Whether it is the file's position in the list, since nothing tells the id.
  bool is_position = false;
};

// Assigns each file its id: the given one, else the snapshots', else the rank in the file's name, or
// the last integer in it, when all files without an id have one and no two share it, else the
// position in the list.
// Two files with one id are InvalidArgument naming both.
absl::StatusOr<std::vector<AssignedNodeId>> AssignNodeIds(const NodeIdInputs& inputs);

// Returns the number behind "rank", or else "worker", in the name: "worker3_step_12.json" -> 3.
std::optional<int64_t> RankInFileName(absl::string_view path);

// Returns the ranks that all the names tell, none of them twice; nullopt when they do not. That is
// RankInFileName, or else the place among the parts that a model is cut into: of
// "a-TP-0-PP-0.json", "a-TP-1-PP-0.json", "a-TP-0-PP-1.json" these are 0, 1 and 2.
std::optional<std::vector<int64_t>> RanksInFileNames(const std::vector<std::string>& files);

// Returns the last run of digits in the name, without its folder: "run7/rank12.xplane.pb" -> 12.
// Nullopt when there is none or it does not fit.
std::optional<int64_t> LastIntegerInFileName(absl::string_view path);

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_NODE_IDS_H_
