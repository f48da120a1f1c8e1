// SPDX-License-Identifier: Apache-2.0
// Values as bytes for another process of the same program: nothing in them says what they are, and
// they are no file format. One function serves both directions:
//
//   void Pack(PackedBytes& bytes, Point& point) { bytes(point.x, point.y); }
//
//   PackedBytes packed;             PackedBytes received(bytes);
//   packed(point);                  received(point);
//   Send(packed.bytes());           RETURN_IF_ERROR(received.Finish());
#ifndef XLA_PROFILER_BASE_WIRE_PACKED_BYTES_H_
#define XLA_PROFILER_BASE_WIRE_PACKED_BYTES_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/base/wire/wire_writer.h"

namespace meridian {

class PackedBytes {
 public:
  // Packs.
  PackedBytes() = default;
  // Unpacks bytes that the caller keeps alive.
  explicit PackedBytes(absl::string_view packed) : unpacks_(true), rest_(packed) {}

  // Appends the values, or sets them to what comes next. Values of bytes that were cut short are
  // what they were, or empty; Finish tells.
  template <typename... Values>
  void operator()(Values&... values) {
    (Value(values), ...);
  }

  // What was packed.
  const std::string& bytes() const { return bytes_; }

  // Internal when the bytes were not exactly those of the values.
  absl::Status Finish() const {
    if (!failed_ && rest_.empty()) return absl::OkStatus();
    return absl::InternalError("another process sent something else than was expected");
  }

 private:
  template <typename Type>
  void Value(Type& value) {
    if constexpr (std::is_integral_v<Type> || std::is_enum_v<Type>) {
      // Small numbers of either sign are short.
      const auto number = static_cast<int64_t>(value);
      uint64_t bits = (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63);
      Number(bits);
      if (unpacks_) value = static_cast<Type>((bits >> 1) ^ (~(bits & 1) + 1));
    } else {
      Pack(*this, value);
    }
  }

  void Value(double& value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    Number(bits);
    std::memcpy(&value, &bits, sizeof(bits));
  }

  void Value(absl::uint128& value) {
    uint64_t high = absl::Uint128High64(value);
    uint64_t low = absl::Uint128Low64(value);
    (*this)(high, low);
    value = absl::MakeUint128(high, low);
  }

  void Value(std::string& value) {
    const size_t size = Size(value.size());
    if (unpacks_) {
      value = std::string(rest_.substr(0, size));
      rest_.remove_prefix(size);
    } else {
      bytes_ += value;
    }
  }

  template <typename Type>
  void Value(std::vector<Type>& values) {
    const size_t size = Size(values.size());
    if (unpacks_) values.resize(size);
    for (Type& value : values) Value(value);
  }

  template <typename Type>
  void Value(std::optional<Type>& value) {
    bool has_value = value.has_value();
    Value(has_value);
    if (!has_value) {
      value.reset();
      return;
    }
    if (unpacks_) value.emplace();
    Value(*value);
  }

  // Everything takes a byte at least, so that a size is never more than what is left.
  size_t Size(size_t size) {
    uint64_t number = size;
    Number(number);
    if (unpacks_ && number > rest_.size()) {
      failed_ = true;
      number = 0;
    }
    return number;
  }

  void Number(uint64_t& number) {
    if (!unpacks_) {
      char buffer[kMaxVarintBytes];
      bytes_.append(buffer, EncodeVarint(number, buffer) - buffer);
      return;
    }
    const char* next =
        failed_ ? nullptr : ParseVarint(rest_.data(), rest_.data() + rest_.size(), &number);
    failed_ = next == nullptr;
    if (!failed_) rest_.remove_prefix(next - rest_.data());
  }

  const bool unpacks_ = false;
  std::string bytes_;
  absl::string_view rest_;
  bool failed_ = false;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_WIRE_PACKED_BYTES_H_
