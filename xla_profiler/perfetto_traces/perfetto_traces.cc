#include "xla_profiler/perfetto_traces/perfetto_traces.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "third_party/perfetto/perfetto_trace.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/kineto/process_groups.h"
#include "xla_profiler/sources/collective_log.h"
#include "xla_profiler/xplane/node_ids.h"

namespace meridian {
namespace {

namespace pp = ::perfetto::protos;

// Ends of slices are short. The JSON of what PyTorch writes is less than 20 times the packets.
constexpr size_t kMaxPacketBytes = size_t{64} << 20, kMaxEndBytes = 48, kMaxGrowth = 64;
// Times count from a day before the first, which need not be the earliest; up to the year 2116.
constexpr uint64_t kMaxTimeNs = uint64_t{1} << 62;
constexpr absl::string_view kNotPytorch =
    "a Perfetto trace that PyTorch did not write; expected export_chrome_trace(\"rank0.pftrace\")";

absl::Status ParsePacket(const WireField& field, const char* origin, pp::TracePacket* packet) {
  const size_t size = std::min(field.bytes.size(), kMaxPacketBytes);
  const bool is_packet = packet->ParseFromArray(field.bytes.data(), static_cast<int>(size));
  if (field.IsBytes(1) && size == field.bytes.size() && is_packet) return absl::OkStatus();
  return WireError(field.raw.data(), origin, "not a packet of at most 64 MiB");
}

// Writes a member of an object, or an element of an array.
void WriteAnnotation(const pp::DebugAnnotation& annotation, bool is_member, JsonWriter* json) {
  if (is_member) json->Key(annotation.name());
  if (annotation.has_int_value()) return json->Value(annotation.int_value());
  if (annotation.has_string_value()) return json->Value(annotation.string_value());
  if (annotation.has_double_value()) return json->Value(annotation.double_value());
  if (annotation.has_bool_value()) return json->Value(annotation.bool_value());
  // Of an empty list PyTorch writes the name alone.
  const bool is_dict = annotation.dict_entries_size() > 0;
  is_dict ? json->BeginObject() : json->BeginArray();
  const auto& parts = is_dict ? annotation.dict_entries() : annotation.array_values();
  for (const pp::DebugAnnotation& part : parts) WriteAnnotation(part, is_dict, json);
  is_dict ? json->EndObject() : json->EndArray();
}

// Writes an argument of a stage, all of which are texts, as Kineto does: numbers as numbers.
void WriteArgument(absl::string_view key, const std::string& value, JsonWriter* json) {
  if (key == "device id" || key == "context id" || key == "stream id") key.remove_suffix(3);
  json->Key(key);
  int64_t number = 0;
  const bool is_number = !absl::StartsWith(key, "Process Group") &&
                         absl::SimpleAtoi(value, &number) && absl::StrCat(number) == value;
  is_number ? json->Value(number) : json->Value(value);
}

// Returns the text of that number; an empty one when there is none.
absl::string_view TextOf(const google::protobuf::RepeatedPtrField<pp::InternedName>& table,
                         uint64_t number) {
  const int place = static_cast<int>(std::min<uint64_t>(number - 1, table.size()));
  const bool is_there = place < table.size() && table[place].iid() == number;
  return is_there ? absl::string_view(table[place].name()) : "";
}

// Tells the category of a slice without one; empty when nothing tells.
absl::string_view TellCategory(absl::string_view name, absl::string_view thread,
                               const JsonValue& args) {
  const bool is_runtime = absl::StartsWith(name, "cuda");
  const bool is_range = absl::StartsWith(name, "ProfilerStep#") || absl::StartsWith(name, "nccl:");
  if (args.Find("cuda_sync_kind").exists()) return "cuda_sync";
  if (args.Find("cbid").exists()) return is_runtime ? "cuda_runtime" : "cuda_driver";
  if (args.Find("External id").exists()) return is_range ? "user_annotation" : "cpu_op";
  return thread == "Overhead" ? "overhead" : "";
}

// Makes a log of a file, all of it as events, whose rank is -1 when no call tells it.
class PerfettoReader {
 public:
  explicit PerfettoReader(absl::string_view bytes) : bytes_(bytes) { log_.rank = -1; }

