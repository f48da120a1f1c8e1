// trace_columns: the events of a profile, or a saved graph, as columns for scripts.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/graph/path_graph_file.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/string_pool.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/events/event_table_xspace.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/sources/trace_files.h"
#include "xla_profiler/sources/trace_sources.h"
#include "xla_profiler/trace_json/trace_json_reader.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_trace("trace", "",
                              "The profile: an XSpace, a Kineto trace or other Chrome trace JSON.");
Flag<std::string> FLAGS_graph("graph", "",
                              "In place of --trace: a graph that critical_path --save wrote.");
Flag<std::string> FLAGS_output_dir(
    "output_dir", "",
    "The folder for the columns, NAME.npy as NumPy maps them, and table.json with the names.");

// Writes columns into a folder, all at once when they are complete.
class ColumnWriter {
 public:
  // Does not overwrite the input.
  ColumnWriter(std::string input, std::string folder)
      : input_(std::move(input)), folder_(std::move(folder)), outputs_(FileSystem::Posix()) {}

  // Writes value(0), value(1), ... value(size - 1).
  template <typename ValueOf>
  absl::Status Column(const std::string& name, size_t size, ValueOf value) {
    using T = decltype(value(size_t{0}));
    const std::string path = absl::StrCat(folder_, "/", name, ".npy");
    RETURN_IF_ERROR(CheckOutputPaths({input_}, {path}));
    return outputs_.Write("column", path, [&](ByteSink& sink) {
      RETURN_IF_ERROR(sink.Append(Header<T>(size)));
      std::vector<T> block;
      constexpr size_t kBlockRows = 1 << 16;
      for (size_t begin = 0; begin < size; begin += kBlockRows) {
        block.clear();
        for (size_t i = begin; i < std::min(size, begin + kBlockRows); ++i) {
          block.push_back(value(i));
        }
        RETURN_IF_ERROR(
            sink.Append({reinterpret_cast<const char*>(block.data()), block.size() * sizeof(T)}));
      }
      return absl::OkStatus();
    });
  }

  absl::Status Table(absl::string_view json) {
    const std::string path = absl::StrCat(folder_, "/table.json");
    RETURN_IF_ERROR(CheckOutputPaths({input_}, {path}));
    RETURN_IF_ERROR(outputs_.WriteText("table", path, json));
    return outputs_.Commit();
  }

 private:
  // What begins a file in version 1.0 of NumPy's format: the data begin at a multiple of 64.
  template <typename T>
  static std::string Header(size_t size) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    std::string header = absl::StrCat("{'descr': '", sizeof(T) == 1 ? "|" : "<",
                                      std::is_signed<T>::value ? "i" : "u", sizeof(T),
                                      "', 'fortran_order': False, 'shape': (", size, ",), }");
    constexpr size_t kBefore = 10;
    const size_t total = (kBefore + header.size() + 1 + 63) / 64 * 64;
    header.resize(total - kBefore - 1, ' ');
    header.push_back('\n');
    return absl::StrCat(absl::string_view("\x93NUMPY\x01\x00", 8),
                        std::string(1, static_cast<char>(header.size() & 0xFF)),
                        std::string(1, static_cast<char>(header.size() >> 8)), header);
  }

  std::string input_;
  std::string folder_;
  OutputFiles outputs_;
};

void AddTexts(absl::string_view key, int count, absl::string_view (*text)(int), JsonWriter* json) {
  json->BeginArray(key);
  for (int i = 0; i < count; ++i) json->Value(text(i));
  json->EndArray();
}

void AddCategories(JsonWriter* json) {
  AddTexts(
      "categories", kNumEventCategories,
      [](int i) { return EventCategoryName(static_cast<EventCategory>(i)); }, json);
}

void AddNames(const StringPool& names, JsonWriter* json) {
  json->BeginArray("names");
  for (uint32_t i = 0; i < names.size(); ++i) json->Value(names.Get(i));
  json->EndArray();
}

absl::string_view TrackKindName(TrackKind kind) {
  return kind == TrackKind::kDevice ? "device" : "host";
}

// The rank whose work each track of a table is; nullopt where the file does not say.
using TrackRanks = std::vector<std::optional<int64_t>>;

