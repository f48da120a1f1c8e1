#include "xla_profiler/wire/wire_reader.h"

#include "absl/strings/str_cat.h"

namespace meridian {

absl::Status WireError(const char* at, const char* origin, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("offset ", at - origin, ": ", reason));
}

absl::Status WireReader::status() const {
  if (error_reason_ == nullptr) return absl::OkStatus();
  return WireError(error_at_, origin_, error_reason_);
}

bool WireReader::Fail(const char* at, const char* reason) {
  error_at_ = at;
  error_reason_ = reason;
  return false;
}

bool WireReader::SkipGroup(uint32_t number, int depth, WireField* field) {
  const char* begin = p_;
  if (depth <= 0) return Fail(begin, "messages nest too deeply");
  while (p_ != end_) {
    const char* tag_begin = p_;
    uint32_t tag = 0;
    if (!ReadTag(&tag)) return false;
    WireField inner;
    inner.number = tag >> 3;
    inner.type = static_cast<WireType>(tag & 7);
    if (inner.type == WireType::kEndGroup) {
      if (inner.number != number) return Fail(tag_begin, "group ends with another field's number");
      field->bytes = absl::string_view(begin, tag_begin - begin);
      return true;
    }
    const bool ok = inner.type == WireType::kStartGroup ? SkipGroup(inner.number, depth - 1, &inner)
                                                        : ReadPayload(&inner);
    if (!ok) return false;
  }
  return Fail(begin, "group does not end within its message");
}

}  // namespace meridian
