#include "critical_path/graph/path_graph_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/path_graph_file.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr absl::string_view kMagic = "MCPGRAPH";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 28;

void AppendNumber(uint64_t number, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(number >> (8 * i)));
}

uint64_t ReadNumber(absl::string_view bytes, size_t offset, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) {
    number |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[offset + i])) << (8 * i);
  }
  return number;
}

// Stores each value as its difference to the one before, which is a small number where values are
// near each other. Encoding and decoding wrap around alike.
class Differences {
 public:
  int64_t Encode(int64_t value) {
    const uint64_t difference = static_cast<uint64_t>(value) - last_;
    last_ = static_cast<uint64_t>(value);
    return static_cast<int64_t>(difference);
  }
  int64_t Decode(int64_t difference) {
    last_ += static_cast<uint64_t>(difference);
    return static_cast<int64_t>(last_);
  }

 private:
  uint64_t last_ = 0;
};

// Returns the number of an event in the file: 0 for kNoEvent, else one more than the id.
int64_t EventNumber(GraphEventId event) {
  return event == kNoEvent ? 0 : static_cast<int64_t>(event) + 1;
}

void DescribeSource(const GraphSource& source, PathGraphFile* file) {
  file->set_trace(source.trace);
  file->set_annotation(source.window.annotation);
  file->set_first_instance(source.window.instances.first);
  file->set_last_instance(source.window.instances.last);
  file->set_hta_compatible(source.hta_compatible);
  file->set_without_gpus(source.without_gpus);
  if (source.step_word != "step") file->set_step_word(source.step_word);
  for (const std::string& note : source.notes) file->add_notes(note);
}

void AddNames(const PathGraph& graph, PathGraphFile* file) {
  for (const Lane& lane : graph.lanes) {
    PathGraphLane* out = file->add_lanes();
    out->set_rank(lane.rank);
    out->set_is_device(lane.kind == TrackKind::kDevice);
    out->set_process(lane.process);
    out->set_thread(lane.thread);
  }
  for (NameId id = 0; id < graph.names.size(); ++id) {
    file->add_names(std::string(graph.names.Get(id)));
  }
  for (int i = 0; i < kNumEventCategories; ++i) {
    file->add_categories(std::string(EventCategoryName(static_cast<EventCategory>(i))));
  }
  for (int i = 0; i < kNumEdgeTypes; ++i) {
    file->add_edge_types(std::string(EdgeTypeName(static_cast<EdgeType>(i))));
  }
  for (int i = 0; i < kNumBoundBy; ++i) {
    file->add_bounds(std::string(BoundByName(static_cast<BoundBy>(i))));
  }
}

void AddEvents(const PathGraph& graph, PathGraphFile* file) {
  Differences position, start, step;
  for (const GraphEvent& event : graph.events) {
    file->add_event_names(event.name);
    file->add_event_lanes(event.lane);
    file->add_event_categories(static_cast<uint32_t>(event.category));
    file->add_event_positions(position.Encode(event.position));
    file->add_event_starts_ps(start.Encode(event.start_ps));
    file->add_event_durations_ps(event.duration_ps);
    file->add_event_steps(step.Encode(event.step == kNoStep ? -1 : event.step));
  }
}

void AddInstants(const PathGraph& graph, PathGraphFile* file) {
  Differences event, time;
  for (const Instant& instant : graph.instants) {
    file->add_node_events(event.Encode(EventNumber(instant.event)));
    file->add_node_is_start(instant.is_start);
    file->add_node_times_ps(time.Encode(instant.time_ps));
  }
}

void AddEdges(const PathGraph& graph, PathGraphFile* file) {
  Differences tail, event;
  for (const GraphEdge& edge : graph.edges) {
    file->add_edge_tails(tail.Encode(edge.from));
    file->add_edge_heads(static_cast<int64_t>(edge.to) - static_cast<int64_t>(edge.from));
    file->add_edge_weights_ps(static_cast<uint64_t>(edge.weight_ps));
    file->add_edge_events(event.Encode(EventNumber(edge.event)));
    file->add_edge_type_numbers(static_cast<uint32_t>(edge.type));
    file->add_edge_bounds(static_cast<uint32_t>(edge.bound_by));
  }
}

void AddMeetings(const PathGraph& graph, PathGraphFile* file) {
  for (const GraphMeeting& meeting : graph.meetings) {
    file->add_meeting_nodes(meeting.instant);
    file->add_meeting_names(meeting.name);
    file->add_meeting_has_step(meeting.step.has_value());
    file->add_meeting_steps(meeting.step.value_or(0));
  }
}