  absl::StatusOr<CollectiveLog> Read() {
    RETURN_IF_ERROR(ReadEnds());
    WireReader packets(bytes_, bytes_.data(), kMaxWireDepth);
    for (WireField field; packets.Next(&field);) {
      RETURN_IF_ERROR(ParsePacket(field, bytes_.data(), &packet_));
      absl::string_view wrong = Take();
      if (log_.events.size() / kMaxGrowth > bytes_.size()) wrong = "names are too long";
      if (!wrong.empty()) return WireError(field.raw.data(), bytes_.data(), wrong);
    }
    RETURN_IF_ERROR(packets.status());
    if (!has_kineto_event_) return InvalidArgument(kNotPytorch);
    return std::move(log_);
  }

 private:
  absl::Status ReadEnds() {
    WireReader packets(bytes_, bytes_.data(), kMaxWireDepth);
    for (WireField field; packets.Next(&field);) {
      if (field.bytes.size() > kMaxEndBytes) continue;
      RETURN_IF_ERROR(ParsePacket(field, bytes_.data(), &packet_));
      const pp::TrackEvent& slice = packet_.track_event();
      if (slice.type() != pp::TrackEvent::TYPE_SLICE_END) continue;
      ends_.push_back({slice.track_uuid(), packet_.timestamp()});
    }
    return packets.status();
  }

  // Returns what is wrong with the packet; empty when nothing is.
  absl::string_view Take() {
    const bool has_texts = packet_.has_interned_data(), has_track = packet_.has_track_descriptor();
    if (packet_.trusted_packet_sequence_id() > 1 || (has_texts && texts_.event_names_size() > 0) ||
        (has_track && packet_.track_descriptor().uuid() != tracks_.size() + 1)) {
      return kNotPytorch;
    }
    if (has_texts) texts_.Swap(packet_.mutable_interned_data());
    if (has_track) tracks_.push_back(packet_.track_descriptor().thread());
    if (packet_.has_gpu_render_stage_event()) TakeStage(packet_.gpu_render_stage_event());
    const bool begins = packet_.track_event().type() == pp::TrackEvent::TYPE_SLICE_BEGIN;
    return begins ? TakeSlice(packet_.track_event()) : "";
  }

  absl::string_view TakeSlice(const pp::TrackEvent& slice) {
    if (slice.track_uuid() - 1 >= tracks_.size()) return "a slice on a track that is not described";
    if (slices_ == ends_.size()) return "a slice without an end: the trace is cut off";
    const auto [end_track, end_ns] = ends_[slices_++];
    if (end_track != slice.track_uuid()) return "ends of slices are not in the order of begins";
    std::string args;
    JsonWriter json(&args);
    json.BeginObject();
    for (const auto& one : slice.debug_annotations()) WriteAnnotation(one, true, &json);
    json.EndObject();
    const pp::ThreadDescriptor& track = tracks_[slice.track_uuid() - 1];
    const absl::string_view name = TextOf(texts_.event_names(), slice.name_iid());
    const absl::string_view category =
        slice.category_iids_size() > 0 ? TextOf(texts_.event_categories(), slice.category_iids(0))
                                       : TellCategory(name, track.thread_name(), JsonValue(args));
    Write(category, name, track.pid(), track.tid(), end_ns, args);
    return "";
  }

  void TakeStage(const pp::GpuRenderStageEvent& stage) {
    std::string args;
    JsonWriter json(&args);
    json.BeginObject();
    for (const auto& extra : stage.extra_data()) WriteArgument(extra.name(), extra.value(), &json);
    json.EndObject();
    const absl::string_view kind = TextOf(texts_.gpu_specifications(), stage.stage_iid());
    const absl::string_view name = TextOf(texts_.event_names(), stage.name_iid());
    std::string category = absl::AsciiStrToLower(kind);
    if (absl::StartsWith(category, "mem")) category.insert(0, "gpu_");
    if (category == "annotation") category = "gpu_user_annotation";
    Write(category, name.empty() ? kind : name, stage.gpu_id(),
          JsonValue(args).Find("stream").AsInt64().value_or(0),
          packet_.timestamp() + stage.duration(), args);
  }

