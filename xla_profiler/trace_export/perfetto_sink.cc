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
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/trace_export/trace_sink.h"

namespace meridian {
namespace {

// Some thousand packets.
constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr uint64_t kRootUuid = 0;

// Field numbers and values of third_party/perfetto/perfetto_trace.proto.
struct PerfettoTraceField {
  static constexpr uint32_t kPacket = 1;
};
struct TracePacketField {
  static constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                            kInternedData = 12, kSequenceFlags = 13, kTrackDescriptor = 60,
                            kFirstPacketOnSequence = 87;
};
struct SequenceFlags {
  static constexpr uint64_t kIncrementalStateCleared = 1, kNeedsIncrementalState = 2;
};
struct ClockSnapshotField {
  static constexpr uint32_t kClocks = 1;
};
struct ClockField {
  static constexpr uint32_t kClockId = 1, kTimestamp = 2;
};
struct PerfettoClock {
  // From kFirstGlobal on, clocks are the trace's own, the same in all of it.
  static constexpr uint64_t kRealtime = 1, kBoottime = 6, kFirstGlobal = 128;
  // Ids have 32 bits.
  static constexpr int64_t kMaxNodeId = 0xFFFFFFFF - 128;
};
struct TrackDescriptorField {
  static constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5,
                            kCounter = 8, kSiblingOrderRank = 12, kSiblingMergeBehavior = 15,
                            kProcessOrdering = 19, kThreadOrdering = 20;
};
struct SiblingMergeBehavior {
  static constexpr uint64_t kNone = 2;
};
struct TrackOrdering {
  static constexpr uint64_t kExplicit = 1;
};
struct ProcessDescriptorField {
  static constexpr uint32_t kPid = 1, kProcessName = 6;
};
struct ThreadDescriptorField {
  static constexpr uint32_t kPid = 1, kTid = 2, kThreadName = 5;
};
struct TrackEventField {
  static constexpr uint32_t kCategoryIids = 3, kDebugAnnotations = 4, kType = 9, kNameIid = 10,
                            kTrackUuid = 11, kCounterValue = 30, kDoubleCounterValue = 44,
                            kFlowIds = 47;
};
struct TrackEventType {
  static constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
};
struct DebugAnnotationField {
  static constexpr uint32_t kNameIid = 1, kUint = 3, kInt = 4, kDouble = 5, kString = 6,
                            kStringIid = 17;
};
struct InternedDataField {
  static constexpr uint32_t kEventCategories = 1, kEventNames = 2, kAnnotationNames = 3,
                            kAnnotationStrings = 29;
};
struct InternedField {
  static constexpr uint32_t kIid = 1, kText = 2;
};

void WriteDoubleField(uint32_t field, double value, BufferOutput* output) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  WriteFixed64Field(field, bits, output);
}

class PerfettoSink : public TraceSink {
 public:
  // Without a start, timestamps count from the session's start.
  PerfettoSink(std::optional<int64_t> start_ns, absl::Span<const ClockReading> clock_readings,
               ByteSink* out)
      : out_(out), start_ns_(start_ns.value_or(0)) {
    if (start_ns.has_value()) {
      // The trace's own clock, named BOOTTIME by default, shows Unix time.
      AddClockSnapshot(
          {{PerfettoClock::kRealtime, start_ns_}, {PerfettoClock::kBoottime, start_ns_}});
      for (const ClockReading& reading : clock_readings) {
        std::vector<std::pair<uint64_t, int64_t>> clocks = {
            {PerfettoClock::kBoottime, reading.time_ns}};
        for (const auto& [node_id, node_time_ns] : reading.node_times_ns) {
          if (node_id < 0 || node_id > PerfettoClock::kMaxNodeId) continue;
          clocks.push_back(
              {PerfettoClock::kFirstGlobal + static_cast<uint64_t>(node_id), node_time_ns});
        }
        AddClockSnapshot(clocks);
      }
    }
    WriteVarintField(TrackDescriptorField::kUuid, kRootUuid, &descriptor_);
    WriteVarintField(TrackDescriptorField::kProcessOrdering, TrackOrdering::kExplicit,
                     &descriptor_);
    WriteVarintField(TrackDescriptorField::kThreadOrdering, TrackOrdering::kExplicit, &descriptor_);
    packet_.Clear();
    WriteBytesField(TracePacketField::kTrackDescriptor, descriptor_.bytes(), &packet_);
    AppendPacket();
  }

