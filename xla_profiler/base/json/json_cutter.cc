#include "xla_profiler/base/json/json_cutter.h"

#include <array>
#include <cstddef>
#include <cstring>

// What other processors do is tested on this one, too.
#if defined(__SSE2__) && !defined(MERIDIAN_PORTABLE_JSON)
#define MERIDIAN_SSE2_JSON
#include <emmintrin.h>
#endif

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr size_t kBlockSize = 64;

// True for what ends a number, a literal or junk in their place.
constexpr std::array<bool, 256> kEndsScalar = [] {
  std::array<bool, 256> ends = {};
  for (const char c : {',', ':', '"', '[', ']', '{', '}', ' ', '\n', '\r', '\t'}) ends[c] = true;
  return ends;
}();

char ClosingBracket(char opening) { return opening == '{' ? '}' : ']'; }

// One bit for each byte of a block.
struct BlockBits {
  uint64_t quotes = 0;
  uint64_t backslashes = 0;
  // A superset: 'Y', 'y', '_' and DEL share the bits that are tested.
  uint64_t brackets = 0;
};

#ifdef MERIDIAN_SSE2_JSON

// Returns the bits of the bytes that equal `byte` once the bits of `mask` are set in them.
uint64_t Matches(const char* block, char mask, char byte) {
  const __m128i masks = _mm_set1_epi8(mask);
  const __m128i bytes = _mm_set1_epi8(byte);
  uint64_t bits = 0;
  for (size_t i = 0; i < kBlockSize; i += sizeof(__m128i)) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const int equal = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_or_si128(part, masks), bytes));
    bits |= static_cast<uint64_t>(static_cast<uint32_t>(equal)) << i;
  }
  return bits;
}

#else

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "byte 0 must be a word's lowest");
uint64_t Matches(const char* block, char mask, char byte) {
  // For each byte 1 or 0. Loops over it are what compilers turn into vector instructions.
  std::array<uint8_t, kBlockSize> flags;
  for (size_t i = 0; i < kBlockSize; ++i) flags[i] = (block[i] | mask) == byte;
  std::array<uint64_t, kBlockSize / sizeof(uint64_t)> words;
  std::memcpy(words.data(), flags.data(), kBlockSize);
  uint64_t bits = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    // The multiplication moves the lowest bit of byte k to bit 56 + k; nothing collides or carries.
    bits |= (words[i] * 0x0102040810204080) >> 56 << (8 * i);
  }
  return bits;
}

#endif

BlockBits Classify(const char* block) {
  // [ ] { } are 0x5B 0x5D 0x7B 0x7D: equal but for the bits 0x26.
  return {Matches(block, 0, '"'), Matches(block, 0, '\\'), Matches(block, 0x26, 0x7F)};
}

// Each bit becomes the parity of the bits up to and including itself.
uint64_t PrefixXor(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

// Tells strings from the rest, block after block.
class StringTracker {
 public:
  // Returns the bits of the block's brackets that are outside of strings.
  uint64_t BracketsOutside(const BlockBits& bits) {
    const uint64_t quotes = bits.quotes & ~EscapedBytes(bits.backslashes);
    // Opening quotes and contents are inside, closing quotes are not.
    const uint64_t inside = PrefixXor(quotes) ^ (in_string_ ? ~uint64_t{0} : 0);
    in_string_ = inside >> 63 != 0;
    return bits.brackets & ~inside;
  }

  bool in_string() const { return in_string_; }

 private:
  // Returns the bits of the bytes that a backslash escapes.
  uint64_t EscapedBytes(uint64_t backslashes) {
    uint64_t escaped = first_byte_escaped_ ? 1 : 0;
    backslashes &= ~escaped;
    first_byte_escaped_ = false;
    while (backslashes != 0) {
      const int at = absl::countr_zero(backslashes);
      if (at == 63) {
        first_byte_escaped_ = true;
        break;
      }
      escaped |= uint64_t{2} << at;
      // The escaped byte may be a backslash itself.
      backslashes &= ~(uint64_t{3} << at);
    }
    return escaped;
  }

  bool in_string_ = false;
  bool first_byte_escaped_ = false;
};

}  // namespace

void JsonCutter::Enter(char bracket) {
  if (failed_) return;
  if (Peek() != bracket) return Fail(bracket == '{' ? "expected an object" : "expected an array");
  ++position_;
  just_entered_ = true;
}

