#include "xla_profiler/wire/utf8.h"

#include <cstdint>
#include <cstring>

namespace meridian {
namespace {

// Returns the length of the well-formed sequence at p that begins with a non-ASCII byte, or 0.
size_t MultiByteLength(const unsigned char* p, size_t available) {
  // The second byte's range depends on the first; that excludes overlong forms, surrogates and
  // code points beyond U+10FFFF (RFC 3629, section 4).
  size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (p[0] >= 0xC2 && p[0] <= 0xDF) {
    length = 2;
  } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
    length = 3;
    if (p[0] == 0xE0) low = 0xA0;
    if (p[0] == 0xED) high = 0x9F;
  } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
    length = 4;
    if (p[0] == 0xF0) low = 0x90;
    if (p[0] == 0xF4) high = 0x8F;
  }
  if (length == 0 || available < length || p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

size_t ValidUtf8Prefix(absl::string_view text) {
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  size_t i = 0;
  while (i < text.size()) {
    while (text.size() - i >= sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, data + i, sizeof(word));
      if ((word & 0x8080808080808080u) != 0) break;
      i += sizeof(word);
    }
    while (i < text.size() && data[i] < 0x80) ++i;
    if (i == text.size()) break;
    const size_t length = MultiByteLength(data + i, text.size() - i);
    if (length == 0) return i;
    i += length;
  }
  return i;
}

}  // namespace meridian
