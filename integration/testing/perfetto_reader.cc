#include "integration/testing/perfetto_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "third_party/perfetto/perfetto_trace.pb.h"

namespace meridian {
namespace {

namespace pp = ::perfetto::protos;
using ::simdjson::dom::element;

std::string TextOfMember(element event, const char* key) {
  std::string_view text;
  return event[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

// A pid or tid; text stands for some number.
int64_t NumberOf(element event, const char* key) {
  int64_t number = 0;
  if (event[key].get(number) == simdjson::SUCCESS) return number < 0 ? 0 : number;
  return static_cast<int64_t>(std::hash<std::string>()(TextOfMember(event, key)) >> 32) + 1000000;
}

// Microseconds, to the ns.
std::optional<int64_t> NsOf(element event, const char* key) {
  int64_t whole = 0;
  double micros = 0;
  if (event[key].get(whole) == simdjson::SUCCESS) return whole * 1000;
  if (event[key].get(micros) == simdjson::SUCCESS) return std::llround(micros * 1000.0);
  return std::nullopt;
}

class JsonImport {
 public:
  explicit JsonImport(element document) {
    element events = document;
    if (document.is_object()) events = document["traceEvents"];
    std::vector<std::pair<int64_t, element>> sorted;
    for (const element event : events) {
      const std::optional<int64_t> time_ns = NsOf(event, "ts");
      if (time_ns.value_or(0) < 0) ++reading_.negative_times;
      if (time_ns.value_or(0) >= 0) sorted.emplace_back(time_ns.value_or(0), event);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [time_ns, event] : sorted) Take(time_ns, event);
  }

  const PerfettoReading& reading() const { return reading_; }

 private:
  struct Slice {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t pid = 0;
    std::string name;
  };

  void Take(int64_t time_ns, element event) {
    const std::string phase = TextOfMember(event, "ph");
    const int64_t pid = NumberOf(event, "pid");
    if (phase == "M") return TakeMetadata(pid, event);
    std::vector<Slice>& open = threads_[{pid, NumberOf(event, "tid")}];
    if (phase == "X") {
      TakeSlice(
          {time_ns, time_ns + NsOf(event, "dur").value_or(0), pid, TextOfMember(event, "name")},
          event, &open);
    } else if (phase == "s" || phase == "t" || phase == "f") {
      TakeArrow(phase, event, open);
    }
  }

  void TakeMetadata(int64_t pid, element event) {
    const std::string name = TextOfMember(event, "name");
    if (name == "process_name") {
      reading_.processes[pid].name = TextOfMember(event["args"], "name");
    } else if (name == "process_sort_index") {
      reading_.processes[pid].sort_index =
          static_cast<int32_t>(int64_t(event["args"]["sort_index"]));
    }
  }

  void TakeSlice(const Slice& slice, element event, std::vector<Slice>* open) {
    PerfettoReading::Process& process = reading_.processes[slice.pid];
    ++process.slices;
    ++reading_.slices;
    // A pid that is text is a name.
    if (process.name.empty()) process.name = TextOfMember(event, "pid");
    while (!open->empty()) {
      const Slice& top = open->back();
      const bool both_are_instants = top.start_ns == top.end_ns && slice.start_ns == slice.end_ns;
      if (top.end_ns > slice.start_ns || (top.end_ns == slice.start_ns && both_are_instants)) break;
      open->pop_back();
    }
    for (const Slice& outer : *open) {
      if (slice.start_ns < outer.end_ns && slice.end_ns > outer.end_ns) {
        ++reading_.overlapping_slices;
        return;
      }
    }
    open->push_back(slice);
  }

  void TakeArrow(const std::string& phase, element event, const std::vector<Slice>& open) {
    const std::string category = TextOfMember(event, "cat");
    Slice* from = nullptr;
    const auto key = std::make_tuple(category, TextOfMember(event, "name"),
                                     absl::StrCat(simdjson::minify(event["id"])));
    const auto known = starts_.find(key);
    if (known != starts_.end()) from = &known->second;
    if (open.empty() || (phase == "s") != (from == nullptr)) {
      ++reading_.lost_arrow_ends[category];
      return;
    }
    const Slice& here = open.back();
    if (phase == "s") {
      starts_[key] = here;
      return;
    }
    reading_.arrows.push_back({category, from->pid, here.pid, from->name, here.name});
    if (phase == "t") *from = here;
  }

  PerfettoReading reading_;
  // Open slices by pid and tid, the innermost last; those that ended go when the next one begins.
  std::map<std::pair<int64_t, int64_t>, std::vector<Slice>> threads_;
  // Where arrows come from, by category, name and id.
  std::map<std::tuple<std::string, std::string, std::string>, Slice> starts_;
};

class ProtoImport {
 public:
  explicit ProtoImport(const pp::Trace& trace) {
    for (const pp::TracePacket& packet : trace.packet()) Take(packet);
    std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return a.packet->timestamp() < b.packet->timestamp();
    });
    for (const Event& event : events_) Show(event);
    for (const auto& [track, open] : open_) reading_.overlapping_slices += open.size();
  }

  const PerfettoReading& reading() const { return reading_; }

 private:
  struct Event {
    const pp::TracePacket* packet = nullptr;
    // Its name; empty for an end.
    std::string name;
  };
  struct Slice {
    int64_t process = 0;
    std::string name;
  };

  void Take(const pp::TracePacket& packet) {
    Names& names = names_[packet.trusted_packet_sequence_id()];
    if (packet.sequence_flags() & pp::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED) names.clear();
    for (const pp::InternedName& name : packet.interned_data().event_names()) {
      names[name.iid()] = name.name();
    }
    if (packet.has_track_descriptor()) TakeTrack(packet.track_descriptor());
    if (!packet.has_track_event()) return;
    const pp::TrackEvent& event = packet.track_event();
    if (packet.timestamp() > uint64_t{INT64_MAX}) {
      ++reading_.negative_times;
      return;
    }
    events_.push_back({&packet, ""});
    if (event.has_name_iid()) {
      EXPECT_EQ(names.count(event.name_iid()), 1u) << "a name that is not known";
      events_.back().name = names[event.name_iid()];
    }
  }

  void TakeTrack(const pp::TrackDescriptor& track) {
    const auto id = static_cast<int64_t>(track.uuid());
    if (!track.has_process()) {
      processes_[id] = processes_[static_cast<int64_t>(track.parent_uuid())];
      return;
    }
    processes_[id] = id;
    reading_.processes[id].name = track.process().process_name();
    reading_.processes[id].sort_index = track.sibling_order_rank();
  }

  void Show(const Event& shown) {
    const pp::TrackEvent& event = shown.packet->track_event();
    const auto track = static_cast<int64_t>(event.track_uuid());
    std::vector<Slice>& open = open_[track];
    if (event.type() == pp::TrackEvent::TYPE_SLICE_END) {
      if (open.empty()) ++reading_.overlapping_slices;
      if (!open.empty()) open.pop_back();
    }
    const bool begins = event.type() == pp::TrackEvent::TYPE_SLICE_BEGIN;
    if (!begins && event.type() != pp::TrackEvent::TYPE_INSTANT) return;
    EXPECT_EQ(processes_.count(track), 1u) << "a track that is not known";
    const Slice slice{processes_[track], shown.name};
    ++reading_.slices;
    ++reading_.processes[slice.process].slices;
    if (begins) open.push_back(slice);
    for (const uint64_t flow : event.flow_ids()) {
      const auto [from, is_first] = last_of_flow_.try_emplace(flow, slice);
      if (is_first) continue;
      reading_.arrows.push_back(
          {"", from->second.process, slice.process, from->second.name, slice.name});
      from->second = slice;
    }
  }

  using Names = std::map<uint64_t, std::string>;

  PerfettoReading reading_;
  // By sequence.
  std::map<uint32_t, Names> names_;
  // The process of each track.
  std::map<int64_t, int64_t> processes_;
  std::vector<Event> events_;
  // Open slices by track, the innermost last.
  std::map<int64_t, std::vector<Slice>> open_;
  std::map<uint64_t, Slice> last_of_flow_;
};

}  // namespace

std::vector<std::string> PerfettoReading::RowNames() const {
  std::vector<std::pair<int32_t, std::string>> rows;
  for (const auto& [pid, process] : processes) {
    if (process.slices > 0) rows.emplace_back(process.sort_index, process.name);
  }
  std::sort(rows.begin(), rows.end());
  std::vector<std::string> names;
  for (const auto& [index, name] : rows) names.push_back(name);
  return names;
}

int64_t PerfettoReading::CountArrows(absl::string_view category) const {
  return std::count_if(arrows.begin(), arrows.end(),
                       [&](const Arrow& arrow) { return arrow.category == category; });
}

PerfettoReading ReadJsonAsPerfetto(absl::string_view text) {
  simdjson::dom::parser parser;
  element document;
  const simdjson::error_code error = parser.parse(text.data(), text.size()).get(document);
  EXPECT_EQ(error, simdjson::SUCCESS);
  if (error != simdjson::SUCCESS) return {};
  return JsonImport(document).reading();
}

PerfettoReading ReadProtoAsPerfetto(const std::string& bytes) {
  pp::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(bytes));
  return ProtoImport(trace).reading();
}

std::vector<std::pair<std::string, std::string>> ReadTarAsPerfetto(absl::string_view bytes) {
  constexpr size_t kBlock = 512;
  std::vector<std::pair<std::string, std::string>> files;
  while (bytes.size() >= 2 * kBlock) {
    const std::string header(bytes.substr(0, kBlock));
    if (header == std::string(kBlock, '\0')) {
      EXPECT_EQ(bytes, std::string(2 * kBlock, '\0'));
      return files;
    }
    EXPECT_EQ(header.substr(257, 8), std::string("ustar\0"
                                                 "00",
                                                 8));
    EXPECT_EQ(header[156], '0') << "a plain file";
    EXPECT_EQ(header[345], '\0') << "no prefix";
    const size_t size = std::stoull(header.substr(124, 11), nullptr, 8);
    files.emplace_back(header.c_str(), std::string(bytes.substr(kBlock, size)));
    bytes.remove_prefix(std::min(bytes.size(), kBlock + (size + kBlock - 1) / kBlock * kBlock));
  }
  ADD_FAILURE() << "the archive has no end";
  return files;
}

}  // namespace meridian
