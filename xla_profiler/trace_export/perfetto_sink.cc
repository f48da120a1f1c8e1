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

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "third_party/perfetto/perfetto_trace.pb.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"
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
  PerfettoSink(std::optional<int64_t> start_ns, absl::Span<const ClockReading> clock_readings,
               ByteSink* out)
      : out_(out), start_ns_(start_ns.value_or(0)), packet_(*trace_.add_packet()) {
    if (start_ns.has_value()) {
      // The trace's own clock, named BOOTTIME by default, shows Unix time.
      AddClock(kRealtimeClock, start_ns_);
      AddClock(kBoottimeClock, start_ns_);
      AppendPacket();
      for (const ClockReading& reading : clock_readings) {
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
    pp::TrackEvent& event = NewEvent(
        track,
        slice.duration_ps == 0 ? pp::TrackEvent::TYPE_INSTANT : pp::TrackEvent::TYPE_SLICE_BEGIN,
        slice.start_ps);
    packet_.set_sequence_flags(pp::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    event.set_name_iid(Intern(slice.metadata - plane_->EventMetadata().data(), &interned_.names,
                              slice.name(), kMaxNameCharacters,
                              [&] { return packet_.mutable_interned_data()->add_event_names(); }));
    if (!slice.category.empty()) event.add_category_iids(InternCategory(slice.category));
    for (const TraceFlow& flow : slice.flows) event.add_flow_ids(flow.id);
    if (!slice.long_name().empty()) {
      pp::DebugAnnotation& arg = AddArg(interned_.arg_names.size() - 1, kLongNameArg, &event);
      arg.set_string_value_iid(InternValue(slice.long_name()));
    }
    for (const XStatVisitor* stat : slice.args) AddArg(*stat, &event);
    return WritePacket();
  }

  absl::Status EndSlice(const TraceTrack& track, int64_t end_ps) override {
    NewEvent(track, pp::TrackEvent::TYPE_SLICE_END, end_ps);
    return WritePacket();
  }

  absl::Status AddCounterValue(const TraceTrack& track, int64_t time_ps,
                               const XStatVisitor& value) override {
    pp::TrackEvent& event = NewEvent(track, pp::TrackEvent::TYPE_COUNTER, time_ps);
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

  pp::TrackEvent& NewEvent(const TraceTrack& track, pp::TrackEvent::Type type, int64_t time_ps) {
    packet_.set_timestamp(static_cast<uint64_t>(start_ns_ + FloorToNs(time_ps)));
    packet_.set_trusted_packet_sequence_id(sequence_);
    packet_.mutable_track_event()->set_type(type);
    packet_.mutable_track_event()->set_track_uuid(track.id);
    return *packet_.mutable_track_event();
  }

  // Returns the id of the text at that position of a list, the position + 1. `add` adds an entry to
  // the packet's interned data: if the sequence does not have the text, it is put there.
  template <typename Add>
  static uint64_t Intern(size_t position, std::vector<bool>* known, absl::string_view text,
                         size_t max_characters, Add add) {
    if (!(*known)[position]) {
      (*known)[position] = true;
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
      pp::InternedName* name = packet_.mutable_interned_data()->add_event_categories();
      name->set_iid(it->second);
      name->set_name(FirstCharacters(category, kMaxNameCharacters));
    }
    return it->second;
  }

  uint64_t InternValue(absl::string_view value) {
    const auto [it, is_new] =
        interned_.values.try_emplace(value.data(), interned_.values.size() + 1);
    if (is_new) {
      pp::InternedString* text =
          packet_.mutable_interned_data()->add_debug_annotation_string_values();
      text->set_iid(it->second);
      text->set_str(FirstCharacters(value, kMaxValueCharacters));
    }
    return it->second;
  }

  // Adds an argument without a value; its name is at that position.
  pp::DebugAnnotation& AddArg(size_t position, absl::string_view name, pp::TrackEvent* event) {
    pp::DebugAnnotation& arg = *event->add_debug_annotations();
    arg.set_name_iid(Intern(position, &interned_.arg_names, name, kMaxValueCharacters, [&] {
      return packet_.mutable_interned_data()->add_debug_annotation_names();
    }));
    return arg;
  }

  void AddArg(const XStatVisitor& stat, pp::TrackEvent* event) {
    pp::DebugAnnotation& arg = AddArg(
        plane_->GetStatMetadata(stat.Id()) - plane_->StatMetadata().data(), stat.Name(), event);
    switch (stat.value_case()) {
      case XStatVisitor::ValueCase::kInt64:
        return arg.set_int_value(stat.IntValue());
      case XStatVisitor::ValueCase::kUint64:
        return arg.set_uint_value(stat.UintValue());
      case XStatVisitor::ValueCase::kDouble:
        return arg.set_double_value(stat.DoubleValue());
      case XStatVisitor::ValueCase::kRef:
        return arg.set_string_value_iid(InternValue(stat.StrOrRefValue()));
      default:
        arg.set_string_value(FirstCharacters(stat.StrOrRefValue(), kMaxValueCharacters));
    }
  }

  // Appends the packet, as a part of the Trace, and empties it.
  void AppendPacket() {
    trace_.AppendToString(&buffer_);
    packet_.Clear();
  }
  absl::Status WritePacket() {
    AppendPacket();
    return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    const absl::Status status = out_->Append(buffer_);
    buffer_.clear();
    return status;
  }

  ByteSink* out_;
  const int64_t start_ns_;
  // A trace of one packet, the one under construction.
  pp::Trace trace_;
  pp::TracePacket& packet_;
  std::string buffer_;
  uint32_t sequence_ = 0;
  const XPlaneVisitor* plane_ = nullptr;
  Interned interned_;
};

}  // namespace

std::unique_ptr<TraceSink> NewPerfettoSink(std::optional<int64_t> start_ns,
                                           absl::Span<const ClockReading> clock_readings,
                                           ByteSink* out) {
  return std::make_unique<PerfettoSink>(start_ns, clock_readings, out);
}

}  // namespace meridian