  // Timestamps are unsigned.
  TimeRange range() const override {
    const absl::int128 start = start_ns_;
    const absl::int128 last = std::numeric_limits<int64_t>::max();
    return {SaturateToInt64(-start * kPsPerNs), SaturateToInt64((last - start) * kPsPerNs)};
  }

  absl::Status AddProcess(const TraceProcess& process) override {
    part_.Clear();
    WriteVarintField(ProcessDescriptorField::kPid, process.id, &part_);
    WriteBytesField(ProcessDescriptorField::kProcessName,
                    Shorten(process.name, kMaxNameCharacters, &text_buffer_), &part_);
    descriptor_.Clear();
    WriteVarintField(TrackDescriptorField::kUuid, process.id, &descriptor_);
    WriteBytesField(TrackDescriptorField::kProcess, part_.bytes(), &descriptor_);
    WriteVarintField(TrackDescriptorField::kSiblingOrderRank, process.position, &descriptor_);
    return WriteDescriptor();
  }

  absl::Status AddTrack(const TraceTrack& track) override {
    const absl::string_view name = Shorten(track.name, kMaxNameCharacters, &text_buffer_);
    descriptor_.Clear();
    part_.Clear();
    WriteVarintField(TrackDescriptorField::kUuid, track.id, &descriptor_);
    switch (track.kind) {
      case TraceTrack::Kind::kLine:
        WriteVarintField(ThreadDescriptorField::kPid, track.process_id, &part_);
        WriteVarintField(ThreadDescriptorField::kTid, track.id, &part_);
        WriteBytesField(ThreadDescriptorField::kThreadName, name, &part_);
        WriteBytesField(TrackDescriptorField::kThread, part_.bytes(), &descriptor_);
        WriteVarintField(TrackDescriptorField::kParentUuid, track.process_id, &descriptor_);
        WriteVarintField(TrackDescriptorField::kSiblingOrderRank, track.position, &descriptor_);
        break;
      case TraceTrack::Kind::kOverlap:
        WriteBytesField(TrackDescriptorField::kName, name, &descriptor_);
        WriteVarintField(TrackDescriptorField::kParentUuid, track.line_id, &descriptor_);
        WriteVarintField(TrackDescriptorField::kSiblingMergeBehavior, SiblingMergeBehavior::kNone,
                         &descriptor_);
        break;
      case TraceTrack::Kind::kCounter:
        WriteBytesField(TrackDescriptorField::kName, name, &descriptor_);
        WriteVarintField(TrackDescriptorField::kParentUuid, track.process_id, &descriptor_);
        WriteBytesField(TrackDescriptorField::kCounter, part_.bytes(), &descriptor_);
        break;
    }
    return WriteDescriptor();
  }

  absl::Status BeginPlane(const XPlaneVisitor& plane) override {
    plane_ = &plane;
    interned_texts_.names.assign(plane.EventMetadata().size(), false);
    // One more for the long name.
    interned_texts_.arg_names.assign(plane.StatMetadata().size() + 1, false);
    interned_texts_.categories.assign(kNumEventCategories, false);
    interned_texts_.values.clear();
    packet_.Clear();
    WriteVarintField(TracePacketField::kSequenceId, ++sequence_, &packet_);
    WriteVarintField(TracePacketField::kSequenceFlags, SequenceFlags::kIncrementalStateCleared,
                     &packet_);
    WriteVarintField(TracePacketField::kFirstPacketOnSequence, 1, &packet_);
    return WritePacket();
  }

  absl::Status BeginSlice(const TraceTrack& track, const TraceSlice& slice) override {
    interned_.Clear();
    event_.Clear();
    WriteVarintField(
        TrackEventField::kType,
        slice.duration_ps == 0 ? TrackEventType::kInstant : TrackEventType::kSliceBegin, &event_);
    WriteVarintField(TrackEventField::kTrackUuid, track.id, &event_);
    WriteVarintField(TrackEventField::kNameIid, InternName(slice), &event_);
    if (slice.category != EventCategory::kUnknown) {
      WriteVarintField(TrackEventField::kCategoryIids, InternCategory(slice.category), &event_);
    }
    if (slice.flow.has_value()) {
      WriteFixed64Field(TrackEventField::kFlowIds, slice.flow->id, &event_);
    }
    if (!slice.long_name().empty()) AddText(InternLongNameArg(), slice.long_name());
    for (const XStatVisitor* stat : slice.args) AddArg(*stat);
    return WriteEvent(Timestamp(slice.start_ps), SequenceFlags::kNeedsIncrementalState);
  }

