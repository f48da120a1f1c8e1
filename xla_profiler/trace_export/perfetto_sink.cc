#include "xla_profiler/trace_export/perfetto_sink.h"

#include <limits>

#include "absl/numeric/int128.h"
#include "xla_profiler/base/int64_range.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

// Some thousand packets.
constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr uint64_t kRootUuid = 0;

}  // namespace

PerfettoSink::PerfettoSink(std::optional<int64_t> start_ns, ByteSink* out)
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

TimeRange PerfettoSink::Range(std::optional<int64_t> start_ns) {
  const absl::int128 start = start_ns.value_or(0);
  const absl::int128 last = std::numeric_limits<int64_t>::max();
  return {SaturateToInt64(-start * kPsPerNs), SaturateToInt64((last - start) * kPsPerNs)};
}

absl::Status PerfettoSink::AddProcess(const TraceProcess& process) {
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

absl::Status PerfettoSink::AddTrack(const TraceTrack& track) {
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

absl::Status PerfettoSink::BeginPlane(const XPlaneVisitor& plane) {
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

absl::Status PerfettoSink::BeginSlice(const TraceTrack& track, const TraceSlice& slice) {
  interned_.Clear();
  event_.Clear();
  event_.AddVarint(TrackEventField::kType,
                   slice.duration_ps == 0 ? TrackEventType::kInstant : TrackEventType::kSliceBegin);
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

absl::Status PerfettoSink::EndSlice(const TraceTrack& track, int64_t end_ps) {
  interned_.Clear();
  event_.Clear();
  event_.AddVarint(TrackEventField::kType, TrackEventType::kSliceEnd);
  event_.AddVarint(TrackEventField::kTrackUuid, track.id);
  return WriteEvent(Timestamp(end_ps), 0);
}

absl::Status PerfettoSink::AddCounterValue(const TraceTrack& track, int64_t time_ps,
                                           const XStatVisitor& value) {
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

uint64_t PerfettoSink::Timestamp(int64_t time_ps) const {
  return static_cast<uint64_t>(start_ns_ + FloorToNs(time_ps));
}

uint64_t PerfettoSink::InternName(const TraceSlice& slice) {
  const size_t index = slice.metadata - plane_->EventMetadata().data();
  if (!interned_texts_.names[index]) {
    interned_texts_.names[index] = true;
    Intern(InternedDataField::kEventNames, index + 1, slice.name(), kMaxNameCharacters);
  }
  return index + 1;
}

uint64_t PerfettoSink::InternCategory(EventCategory category) {
  const auto index = static_cast<size_t>(category);
  if (!interned_texts_.categories[index]) {
    interned_texts_.categories[index] = true;
    Intern(InternedDataField::kEventCategories, index + 1, EventCategoryName(category),
           kMaxNameCharacters);
  }
  return index + 1;
}

uint64_t PerfettoSink::InternArgName(const XStatVisitor& stat) {
  const size_t index = plane_->GetStatMetadata(stat.Id()) - plane_->StatMetadata().data();
  if (!interned_texts_.arg_names[index]) {
    interned_texts_.arg_names[index] = true;
    Intern(InternedDataField::kAnnotationNames, index + 1, stat.Name(), kMaxValueCharacters);
  }
  return index + 1;
}

uint64_t PerfettoSink::InternLongNameArg() {
  const size_t index = interned_texts_.arg_names.size() - 1;
  if (!interned_texts_.arg_names[index]) {
    interned_texts_.arg_names[index] = true;
    Intern(InternedDataField::kAnnotationNames, index + 1, kLongNameArg, kMaxValueCharacters);
  }
  return index + 1;
}

uint64_t PerfettoSink::InternValue(absl::string_view value) {
  const auto [it, is_new] =
      interned_texts_.values.try_emplace(value.data(), interned_texts_.values.size() + 1);
  if (is_new) {
    Intern(InternedDataField::kAnnotationStrings, it->second, value, kMaxValueCharacters);
  }
  return it->second;
}

void PerfettoSink::Intern(uint32_t field, uint64_t iid, absl::string_view text,
                          size_t max_characters) {
  part_.Clear();
  part_.AddVarint(InternedField::kIid, iid);
  part_.AddBytes(InternedField::kText, Shorten(text, max_characters, &text_buffer_));
  interned_.AddMessage(field, part_);
}

void PerfettoSink::AddArg(const XStatVisitor& stat) {
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

void PerfettoSink::AddText(uint64_t name_iid, absl::string_view interned_value) {
  const uint64_t value_iid = InternValue(interned_value);
  part_.Clear();
  part_.AddVarint(DebugAnnotationField::kNameIid, name_iid);
  part_.AddVarint(DebugAnnotationField::kStringIid, value_iid);
  event_.AddMessage(TrackEventField::kDebugAnnotations, part_);
}

absl::Status PerfettoSink::WriteEvent(uint64_t timestamp, uint64_t flags) {
  packet_.Clear();
  packet_.AddVarint(TracePacketField::kTimestamp, timestamp);
  packet_.AddVarint(TracePacketField::kSequenceId, sequence_);
  if (flags != 0) packet_.AddVarint(TracePacketField::kSequenceFlags, flags);
  if (!interned_.empty()) packet_.AddMessage(TracePacketField::kInternedData, interned_);
  packet_.AddMessage(TracePacketField::kTrackEvent, event_);
  return WritePacket();
}

absl::Status PerfettoSink::WriteDescriptor() {
  packet_.Clear();
  packet_.AddMessage(TracePacketField::kTrackDescriptor, descriptor_);
  return WritePacket();
}

void PerfettoSink::AppendPacket() { buffer_.AddMessage(PerfettoTraceField::kPacket, packet_); }

absl::Status PerfettoSink::WritePacket() {
  AppendPacket();
  return buffer_.bytes().size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status PerfettoSink::Flush() {
  const absl::Status status = out_->Append(buffer_.bytes());
  buffer_.Clear();
  return status;
}

}  // namespace meridian
