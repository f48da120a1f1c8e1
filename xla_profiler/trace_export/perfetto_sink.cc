// Writes a trace in Perfetto's own format: a quarter of the JSON's size and no limit that a
// browser's JSON parser sets.
//
//   clock snapshot, descriptors of processes and lines
//   plane:  first packet of a sequence | begin (with the texts used first) | end | begin | ...
//
// Each plane is a sequence, so that texts are numbered as the plane numbers its metadata. Packets
// are in order of time on each track, not in the file: Perfetto sorts.
//
// What is lost against the profile: picoseconds (times are rounded down to nanoseconds, starts and
// ends alike, so that what nested or touched still does), bytes stats, aggregated events, texts
// beyond kMaxValueCharacters. Slices nested deeper than 512 are written, but Perfetto drops them.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "third_party/perfetto/perfetto_trace.pb.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/trace_export/trace_sink.h"

namespace meridian {
namespace {

namespace pp = ::perfetto::protos;

// Some thousand packets.
constexpr size_t kBufferBytes = size_t{256} << 10;

constexpr uint64_t kRootUuid = 0;

// Ids of clocks. From kFirstNodeClock on they are the trace's own, the same in all of it.
constexpr uint32_t kRealtimeClock = 1, kBoottimeClock = 6;
constexpr int64_t kMaxNodeId = 0xFFFFFFFF - kFirstNodeClock;

class PerfettoSink : public TraceSink {
 public:
  // Without a start, timestamps count from the session's start.
  PerfettoSink(std::optional<int64_t> start_ns, absl::Span<const ShownTimes> clock_readings,
               ByteSink* out)
      : out_(out), start_ns_(start_ns.value_or(0)), packet_(*trace_.add_packet()) {
    if (start_ns.has_value()) {
      // The trace's own clock, named BOOTTIME by default, shows Unix time.
      AddClock(kRealtimeClock, start_ns_);
      AddClock(kBoottimeClock, start_ns_);
      AppendPacket();
      for (const ShownTimes& reading : clock_readings) {
        AddClock(kBoottimeClock, reading.time_ns);
        for (const auto& [node_id, node_time_ns] : reading.node_times_ns) {
          if (node_id < 0 || node_id > kMaxNodeId) continue;
          AddClock(kFirstNodeClock + static_cast<uint32_t>(node_id), node_time_ns);
        }
        AppendPacket();
      }
    }
    pp::TrackDescriptor& root = *packet_.mutable_track_descriptor();
    root.set_uuid(kRootUuid);
    root.set_process_ordering(pp::TrackDescriptor::PROCESS_ORDERING_EXPLICIT);
    root.set_thread_ordering(pp::TrackDescriptor::THREAD_ORDERING_EXPLICIT);
    AppendPacket();
  }

  // Timestamps are unsigned.
  TimeRange range() const override {
    const absl::int128 start = start_ns_;
    const absl::int128 last = std::numeric_limits<int64_t>::max();
    return {SaturateToInt64(-start * kPsPerNs), SaturateToInt64((last - start) * kPsPerNs)};
  }

  absl::Status AddProcess(const TraceProcess& process) override {
    pp::TrackDescriptor& descriptor = *packet_.mutable_track_descriptor();
    descriptor.set_uuid(process.id);
    descriptor.mutable_process()->set_pid(static_cast<int32_t>(process.id));
    descriptor.mutable_process()->set_process_name(
        FirstCharacters(process.name, kMaxNameCharacters));
    descriptor.set_sibling_order_rank(static_cast<int32_t>(process.position));
    return WritePacket();
  }

  absl::Status AddTrack(const TraceTrack& track) override {
    const std::string name = FirstCharacters(track.name, kMaxNameCharacters);
    pp::TrackDescriptor& descriptor = *packet_.mutable_track_descriptor();
    descriptor.set_uuid(track.id);
    descriptor.set_parent_uuid(track.process_id);
    switch (track.kind) {
      case TraceTrack::Kind::kLine:
        descriptor.mutable_thread()->set_pid(static_cast<int32_t>(track.process_id));
        descriptor.mutable_thread()->set_tid(track.id);
        descriptor.mutable_thread()->set_thread_name(name);
        descriptor.set_sibling_order_rank(static_cast<int32_t>(track.position));
        break;
      case TraceTrack::Kind::kOverlap:
        descriptor.set_name(name);
        descriptor.set_parent_uuid(track.line_id);
        descriptor.set_sibling_merge_behavior(pp::TrackDescriptor::SIBLING_MERGE_BEHAVIOR_NONE);
        break;
      case TraceTrack::Kind::kCounter:
        descriptor.set_name(name);
        SetUnit(track.unit, descriptor.mutable_counter());
        break;
    }
    return WritePacket();
  }

