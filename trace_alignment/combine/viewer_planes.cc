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
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {
namespace {

// Offsets are straight between few knots.
constexpr int64_t kReadings = 64;
// Protobuf's limit for a message.
constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();

// Events are serialized one by one: messages of all of them would take far more room.
class CollectivesPlane {
 public:
  explicit CollectivesPlane(const ViewerPlanesInput& input) : input_(input), metadata_(&plane_) {
    plane_.set_name("Collectives");
  }

  // Returns a serialized XPlane.
  std::string Serialize(int64_t id) {
    for (const CollectiveInstance& instance : input_.table.instances()) AddInstance(instance);
    plane_.set_id(id);
    std::string bytes = SerializeWithSortedMaps(plane_);
    StringOutput output(&bytes);
    for (const auto& [rank, events] : events_) {
      XLineProto line;
      line.set_id(rank);
      line.set_name(absl::StrCat("rank ", rank));
      line.set_timestamp_ns(input_.table.base_ns() - input_.start_ns);
      const std::string header = line.SerializeAsString();
      WriteBytesHeader(XPlaneField::kLines, header.size() + events.size(), &output);
      output.Raw(header);
      output.Raw(events);
    }
    return bytes;
  }

 private:
  void AddInstance(const CollectiveInstance& instance) {
    const CollectiveTable& table = input_.table;
    const MatchedOp& op = table.OpOf(instance);
    const int64_t name = metadata_.GetOrCreateEventMetadata(CollectiveKindName(op.kind))->id();
    const std::optional<GroupTiming> timing = TimingOf(table, instance);
    const std::string group = DescribeGroup(table, instance);
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    const std::vector<Partners> partners = PartnersIn(instance);
    // Times in the order that a viewer sees.
    const auto order = [](const CollectiveMember& member) {
      return std::make_pair(FloorToNs(member.start_ps), member.rank);
    };
    const auto [first, last] = std::minmax_element(
        members.begin(), members.end(),
        [&](const CollectiveMember& a, const CollectiveMember& b) { return order(a) < order(b); });
    ++number_;
    for (const CollectiveMember& member : members) {
      one_event_.Clear();
      XEventProto* event = one_event_.add_events();
      event->set_metadata_id(name);
      event->set_offset_ps(member.start_ps);
      event->set_duration_ps(Timespan::FromEndPoints(member.start_ps, member.end_ps).duration_ps());
      AddText("op", op.instruction, event);
      AddText("group", group, event);
      if (!partners.empty()) AddPartners(partners[&member - members.data()], event);
      Add("bytes", event)->set_int64_value(op.operand_bytes);
      AddOrigin(member, event);
      if (timing.has_value()) {
        Add("waited_us", event)
            ->set_double_value(static_cast<double>(timing->SkewPs(member)) * kUsPerPs);
        Add("last_rank", event)->set_int64_value(members[timing->last_member].rank);
      }
      if (members.size() > 1) {
        const bool is_first = &member == &*first, is_last = &member == &*last;
        Add(is_first  ? kArrowStartStat
            : is_last ? kArrowEndStat
                      : kArrowStepStat,
            event)
            ->set_int64_value(number_);
      }
      one_event_.AppendToString(&events_[member.rank]);
    }
  }

  // Ranks that a member of a permute sends to and receives from; absent for none.
  struct Partners {
    std::optional<uint32_t> target, source;
  };

  // Returns those of each member; empty for an instance without pairs.
  std::vector<Partners> PartnersIn(const CollectiveInstance& instance) const {
    const absl::Span<const MemberPair> pairs = input_.table.PairsOf(instance);
    if (pairs.empty()) return {};
    const absl::Span<const CollectiveMember> members = input_.table.MembersOf(instance);
    std::vector<Partners> partners(members.size());
    for (const MemberPair& pair : pairs) {
      partners[pair.source].target = members[pair.target].rank;
      partners[pair.target].source = members[pair.source].rank;
    }
    return partners;
  }

  void AddPartners(const Partners& partners, XEventProto* event) {
    if (partners.target.has_value()) Add("sends_to", event)->set_int64_value(*partners.target);
    if (partners.source.has_value()) Add("receives_from", event)->set_int64_value(*partners.source);
  }

  // Adds in which step it was, and which kernel.
  void AddOrigin(const CollectiveMember& member, XEventProto* event) {
    const uint32_t node = input_.table.NodeOf(member);
    const std::optional<int64_t> step = input_.profiles[node].events[member.event].step;
    if (step.has_value()) Add("step", event)->set_int64_value(*step);
    Add(kArrowNodeStat, event)->set_int64_value(input_.node_ids[node]);
    if (member.correlation_id == 0) return;
    Add(StatTypeName(StatType::kCorrelationId), event)->set_uint64_value(member.correlation_id);
  }

  XStatProto* Add(absl::string_view name, XEventProto* event) {
    XStatProto* stat = event->add_stats();
    stat->set_metadata_id(metadata_.GetOrCreateStatMetadata(name)->id());
    return stat;
  }

  void AddText(absl::string_view name, absl::string_view text, XEventProto* event) {
    if (text.empty()) return;
    Add(name, event)->set_ref_value(metadata_.GetOrCreateStatMetadata(text)->id());
  }

  const ViewerPlanesInput& input_;
  // Without its lines.
  XPlaneProto plane_;
  PlaneMetadataBuilder metadata_;
  // The serialized events of each rank's line.
  std::map<uint32_t, std::string> events_;
  // A line with the event at hand.
  XLineProto one_event_;
  // Of the instance's arrow.
  int64_t number_ = 0;
};

void AddClockOffsets(const ViewerPlanesInput& input, XPlaneProto* plane) {
  plane->set_name("Clock offsets");
  PlaneMetadataBuilder metadata(plane);
  const int64_t unit = metadata.GetOrCreateStatMetadata("ns")->id();
  XLineProto& line = *plane->add_lines();
  line.set_name(std::string(kCounterLineName));
  for (const ShownTimes& reading : input.readings) {
    for (const auto& [node_id, node_time_ns] : reading.node_times_ns) {
      XEventProto& event = *line.add_events();
      // Perfetto has no names for clocks.
      const std::string name =
          absl::StrCat("node ", node_id, " (clock ", kFirstNodeClock + node_id, ")");
      event.set_metadata_id(metadata.GetOrCreateEventMetadata(name)->id());
      event.set_offset_ps(
          SaturateToInt64((absl::int128(reading.time_ns) - input.start_ns) * kPsPerNs));
      XStatProto& stat = *event.add_stats();
      stat.set_metadata_id(unit);
      stat.set_int64_value(node_time_ns - reading.time_ns);
    }
  }
}

}  // namespace

std::vector<ShownTimes> ReadClocks(absl::Span<const ViewedNode> nodes, int64_t start_ns) {
  int64_t end_ns = start_ns;
  for (const ViewedNode& node : nodes) {
    end_ns = std::max(end_ns, MapHostTime(*node.clock, node.end_ns).value_or(start_ns));
  }
  const int64_t length_ns = SaturateToInt64(absl::int128(end_ns) - start_ns);
  std::vector<ShownTimes> readings;
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
    for (ShownTimes& reading : readings) {
      absl::StatusOr<int64_t> time_ps = node.clock->run.ToRunPs(reading.time_ns, 0);
      // Too far from the run's times.
      if (!time_ps.ok()) continue;
      for (const ClockMap& map : way_back) *time_ps = map.Forward(*time_ps);
      reading.node_times_ns[node.id] = node.clock->run.ToUnixNs(*time_ps);
    }
  }
  return readings;
}

absl::StatusOr<std::string> ViewerPlanes(const ViewerPlanesInput& input) {
  XSpaceProto space;
  if (!input.readings.empty()) AddClockOffsets(input, space.add_planes());
  for (int i = 0; i < space.planes_size(); ++i) space.mutable_planes(i)->set_id(i + 1);
  std::string bytes = SerializeWithSortedMaps(space);
  if (!input.table.instances().empty()) {
    StringOutput output(&bytes);
    WriteBytesField(XSpaceField::kPlanes,
                    CollectivesPlane(input).Serialize(space.planes_size() + 1), &output);
  }
  if (bytes.size() > kMaxBytes) {
    return absl::ResourceExhaustedError(
        "there are more collectives than a viewer's file can hold; export fewer steps");
  }
  return bytes;
}

}  // namespace meridian
