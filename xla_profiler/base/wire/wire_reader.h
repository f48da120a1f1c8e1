// SPDX-License-Identifier: Apache-2.0
// Reads protobuf's wire format in place: a cursor over the fields of one message, without schema
// and without copying. Messages may be of any size (libprotobuf stops at 2 GiB); apart from that
// exactly those bytes are accepted that libprotobuf accepts as a message of unknown fields.
//
//   WireReader reader(message, origin, kMaxDepth);
//   WireField field;
//   while (reader.Next(&field)) { switch (field.number) ... }
//   RETURN_IF_ERROR(reader.status());
#ifndef XLA_PROFILER_BASE_WIRE_WIRE_READER_H_
#define XLA_PROFILER_BASE_WIRE_WIRE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/numeric/bits.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// How deep messages and groups may nest below the outermost message, as in libprotobuf.
inline constexpr int kMaxWireDepth = 100;

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  // The value of a varint or fixed field.
  uint64_t scalar = 0;
  // The payload of a length-delimited field, the content of a group.
  absl::string_view bytes;
  // The whole field: tag, length, payload.
  absl::string_view raw;

  bool IsVarint(uint32_t n) const { return number == n && type == WireType::kVarint; }
  bool IsBytes(uint32_t n) const { return number == n && type == WireType::kBytes; }
};

// Returns "offset N: reason", N counted from origin, the first byte of the file.
absl::Status WireError(const char* at, const char* origin, absl::string_view reason);

// Reads one varint; returns where it ends, or nullptr when it is cut or longer than ten bytes. Bits
// beyond the 64th are dropped, as libprotobuf does.
const char* ParseVarint(const char* p, const char* end, uint64_t* value);

class WireReader {
 public:
  // `message` lies within the file that begins at `origin`; errors name offsets in that file.
  // `depth` is how many levels may still nest below this message.
  WireReader(absl::string_view message, const char* origin, int depth)
      : p_(message.data()), end_(message.data() + message.size()), origin_(origin), depth_(depth) {}

  // Moves to the next field. Returns false at the end of the message and on an error.
  bool Next(WireField* field);

  // True when Next met an error.
  bool failed() const { return bad_field_ != nullptr; }

  // OK unless Next met an error.
  absl::Status status() const {
    return failed() ? DescribeError(bad_field_, end_, origin_, depth_) : absl::OkStatus();
  }

 private:
  // The members stay in registers as long as nobody takes the reader's address: everything that is
  // not inlined is static and gets values.
  static const char* ParseField(const char* p, const char* end, int depth, WireField* field);
  static absl::Status DescribeError(const char* p, const char* end, const char* origin, int depth);

  const char* p_;
  const char* end_;
  const char* origin_;
  int depth_;
  const char* bad_field_ = nullptr;
};

// Calls fn(int64_t) for each element of a repeated varint field in either of its encodings.
// Returns false when a packed payload is malformed.
template <typename Fn>
bool ForEachRepeatedVarint(const WireField& field, Fn&& fn);

// Implementation only below.

namespace internal {

// ParseVarint without the short cuts.
const char* ParseLongVarint(const char* p, const char* end, uint64_t* value);

// Reads a varint of at most eight bytes, without a branch on its length, from p with eight readable
// bytes; returns where it ends, or nullptr when it is longer.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* ParseWideVarint(const char* p, uint64_t* value) {
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof(word));
  const uint64_t stops = ~word & 0x8080808080808080u;
  if (ABSL_PREDICT_FALSE(stops == 0)) return nullptr;
  // Keep the bytes up to the one without the continuation bit, then close the gaps: groups of 7
  // bits become 14, 28, 56.
  const int last_bit = absl::countr_zero(stops);
  word &= (uint64_t{2} << last_bit) - 1;
  word = (word & 0x007F007F007F007Fu) | (word & 0x7F007F007F007F00u) >> 1;
  word = (word & 0x00003FFF00003FFFu) | (word & 0x3FFF00003FFF0000u) >> 2;
  *value = (word & 0x000000000FFFFFFFu) | (word & 0x0FFFFFFF00000000u) >> 4;
  return p + last_bit / 8 + 1;
}

}  // namespace internal

ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* ParseVarint(const char* p, const char* end,
                                                            uint64_t* value) {
  if (end - p >= 2) {
    const uint64_t first = static_cast<uint8_t>(p[0]);
    if (first < 0x80) {
      *value = first;
      return p + 1;
    }
    const uint64_t second = static_cast<uint8_t>(p[1]);
    if (second < 0x80) {
      *value = (first & 0x7F) | second << 7;
      return p + 2;
    }
    if (end - p >= 8) {
      const char* next = internal::ParseWideVarint(p, value);
      if (ABSL_PREDICT_TRUE(next != nullptr)) return next;
    }
  }
  return internal::ParseLongVarint(p, end, value);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool WireReader::Next(WireField* field) {
  if (p_ == end_ || failed()) return false;
  const char* begin = p_;
  // Fields 1 to 15 have tags of one byte. What is rare or wrong is left to ParseField.
  const uint32_t tag = static_cast<uint8_t>(*begin);
  const char* next = nullptr;
  uint64_t value = 0;
  if (ABSL_PREDICT_TRUE(tag >= 8 && tag < 0x80)) {
    if ((tag & 7) == static_cast<uint32_t>(WireType::kVarint)) {
      next = ParseVarint(begin + 1, end_, &value);
      field->scalar = value;
    } else if ((tag & 7) == static_cast<uint32_t>(WireType::kBytes)) {
      const char* payload = ParseVarint(begin + 1, end_, &value);
      // A length in more than three bytes may be overlong.
      if (ABSL_PREDICT_TRUE(payload != nullptr && payload - begin <= 4 &&
                            value <= static_cast<uint64_t>(end_ - payload))) {
        field->bytes = absl::string_view(payload, value);
        next = payload + value;
      }
    }
  }
  if (ABSL_PREDICT_TRUE(next != nullptr)) {
    field->number = tag >> 3;
    field->type = static_cast<WireType>(tag & 7);
  } else {
    WireField rare;
    next = ParseField(begin, end_, depth_, &rare);
    if (ABSL_PREDICT_FALSE(next == nullptr)) {
      bad_field_ = begin;
      return false;
    }
    *field = rare;
  }
  p_ = next;
  field->raw = absl::string_view(begin, next - begin);
  return true;
}

template <typename Fn>
bool ForEachRepeatedVarint(const WireField& field, Fn&& fn) {
  if (field.type == WireType::kVarint) {
    fn(static_cast<int64_t>(field.scalar));
    return true;
  }
  const char* p = field.bytes.data();
  const char* end = p + field.bytes.size();
  while (p != end) {
    uint64_t value = 0;
    p = ParseVarint(p, end, &value);
    if (p == nullptr) return false;
    fn(static_cast<int64_t>(value));
  }
  return true;
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_WIRE_WIRE_READER_H_
