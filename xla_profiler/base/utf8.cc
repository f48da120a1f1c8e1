#include "xla_profiler/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace meridian {
namespace {

// Returns how many bytes a sequence with this first byte has; 0 if none starts so.
size_t SequenceLength(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC0) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  return first < 0xF8 ? 4 : 0;
}

// Returns the code point of the first `length` bytes, or kNotUtf8.
char32_t Decode(absl::string_view text, size_t length) {
  // The smallest value that needs so many bytes.
  static constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (length == 0 || length > text.size()) return kNotUtf8;
  const uint8_t first = text[0];
  char32_t value = length == 1 ? first : first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    const uint8_t next = text[i];
    if ((next & 0xC0) != 0x80) return kNotUtf8;
    value = value << 6 | (next & 0x3F);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < kSmallest[length] || value > 0x10FFFF || surrogate ? kNotUtf8 : value;
}

}  // namespace

char32_t ConsumeCodePoint(absl::string_view* text) {
  const size_t length = SequenceLength(text->front());
  const char32_t value = Decode(*text, length);
  text->remove_prefix(value == kNotUtf8 ? 1 : length);
  return value;
}

size_t ValidUtf8Prefix(absl::string_view text) {
  absl::string_view rest = text;
  while (!rest.empty()) {
    // Eight ASCII bytes at a time, while there are that many.
    while (rest.size() >= sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, rest.data(), sizeof(word));
      if ((word & 0x8080808080808080u) != 0) break;
      rest.remove_prefix(sizeof(word));
    }
    while (!rest.empty() && static_cast<unsigned char>(rest.front()) < 0x80) rest.remove_prefix(1);
    if (rest.empty()) break;
    const size_t before = rest.size();
    if (ConsumeCodePoint(&rest) == kNotUtf8) return text.size() - before;
  }
  return text.size();
}

}  // namespace meridian
