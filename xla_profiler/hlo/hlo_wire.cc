#include "xla_profiler/hlo/hlo_wire.h"

#include "xla_profiler/base/utf8.h"

namespace meridian {

absl::Status ReadHloText(const WireField& field, const char* origin, absl::string_view* text) {
  const size_t valid = ValidUtf8Prefix(field.bytes);
  if (valid != field.bytes.size()) {
    return WireError(field.bytes.data() + valid, origin, "text is not UTF-8");
  }
  *text = field.bytes;
  return absl::OkStatus();
}

absl::Status AppendIntegers(const WireField& field, const char* origin,
                            std::vector<int64_t>* integers) {
  if (field.type != WireType::kVarint && field.type != WireType::kBytes) return absl::OkStatus();
  if (!ForEachRepeatedVarint(field, [&](int64_t value) { integers->push_back(value); })) {
    return WireError(field.bytes.data(), origin, "packed integers are malformed");
  }
  return absl::OkStatus();
}

}  // namespace meridian
