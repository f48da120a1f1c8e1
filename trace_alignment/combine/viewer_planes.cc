#include "trace_alignment/combine/viewer_planes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "trace_alignment/aligner/line_aligner.h"
#include "trace_alignment/clocks/clock_map.h"
#include "trace_alignment/collectives/collective_table.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Offsets are straight between few knots.
constexpr int64_t kReadings = 64;
// Protobuf's limit for a message.
constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();

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
      event->set_duration_ps(Timespan::FromEndPoints(member.start_ps, member.end_ps).duration_ps());
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

}  // namespace

absl::StatusOr<std::string> CollectivesPlane(const CollectiveTable& table, int64_t start_ns) {
  XSpaceProto space;
  if (!table.instances().empty()) AddCollectives(table, start_ns, space.add_planes());
  if (space.ByteSizeLong() > kMaxBytes) {
    return absl::ResourceExhaustedError(
        "there are more collectives than a viewer's file can hold; export fewer steps");
  }
  return SerializeWithSortedMaps(space);
}

std::vector<ClockReading> ReadClocks(absl::Span<const ViewedNode> nodes, int64_t start_ns) {
  int64_t end_ns = start_ns;
  for (const ViewedNode& node : nodes) {
    end_ns = std::max(end_ns, MapHostTime(*node.clock, node.end_ns).value_or(start_ns));
  }
  const int64_t length_ns = SaturateToInt64(absl::int128(end_ns) - start_ns);
  std::vector<ClockReading> readings;
  for (int64_t i = 0; i <= kReadings; ++i) {
    const int64_t time_ns =
        start_ns + length_ns / kReadings * i + length_ns % kReadings * i / kReadings;
    if (!readings.empty() && readings.back().time_ns == time_ns) continue;
    readings.emplace_back().time_ns = time_ns;
  }
  for (const ViewedNode& node : nodes) {
    std::vector<ClockMap> way_back;
    for (const std::optional<ClockMap>* map :
         {&node.clock->reference_to_target, &node.clock->host_to_reference}) {
      if (map->has_value()) way_back.push_back((*map)->Inverted());
    }
    for (ClockReading& reading : readings) {
      absl::StatusOr<int64_t> time_ps = node.clock->run.ToRunPs(reading.time_ns, 0);
      // Too far from the run's times.
      if (!time_ps.ok()) continue;
      for (const ClockMap& map : way_back) *time_ps = map.Forward(*time_ps);
      reading.node_times_ns[node.id] = node.clock->run.ToUnixNs(*time_ps);
    }
  }
  return readings;
}

}  // namespace meridian
