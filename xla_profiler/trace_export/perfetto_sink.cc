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
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
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
  static constexpr uint64_t kRealtime = 1, kBoottime = 6;
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

// A message under construction; may be cleared and used again, so an event costs no allocation. A
// part of another message is built first and then added to it.
class WireMessage {
 public:
  void Clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  absl::string_view bytes() const { return absl::string_view(buffer_.data(), size_); }

  // Also for bool, enum and, cast, int64.
  void AddVarint(uint32_t field, uint64_t value) {
    char* p = Room(2 * kMaxVarintBytes);
    p = EncodeVarint(MakeTag(field, WireType::kVarint), p);
    Advance(EncodeVarint(value, p));
  }
  void AddFixed64(uint32_t field, uint64_t value) {
    char* p = Room(kMaxVarintBytes + sizeof(value));
    p = EncodeVarint(MakeTag(field, WireType::kFixed64), p);
    for (size_t i = 0; i < sizeof(value); ++i) *p++ = static_cast<char>(value >> 8 * i);
    Advance(p);
  }
  void AddDouble(uint32_t field, double value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    AddFixed64(field, bits);
  }
  void AddBytes(uint32_t field, absl::string_view bytes) {
    char* p = Room(2 * kMaxVarintBytes + bytes.size());
    p = EncodeVarint(MakeTag(field, WireType::kBytes), p);
    p = EncodeVarint(bytes.size(), p);
    Advance(std::copy(bytes.begin(), bytes.end(), p));
  }
  void AddMessage(uint32_t field, const WireMessage& message) { AddBytes(field, message.bytes()); }

 private:
  // Returns where to write so many bytes.
  char* Room(size_t bytes) {
    if (buffer_.size() - size_ < bytes) buffer_.resize(2 * buffer_.size() + bytes);
    return buffer_.data() + size_;
  }
  void Advance(const char* end) { size_ = end - buffer_.data(); }

  std::vector<char> buffer_;
  size_t size_ = 0;
};

class PerfettoSink : public TraceSink {
 public:
  // Without a start, timestamps count from the session's start.
  PerfettoSink(std::optional<int64_t> start_ns, ByteSink* out)
      : out_(out), start_ns_(start_ns.value_or(0)) {
    if (start_ns.has_value()) {
      // The trace's own clock, named BOOTTIME by default, shows Unix time.
      WireMessage snapshot;
      for (uint64_t clock : {PerfettoClock::kRealtime, PerfettoClock::kBoottime}) {
        part_.Clear();
        part_.AddVarint(ClockField::kClockId, clock);
        part_.AddVarint(ClockField::kTimestamp, static_cast<uint64_t>(start_ns_));
        snapshot.AddMessage(ClockSnapshotField::kClocks, part_);
      }
      packet_.AddMessage(TracePacketField::kClockSnapshot, snapshot);
      AppendPacket();
    }
    descriptor_.AddVarint(TrackDescriptorField::kUuid, kRootUuid);
    descriptor_.AddVarint(TrackDescriptorField::kProcessOrdering, TrackOrdering::kExplicit);
    descriptor_.AddVarint(TrackDescriptorField::kThreadOrdering, TrackOrdering::kExplicit);
    packet_.Clear();
    packet_.AddMessage(TracePacketField::kTrackDescriptor, descriptor_);
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
    part_.AddVarint(ProcessDescriptorField::kPid, process.id);
    part_.AddBytes(ProcessDescriptorField::kProcessName,
                   Shorten(process.name, kMaxNameCharacters, &text_buffer_));
    descriptor_.Clear();
    descriptor_.AddVarint(TrackDescriptorField::kUuid, process.id);
    descriptor_.AddMessage(TrackDescriptorField::kProcess, part_);
    descriptor_.AddVarint(TrackDescriptorField::kSiblingOrderRank, process.position);
    return WriteDescriptor();
  }