  absl::Status EndSlice(const TraceTrack& track, int64_t end_ps) override {
    interned_.Clear();
    event_.Clear();
    WriteVarintField(TrackEventField::kType, TrackEventType::kSliceEnd, &event_);
    WriteVarintField(TrackEventField::kTrackUuid, track.id, &event_);
    return WriteEvent(Timestamp(end_ps), 0);
  }

  absl::Status AddCounterValue(const TraceTrack& track, int64_t time_ps,
                               const XStatVisitor& value) override {
    interned_.Clear();
    event_.Clear();
    WriteVarintField(TrackEventField::kType, TrackEventType::kCounter, &event_);
    WriteVarintField(TrackEventField::kTrackUuid, track.id, &event_);
    const uint64_t unsigned_value = value.UintValue();
    if (value.value_case() == XStatVisitor::ValueCase::kDouble) {
      WriteDoubleField(TrackEventField::kDoubleCounterValue, value.DoubleValue(), &event_);
    } else if (unsigned_value > uint64_t{std::numeric_limits<int64_t>::max()}) {
      WriteDoubleField(TrackEventField::kDoubleCounterValue, static_cast<double>(unsigned_value),
                       &event_);
    } else {
      WriteVarintField(TrackEventField::kCounterValue,
                       static_cast<uint64_t>(*value.IntOrUintValue()), &event_);
    }
    return WriteEvent(Timestamp(time_ps), 0);
  }

  absl::Status Finish() override { return Flush(); }

 private:
  // Texts of the sequence that packets so far have interned; ids begin with 1.
  struct Interned {
    // Whether the text is interned, by the position of the event's metadata in the plane, by that
    // of the stat's metadata (the last is the long name's), and by category.
    std::vector<bool> names;
    std::vector<bool> arg_names;
    std::vector<bool> categories;
    // Ids of values by the address of the text: a reference always leads to the same bytes.
    absl::flat_hash_map<const char*, uint64_t> values;
  };

  // Adds what clocks show at one instant.
  void AddClockSnapshot(const std::vector<std::pair<uint64_t, int64_t>>& clocks) {
    BufferOutput snapshot;
    for (const auto& [clock, time_ns] : clocks) {
      part_.Clear();
      WriteVarintField(ClockField::kClockId, clock, &part_);
      WriteVarintField(ClockField::kTimestamp, static_cast<uint64_t>(time_ns), &part_);
      WriteBytesField(ClockSnapshotField::kClocks, part_.bytes(), &snapshot);
    }
    packet_.Clear();
    WriteBytesField(TracePacketField::kClockSnapshot, snapshot.bytes(), &packet_);
    AppendPacket();
  }

  uint64_t Timestamp(int64_t time_ps) const {
    return static_cast<uint64_t>(start_ns_ + FloorToNs(time_ps));
  }

  // Each Intern function adds the text to the packet's interned data if the sequence does not have
  // it, and returns its id.
  uint64_t InternName(const TraceSlice& slice) {
    return InternAt(slice.metadata - plane_->EventMetadata().data(), &interned_texts_.names,
                    InternedDataField::kEventNames, slice.name(), kMaxNameCharacters);
  }

  uint64_t InternCategory(EventCategory category) {
    return InternAt(static_cast<size_t>(category), &interned_texts_.categories,
                    InternedDataField::kEventCategories, EventCategoryName(category),
                    kMaxNameCharacters);
  }

  uint64_t InternArgName(const XStatVisitor& stat) {
    return InternAt(plane_->GetStatMetadata(stat.Id()) - plane_->StatMetadata().data(),
                    &interned_texts_.arg_names, InternedDataField::kAnnotationNames, stat.Name(),
                    kMaxValueCharacters);
  }

  uint64_t InternLongNameArg() {
    return InternAt(interned_texts_.arg_names.size() - 1, &interned_texts_.arg_names,
                    InternedDataField::kAnnotationNames, kLongNameArg, kMaxValueCharacters);
  }

  // The text at that position of a list; the id is the position + 1.
  uint64_t InternAt(size_t position, std::vector<bool>* known, uint32_t field,
                    absl::string_view text, size_t max_characters) {
    if (!(*known)[position]) {
      (*known)[position] = true;
      Intern(field, position + 1, text, max_characters);
    }
    return position + 1;
  }