bool JsonCutter::Next(char closing_bracket) {
  if (failed_) return false;
  const char next = Peek();
  if (next == closing_bracket) {
    ++position_;
    just_entered_ = false;
    return false;
  }
  if (just_entered_) {
    just_entered_ = false;
    return true;
  }
  if (next != ',') {
    Fail(closing_bracket == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    return false;
  }
  ++position_;
  return true;
}

bool JsonCutter::NextMember(absl::string_view* key) {
  if (!Next('}')) return false;
  if (Peek() != '"') {
    Fail("expected a member's name in quotes");
    return false;
  }
  const absl::string_view quoted = CutValue();
  if (failed_) return false;
  *key = quoted.substr(1, quoted.size() - 2);
  if (Peek() != ':') {
    Fail("expected ':'");
    return false;
  }
  ++position_;
  return true;
}

bool JsonCutter::NextElement() { return Next(']'); }

absl::string_view JsonCutter::CutValue() {
  if (failed_) return {};
  const char first = Peek();
  const uint64_t begin = position_;
  if (first == '{' || first == '[') {
    SkipBracketed();
  } else if (first == '"') {
    SkipString();
  } else {
    SkipScalar();
  }
  return failed_ ? absl::string_view() : text_.substr(begin, position_ - begin);
}

void JsonCutter::SkipScalar() {
  while (position_ < text_.size() && !kEndsScalar[static_cast<uint8_t>(text_[position_])]) {
    ++position_;
  }
}

void JsonCutter::SkipString() {
  uint64_t i = position_ + 1;
  // Most strings have no backslash before their end.
  const size_t end = text_.find('"', i);
  if (end != absl::string_view::npos && text_[end - 1] != '\\') {
    position_ = end + 1;
    return;
  }
  for (; i < text_.size(); ++i) {
    if (text_[i] == '"') {
      position_ = i + 1;
      return;
    }
    if (text_[i] == '\\') ++i;
  }
  Fail("string without end");
}

void JsonCutter::SkipBracketed() {
  const uint64_t begin = position_;
  // Where the brackets that are open stand.
  std::array<uint64_t, kMaxJsonDepth> open;
  int depth = 0;
  StringTracker strings;
  for (uint64_t at = begin; at < text_.size(); at += kBlockSize) {
    char tail[kBlockSize];
    const char* block = text_.data() + at;
    if (text_.size() - at < kBlockSize) {
      std::memset(tail, ' ', kBlockSize);
      std::memcpy(tail, block, text_.size() - at);
      block = tail;
    }
    uint64_t brackets = strings.BracketsOutside(Classify(block));
    for (; brackets != 0; brackets &= brackets - 1) {
      const int i = absl::countr_zero(brackets);
      const char bracket = block[i];
      if (bracket == '{' || bracket == '[') {
        if (depth == kMaxJsonDepth) return FailAt(at + i, "nested too deep");
        open[depth++] = at + i;
      } else if (bracket == '}' || bracket == ']') {
        if (bracket != ClosingBracket(text_[open[depth - 1]])) {
          return FailAt(at + i, bracket == '}' ? "'}' closes a '['" : "']' closes a '{'");
        }
        if (--depth == 0) {
          position_ = at + i + 1;
          return;
        }
      }
    }
  }
  FailUnterminated(begin, open[depth - 1], strings.in_string());
}

void JsonCutter::FailUnterminated(uint64_t begin, uint64_t innermost_bracket, bool in_string) {
  for (position_ = begin; in_string && !failed_ && position_ < text_.size();) {
    if (text_[position_] == '"') {
      SkipString();
    } else {
      ++position_;
    }
  }
  // Unless a string was found to be the reason.
  FailAt(innermost_bracket, "bracket without end");
}

void JsonCutter::FailAt(uint64_t offset, absl::string_view reason) {
  if (failed_) return;
  failed_ = true;
  failure_offset_ = offset;
  failure_reason_ = reason;
}

absl::Status JsonCutter::status() const {
  if (!failed_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("offset ", failure_offset_, ": ", failure_reason_));
}

namespace {

absl::Status CutMembers(JsonCutter& cutter, TraceEventCallback on_event,
                        TraceMemberCallback on_member) {
  bool has_events = false;
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    if (key != "traceEvents") {
      const absl::string_view value = cutter.CutValue();
      RETURN_IF_ERROR(cutter.status());
      RETURN_IF_ERROR(on_member(key, value));
      continue;
    }
    has_events = true;
    cutter.Enter('[');
    while (cutter.NextElement()) {
      const absl::string_view element = cutter.CutValue();
      RETURN_IF_ERROR(cutter.status());
      RETURN_IF_ERROR(on_event(element));
    }
  }
  RETURN_IF_ERROR(cutter.status());
  if (!has_events) {
    return absl::InvalidArgumentError(
        "no traceEvents found; expected a trace in Chrome's JSON format");
  }
  return absl::OkStatus();
}

absl::Status CutBareArray(JsonCutter& cutter, TraceEventCallback on_event) {
  cutter.Enter('[');
  // The text may end behind an element or behind its comma.
  while (!cutter.AtEnd() && cutter.NextElement() && !cutter.AtEnd()) {
    const absl::string_view element = cutter.CutValue();
    RETURN_IF_ERROR(cutter.status());
    RETURN_IF_ERROR(on_event(element));
  }
  return cutter.status();
}

}  // namespace

absl::Status CutTrace(absl::string_view text, TraceEventCallback on_event,
                      TraceMemberCallback on_member) {
  JsonCutter cutter(text);
  if (cutter.Peek() == '[') {
    RETURN_IF_ERROR(CutBareArray(cutter, on_event));
  } else {
    RETURN_IF_ERROR(CutMembers(cutter, on_event, on_member));
  }
  if (!cutter.AtEnd()) cutter.Fail("text after the end of the trace");
  return cutter.status();
}

}  // namespace meridian