  // Writes what begins with the packet. Impossible times become 0, as PyTorch writes them to JSON.
  void Write(absl::string_view category, absl::string_view name, int64_t pid, int64_t tid,
             uint64_t end_ns, const std::string& args) {
    const uint64_t at_ns = std::min<uint64_t>(packet_.timestamp(), kMaxTimeNs);
    constexpr uint64_t kBeforeNs = kBaseBeforeFirstNs;
    if (!log_.base_ns.has_value()) log_.base_ns = std::max(at_ns, kBeforeNs) - kBeforeNs;
    const uint64_t base_ns = *log_.base_ns, start_ns = std::max(at_ns, base_ns) - base_ns;
    const uint64_t took_ns = std::max(at_ns, std::min(end_ns, kMaxTimeNs)) - at_ns;
    has_kineto_event_ |= KinetoCategory(category, name) != EventCategory::kUnknown;
    if (log_.rank < 0 && absl::StrContains(args, "\"Collective name\"")) TakeRank(JsonValue(args));
    absl::StrAppend(&log_.events, log_.events.empty() ? "" : ",\n", R"({"ph":"X","name":)");
    AppendJsonString(name, &log_.events);
    log_.events += R"(,"cat":)";
    AppendJsonString(category, &log_.events);
    absl::StrAppendFormat(&log_.events,
                          R"(,"pid":%d,"tid":%d,"ts":%d.%03d,"dur":%d.%03d,"args":%s})", pid, tid,
                          start_ns / 1000, start_ns % 1000, took_ns / 1000, took_ns % 1000, args);
  }

  // Takes the rank from a call that all members make alike: others tell a root or a peer.
  void TakeRank(const JsonValue& args) {
    const std::string call = args.Find("Collective name").AsString().value_or("");
    if (!absl::StrContains(call, "all") && !absl::StrContains(call, "reduce_scatter")) return;
    const auto inside = args.Find("Rank").AsUint64();
    const auto ranks = ProcessGroups(JsonValue()).RanksOf(args);
    if (inside && ranks && *inside < ranks->size()) log_.rank = (*ranks)[*inside];
  }

  const absl::string_view bytes_;
  CollectiveLog log_;
  pp::TracePacket packet_;
  pp::InternedData texts_;
  // By number, from 1; processes are empty.
  std::vector<pp::ThreadDescriptor> tracks_;
  // Track and time of each end; how many slices have begun.
  std::vector<std::pair<uint64_t, uint64_t>> ends_;
  size_t slices_ = 0;
  bool has_kineto_event_ = false;
};

}  // namespace

PerfettoWriter TellPerfettoWriter(absl::string_view head) {
  WireReader packets(head, head.data(), kMaxWireDepth);
  pp::TracePacket packet;
  uint64_t tracks = 0;
  for (WireField field; packets.Next(&field);) {
    if (!ParsePacket(field, head.data(), &packet).ok()) break;
    // Tracing services note in each packet who wrote it.
    const bool is_plain = packet.unknown_fields().empty();
    const uint64_t sequence = packet.trusted_packet_sequence_id();
    if (is_plain && packet.has_clock_snapshot() && tracks == 0) continue;
    if (is_plain && packet.has_interned_data() && sequence == 1) return PerfettoWriter::kPytorch;
    if (!is_plain || sequence != 0 || packet.track_descriptor().uuid() != tracks + 1) {
      // A plane of an XSpace, which begins as a packet does, has neither.
      const bool is_packet = tracks > 0 || sequence != 0 || packet.has_track_descriptor();
      return is_packet ? PerfettoWriter::kOther : PerfettoWriter::kNone;
    }
    ++tracks;
  }
  return tracks > 0 ? PerfettoWriter::kPytorch : PerfettoWriter::kNone;
}

absl::StatusOr<std::vector<std::string>> PerfettoSource::Convert(size_t files, OpenFunction open,
                                                                 const ConversionOptions&,
                                                                 WriteFunction write) const {
  std::vector<std::string> notes;
  for (size_t i = 0; i < files; ++i) {
    ASSIGN_OR_RETURN(const InputFile file, open(i));
    const std::string path = Printable(file.path());
    ASSIGN_OR_RETURN(CollectiveLog log, Annotate(PerfettoReader(file.bytes()).Read(), path));
    if (log.rank < 0) {
      std::optional<int64_t> named = RankInFileName(path);
      if (!named.has_value()) named = LastIntegerInFileName(path);
      log.rank = named.value_or(0);
      notes.push_back(absl::StrCat(
          path, ": no call tells its rank",
          named.has_value() ? "; by its name it is " : ", nor does its name; it is taken to be ",
          log.rank));
    }
    RETURN_IF_ERROR(write(i, CollectiveLogToKineto(log), ""));
  }
  return notes;
}

}  // namespace meridian
