// SPDX-License-Identifier: Apache-2.0
// A combined profile: the planes of several nodes in one file, and how a reader tells them apart.
//
//   Task Environment          shared: the start that all lines count from
//   /host:metadata            shared: programs
//   /host:CPU                 joint: stat `node_lines` says which lines are whose: "0:1-13,3:14-20"
//   /device:GPU:0             of one node: stats `node_id` and `original_plane_name`
//   /node:3/Task Environment  of one node; what the node's own profile said
//
// Correlation ids, thread ids and the like are those of the nodes and clash: whoever follows them
// reads node by node.
#ifndef XLA_PROFILER_XPLANE_COMBINED_PROFILE_H_
#define XLA_PROFILER_XPLANE_COMBINED_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// Names of plane stats.
inline constexpr absl::string_view kNodeIdStatName = "node_id";
inline constexpr absl::string_view kOriginalPlaneNameStatName = "original_plane_name";
inline constexpr absl::string_view kNodeLinesStatName = "node_lines";

// Lines of a joint plane, by id, both ends included.
struct NodeLines {
  int64_t node_id = 0;
  int64_t first_line_id = 0;
  int64_t last_line_id = 0;
};

// The value of `node_lines`, and back, in order of the lines. Parsing gives InvalidArgument for
// anything else, for ranges that are empty and for lines that are of two nodes.
std::string FormatNodeLines(const std::vector<NodeLines>& lines);
absl::StatusOr<std::vector<NodeLines>> ParseNodeLines(absl::string_view text);

// Says which nodes a plane and its lines belong to.
class PlaneOwners {
 public:
  // The plane must outlive the result. InvalidArgument when its stats contradict themselves.
  static absl::StatusOr<PlaneOwners> Read(const XPlaneVisitor& plane);

  // The node whose plane it is; nullopt for planes that several nodes share.
  std::optional<int64_t> node() const { return node_; }
  // Of a joint plane, in order of the lines; empty for others. Planes that are neither are shared,
  // as are all of a profile that is not a combined one.
  const std::vector<NodeLines>& node_lines() const { return node_lines_; }

  // Returns nullopt for lines of shared planes, and for those that a joint plane does not name.
  std::optional<int64_t> NodeOfLine(int64_t line_id) const;

  // What the node itself called the plane.
  absl::string_view original_name() const { return original_name_; }

 private:
  std::optional<int64_t> node_;
  std::vector<NodeLines> node_lines_;
  absl::string_view original_name_;
};

struct NodeProfile {
  int64_t node_id = 0;
  // The node's planes under their original names and the shared ones, as if they were a file.
  XSpaceReader reader;
};

// Returns the nodes of a combined profile, by id; none when the profile is not a combined one.
absl::StatusOr<std::vector<NodeProfile>> SplitCombinedProfile(const XSpaceReader& combined);

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_COMBINED_PROFILE_H_