// Returns the body after checking the header: magic, version, size and checksum.
absl::StatusOr<absl::string_view> CutBody(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagic)) {
    return absl::InvalidArgumentError("offset 0: this is no saved graph; expected 'MCPGRAPH'");
  }
  if (bytes.size() < kHeaderBytes) {
    return absl::InvalidArgumentError("offset 8: the saved graph is cut off");
  }
  const uint64_t version = ReadNumber(bytes, 8, 4);
  if (version != kVersion) {
    return absl::UnimplementedError(absl::StrCat(
        "offset 8: version ", version, " of the format; this program knows version ", kVersion));
  }
  const absl::string_view body = bytes.substr(kHeaderBytes);
  const uint64_t size = ReadNumber(bytes, 12, 8);
  if (body.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("offset 12: the body has ", body.size(), " bytes, expected ", size,
                     body.size() < size ? "; the file is cut off" : ""));
  }
  if (GraphFileChecksum(body) != ReadNumber(bytes, 20, 8)) {
    return absl::InvalidArgumentError("offset 20: the checksum is wrong; the file is damaged");
  }
  return body;
}

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the body contradicts itself: ", what));
}

absl::Status CheckLengths(absl::string_view table, int count, std::initializer_list<int> lengths) {
  const bool are_equal =
      std::all_of(lengths.begin(), lengths.end(), [&](int length) { return length == count; });
  return are_equal ? absl::OkStatus()
                   : Bad(absl::StrCat("columns of ", table, " differ in length"));
}

// Sums of a few times below this do not overflow.
constexpr int64_t kTimeLimitPs = int64_t{1} << 60;
// Some traces of a single rank give it as -1.
constexpr int64_t kMinRank = -1;
constexpr int64_t kMaxRank = int64_t{1} << 31;

