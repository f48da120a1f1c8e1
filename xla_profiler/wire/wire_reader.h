// Reads protobuf's wire format in place: a cursor over the fields of one message, without schema
// and without copying. Messages may be of any size (libprotobuf stops at 2 GiB); apart from that
// exactly those bytes are accepted that libprotobuf accepts as a message of unknown fields.
//
//   WireReader reader(message, origin, kMaxDepth);
//   WireField field;
//   while (reader.Next(&field)) { switch (field.number) ... }
//   RETURN_IF_ERROR(reader.status());
#ifndef XLA_PROFILER_WIRE_WIRE_READER_H_
#define XLA_PROFILER_WIRE_WIRE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/base/optimization.h"
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

class WireReader {
 public:
  // `message` lies within the file that begins at `origin`; errors name offsets in that file.
  // `depth` is how many levels may still nest below this message.
  WireReader(absl::string_view message, const char* origin, int depth)
      : p_(message.data()), end_(message.data() + message.size()), origin_(origin), depth_(depth) {}

  // Moves to the next field. Returns false at the end of the message and on an error.
  bool Next(WireField* field);

  // True when Next met an error.
  bool failed() const { return error_reason_ != nullptr; }

  // OK unless Next met an error.
  absl::Status status() const;

 private:
  bool ReadTag(uint32_t* tag);
  bool ReadVarint(uint64_t* value);
  bool ReadLength(uint64_t* length);
  bool ReadPayload(WireField* field);
  bool SkipGroup(uint32_t number, int depth, WireField* field);
  bool Fail(const char* at, const char* reason);

  const char* p_;
  const char* end_;
  const char* origin_;
  int depth_;
  const char* error_at_ = nullptr;
  const char* error_reason_ = nullptr;
};

// Calls fn(int64_t) for each element of a repeated varint field in either of its encodings.
// Returns false when a packed payload is malformed.
template <typename Fn>
bool ForEachRepeatedVarint(const WireField& field, Fn&& fn);

// Implementation only below.

inline bool WireReader::ReadVarint(uint64_t* value) {
  const char* p = p_;
  uint64_t result = 0;
  // Ten bytes at most; bits beyond the 64th are dropped, as libprotobuf does.
  for (int shift = 0; shift < 70; shift += 7) {
    if (ABSL_PREDICT_FALSE(p == end_)) return Fail(p_, "varint runs past the end of the message");
    const uint8_t byte = static_cast<uint8_t>(*p++);
    result |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      p_ = p;
      *value = result;
      return true;
    }
  }
  return Fail(p_, "varint is longer than 10 bytes");
}

inline bool WireReader::ReadTag(uint32_t* tag) {
  const uint8_t first = static_cast<uint8_t>(*p_);
  if (ABSL_PREDICT_TRUE(first < 0x80)) {
    ++p_;
    *tag = first;
  } else {
    const char* begin = p_;
    uint64_t value = 0;
    if (!ReadVarint(&value)) return false;
    if (p_ - begin > 5) return Fail(begin, "field tag is longer than 5 bytes");
    *tag = static_cast<uint32_t>(value);
  }
  if (ABSL_PREDICT_FALSE(*tag < 8)) return Fail(p_ - 1, "field number 0 is not allowed");
  return true;
}

inline bool WireReader::ReadLength(uint64_t* length) {
  const char* begin = p_;
  if (!ReadVarint(length)) return false;
  // Five bytes hold 32 GiB; whoever needs more needs six. Longer forms of small lengths are refused
  // as libprotobuf refuses them.
  if (ABSL_PREDICT_FALSE(p_ - begin > 5 && *length < (uint64_t{1} << 35))) {
    return Fail(begin, "length is encoded in more than 5 bytes");
  }
  if (ABSL_PREDICT_FALSE(*length > static_cast<uint64_t>(end_ - p_))) {
    return Fail(begin, "length runs past the end of the enclosing message");
  }
  return true;
}

inline bool WireReader::Next(WireField* field) {
  if (p_ == end_ || error_reason_ != nullptr) return false;
  const char* begin = p_;
  uint32_t tag = 0;
  if (ABSL_PREDICT_FALSE(!ReadTag(&tag))) return false;
  field->number = tag >> 3;
  field->type = static_cast<WireType>(tag & 7);
  if (ABSL_PREDICT_FALSE(!ReadPayload(field))) return false;
  field->raw = absl::string_view(begin, p_ - begin);
  return true;
}

inline bool WireReader::ReadPayload(WireField* field) {
  switch (field->type) {
    case WireType::kVarint:
      return ReadVarint(&field->scalar);
    case WireType::kBytes: {
      uint64_t length = 0;
      if (!ReadLength(&length)) return false;
      field->bytes = absl::string_view(p_, length);
      p_ += length;
      return true;
    }
    case WireType::kFixed64:
      if (end_ - p_ < 8) return Fail(p_, "fixed64 runs past the end of the message");
      std::memcpy(&field->scalar, p_, 8);
      p_ += 8;
      return true;
    case WireType::kFixed32: {
      if (end_ - p_ < 4) return Fail(p_, "fixed32 runs past the end of the message");
      uint32_t value;
      std::memcpy(&value, p_, 4);
      field->scalar = value;
      p_ += 4;
      return true;
    }
    case WireType::kStartGroup:
      return SkipGroup(field->number, depth_, field);
    case WireType::kEndGroup:
      return Fail(p_ - 1, "group ends that never began");
  }
  return Fail(p_ - 1, "wire type is neither 0, 1, 2, 3, 4 nor 5");
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
    int shift = 0;
    while (true) {
      if (p == end || shift == 70) return false;
      const uint8_t byte = static_cast<uint8_t>(*p++);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
      shift += 7;
    }
    fn(static_cast<int64_t>(value));
  }
  return true;
}

}  // namespace meridian

#endif  // XLA_PROFILER_WIRE_WIRE_READER_H_
