#include "trace_alignment/combine/viewer_planes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "trace_alignment/collectives/skew.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Offsets are straight between few knots.
constexpr int64_t kReadings = 64;
// Protobuf's limit for a message.
constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();

// Calls fn with kReadings + 1 times from begin to end.
template <typename Function>
void ForEachReading(int64_t begin_ns, int64_t end_ns, const Function& fn) {
  const int64_t length_ns =
      SaturateToInt64(std::max<absl::int128>(absl::int128(end_ns) - begin_ns, 0));
  for (int64_t i = 0; i <= kReadings; ++i) {
    fn(begin_ns + length_ns / kReadings * i + length_ns % kReadings * i / kReadings);
  }
}

// Returns how far the node's clock is ahead when it shows that time; nullopt for times that are too
// far from the run's.
std::optional<int64_t> OffsetPs(const NodeClock& clock, int64_t time_ns) {
  const absl::StatusOr<int64_t> time_ps = clock.run.ToRunPs(time_ns, 0);
  if (!time_ps.ok()) return std::nullopt;
  return NarrowToInt64(absl::int128(*time_ps) - LineClock(clock, ClockDomain::kHost).Map(*time_ps));
}

// Returns what the common clock shows when the node's shows that time.
std::optional<int64_t> CommonNs(const ViewedNode& node, int64_t time_ns) {
  const std::optional<int64_t> offset_ps = OffsetPs(*node.clock, time_ns);
  if (!offset_ps.has_value()) return std::nullopt;
  return NarrowToInt64(absl::int128(time_ns) - FloorToNs(*offset_ps));
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

void AddOffsets(absl::Span<const ViewedNode> nodes, int64_t start_ns, XPlaneProto* plane) {
  plane->set_id(2);
  plane->set_name("Clock offsets");
  PlaneMetadataBuilder metadata(plane);
  const int64_t value = metadata.GetOrCreateStatMetadata("us")->id();
  XLineProto* line = plane->add_lines();
  line->set_id(1);
  line->set_name(std::string(kCounterLineName));
  for (const ViewedNode& node : nodes) {
    const int64_t name =
        metadata.GetOrCreateEventMetadata(absl::StrCat("node ", node.id, ": offset us"))->id();
    ForEachReading(node.begin_ns, node.end_ns, [&](int64_t time_ns) {
      const std::optional<int64_t> offset_ps = OffsetPs(*node.clock, time_ns);
      if (!offset_ps.has_value()) return;
      const absl::StatusOr<int64_t> at_ps = RunClock(start_ns).ToRunPs(time_ns, -*offset_ps);
      if (!at_ps.ok()) return;
      XEventProto* event = line->add_events();
      event->set_metadata_id(name);
      event->set_offset_ps(*at_ps);
      AddStat(value, static_cast<double>(*offset_ps) * kUsPerPs, event);
    });
  }
}

}  // namespace

absl::StatusOr<std::string> ViewerPlanes(const CollectiveTable& table,
                                         absl::Span<const ViewedNode> nodes, int64_t start_ns) {
  XSpaceProto space;
  if (!table.instances().empty()) AddCollectives(table, start_ns, space.add_planes());
  AddOffsets(nodes, start_ns, space.add_planes());
  if (space.ByteSizeLong() > kMaxBytes) {
    return absl::ResourceExhaustedError(
        "there are more collectives than a viewer's file can hold; export fewer steps");
  }
  return SerializeWithSortedMaps(space);
}

std::vector<ClockReading> ReadClocks(absl::Span<const ViewedNode> nodes, int64_t start_ns) {
  std::vector<ClockReading> readings;
  int64_t end_ns = start_ns;
  for (const ViewedNode& node : nodes) {
    end_ns = std::max(end_ns, CommonNs(node, node.end_ns).value_or(start_ns));
  }
  ForEachReading(start_ns, end_ns, [&](int64_t time_ns) {
    if (!readings.empty() && readings.back().time_ns == time_ns) return;
    ClockReading& reading = readings.emplace_back();
    reading.time_ns = time_ns;
    for (const ViewedNode& node : nodes) {
      // Offsets are told by the node's own time: that is found from the common one's in two steps,
      // since it changes by less than a thousandth of itself.
      std::optional<int64_t> own_ns = time_ns;
      for (int step = 0; step < 2 && own_ns.has_value(); ++step) {
        const std::optional<int64_t> offset_ps = OffsetPs(*node.clock, *own_ns);
        own_ns = offset_ps.has_value()
                     ? NarrowToInt64(absl::int128(time_ns) + FloorToNs(*offset_ps))
                     : std::nullopt;
      }
      if (own_ns.has_value()) reading.node_times_ns[node.id] = *own_ns;
    }
  });
  return readings;
}

}  // namespace meridian