absl::Status WriteTable(const EventTable& table, const TrackRanks& ranks, ColumnWriter* columns) {
  const size_t size = table.size();
  RETURN_IF_ERROR(columns->Column("start_ps", size, [&](size_t i) { return table.start_ps(i); }));
  RETURN_IF_ERROR(
      columns->Column("duration_ps", size, [&](size_t i) { return table.duration_ps(i); }));
  RETURN_IF_ERROR(columns->Column("track", size, [&](size_t i) { return table.track_id(i); }));
  RETURN_IF_ERROR(columns->Column("name", size, [&](size_t i) { return table.name_id(i); }));
  RETURN_IF_ERROR(columns->Column(
      "category", size, [&](size_t i) { return static_cast<uint8_t>(table.category(i)); }));
  RETURN_IF_ERROR(columns->Column("correlation", size, [&](size_t i) {
    return table.correlation(i).value_or(std::numeric_limits<uint64_t>::max());
  }));
  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  json.Member("base_ns", table.base_ns());
  AddNames(table.names(), &json);
  AddCategories(&json);
  json.BeginArray("tracks");
  for (TrackId id = 0; id < table.tracks().size(); ++id) {
    const Track& track = table.track(id);
    json.BeginObject();
    json.Member("kind", TrackKindName(track.kind));
    json.Member("clock", ClockDomainName(track.clock));
    json.Member("process", track.process);
    json.Member("process_name", track.process_name);
    json.Member("thread", track.thread);
    json.Member("name", track.name);
    if (track.device_id.has_value()) json.Member("device_id", *track.device_id);
    if (ranks[id].has_value()) json.Member("rank", *ranks[id]);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return columns->Table(text);
}

absl::Status WriteGraph(const TraceAnalysis& saved, const CriticalPath& path,
                        ColumnWriter* columns) {
  const PathGraph& graph = saved.graph;
  // One column: a member, or what is made of it, of all events, instants or edges.
  const auto write = [&](const char* name, const auto& rows, auto value) {
    return columns->Column(name, rows.size(), [&](size_t i) { return value(rows[i]); });
  };
  using Event = GraphEvent;
  using Edge = GraphEdge;
  RETURN_IF_ERROR(write("event_name", graph.events, [](const Event& e) { return e.name; }));
  RETURN_IF_ERROR(write("event_lane", graph.events, [](const Event& e) { return e.lane; }));
  RETURN_IF_ERROR(write("event_start_ps", graph.events, [](const Event& e) { return e.start_ps; }));
  RETURN_IF_ERROR(
      write("event_duration_ps", graph.events, [](const Event& e) { return e.duration_ps; }));
  RETURN_IF_ERROR(write("event_category", graph.events,
                        [](const Event& e) { return static_cast<uint8_t>(e.category); }));
  RETURN_IF_ERROR(write("event_position", graph.events, [](const Event& e) { return e.position; }));
  RETURN_IF_ERROR(write("event_step", graph.events, [](const Event& e) { return e.step; }));
  RETURN_IF_ERROR(
      write("instant_time_ps", graph.instants, [](const Instant& i) { return i.time_ps; }));
  RETURN_IF_ERROR(write("instant_event", graph.instants, [](const Instant& i) { return i.event; }));
  RETURN_IF_ERROR(write("instant_is_start", graph.instants,
                        [](const Instant& i) { return static_cast<uint8_t>(i.is_start); }));
  RETURN_IF_ERROR(write("edge_from", graph.edges, [](const Edge& e) { return e.from; }));
  RETURN_IF_ERROR(write("edge_to", graph.edges, [](const Edge& e) { return e.to; }));
  RETURN_IF_ERROR(write("edge_weight_ps", graph.edges, [](const Edge& e) { return e.weight_ps; }));
  RETURN_IF_ERROR(write("edge_event", graph.edges, [](const Edge& e) { return e.event; }));
  RETURN_IF_ERROR(
      write("edge_type", graph.edges, [](const Edge& e) { return static_cast<uint8_t>(e.type); }));
  RETURN_IF_ERROR(write("edge_bound_by", graph.edges,
                        [](const Edge& e) { return static_cast<uint8_t>(e.bound_by); }));
  RETURN_IF_ERROR(write("path_edge", path.edges, [](EdgeId id) { return id; }));
  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  json.Member("base_ns", graph.base_ns);
  json.Member("window_start_ps", graph.window_start_ps);
  json.Member("window_end_ps", graph.window_end_ps);
  AddNames(graph.names, &json);
  AddCategories(&json);
  AddTexts(
      "edge_types", kNumEdgeTypes, [](int i) { return EdgeTypeName(static_cast<EdgeType>(i)); },
      &json);
  json.BeginArray("bound_by");
  for (int i = 0; i < kNumBoundBy; ++i) {
    json.Value(BoundByName(static_cast<BoundBy>(i), saved.source.without_gpus));
  }
  json.EndArray();
  json.BeginArray("lanes");
  for (const Lane& lane : graph.lanes) {
    json.BeginObject();
    json.Member("rank", lane.rank);
    json.Member("kind", TrackKindName(lane.kind));
    json.Member("process", lane.process);
    json.Member("thread", lane.thread);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return columns->Table(text);
}

// Ranks as docs/collectives.md defines them: of a device's tracks its own, of a host's that of its
// only device. A profile that is not of a whole run tells a rank only where no other profile could
// change it: when all ids below the device's own are there.
absl::Status SetXSpaceRanks(const XSpaceReader& reader, const EventTable& table, TrackRanks* out) {
  ASSIGN_OR_RETURN(const std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
  // The global ids of each node's devices, by the name of their plane; of hosts under no name.
  std::map<int64_t, std::map<std::string, std::set<int64_t>>> devices;
  std::set<int64_t> ids;
  const auto read = [&](int64_t node, const XSpaceReader& own) -> absl::Status {
    ASSIGN_OR_RETURN(const ProfileCollectives profile, ReadXSpaceCollectives(own));
    ids.insert(profile.assigned_devices.begin(), profile.assigned_devices.end());
    for (const LocalDevice& device : profile.devices) {
      devices[node][device.name].insert(device.global_id);
      devices[node][""].insert(device.global_id);
    }
    return absl::OkStatus();
  };
  if (nodes.empty()) RETURN_IF_ERROR(read(kUnknownId, reader));
  for (const NodeProfile& node : nodes) RETURN_IF_ERROR(read(node.node_id, node.reader));
  std::map<std::pair<std::string, std::string>, const std::set<int64_t>*> of_line;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) -> absl::Status {
    ASSIGN_OR_RETURN(const PlaneOwners owner, PlaneOwners::Read(plane));
    return plane.ForEachLine([&](const XLineVisitor& line) {
      auto& own = devices[owner.NodeOfLine(line.Id()).value_or(kUnknownId)];
      const std::string device(IsDevicePlane(plane.Name()) ? owner.original_name() : "");
      // One that works, but does not communicate, is a device of the host, too.
      if (line.NumEvents() > 0 && own[device].empty()) own[""].insert(kUnknownId);
      of_line[{std::string(plane.Name()), absl::StrCat(line.Id())}] = &own[device];
    });
  }));
  for (TrackId id = 0; id < table.tracks().size(); ++id) {
    const auto line = of_line.find({table.track(id).process, table.track(id).thread});
    if (line == of_line.end() || line->second->size() != 1) continue;
    const auto found = ids.find(*line->second->begin());
    const int64_t rank = std::distance(ids.begin(), found);
    if (found != ids.end() && (!nodes.empty() || rank == *found)) (*out)[id] = rank;
  }
  return absl::OkStatus();
}

