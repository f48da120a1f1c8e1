// Encodes the messages of third_party/perfetto/perfetto_trace.proto: an event costs no allocation,
// and a trace may be of any size.
#ifndef XLA_PROFILER_TRACE_EXPORT_PERFETTO_WIRE_H_
#define XLA_PROFILER_TRACE_EXPORT_PERFETTO_WIRE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"
#include "xla_profiler/base/wire/wire_writer.h"

namespace meridian {

// Field numbers and values of perfetto_trace.proto.
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

// A message under construction; may be cleared and used again. A part of another is built first and
// then added to it.
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

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_PERFETTO_WIRE_H_
