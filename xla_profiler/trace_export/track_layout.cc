#include "xla_profiler/trace_export/track_layout.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// A process as the file has it: what one node recorded of one plane.
struct PlaneOfNode {
  size_t plane = 0;
  // Nullopt for what is no node's: all, when the profile is not a combined one.
  std::optional<int64_t> node;
  // What the node called it.
  std::string name;
  // Positions of its lines in TrackLayout::lines, in file order.
  std::vector<size_t> lines;
};

bool IsCounterLine(absl::string_view name) {
  return name == kCounterLineName || absl::StartsWith(name, kCounterLinePrefix);
}

// A node's threads come before what else the host recorded, its devices last.
int PlaneRank(absl::string_view name) {
  if (IsDevicePlane(name)) return 2;
  return name == kHostThreadsPlaneName ? 0 : 1;
}

bool ShownBefore(const PlaneOfNode& a, const PlaneOfNode& b) {
  const auto key = [](const PlaneOfNode& plane) {
    return std::make_tuple(!plane.node.has_value(), plane.node, PlaneRank(plane.name));
  };
  if (key(a) != key(b)) return key(a) < key(b);
  if (a.name != b.name) return NaturalLess(a.name, b.name);
  return a.plane < b.plane;
}

class LayoutReader {
 public:
  LayoutReader(const TrackLayout& before, const DeviceRanks& ranks) : ranks_(ranks) {
    layout_.next_id = before.next_id;
    layout_.next_node_index = before.next_node_index;
    layout_.next_position = before.next_position;
  }

  absl::Status AddPlane(const XPlaneVisitor& plane) {
    ASSIGN_OR_RETURN(const PlaneOwners owners, PlaneOwners::Read(plane));
    RETURN_IF_ERROR(plane.ForEachLine([&](const XLineVisitor& line) { AddLine(owners, line); }));
    ++num_planes_;
    return absl::OkStatus();
  }

  TrackLayout Finish() {
    std::sort(planes_.begin(), planes_.end(), ShownBefore);
    std::set<std::optional<int64_t>> nodes;
    for (const PlaneOfNode& plane : planes_) {
      nodes.insert(plane.node);
      const uint64_t index = layout_.next_node_index + nodes.size() - 1;
      if (plane.node.has_value()) layout_.node_indices[*plane.node] = index;
      AddProcess(plane, index);
    }
    layout_.next_node_index += nodes.size();
    for (const PlaneOfNode& plane : planes_) AddTracks(plane);
    return std::move(layout_);
  }

 private:
  void AddLine(const PlaneOwners& owners, const XLineVisitor& line) {
    LineLayout& layout = layout_.lines.emplace_back();
    if (line.NumEvents() == 0) return;
    layout.kind =
        IsCounterLine(line.Name()) ? LineLayout::Kind::kCounters : LineLayout::Kind::kSlices;
    layout.on_device = IsDevicePlane(owners.original_name());
    layout.track.name = std::string(line.DisplayName());
    const std::optional<int64_t> node = owners.NodeOfLine(line.Id());
    const auto [it, is_new] = index_.try_emplace({num_planes_, node}, planes_.size());
    if (is_new) planes_.push_back({num_planes_, node, std::string(owners.original_name()), {}});
    planes_[it->second].lines.push_back(layout_.lines.size() - 1);
  }

  void AddProcess(const PlaneOfNode& plane, uint64_t node_index) {
    TraceProcess& process = layout_.processes.emplace_back();
    process.id = layout_.next_id++;
    process.position = layout_.next_position++;
    process.name =
        plane.node.has_value() ? absl::StrCat("Node ", *plane.node, ": ", plane.name) : plane.name;
    const auto rank = ranks_.find({plane.node.value_or(0), plane.name});
    if (rank != ranks_.end()) absl::StrAppend(&process.name, " (rank ", rank->second, ")");
    for (size_t line : plane.lines) {
      layout_.lines[line].node_index = node_index;
      layout_.lines[line].track.process_id = process.id;
    }
  }

  // After all processes: some viewers take a thread whose id is its process's for the main one.
  void AddTracks(const PlaneOfNode& plane) {
    int64_t position = 0;
    for (size_t line : plane.lines) {
      TraceTrack& track = layout_.lines[line].track;
      track.position = position++;
      if (layout_.lines[line].kind != LineLayout::Kind::kSlices) continue;
      track.id = layout_.next_id++;
      track.line_id = track.id;
    }
  }

  const DeviceRanks& ranks_;
  TrackLayout layout_;
  size_t num_planes_ = 0;
  std::vector<PlaneOfNode> planes_;
  std::map<std::pair<size_t, std::optional<int64_t>>, size_t> index_;
};

}  // namespace

absl::StatusOr<TrackLayout> ReadTrackLayout(const XSpaceReader& reader, const TrackLayout& before,
                                            const DeviceRanks& ranks) {
  LayoutReader layout(before, ranks);
  RETURN_IF_ERROR(
      reader.ForEachPlane([&](const XPlaneVisitor& plane) { return layout.AddPlane(plane); }));
  return layout.Finish();
}

}  // namespace meridian