absl::Status CheckTime(absl::string_view what, int64_t time_ps) {
  if (-kTimeLimitPs < time_ps && time_ps < kTimeLimitPs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", time_ps, " ps; expected less than 2^60, 13 days"));
}

// Turns the file's numbers of an enumeration into ours, by the names that the file gives them.
template <typename Enum>
class Numbers {
 public:
  template <typename Names>
  Numbers(const Names& names, int count, absl::string_view (*name_of)(Enum)) {
    for (const auto& name : names) {
      std::optional<Enum>& found = values_.emplace_back();
      for (int i = 0; i < count; ++i) {
        if (name_of(static_cast<Enum>(i)) == absl::string_view(name)) found = static_cast<Enum>(i);
      }
    }
  }

  // Nullopt for a number without a name, and for a name that is not known here.
  std::optional<Enum> Find(uint32_t number) const {
    return number < values_.size() ? values_[number] : std::nullopt;
  }

 private:
  // By the file's number.
  std::vector<std::optional<Enum>> values_;
};

// Reads the tables one after the other, each checked against those before.
class BodyReader {
 public:
  explicit BodyReader(const PathGraphFile& file) : file_(file) {}

  absl::StatusOr<SavedGraph> Read() {
    RETURN_IF_ERROR(ReadSource());
    RETURN_IF_ERROR(ReadNames());
    RETURN_IF_ERROR(ReadEvents());
    RETURN_IF_ERROR(ReadInstants());
    RETURN_IF_ERROR(ReadEdges());
    RETURN_IF_ERROR(ReadMeetings());
    return std::move(saved_);
  }

 private:
  absl::Status ReadSource() {
    GraphSource& source = saved_.source;
    source.trace = file_.trace();
    source.window.annotation = file_.annotation();
    source.window.instances = {file_.first_instance(), file_.last_instance()};
    source.hta_compatible = file_.hta_compatible();
    source.without_gpus = file_.without_gpus();
    if (!file_.step_word().empty()) source.step_word = std::string(file_.step_word());
    source.notes.assign(file_.notes().begin(), file_.notes().end());
    graph_.base_ns = file_.base_ns();
    graph_.window_start_ps = file_.window_start_ps();
    graph_.window_end_ps = file_.window_end_ps();
    RETURN_IF_ERROR(CheckTime("the window's start", graph_.window_start_ps));
    return CheckTime("the window's end", graph_.window_end_ps);
  }

  absl::Status ReadNames() {
    for (const PathGraphLane& lane : file_.lanes()) {
      if (lane.rank() < kMinRank || lane.rank() > kMaxRank) {
        return absl::InvalidArgumentError(
            absl::StrCat("a lane's rank is ", lane.rank(), "; expected at most 2^31"));
      }
      graph_.lanes.push_back({lane.rank(), lane.is_device() ? TrackKind::kDevice : TrackKind::kHost,
                              lane.process(), lane.thread()});
    }
    for (const std::string& name : file_.names()) names_.push_back(graph_.names.Intern(name));
    return absl::OkStatus();
  }

  absl::Status ReadEvents() {
    const int count = file_.event_names_size();
    RETURN_IF_ERROR(CheckLengths(
        "events", count,
        {file_.event_lanes_size(), file_.event_categories_size(), file_.event_positions_size(),
         file_.event_starts_ps_size(), file_.event_durations_ps_size()}));
    const Numbers<EventCategory> categories(file_.categories(), kNumEventCategories,
                                            EventCategoryName);
    // Files of older programs do not say in which steps events are.
    const bool has_steps = file_.event_steps_size() > 0;
    if (has_steps) RETURN_IF_ERROR(CheckLengths("events", count, {file_.event_steps_size()}));
    Differences position, start, step;
    for (int i = 0; i < count; ++i) {
      GraphEvent event;
      if (file_.event_names(i) >= names_.size()) return Bad("an event's name");
      event.name = names_[file_.event_names(i)];
      event.lane = file_.event_lanes(i);
      if (event.lane >= graph_.lanes.size()) return Bad("an event's lane");
      event.category = categories.Find(file_.event_categories(i)).value_or(EventCategory::kUnknown);
      const int64_t place = position.Decode(file_.event_positions(i));
      if (place < 0 || place > std::numeric_limits<uint32_t>::max()) {
        return Bad("an event's position");
      }
      event.position = static_cast<uint32_t>(place);
      event.start_ps = start.Decode(file_.event_starts_ps(i));
      event.duration_ps = file_.event_durations_ps(i);
      RETURN_IF_ERROR(CheckTime("an event's start", event.start_ps));
      RETURN_IF_ERROR(CheckTime("an event's duration", event.duration_ps));
      const int64_t number = has_steps ? step.Decode(file_.event_steps(i)) : -1;
      if (number >= 0) event.step = number;
      graph_.events.push_back(event);
    }
    return absl::OkStatus();
  }

  // The reverse of EventNumber; nullopt for a number that no event has.
  std::optional<GraphEventId> EventOf(int64_t number) const {
    if (number == 0) return kNoEvent;
    if (number < 0 || static_cast<uint64_t>(number) > graph_.events.size()) return std::nullopt;
    return static_cast<GraphEventId>(number - 1);
  }

  absl::Status ReadInstants() {
    const int count = file_.node_events_size();
    RETURN_IF_ERROR(
        CheckLengths("nodes", count, {file_.node_is_start_size(), file_.node_times_ps_size()}));
    Differences event, time;
    for (int i = 0; i < count; ++i) {
      const std::optional<GraphEventId> id = EventOf(event.Decode(file_.node_events(i)));
      if (!id.has_value()) return Bad("a node's event");
      const int64_t time_ps = time.Decode(file_.node_times_ps(i));
      RETURN_IF_ERROR(CheckTime("a node's time", time_ps));
      graph_.instants.push_back({time_ps, *id, file_.node_is_start(i)});
    }
    graph_.first_step_waits_for_all = file_.first_step_waits_for_all();
    if (file_.has_end_node()) {
      if (file_.end_node() >= graph_.instants.size()) return Bad("the end node");
      graph_.end_instant = file_.end_node();
    }
    return absl::OkStatus();
  }

  absl::Status ReadEdges() {
    const int count = file_.edge_tails_size();
    RETURN_IF_ERROR(CheckLengths(
        "edges", count,
        {file_.edge_heads_size(), file_.edge_weights_ps_size(), file_.edge_events_size(),
         file_.edge_type_numbers_size(), file_.edge_bounds_size()}));
    const Numbers<EdgeType> types(file_.edge_types(), kNumEdgeTypes, EdgeTypeName);
    const Numbers<BoundBy> bounds(file_.bounds(), kNumBoundBy, BoundByName);
    const auto is_instant = [&](int64_t instant) {
      return instant >= 0 && static_cast<uint64_t>(instant) < graph_.instants.size();
    };
    Differences tail, event;
    for (int i = 0; i < count; ++i) {
      const int64_t from = tail.Decode(file_.edge_tails(i));
      if (!is_instant(from)) return Bad("an edge's tail");
      // In range, so that the sum cannot overflow.
      const int64_t step = file_.edge_heads(i);
      const int64_t instants = static_cast<int64_t>(graph_.instants.size());
      if (step < -instants || step > instants || !is_instant(from + step))
        return Bad("an edge's head");
      const std::optional<GraphEventId> id = EventOf(event.Decode(file_.edge_events(i)));
      const std::optional<EdgeType> type = types.Find(file_.edge_type_numbers(i));
      const std::optional<BoundBy> bound_by = bounds.Find(file_.edge_bounds(i));
      const int64_t weight_ps = static_cast<int64_t>(file_.edge_weights_ps(i));
      if (!id.has_value()) return Bad("an edge's event");
      if (!type.has_value() || !bound_by.has_value()) return Bad("an edge's type or bound");
      if (weight_ps < 0) return Bad("an edge's weight");
      RETURN_IF_ERROR(CheckTime("an edge's weight", weight_ps));
      graph_.edges.push_back({static_cast<InstantId>(from), static_cast<InstantId>(from + step),
                              weight_ps, *id, *type, *bound_by});
    }
    return absl::OkStatus();
  }

  absl::Status ReadMeetings() {
    const int count = file_.meeting_nodes_size();
    RETURN_IF_ERROR(CheckLengths(
        "meetings", count,
        {file_.meeting_names_size(), file_.meeting_has_step_size(), file_.meeting_steps_size()}));
    for (int i = 0; i < count; ++i) {
      if (file_.meeting_nodes(i) >= graph_.instants.size()) return Bad("a meeting's node");
      if (file_.meeting_names(i) >= names_.size()) return Bad("a meeting's name");
      GraphMeeting meeting;
      meeting.instant = file_.meeting_nodes(i);
      meeting.name = names_[file_.meeting_names(i)];
      if (file_.meeting_has_step(i)) meeting.step = file_.meeting_steps(i);
      graph_.meetings.push_back(meeting);
    }
    return absl::OkStatus();
  }

  const PathGraphFile& file_;
  SavedGraph saved_;
  PathGraph& graph_ = saved_.graph;
  // Ids of the graph's names, by the places of the names in the file.
  std::vector<NameId> names_;
};

}  // namespace