  absl::Status AddTrack(const TraceTrack& track) override {
    const absl::string_view name = Shorten(track.name, kMaxNameCharacters, &text_buffer_);
    descriptor_.Clear();
    part_.Clear();
    descriptor_.AddVarint(TrackDescriptorField::kUuid, track.id);
    switch (track.kind) {
      case TraceTrack::Kind::kLine:
        part_.AddVarint(ThreadDescriptorField::kPid, track.process_id);
        part_.AddVarint(ThreadDescriptorField::kTid, track.id);
        part_.AddBytes(ThreadDescriptorField::kThreadName, name);
        descriptor_.AddMessage(TrackDescriptorField::kThread, part_);
        descriptor_.AddVarint(TrackDescriptorField::kParentUuid, track.process_id);
        descriptor_.AddVarint(TrackDescriptorField::kSiblingOrderRank, track.position);
        break;
      case TraceTrack::Kind::kOverlap:
        descriptor_.AddBytes(TrackDescriptorField::kName, name);
        descriptor_.AddVarint(TrackDescriptorField::kParentUuid, track.line_id);
        descriptor_.AddVarint(TrackDescriptorField::kSiblingMergeBehavior,
                              SiblingMergeBehavior::kNone);
        break;
      case TraceTrack::Kind::kCounter:
        descriptor_.AddBytes(TrackDescriptorField::kName, name);
        descriptor_.AddVarint(TrackDescriptorField::kParentUuid, track.process_id);
        descriptor_.AddMessage(TrackDescriptorField::kCounter, part_);
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
    packet_.AddVarint(TracePacketField::kSequenceId, ++sequence_);
    packet_.AddVarint(TracePacketField::kSequenceFlags, SequenceFlags::kIncrementalStateCleared);
    packet_.AddVarint(TracePacketField::kFirstPacketOnSequence, 1);
    return WritePacket();
  }

  absl::Status BeginSlice(const TraceTrack& track, const TraceSlice& slice) override {
    interned_.Clear();
    event_.Clear();
    event_.AddVarint(TrackEventField::kType, slice.duration_ps == 0 ? TrackEventType::kInstant
                                                                    : TrackEventType::kSliceBegin);
    event_.AddVarint(TrackEventField::kTrackUuid, track.id);
    event_.AddVarint(TrackEventField::kNameIid, InternName(slice));
    if (slice.category != EventCategory::kUnknown) {
      event_.AddVarint(TrackEventField::kCategoryIids, InternCategory(slice.category));
    }
    if (slice.flow.has_value()) event_.AddFixed64(TrackEventField::kFlowIds, slice.flow->id);
    if (!slice.long_name().empty()) AddText(InternLongNameArg(), slice.long_name());
    for (const XStatVisitor* stat : slice.args) AddArg(*stat);
    return WriteEvent(Timestamp(slice.start_ps), SequenceFlags::kNeedsIncrementalState);
  }

  absl::Status EndSlice(const TraceTrack& track, int64_t end_ps) override {
    interned_.Clear();
    event_.Clear();
    event_.AddVarint(TrackEventField::kType, TrackEventType::kSliceEnd);
    event_.AddVarint(TrackEventField::kTrackUuid, track.id);
    return WriteEvent(Timestamp(end_ps), 0);
  }

  absl::Status AddCounterValue(const TraceTrack& track, int64_t time_ps,
                               const XStatVisitor& value) override {
    interned_.Clear();
    event_.Clear();
    event_.AddVarint(TrackEventField::kType, TrackEventType::kCounter);
    event_.AddVarint(TrackEventField::kTrackUuid, track.id);
    const uint64_t unsigned_value = value.UintValue();
    if (value.value_case() == XStatVisitor::ValueCase::kDouble) {
      event_.AddDouble(TrackEventField::kDoubleCounterValue, value.DoubleValue());
    } else if (unsigned_value > uint64_t{std::numeric_limits<int64_t>::max()}) {
      event_.AddDouble(TrackEventField::kDoubleCounterValue, static_cast<double>(unsigned_value));
    } else {
      event_.AddVarint(TrackEventField::kCounterValue,
                       static_cast<uint64_t>(*value.IntOrUintValue()));
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
    part_.AddVarint(InternedField::kIid, iid);
    part_.AddBytes(InternedField::kText, Shorten(text, max_characters, &text_buffer_));
    interned_.AddMessage(field, part_);
  }

  void AddArg(const XStatVisitor& stat) {
    const uint64_t name_iid = InternArgName(stat);
    if (stat.value_case() == XStatVisitor::ValueCase::kRef) {
      return AddText(name_iid, stat.StrOrRefValue());
    }
    part_.Clear();
    part_.AddVarint(DebugAnnotationField::kNameIid, name_iid);
    switch (stat.value_case()) {
      case XStatVisitor::ValueCase::kInt64:
        part_.AddVarint(DebugAnnotationField::kInt, static_cast<uint64_t>(stat.IntValue()));
        break;
      case XStatVisitor::ValueCase::kUint64:
        part_.AddVarint(DebugAnnotationField::kUint, stat.UintValue());
        break;
      case XStatVisitor::ValueCase::kDouble:
        part_.AddDouble(DebugAnnotationField::kDouble, stat.DoubleValue());
        break;
      default:
        part_.AddBytes(DebugAnnotationField::kString,
                       Shorten(stat.StrOrRefValue(), kMaxValueCharacters, &text_buffer_));
    }
    event_.AddMessage(TrackEventField::kDebugAnnotations, part_);
  }

  void AddText(uint64_t name_iid, absl::string_view interned_value) {
    const uint64_t value_iid = InternValue(interned_value);
    part_.Clear();
    part_.AddVarint(DebugAnnotationField::kNameIid, name_iid);
    part_.AddVarint(DebugAnnotationField::kStringIid, value_iid);
    event_.AddMessage(TrackEventField::kDebugAnnotations, part_);
  }

  absl::Status WriteEvent(uint64_t timestamp, uint64_t flags) {
    packet_.Clear();
    packet_.AddVarint(TracePacketField::kTimestamp, timestamp);
    packet_.AddVarint(TracePacketField::kSequenceId, sequence_);
    if (flags != 0) packet_.AddVarint(TracePacketField::kSequenceFlags, flags);
    if (!interned_.empty()) packet_.AddMessage(TracePacketField::kInternedData, interned_);
    packet_.AddMessage(TracePacketField::kTrackEvent, event_);
    return WritePacket();
  }

  absl::Status WriteDescriptor() {
    packet_.Clear();
    packet_.AddMessage(TracePacketField::kTrackDescriptor, descriptor_);
    return WritePacket();
  }

  void AppendPacket() { buffer_.AddMessage(PerfettoTraceField::kPacket, packet_); }

  absl::Status WritePacket() {
    AppendPacket();
    return buffer_.bytes().size() < kBufferBytes ? absl::OkStatus() : Flush();
  }

  absl::Status Flush() {
    const absl::Status status = out_->Append(buffer_.bytes());
    buffer_.Clear();
    return status;
  }

  ByteSink* out_;
  const int64_t start_ns_;
  // Packets not yet written, as parts of one Trace.
  WireMessage buffer_;
  uint64_t sequence_ = 0;
  const XPlaneVisitor* plane_ = nullptr;
  Interned interned_texts_;

  // Messages under construction, kept for their memory.
  WireMessage packet_;
  WireMessage event_;
  WireMessage descriptor_;
  WireMessage part_;
  WireMessage interned_;
  std::string text_buffer_;
};

}  // namespace

std::unique_ptr<TraceSink> NewPerfettoSink(std::optional<int64_t> start_ns, ByteSink* out) {
  return std::make_unique<PerfettoSink>(start_ns, out);
}

}  // namespace meridian
