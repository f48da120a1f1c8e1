// SPDX-License-Identifier: Apache-2.0
// Encodes protobuf's wire format. Lengths precede content, so whoever nests messages measures first
// and writes second: both with the same code, once into a CountingOutput, once into a StringOutput
// or a file.
#ifndef XLA_PROFILER_BASE_WIRE_WIRE_WRITER_H_
#define XLA_PROFILER_BASE_WIRE_WIRE_WRITER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/numeric/bits.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/wire/wire_reader.h"

namespace meridian {

inline constexpr int kMaxVarintBytes = 10;

// Returns the number of bytes of the shortest encoding: 7 bits a byte.
inline int VarintSize(uint64_t value) { return (70 - absl::countl_zero(value | 1)) / 7; }

// Writes the shortest encoding to p, which has room for kMaxVarintBytes; returns one past the end.
inline char* EncodeVarint(uint64_t value, char* p) {
  while (value >= 0x80) {
    *p++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *p++ = static_cast<char>(value);
  return p;
}

inline constexpr uint32_t MakeTag(uint32_t number, WireType type) {
  return number << 3 | static_cast<uint32_t>(type);
}

// Adds up how many bytes would be written.
class CountingOutput {
 public:
  void Raw(absl::string_view bytes) { size_ += bytes.size(); }
  void Varint(uint64_t value) { size_ += VarintSize(value); }
  // For content whose size is known.
  void Add(uint64_t size) { size_ += size; }
  uint64_t size() const { return size_; }

 private:
  uint64_t size_ = 0;
};

// Appends to a string.
class StringOutput {
 public:
  explicit StringOutput(std::string* out) : out_(out) {}
  void Raw(absl::string_view bytes) { out_->append(bytes.data(), bytes.size()); }
  void Varint(uint64_t value) {
    char buffer[kMaxVarintBytes];
    out_->append(buffer, EncodeVarint(value, buffer) - buffer);
  }

 private:
  std::string* out_;
};

// Appends to memory of its own, at half of what a string costs for many small pieces.
class WireBuffer {
 public:
  void Raw(absl::string_view bytes) {
    if (bytes.empty()) return;
    Reserve(bytes.size());
    std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void Varint(uint64_t value) {
    Reserve(kMaxVarintBytes);
    size_ = EncodeVarint(value, data_.get() + size_) - data_.get();
  }

  // Makes room for so many bytes more.
  void Reserve(size_t bytes) {
    if (ABSL_PREDICT_FALSE(capacity_ - size_ < bytes)) Grow(bytes);
  }
  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  // Valid until something is appended.
  absl::string_view bytes() const { return {data_.get(), size_}; }

 private:
  ABSL_ATTRIBUTE_NOINLINE void Grow(size_t bytes) {
    capacity_ = std::max(2 * capacity_, size_ + std::max(bytes, kLeastCapacity));
    std::unique_ptr<char[]> grown(new char[capacity_]);
    if (size_ > 0) std::memcpy(grown.get(), data_.get(), size_);
    data_ = std::move(grown);
  }

  static constexpr size_t kLeastCapacity = 64;

  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

template <typename Output>
void WriteVarintField(uint32_t number, uint64_t value, Output* output) {
  output->Varint(MakeTag(number, WireType::kVarint));
  output->Varint(value);
}

template <typename Output>
void WriteFixed64Field(uint32_t number, uint64_t value, Output* output) {
  output->Varint(MakeTag(number, WireType::kFixed64));
  char bytes[sizeof(value)];
  for (char& byte : bytes) {
    byte = static_cast<char>(value);
    value >>= 8;
  }
  output->Raw(absl::string_view(bytes, sizeof(bytes)));
}

// Tag and length; the caller writes `size` bytes next.
template <typename Output>
void WriteBytesHeader(uint32_t number, uint64_t size, Output* output) {
  output->Varint(MakeTag(number, WireType::kBytes));
  output->Varint(size);
}

template <typename Output>
void WriteBytesField(uint32_t number, absl::string_view bytes, Output* output) {
  WriteBytesHeader(number, bytes.size(), output);
  output->Raw(bytes);
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_WIRE_WIRE_WRITER_H_
