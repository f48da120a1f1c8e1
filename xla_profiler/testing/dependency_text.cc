#include "xla_profiler/testing/dependency_text.h"

#include <cstdint>
#include <iterator>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace meridian {

absl::string_view DeviceDependencyKindName(DeviceDependencyKind kind) {
  // In the order of the enum.
  static constexpr absl::string_view kNames[] = {"launch",        "stream order",  "event wait",
                                                 "event sync",    "stream sync",   "device sync",
                                                 "blocking copy", "inferred wait", "call start"};
  static_assert(std::size(kNames) == kNumDeviceDependencyKinds);
  return kNames[static_cast<int>(kind)];
}

namespace {

std::string EdgeText(const EventTable& table, const DeviceDependency& edge) {
  return absl::StrCat(DeviceDependencyKindName(edge.kind), ": ", table.name(edge.from), " -> ",
                      table.name(edge.to));
}

// The table of kinds in device_dependencies.h.
bool RunsForward(const EventTable& table, const DeviceDependency& edge) {
  switch (edge.kind) {
    case DeviceDependencyKind::kLaunch:
      return table.start_ps(edge.from) <= table.start_ps(edge.to);
    case DeviceDependencyKind::kStreamOrder:
    case DeviceDependencyKind::kEventWait:
      return table.end_ps(edge.from) <= table.start_ps(edge.to);
    default:
      return table.end_ps(edge.from) <= table.end_ps(edge.to);
  }
}

}  // namespace

std::vector<std::string> EdgeTexts(const EventTable& table, const DeviceDependencies& dependencies,
                                   DeviceDependencyKind kind) {
  std::vector<std::string> texts;
  for (const DeviceDependency& edge : dependencies.edges) {
    if (edge.kind == kind) texts.push_back(EdgeText(table, edge));
  }
  return texts;
}

std::vector<std::string> EdgeCounts(const DeviceDependencies& dependencies) {
  uint64_t counts[kNumDeviceDependencyKinds] = {};
  for (const DeviceDependency& edge : dependencies.edges) ++counts[static_cast<int>(edge.kind)];
  std::vector<std::string> texts;
  for (int kind = 0; kind < kNumDeviceDependencyKinds; ++kind) {
    if (counts[kind] == 0) continue;
    texts.push_back(absl::StrCat(DeviceDependencyKindName(static_cast<DeviceDependencyKind>(kind)),
                                 ": ", counts[kind]));
  }
  return texts;
}

std::string FindBadEdge(const EventTable& table, const DeviceDependencies& dependencies) {
  const DeviceDependency* previous = nullptr;
  for (const DeviceDependency& edge : dependencies.edges) {
    const bool is_in_order =
        previous == nullptr || std::tie(previous->to, previous->from, previous->kind) <
                                   std::tie(edge.to, edge.from, edge.kind);
    if (!is_in_order || !RunsForward(table, edge)) return EdgeText(table, edge);
    previous = &edge;
  }
  return "";
}

}  // namespace meridian
