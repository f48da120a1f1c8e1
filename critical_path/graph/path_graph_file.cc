#include "critical_path/graph/path_graph_file.h"

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/packed_bytes.h"

namespace meridian {
namespace {

constexpr absl::string_view kMagic = "MCPGRAPH";
// Goes up whenever the body holds something else, also when an enumeration changes.
constexpr uint32_t kVersion = 3;
constexpr size_t kHeaderBytes = 16;

// Some traces of a single rank give it as -1.
constexpr int64_t kMinRank = -1;
constexpr int64_t kMaxRank = int64_t{1} << 31;

uint32_t Checksum(absl::string_view body) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const unsigned char*>(body.data()), body.size()));
}

// Numbers are little-endian, as on every supported machine.
uint32_t ReadNumber(absl::string_view bytes, size_t offset) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

void AppendNumber(uint32_t number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

// PackedBytes finds these by the types of their arguments.
static void Pack(PackedBytes& bytes, Lane& lane) {
  bytes(lane.rank, lane.kind, lane.process, lane.thread);
}

static void Pack(PackedBytes& bytes, GraphEvent& event) {
  bytes(event.name, event.lane, event.start_ps, event.duration_ps, event.category, event.position,
        event.step);
}

static void Pack(PackedBytes& bytes, Instant& instant) {
  bytes(instant.time_ps, instant.event, instant.is_start);
}

static void Pack(PackedBytes& bytes, GraphEdge& edge) {
  bytes(edge.from, edge.to, edge.weight_ps, edge.event, edge.type, edge.bound_by);
}

static void Pack(PackedBytes& bytes, GraphMeeting& meeting) {
  bytes(meeting.instant, meeting.name, meeting.step);
}

static void Pack(PackedBytes& bytes, StepMark& mark) { bytes(mark.rank, mark.step, mark.start_ps); }

static void Pack(PackedBytes& bytes, StringPool& names) {
  std::vector<std::string> texts;
  for (NameId id = 0; id < names.size(); ++id) texts.emplace_back(names.Get(id));
  bytes(texts);
  for (const std::string& text : texts) names.Intern(text);
}

static void Pack(PackedBytes& bytes, GraphSource& source) {
  bytes(source.trace, source.window.annotation, source.window.instances.first,
        source.window.instances.last, source.hta_compatible, source.step_word, source.without_gpus,
        source.notes);
}

static void Pack(PackedBytes& bytes, PathGraph& graph) {
  bytes(graph.base_ns, graph.window_start_ps, graph.window_end_ps, graph.lanes, graph.names,
        graph.events, graph.instants, graph.edges, graph.meetings, graph.marks, graph.end_instant,
        graph.first_step_waits_for_all);
}

namespace {

absl::Status Bad(absl::string_view what) {
  return InvalidArgument("the body contradicts itself: ", what);
}

absl::Status CheckGraph(const PathGraph& graph) {
  const auto is_event = [&](GraphEventId id) { return id == kNoEvent || id < graph.events.size(); };
  const auto is_instant = [&](InstantId id) { return id < graph.instants.size(); };
  if (!TimesFit(graph)) return InvalidArgument("a time is not below 2^60 ps, 13 days");
  for (const Lane& lane : graph.lanes) {
    if (lane.rank < kMinRank || lane.rank > kMaxRank) {
      return InvalidArgument("a lane's rank is ", lane.rank, "; expected at most 2^31");
    }
    if (lane.kind != TrackKind::kHost && lane.kind != TrackKind::kDevice) return Bad("a lane");
  }
  for (const GraphEvent& event : graph.events) {
    if (event.name >= graph.names.size()) return Bad("an event's name");
    if (event.lane >= graph.lanes.size()) return Bad("an event's lane");
    if (static_cast<int>(event.category) >= kNumEventCategories) return Bad("an event's category");
  }
  for (const Instant& instant : graph.instants) {
    if (!is_event(instant.event)) return Bad("a node's event");
  }
  for (const GraphEdge& edge : graph.edges) {
    if (!is_instant(edge.from) || !is_instant(edge.to)) return Bad("an edge's nodes");
    if (!is_event(edge.event)) return Bad("an edge's event");
    const bool is_known = static_cast<int>(edge.type) < kNumEdgeTypes &&
                          static_cast<int>(edge.bound_by) < kNumBoundBy;
    if (!is_known) return Bad("an edge's type or bound");
    if (edge.weight_ps < 0) return Bad("an edge's weight");
  }
  for (const GraphMeeting& meeting : graph.meetings) {
    if (!is_instant(meeting.instant)) return Bad("a meeting's node");
    if (meeting.name >= graph.names.size()) return Bad("a meeting's name");
  }
  const bool has_end = !graph.end_instant.has_value() || is_instant(*graph.end_instant);
  return has_end ? absl::OkStatus() : Bad("the end node");
}

}  // namespace

std::string GraphFile(absl::string_view body) {
  std::string out(kMagic);
  AppendNumber(kVersion, &out);
  AppendNumber(Checksum(body), &out);
  return absl::StrCat(out, body);
}

std::string SerializeGraph(const GraphSource& source, const PathGraph& graph) {
  PackedBytes body;
  // Packing changes nothing.
  body(const_cast<GraphSource&>(source), const_cast<PathGraph&>(graph));
  return GraphFile(body.bytes());
}

absl::StatusOr<TraceAnalysis> ParseGraph(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagic)) {
    return InvalidArgument("offset 0: this is no saved graph; expected 'MCPGRAPH'");
  }
  if (bytes.size() < kHeaderBytes) return InvalidArgument("offset 8: the saved graph is cut off");
  const uint32_t version = ReadNumber(bytes, 8);
  if (version != kVersion) {
    return absl::UnimplementedError(absl::StrCat(
        "offset 8: version ", version, " of the format; this program knows version ", kVersion));
  }
  const absl::string_view body = bytes.substr(kHeaderBytes);
  if (Checksum(body) != ReadNumber(bytes, 12)) {
    return InvalidArgument("offset 12: the checksum is wrong; the file is cut off or damaged");
  }
  TraceAnalysis saved;
  PackedBytes packed(body);
  packed(saved.source, saved.graph);
  if (!packed.Finish().ok()) return InvalidArgument("offset 16: the body is not that of a graph");
  RETURN_IF_ERROR(CheckGraph(saved.graph));
  return saved;
}

}  // namespace meridian
