// SPDX-License-Identifier: Apache-2.0
// The hot inner loop of the codec: events as all known profilers write them.
//
//   08 metadata_id | 10 offset_ps | 18 duration_ps | 22 stat | 22 stat | ...
//
// Each part may be absent, none may repeat or come in another order, varints have at most eight
// bytes. Anything else is legal too and goes through WireReader; this is only a short cut, and the
// comparison with libprotobuf covers both ways.
#ifndef XLA_PROFILER_XPLANE_EVENT_WIRE_H_
#define XLA_PROFILER_XPLANE_EVENT_WIRE_H_

#include <cstdint>
#include <cstring>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/utf8.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {

// Tags of the fields that occur in events and stats; all fit one byte.
inline constexpr char OneByteTag(uint32_t number, WireType type) {
  return static_cast<char>(MakeTag(number, type));
}

// True when the short cuts may read a little past the message: loads are eight bytes wide.
inline bool HasRoomBehind(const char* end, const XSpaceSource& source) {
  constexpr int kRoom = 16;
  return source.bytes.data() + source.bytes.size() - end >= kRoom;
}

// Reads a varint of at most eight bytes; returns where it ends, or nullptr when it is longer. Needs
// room behind p; does not know where the message ends.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* ReadShortVarint(const char* p, uint64_t* value) {
  const uint64_t first = static_cast<uint8_t>(*p);
  if (first < 0x80) {
    *value = first;
    return p + 1;
  }
  return internal::ParseWideVarint(p, value);
}

// The parts of such an event.
struct PlainEvent {
  int64_t metadata_id = 0;
  int64_t offset_ps = 0;
  int64_t duration_ps = 0;
  // From the first stat to the end of the event.
  const char* stats = nullptr;
};

// Reads everything before the stats. Returns false when the event is not of the plain form or has
// no room behind; then nothing can be said about it.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ReadPlainEvent(absl::string_view payload,
                                                        const XSpaceSource& source,
                                                        PlainEvent* event) {
  const char* p = payload.data();
  const char* end = p + payload.size();
  if (ABSL_PREDICT_FALSE(!HasRoomBehind(end, source))) return false;
  uint64_t value = 0;
  if (p < end && *p == OneByteTag(XEventField::kMetadataId, WireType::kVarint)) {
    p = ReadShortVarint(p + 1, &value);
    if (ABSL_PREDICT_FALSE(p == nullptr)) return false;
    event->metadata_id = static_cast<int64_t>(value);
  }
  if (p < end && *p == OneByteTag(XEventField::kOffsetPs, WireType::kVarint)) {
    p = ReadShortVarint(p + 1, &value);
    if (ABSL_PREDICT_FALSE(p == nullptr)) return false;
    event->offset_ps = static_cast<int64_t>(value);
  }
  if (p < end && *p == OneByteTag(XEventField::kDurationPs, WireType::kVarint)) {
    p = ReadShortVarint(p + 1, &value);
    if (ABSL_PREDICT_FALSE(p == nullptr)) return false;
    event->duration_ps = static_cast<int64_t>(value);
  }
  event->stats = p;
  return p <= end;
}

// Takes the next stat's payload from p, which lies before end. Returns where it ends, or nullptr
// when what stands there is no stat, or one whose length needs more than two bytes.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* NextPlainStat(const char* p, const char* end,
                                                              absl::string_view* payload) {
  if (ABSL_PREDICT_FALSE(*p != OneByteTag(XEventField::kStats, WireType::kBytes))) return nullptr;
  uint64_t size = static_cast<uint8_t>(p[1]);
  const char* begin = p + 2;
  if (ABSL_PREDICT_FALSE(size >= 0x80)) {
    const uint64_t second = static_cast<uint8_t>(p[2]);
    if (second >= 0x80) return nullptr;
    size = (size & 0x7F) | second << 7;
    begin = p + 3;
  }
  if (ABSL_PREDICT_FALSE(end - begin < static_cast<int64_t>(size))) return nullptr;
  *payload = absl::string_view(begin, size);
  return begin + size;
}

// The parts of a stat as all known writers write it: the id, then one value.
struct PlainStat {
  int64_t id = 0;
  // The field that holds the value, and its number (XStatField).
  absl::string_view value_field;
  uint32_t number = 0;
  // A number, or the bits of a double.
  uint64_t scalar = 0;
  // A text, which is UTF-8, or bytes.
  absl::string_view text;
};

// Reads a stat, which must have room behind it. Returns false when it is of another form, is longer
// than two bytes can say, or is damaged; then nothing can be said about it.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ReadPlainStat(absl::string_view payload, PlainStat* stat) {
  const char* p = payload.data();
  const char* end = p + payload.size();
  if (payload.size() < 4 || *p != OneByteTag(XStatField::kMetadataId, WireType::kVarint)) {
    return false;
  }
  uint64_t value = 0;
  p = ReadShortVarint(p + 1, &value);
  if (ABSL_PREDICT_FALSE(p == nullptr || p >= end)) return false;
  stat->id = static_cast<int64_t>(value);
  stat->value_field = absl::string_view(p, end - p);
  const uint32_t tag = static_cast<uint8_t>(*p++);
  stat->number = tag >> 3;
  const WireType type = static_cast<WireType>(tag & 7);
  // Branches that are the same for most stats; a switch would guess wrong at every other.
  constexpr uint32_t kVarints =
      1u << XStatField::kUint64 | 1u << XStatField::kInt64 | 1u << XStatField::kRef;
  if (ABSL_PREDICT_TRUE(type == WireType::kVarint && (kVarints >> stat->number & 1) != 0)) {
    return internal::ParseWideVarint(p, &stat->scalar) == end;
  }
  if (type == WireType::kBytes &&
      (stat->number == XStatField::kStr || stat->number == XStatField::kBytes)) {
    const char* size = p;
    p = ReadShortVarint(p, &value);
    if (p == nullptr || p - size > 2 || end - p != static_cast<int64_t>(value)) return false;
    stat->text = absl::string_view(p, value);
    return stat->number == XStatField::kBytes || IsValidUtf8(stat->text);
  }
  std::memcpy(&stat->scalar, p, sizeof(stat->scalar));
  return tag == MakeTag(XStatField::kDouble, WireType::kFixed64) && p + sizeof(stat->scalar) == end;
}

// True when only stats stand between the plain event's head and its end.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool OnlyStatsFollow(const PlainEvent& event,
                                                         absl::string_view payload) {
  const char* end = payload.data() + payload.size();
  absl::string_view stat;
  for (const char* p = event.stats; p != end;) {
    p = NextPlainStat(p, end, &stat);
    if (ABSL_PREDICT_FALSE(p == nullptr)) return false;
  }
  return true;
}

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_EVENT_WIRE_H_