uint64_t GraphFileChecksum(absl::string_view body) {
  uint64_t sum = 0xCBF29CE484222325;
  const auto add = [&sum](uint64_t number) {
    sum = (sum ^ number) * 0x9E3779B97F4A7C15;
    sum ^= sum >> 32;
  };
  add(body.size());
  for (size_t at = 0; at < body.size(); at += 8) {
    add(ReadNumber(body, at, std::min<size_t>(8, body.size() - at)));
  }
  return sum;
}

absl::StatusOr<std::string> SerializeGraph(const GraphSource& source, const PathGraph& graph) {
  PathGraphFile file;
  DescribeSource(source, &file);
  file.set_base_ns(graph.base_ns);
  file.set_window_start_ps(graph.window_start_ps);
  file.set_window_end_ps(graph.window_end_ps);
  if (graph.end_instant.has_value()) file.set_end_node(*graph.end_instant);
  file.set_first_step_waits_for_all(graph.first_step_waits_for_all);
  AddNames(graph, &file);
  AddEvents(graph, &file);
  AddInstants(graph, &file);
  AddEdges(graph, &file);
  AddMeetings(graph, &file);
  if (file.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::OutOfRangeError("the graph is too large to be saved; choose a shorter window");
  }
  const std::string body = file.SerializeAsString();
  std::string out(kMagic);
  AppendNumber(kVersion, 4, &out);
  AppendNumber(body.size(), 8, &out);
  AppendNumber(GraphFileChecksum(body), 8, &out);
  out += body;
  return out;
}

absl::StatusOr<SavedGraph> ParseGraph(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const absl::string_view body, CutBody(bytes));
  PathGraphFile file;
  const bool parsed = body.size() <= static_cast<size_t>(std::numeric_limits<int>::max()) &&
                      file.ParseFromArray(body.data(), static_cast<int>(body.size()));
  if (!parsed) return absl::InvalidArgumentError("offset 28: the body is no PathGraphFile message");
  return BodyReader(file).Read();
}

}  // namespace meridian