  absl::Status BeginPlane(const XPlaneVisitor& plane) override {
    plane_ = &plane;
    interned_.names.assign(plane.EventMetadata().size(), false);
    // One more for the long name.
    interned_.arg_names.assign(plane.StatMetadata().size() + 1, false);
    interned_.categories.clear();
    interned_.values.clear();
    packet_.set_trusted_packet_sequence_id(++sequence_);
    packet_.set_sequence_flags(pp::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    packet_.set_first_packet_on_sequence(true);
    return WritePacket();
  }

  absl::Status BeginSlice(const TraceTrack& track, const TraceSlice& slice) override {
    event_.clear();
    if (!slice.category.empty()) {
      WriteVarintField(pp::TrackEvent::kCategoryIidsFieldNumber, InternCategory(slice.category),
                       &event_);
    }
    if (!slice.long_name().empty()) {
      AddArgName(interned_.arg_names.size() - 1, kLongNameArg);
      AddArgValue(pp::DebugAnnotation::kStringValueIidFieldNumber, InternValue(slice.long_name()));
      EndArg();
    }
    for (const XStatVisitor* stat : slice.args) AddArg(*stat);
    EndEvent(
        track,
        slice.duration_ps == 0 ? pp::TrackEvent::TYPE_INSTANT : pp::TrackEvent::TYPE_SLICE_BEGIN,
        Intern(slice.metadata - plane_->EventMetadata().data(), &interned_.names, slice.name(),
               kMaxNameCharacters, [&] { return texts_.add_event_names(); }),
        slice.flows);
    return AppendEvent(slice.start_ps, pp::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  }

  absl::Status EndSlice(const TraceTrack& track, int64_t end_ps) override {
    event_.clear();
    EndEvent(track, pp::TrackEvent::TYPE_SLICE_END, /*name=*/0, {});
    return AppendEvent(end_ps, pp::TracePacket::SEQ_UNSPECIFIED);
  }

  absl::Status AddCounterValue(const TraceTrack& track, int64_t time_ps,
                               const XStatVisitor& value) override {
    packet_.set_timestamp(static_cast<uint64_t>(start_ns_ + FloorToNs(time_ps)));
    packet_.set_trusted_packet_sequence_id(sequence_);
    pp::TrackEvent& event = *packet_.mutable_track_event();
    event.set_type(pp::TrackEvent::TYPE_COUNTER);
    event.set_track_uuid(track.id);
    const uint64_t unsigned_value = value.UintValue();
    if (value.value_case() == XStatVisitor::ValueCase::kDouble) {
      event.set_double_counter_value(value.DoubleValue());
    } else if (unsigned_value > uint64_t{std::numeric_limits<int64_t>::max()}) {
      event.set_double_counter_value(static_cast<double>(unsigned_value));
    } else {
      event.set_counter_value(*value.IntOrUintValue());
    }
    return WritePacket();
  }

  absl::Status Finish() override { return Flush(); }

 private:
  // Texts of the sequence that packets so far have interned; ids begin with 1.
  struct Interned {
    // Whether the text is interned, by the position of the event's metadata in the plane, and by
    // that of the stat's metadata (the last is the long name's).
    std::vector<bool> names;
    std::vector<bool> arg_names;
    // Ids by the address of the text: a reference always leads to the same bytes.
    absl::flat_hash_map<const char*, uint64_t> categories;
    absl::flat_hash_map<const char*, uint64_t> values;
  };

  static void SetUnit(absl::string_view unit, pp::CounterDescriptor* counter) {
    if (unit == "ns") {
      counter->set_unit(pp::CounterDescriptor::UNIT_TIME_NS);
    } else if (unit == "bytes") {
      counter->set_unit(pp::CounterDescriptor::UNIT_SIZE_BYTES);
    } else if (!unit.empty()) {
      counter->set_unit_name(std::string(unit));
    }
  }

  void AddClock(uint32_t clock, int64_t time_ns) {
    pp::ClockSnapshot::Clock& reading = *packet_.mutable_clock_snapshot()->add_clocks();
    reading.set_clock_id(clock);
    reading.set_timestamp(static_cast<uint64_t>(time_ns));
  }

  // Slices are most of a trace. They are written field by field, in the order of the numbers, as
  // protobuf would write them in four times the time.
  //
  // Writes what every event has behind its category and arguments; no name is 0.
  void EndEvent(const TraceTrack& track, pp::TrackEvent::Type type, uint64_t name,
                absl::Span<const TraceFlow> flows) {
    WriteVarintField(pp::TrackEvent::kTypeFieldNumber, type, &event_);
    if (name != 0) WriteVarintField(pp::TrackEvent::kNameIidFieldNumber, name, &event_);
    WriteVarintField(pp::TrackEvent::kTrackUuidFieldNumber, static_cast<uint64_t>(track.id),
                     &event_);
    for (const TraceFlow& flow : flows) {
      WriteFixed64Field(pp::TrackEvent::kFlowIdsFieldNumber, flow.id, &event_);
    }
  }

  // Appends the packet of the event at hand, with the texts that it is the first to use.
  absl::Status AppendEvent(int64_t time_ps, uint32_t flags) {
    packet_bytes_.clear();
    WriteVarintField(pp::TracePacket::kTimestampFieldNumber,
                     static_cast<uint64_t>(start_ns_ + FloorToNs(time_ps)), &packet_bytes_);
    WriteVarintField(pp::TracePacket::kTrustedPacketSequenceIdFieldNumber, sequence_,
                     &packet_bytes_);
    WriteBytesField(pp::TracePacket::kTrackEventFieldNumber, event_.bytes(), &packet_bytes_);
    if (has_texts_) {
      WriteBytesField(pp::TracePacket::kInternedDataFieldNumber, texts_.SerializeAsString(),
                      &packet_bytes_);
      texts_.Clear();
      has_texts_ = false;
    }
    if (flags != 0)
      WriteVarintField(pp::TracePacket::kSequenceFlagsFieldNumber, flags, &packet_bytes_);
    WriteBytesField(pp::Trace::kPacketFieldNumber, packet_bytes_.bytes(), &buffer_);
    return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }

  // Returns the id of the text at that position of a list, the position + 1. `add` adds an entry to
  // the packet's interned data: if the sequence does not have the text, it is put there.
  template <typename Add>
  uint64_t Intern(size_t position, std::vector<bool>* known, absl::string_view text,
                  size_t max_characters, Add add) {
    if (!(*known)[position]) {
      (*known)[position] = has_texts_ = true;
      pp::InternedName* name = add();
      name->set_iid(position + 1);
      name->set_name(FirstCharacters(text, max_characters));
    }
    return position + 1;
  }

  uint64_t InternCategory(absl::string_view category) {
    const auto [it, is_new] =
        interned_.categories.try_emplace(category.data(), interned_.categories.size() + 1);
    if (is_new) {
      has_texts_ = true;
      pp::InternedName* name = texts_.add_event_categories();
      name->set_iid(it->second);
      name->set_name(FirstCharacters(category, kMaxNameCharacters));
    }
    return it->second;
  }

  uint64_t InternValue(absl::string_view value) {
    const auto [it, is_new] =
        interned_.values.try_emplace(value.data(), interned_.values.size() + 1);
    if (is_new) {
      has_texts_ = true;
      pp::InternedString* text = texts_.add_debug_annotation_string_values();
      text->set_iid(it->second);
      text->set_str(FirstCharacters(value, kMaxValueCharacters));
    }
    return it->second;
  }

  // Begins an argument; its name is at that position.
  void AddArgName(size_t position, absl::string_view name) {
    arg_.clear();
    AddArgValue(pp::DebugAnnotation::kNameIidFieldNumber,
                Intern(position, &interned_.arg_names, name, kMaxValueCharacters,
                       [&] { return texts_.add_debug_annotation_names(); }));
  }
  void AddArgValue(uint32_t field, uint64_t value) { WriteVarintField(field, value, &arg_); }
  void EndArg() {
    WriteBytesField(pp::TrackEvent::kDebugAnnotationsFieldNumber, arg_.bytes(), &event_);
  }

  void AddArg(const XStatVisitor& stat) {
    using Arg = pp::DebugAnnotation;
    AddArgName(plane_->GetStatMetadata(stat.Id()) - plane_->StatMetadata().data(), stat.Name());
    switch (stat.value_case()) {
      case XStatVisitor::ValueCase::kInt64:
        AddArgValue(Arg::kIntValueFieldNumber, static_cast<uint64_t>(stat.IntValue()));
        break;
      case XStatVisitor::ValueCase::kUint64:
        AddArgValue(Arg::kUintValueFieldNumber, stat.UintValue());
        break;
      case XStatVisitor::ValueCase::kDouble:
        WriteFixed64Field(Arg::kDoubleValueFieldNumber,
                          absl::bit_cast<uint64_t>(stat.DoubleValue()), &arg_);
        break;
      case XStatVisitor::ValueCase::kRef:
        AddArgValue(Arg::kStringValueIidFieldNumber, InternValue(stat.StrOrRefValue()));
        break;
      default:
        WriteBytesField(Arg::kStringValueFieldNumber,
                        FirstCharacters(stat.StrOrRefValue(), kMaxValueCharacters), &arg_);
    }
    EndArg();
  }

  // Appends the packet, as a part of the Trace, and empties it.
  void AppendPacket() {
    buffer_.Raw(trace_.SerializeAsString());
    packet_.Clear();
  }
  absl::Status WritePacket() {
    AppendPacket();
    return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    const absl::Status status = out_->Append(buffer_.bytes());
    buffer_.clear();
    return status;
  }

  ByteSink* out_;
  const int64_t start_ns_;
  // A trace of one packet, the one under construction.
  pp::Trace trace_;
  pp::TracePacket& packet_;
  WireBuffer buffer_;
  // The slice under construction: an argument, its TrackEvent, the packet, and the texts that it is
  // the first to use.
  WireBuffer arg_;
  WireBuffer event_;
  WireBuffer packet_bytes_;
  pp::InternedData texts_;
  bool has_texts_ = false;
  uint32_t sequence_ = 0;
  const XPlaneVisitor* plane_ = nullptr;
  Interned interned_;
};

}  // namespace

std::unique_ptr<TraceSink> NewPerfettoSink(std::optional<int64_t> start_ns,
                                           absl::Span<const ShownTimes> clock_readings,
                                           ByteSink* out) {
  return std::make_unique<PerfettoSink>(start_ns, clock_readings, out);
}

}  // namespace meridian