  uint64_t InternValue(absl::string_view value) {
    const auto [it, is_new] =
        interned_texts_.values.try_emplace(value.data(), interned_texts_.values.size() + 1);
    if (is_new) {
      Intern(InternedDataField::kAnnotationStrings, it->second, value, kMaxValueCharacters);
    }
    return it->second;
  }

  // Adds the text to interned_ under the id.
  void Intern(uint32_t field, uint64_t iid, absl::string_view text, size_t max_characters) {
    part_.Clear();
    WriteVarintField(InternedField::kIid, iid, &part_);
    WriteBytesField(InternedField::kText, Shorten(text, max_characters, &text_buffer_), &part_);
    WriteBytesField(field, part_.bytes(), &interned_);
  }

  void AddArg(const XStatVisitor& stat) {
    const uint64_t name_iid = InternArgName(stat);
    if (stat.value_case() == XStatVisitor::ValueCase::kRef) {
      return AddText(name_iid, stat.StrOrRefValue());
    }
    part_.Clear();
    WriteVarintField(DebugAnnotationField::kNameIid, name_iid, &part_);
    switch (stat.value_case()) {
      case XStatVisitor::ValueCase::kInt64:
        WriteVarintField(DebugAnnotationField::kInt, static_cast<uint64_t>(stat.IntValue()),
                         &part_);
        break;
      case XStatVisitor::ValueCase::kUint64:
        WriteVarintField(DebugAnnotationField::kUint, stat.UintValue(), &part_);
        break;
      case XStatVisitor::ValueCase::kDouble:
        WriteDoubleField(DebugAnnotationField::kDouble, stat.DoubleValue(), &part_);
        break;
      default:
        WriteBytesField(DebugAnnotationField::kString,
                        Shorten(stat.StrOrRefValue(), kMaxValueCharacters, &text_buffer_), &part_);
    }
    WriteBytesField(TrackEventField::kDebugAnnotations, part_.bytes(), &event_);
  }

  void AddText(uint64_t name_iid, absl::string_view interned_value) {
    const uint64_t value_iid = InternValue(interned_value);
    part_.Clear();
    WriteVarintField(DebugAnnotationField::kNameIid, name_iid, &part_);
    WriteVarintField(DebugAnnotationField::kStringIid, value_iid, &part_);
    WriteBytesField(TrackEventField::kDebugAnnotations, part_.bytes(), &event_);
  }

  absl::Status WriteEvent(uint64_t timestamp, uint64_t flags) {
    packet_.Clear();
    WriteVarintField(TracePacketField::kTimestamp, timestamp, &packet_);
    WriteVarintField(TracePacketField::kSequenceId, sequence_, &packet_);
    if (flags != 0) WriteVarintField(TracePacketField::kSequenceFlags, flags, &packet_);
    if (interned_.size() > 0)
      WriteBytesField(TracePacketField::kInternedData, interned_.bytes(), &packet_);
    WriteBytesField(TracePacketField::kTrackEvent, event_.bytes(), &packet_);
    return WritePacket();
  }

  absl::Status WriteDescriptor() {
    packet_.Clear();
    WriteBytesField(TracePacketField::kTrackDescriptor, descriptor_.bytes(), &packet_);
    return WritePacket();
  }

  void AppendPacket() { WriteBytesField(PerfettoTraceField::kPacket, packet_.bytes(), &buffer_); }

  absl::Status WritePacket() {
    AppendPacket();
    return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }

  absl::Status Flush() {
    const absl::Status status = out_->Append(buffer_.bytes());
    buffer_.Clear();
    return status;
  }

  ByteSink* out_;
  const int64_t start_ns_;
  // Packets not yet written, as parts of one Trace.
  BufferOutput buffer_;
  uint64_t sequence_ = 0;
  const XPlaneVisitor* plane_ = nullptr;
  Interned interned_texts_;

  // Messages under construction, kept for their memory. A part of another message is built first
  // and then added to it.
  BufferOutput packet_;
  BufferOutput event_;
  BufferOutput descriptor_;
  BufferOutput part_;
  BufferOutput interned_;
  std::string text_buffer_;
};

}  // namespace

std::unique_ptr<TraceSink> NewPerfettoSink(std::optional<int64_t> start_ns,
                                           absl::Span<const ClockReading> clock_readings,
                                           ByteSink* out) {
  return std::make_unique<PerfettoSink>(start_ns, clock_readings, out);
}

}  // namespace meridian
