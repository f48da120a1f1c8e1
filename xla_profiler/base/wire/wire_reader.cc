#include "xla_profiler/base/wire/wire_reader.h"

#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Parses single fields and remembers what was wrong.
class FieldParser {
 public:
  FieldParser(const char* p, const char* end) : p_(p), end_(end) {}

  // Returns where the field ends, or nullptr.
  const char* Parse(int depth, WireField* field) {
    if (!ReadTag(field) || !ReadPayload(depth, field)) return nullptr;
    return p_;
  }

  const char* error_at() const { return error_at_; }
  const char* error_reason() const { return error_reason_; }

 private:
  bool Fail(const char* at, const char* reason) {
    error_at_ = at;
    error_reason_ = reason;
    return false;
  }

  bool ReadVarint(uint64_t* value) {
    const char* next = internal::ParseLongVarint(p_, end_, value);
    if (next == nullptr) {
      return Fail(p_, end_ - p_ >= 10 ? "varint is longer than 10 bytes"
                                      : "varint runs past the end of the message");
    }
    p_ = next;
    return true;
  }

  bool ReadTag(WireField* field) {
    const char* begin = p_;
    uint64_t value = 0;
    if (!ReadVarint(&value)) return false;
    if (p_ - begin > 5) return Fail(begin, "field tag is longer than 5 bytes");
    const uint32_t tag = static_cast<uint32_t>(value);
    if (tag < 8) return Fail(begin, "field number 0 is not allowed");
    field->number = tag >> 3;
    field->type = static_cast<WireType>(tag & 7);
    return true;
  }

  bool ReadLength(uint64_t* length) {
    const char* begin = p_;
    if (!ReadVarint(length)) return false;
    // Five bytes hold 32 GiB; whoever needs more needs six. Longer forms of small lengths are
    // refused as libprotobuf refuses them.
    if (p_ - begin > 5 && *length < (uint64_t{1} << 35)) {
      return Fail(begin, "length is encoded in more than 5 bytes");
    }
    if (*length > static_cast<uint64_t>(end_ - p_)) {
      return Fail(begin, "length runs past the end of the enclosing message");
    }
    return true;
  }

  bool ReadFixed(size_t size, uint64_t* value) {
    if (static_cast<size_t>(end_ - p_) < size) {
      return Fail(p_, size == 8 ? "fixed64 runs past the end of the message"
                                : "fixed32 runs past the end of the message");
    }
    *value = 0;
    std::memcpy(value, p_, size);  // little-endian, as the wire and every supported machine
    p_ += size;
    return true;
  }

  bool ReadPayload(int depth, WireField* field) {
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
        return ReadFixed(8, &field->scalar);
      case WireType::kFixed32:
        return ReadFixed(4, &field->scalar);
      case WireType::kStartGroup:
        return ReadGroup(depth, field);
      case WireType::kEndGroup:
        return Fail(p_ - 1, "group ends that never began");
    }
    return Fail(p_ - 1, "wire type is neither 0, 1, 2, 3, 4 nor 5");
  }

  bool ReadGroup(int depth, WireField* group) {
    const char* begin = p_;
    if (depth <= 0) return Fail(begin, "messages nest too deeply");
    while (p_ != end_) {
      const char* tag_begin = p_;
      WireField inner;
      if (!ReadTag(&inner)) return false;
      if (inner.type == WireType::kEndGroup) {
        if (inner.number != group->number) {
          return Fail(tag_begin, "group ends with another field's number");
        }
        group->bytes = absl::string_view(begin, tag_begin - begin);
        return true;
      }
      if (!ReadPayload(depth - 1, &inner)) return false;
    }
    return Fail(begin, "group does not end within its message");
  }

  const char* p_;
  const char* end_;
  const char* error_at_ = nullptr;
  const char* error_reason_ = nullptr;
};

}  // namespace

namespace internal {

const char* ParseLongVarint(const char* p, const char* end, uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (p == end) return nullptr;
    const uint8_t byte = static_cast<uint8_t>(*p++);
    result |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *value = result;
      return p;
    }
  }
  return nullptr;
}

}  // namespace internal

absl::Status WireError(const char* at, const char* origin, absl::string_view reason) {
  return InvalidArgument("offset ", at - origin, ": ", reason);
}

const char* WireReader::ParseField(const char* p, const char* end, int depth, WireField* field) {
  return FieldParser(p, end).Parse(depth, field);
}

absl::Status WireReader::DescribeError(const char* p, const char* end, const char* origin,
                                       int depth) {
  FieldParser parser(p, end);
  WireField field;
  parser.Parse(depth, &field);
  return WireError(parser.error_at(), origin, parser.error_reason());
}

}  // namespace meridian