// The rank that Kineto's header states; of a combined trace those that begin its processes' names.
void SetKinetoRanks(const TraceJsonHeader& header, const EventTable& table, TrackRanks* out) {
  out->assign(table.tracks().size(), header.Find("distributedInfo").Find("rank").AsInt64());
  if (!header.Find("combinedRanks").AsInt64().has_value()) return;
  for (TrackId id = 0; id < table.tracks().size(); ++id) {
    const Track& track = table.track(id);
    absl::string_view name = track.process_name.empty() ? track.process : track.process_name;
    int64_t rank = 0;
    if (!absl::ConsumePrefix(&name, "rank ")) continue;
    if (absl::SimpleAtoi(name.substr(0, name.find(' ')), &rank)) (*out)[id] = rank;
  }
}

absl::StatusOr<EventTable> LoadTrace(const std::string& path, TrackRanks* ranks) {
  FileSystem& file_system = FileSystem::Posix();
  ASSIGN_OR_RETURN(const DetectedFile detected, DetectFile(file_system, path));
  const bool is_viewers =
      detected.other == OtherFile::kCombinedKineto || detected.other == OtherFile::kTraceJson;
  TraceFiles files;
  if (!is_viewers) {
    TraceFilesOptions options;
    options.input = UserInputOptions();
    ASSIGN_OR_RETURN(files, TraceFiles::Create(file_system, {path}, options));
    PrintNotes(files.notes());
  }
  ASSIGN_OR_RETURN(InputFile file, is_viewers
                                       ? InputFile::Open(file_system, path, UserInputOptions())
                                       : OpenOnlyTrace(files));
  if (!is_viewers && files.form() == TraceForm::kXSpace) {
    ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::OfFile(std::move(file)));
    ASSIGN_OR_RETURN(EventTable table, LoadXSpace(reader));
    ranks->resize(table.tracks().size());
    if (const absl::Status known = SetXSpaceRanks(reader, table, ranks); !known.ok()) {
      std::fprintf(stderr, "trace_columns: note: ranks are not known: %s\n",
                   std::string(known.message()).c_str());
    }
    return table;
  }
  ASSIGN_OR_RETURN(TraceJsonTable table, LoadTraceJson(file.bytes(), path));
  if (table.problems.total() > 0) {
    std::fprintf(stderr, "trace_columns: note: events were left out: %s\n",
                 table.problems.ToString().c_str());
  }
  SetKinetoRanks(table.header, table.table, ranks);
  return std::move(table.table);
}

