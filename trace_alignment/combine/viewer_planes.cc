#include "trace_alignment/combine/viewer_planes.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "trace_alignment/collectives/skew.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Corrections are straight between few knots.
constexpr int64_t kReadings = 64;
constexpr double kUsPerPs = 1e-6;

// Calls fn with kReadings + 1 times from begin to end.
template <typename Function>
void ForEachReading(int64_t begin_ns, int64_t end_ns, const Function& fn) {
  const int64_t length_ns = std::max<int64_t>(end_ns - begin_ns, 0);
  for (int64_t i = 0; i <= kReadings; ++i) {
    fn(begin_ns + length_ns / kReadings * i + length_ns % kReadings * i / kReadings);
  }
}

// Returns by how much the node's clock is moved at that time of its own.
int64_t CorrectionPs(const NodeClock& clock, int64_t time_ns) {
  const absl::StatusOr<int64_t> time_ps = clock.run.ToRunPs(time_ns, 0);
  if (!time_ps.ok()) return 0;
  return LineClock(clock, ClockDomain::kHost).Map(*time_ps) - *time_ps;
}

void AddStat(int64_t id, double value, XEventProto* event) {
  XStatProto* stat = event->add_stats();
  stat->set_metadata_id(id);
  stat->set_double_value(value);
}

void AddStat(int64_t id, int64_t value, XEventProto* event) {
  XStatProto* stat = event->add_stats();
  stat->set_metadata_id(id);
  stat->set_int64_value(value);
}

void AddCollectives(const CollectiveTable& table, int64_t start_ns, XPlaneProto* plane) {
  plane->set_id(1);
  plane->set_name("Collectives");
  PlaneMetadataBuilder metadata(plane);
  const int64_t bytes = metadata.GetOrCreateStatMetadata("bytes")->id();
  const int64_t wait = metadata.GetOrCreateStatMetadata("waited_us")->id();
  const int64_t arrow = metadata.GetOrCreateStatMetadata(StatType::kCorrelationId)->id();
  std::map<uint32_t, XLineProto> lines;
  int64_t number = 0;
  for (const CollectiveInstance& instance : table.instances()) {
    const MatchedOp& op = table.OpOf(instance);
    const int64_t name = metadata.GetOrCreateEventMetadata(CollectiveKindName(op.kind))->id();
    const std::optional<GroupTiming> timing = TimingOf(table, instance);
    ++number;
    for (const CollectiveMember& member : table.MembersOf(instance)) {
      XEventProto* event = lines[member.rank].add_events();
      event->set_metadata_id(name);
      event->set_offset_ps(member.start_ps);
      event->set_duration_ps(member.end_ps - member.start_ps);
      AddStat(bytes, op.operand_bytes, event);
      if (timing.has_value()) {
        AddStat(wait, static_cast<double>(timing->SkewPs(member)) * kUsPerPs, event);
      }
      if (instance.member_count > 1) AddStat(arrow, number, event);
    }
  }
  for (auto& [rank, line] : lines) {
    line.set_id(rank);
    line.set_name(absl::StrCat("rank ", rank));
    line.set_timestamp_ns(table.base_ns() - start_ns);
    *plane->add_lines() = std::move(line);
  }
}

void AddCorrections(absl::Span<const ViewedNode> nodes, int64_t start_ns, XPlaneProto* plane) {
  plane->set_id(2);
  plane->set_name("Clock corrections");
  PlaneMetadataBuilder metadata(plane);
  const int64_t value = metadata.GetOrCreateStatMetadata("us")->id();
  XLineProto* line = plane->add_lines();
  line->set_id(1);
  line->set_name(std::string(kCounterLineName));
  for (const ViewedNode& node : nodes) {
    const int64_t name =
        metadata.GetOrCreateEventMetadata(absl::StrCat("node ", node.id, ": moved by us"))->id();
    ForEachReading(node.begin_ns, node.end_ns, [&](int64_t time_ns) {
      const int64_t moved_ps = CorrectionPs(*node.clock, time_ns);
      const absl::StatusOr<int64_t> at_ps = RunClock(start_ns).ToRunPs(time_ns, moved_ps);
      if (!at_ps.ok()) return;
      XEventProto* event = line->add_events();
      event->set_metadata_id(name);
      event->set_offset_ps(*at_ps);
      AddStat(value, static_cast<double>(moved_ps) * kUsPerPs, event);
    });
  }
}

}  // namespace

std::string ViewerPlanes(const CollectiveTable& table, absl::Span<const ViewedNode> nodes,
                         int64_t start_ns) {
  XSpaceProto space;
  if (!table.instances().empty()) AddCollectives(table, start_ns, space.add_planes());
  AddCorrections(nodes, start_ns, space.add_planes());
  return space.SerializeAsString();
}

std::vector<ClockReading> ReadClocks(absl::Span<const ViewedNode> nodes) {
  std::vector<ClockReading> readings;
  if (nodes.empty()) return readings;
  int64_t begin_ns = nodes[0].begin_ns, end_ns = nodes[0].end_ns;
  for (const ViewedNode& node : nodes) {
    begin_ns = std::min(begin_ns, node.begin_ns);
    end_ns = std::max(end_ns, node.end_ns);
  }
  ForEachReading(begin_ns, end_ns, [&](int64_t time_ns) {
    ClockReading& reading = readings.emplace_back();
    reading.time_ns = time_ns;
    for (const ViewedNode& node : nodes) {
      // Clocks are off by so little that the time at which the correction is looked up does not
      // matter.
      if (node.id < 0) continue;
      reading.node_times_ns[node.id] = time_ns - FloorToNs(CorrectionPs(*node.clock, time_ns));
    }
  });
  return readings;
}

}  // namespace meridian
