#include "xla_profiler/xplane/combined_profile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

absl::Status BadNodeLines(absl::string_view part, absl::string_view reason) {
  return InvalidArgument("stat ", kNodeLinesStatName, ": '", part, "' ", reason,
                         "; expected e.g. 3:14-20");
}

// The last: whoever combined added theirs behind what the profiler had written.
const XStatVisitor* FindPlaneStat(const XPlaneVisitor& plane, absl::string_view name) {
  const XStatVisitor* found = nullptr;
  for (const XStatVisitor& stat : plane.Stats()) {
    if (stat.Name() == name) found = &stat;
  }
  return found;
}

// The planes of each node, by id; each list is in file order.
using PlanesOfNodes = std::map<int64_t, std::vector<PlaneSelection>>;

absl::Status AddJointPlane(size_t index, const XPlaneVisitor& plane, const PlaneOwners& owners,
                           PlanesOfNodes* planes) {
  std::map<int64_t, std::vector<absl::string_view>> lines;
  for (const NodeLines& owner : owners.node_lines()) lines[owner.node_id];
  RETURN_IF_ERROR(plane.ForEachLine([&](const XLineVisitor& line) {
    const std::optional<int64_t> node = owners.NodeOfLine(line.Id());
    if (node.has_value()) lines[*node].push_back(line.Header().payload);
  }));
  for (auto& [node_id, own] : lines) {
    (*planes)[node_id].push_back({index, std::string(plane.Name()), std::move(own)});
  }
  return absl::OkStatus();
}

}  // namespace

std::string FormatNodeLines(const std::vector<NodeLines>& lines) {
  return absl::StrJoin(lines, ",", [](std::string* out, const NodeLines& node) {
    absl::StrAppend(out, node.node_id, ":", node.first_line_id, "-", node.last_line_id);
  });
}

absl::StatusOr<std::vector<NodeLines>> ParseNodeLines(absl::string_view text) {
  std::vector<NodeLines> nodes;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    NodeLines node;
    const std::pair<absl::string_view, absl::string_view> node_and_lines =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    const std::pair<absl::string_view, absl::string_view> range =
        absl::StrSplit(node_and_lines.second, absl::MaxSplits('-', 1));
    if (!absl::SimpleAtoi(node_and_lines.first, &node.node_id) ||
        !absl::SimpleAtoi(range.first, &node.first_line_id) ||
        !absl::SimpleAtoi(range.second, &node.last_line_id)) {
      return BadNodeLines(part, "is not a node and a range of lines");
    }
    if (node.first_line_id > node.last_line_id) return BadNodeLines(part, "is an empty range");
    nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end(), [](const NodeLines& a, const NodeLines& b) {
    return a.first_line_id < b.first_line_id;
  });
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].first_line_id <= nodes[i - 1].last_line_id) {
      return BadNodeLines(FormatNodeLines({nodes[i]}), "has lines of another node");
    }
  }
  return nodes;
}

absl::StatusOr<PlaneOwners> PlaneOwners::Read(const XPlaneVisitor& plane) {
  PlaneOwners owners;
  owners.original_name_ = plane.Name();
  if (const XStatVisitor* lines = FindPlaneStat(plane, kNodeLinesStatName)) {
    ASSIGN_OR_RETURN(owners.node_lines_, ParseNodeLines(lines->StrOrRefValue()));
    return owners;
  }
  const XStatVisitor* node = FindPlaneStat(plane, kNodeIdStatName);
  const XStatVisitor* name = FindPlaneStat(plane, kOriginalPlaneNameStatName);
  // A profile that was aligned by itself tells its node, too, but not the name.
  if (node == nullptr || name == nullptr || !node->IntOrUintValue().has_value()) return owners;
  owners.node_ = node->IntOrUintValue();
  owners.original_name_ = name->StrOrRefValue();
  return owners;
}

std::optional<int64_t> PlaneOwners::NodeOfLine(int64_t line_id) const {
  if (node_.has_value()) return node_;
  const auto after =
      std::upper_bound(node_lines_.begin(), node_lines_.end(), line_id,
                       [](int64_t id, const NodeLines& lines) { return id < lines.first_line_id; });
  if (after == node_lines_.begin() || line_id > std::prev(after)->last_line_id) return std::nullopt;
  return std::prev(after)->node_id;
}

absl::StatusOr<std::vector<NodeProfile>> SplitCombinedProfile(const XSpaceReader& combined) {
  std::vector<PlaneSelection> shared;
  PlanesOfNodes planes;
  size_t next_index = 0;
  RETURN_IF_ERROR(combined.ForEachPlane([&](const XPlaneVisitor& plane) -> absl::Status {
    const size_t index = next_index++;
    ASSIGN_OR_RETURN(const PlaneOwners owners, PlaneOwners::Read(plane));
    if (!owners.node_lines().empty()) return AddJointPlane(index, plane, owners, &planes);
    if (!owners.node().has_value()) {
      shared.push_back({index, "", std::nullopt});
      return absl::OkStatus();
    }
    std::vector<PlaneSelection>& own = planes[*owners.node()];
    // What the node's session was; times count from the shared one's start.
    if (owners.original_name() != kTaskEnvPlaneName) {
      own.push_back({index, std::string(owners.original_name()), std::nullopt});
    }
    return absl::OkStatus();
  }));
  constexpr size_t kMaxSelections = size_t{1} << 20;
  if (!planes.empty() && shared.size() > kMaxSelections / planes.size()) {
    return InvalidArgument(combined.name(), ": ", planes.size(), " nodes share ", shared.size(),
                           " planes; no combined profile has so many");
  }
  std::vector<NodeProfile> profiles;
  for (auto& [node_id, selection] : planes) {
    selection.insert(selection.end(), shared.begin(), shared.end());
    std::sort(selection.begin(), selection.end(),
              [](const PlaneSelection& a, const PlaneSelection& b) { return a.index < b.index; });
    profiles.push_back(
        {node_id, combined.Select(std::move(selection),
                                  absl::StrCat(combined.name(), " (node ", node_id, ")"))});
  }
  return profiles;
}

}  // namespace meridian