absl::StatusOr<int> WriteColumns() {
  if (FLAGS_trace.given() == FLAGS_graph.given()) {
    return InvalidArgument("give either --trace or --graph");
  }
  ASSIGN_OR_RETURN(const std::string folder, RequiredPath(FLAGS_output_dir, "folder", "columns/"));
  const std::string input = UserPath(FLAGS_graph.given() ? FLAGS_graph : FLAGS_trace);
  ColumnWriter columns(input, folder);
  std::string what;
  size_t rows = 0;
  if (FLAGS_graph.given()) {
    ASSIGN_OR_RETURN(const InputFile file,
                     InputFile::Open(FileSystem::Posix(), input, UserInputOptions()));
    ASSIGN_OR_RETURN(const TraceAnalysis saved, Annotate(ParseGraph(file.bytes()), file.path()));
    ASSIGN_OR_RETURN(const CriticalPath path, Annotate(FindLongestPath(saved.graph), file.path()));
    RETURN_IF_ERROR(WriteGraph(saved, path, &columns));
    what = "edges";
    rows = saved.graph.edges.size();
  } else {
    TrackRanks ranks;
    ASSIGN_OR_RETURN(const EventTable table, LoadTrace(input, &ranks));
    RETURN_IF_ERROR(WriteTable(table, ranks, &columns));
    what = "events";
    rows = table.size();
  }
  std::string text;
  if (JsonWanted()) {
    JsonWriter json(&text, JsonSpacing::kSpaced);
    json.BeginObject();
    json.Member("output_dir", folder);
    json.Member(what, rows);
    json.EndObject();
    text.push_back('\n');
  } else {
    text =
        absl::StrCat(WithThousands(rows), " ", what, " in columns under ", Printable(folder), "\n");
  }
  RETURN_IF_ERROR(Print(text));
  return kExitDone;
}

}  // namespace

Command TraceColumnsCommand() {
  return {"trace_columns",
          "Writes the events of a profile, or a saved graph, as columns that NumPy maps: what "
          "Python's open_trace() reads.",
          {"trace_columns --trace=node0.xplane.pb --output_dir=columns/"},
          {&FLAGS_trace, &FLAGS_graph, &FLAGS_output_dir},
          WriteColumns};
}

}  // namespace meridian
