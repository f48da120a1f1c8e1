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
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/utf8.h"

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
#pragma GCC unroll 4
  for (size_t i = 0; i < kBlockSize; i += sizeof(__m128i)) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const int equal = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_or_si128(part, masks), bytes));
    bits |= static_cast<uint64_t>(static_cast<uint32_t>(equal)) << i;
  }
  return bits;
}

// Returns the bits of the bytes from `first` to `last`.
uint64_t InRange(const char* block, uint8_t first, uint8_t last) {
  const __m128i firsts = _mm_set1_epi8(static_cast<char>(first));
  const __m128i spans = _mm_set1_epi8(static_cast<char>(last - first));
  uint64_t bits = 0;
#pragma GCC unroll 4
  for (size_t i = 0; i < kBlockSize; i += sizeof(__m128i)) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const __m128i distance = _mm_sub_epi8(part, firsts);
    const int inside = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(distance, spans), distance));
    bits |= static_cast<uint64_t>(static_cast<uint32_t>(inside)) << i;
  }
  return bits;
}

#else

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "byte 0 must be a word's lowest");
// Returns one bit for each of the flags, which are 1 or 0. Loops over bytes are what compilers turn
// into vector instructions.
uint64_t BitsOf(const std::array<uint8_t, kBlockSize>& flags) {
  std::array<uint64_t, kBlockSize / sizeof(uint64_t)> words;
  std::memcpy(words.data(), flags.data(), kBlockSize);
  uint64_t bits = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    // The multiplication moves the lowest bit of byte k to bit 56 + k; nothing collides or carries.
    bits |= (words[i] * 0x0102040810204080) >> 56 << (8 * i);
  }
  return bits;
}

uint64_t Matches(const char* block, char mask, char byte) {
  std::array<uint8_t, kBlockSize> flags;
  for (size_t i = 0; i < kBlockSize; ++i) flags[i] = (block[i] | mask) == byte;
  return BitsOf(flags);
}

uint64_t InRange(const char* block, uint8_t first, uint8_t last) {
  std::array<uint8_t, kBlockSize> flags;
  for (size_t i = 0; i < kBlockSize; ++i) {
    flags[i] = static_cast<uint8_t>(block[i] - first) <= last - first;
  }
  return BitsOf(flags);
}

#endif

bool HasHighBits(const char* block) {
  std::array<uint64_t, kBlockSize / sizeof(uint64_t)> words;
  std::memcpy(words.data(), block, kBlockSize);
  uint64_t all = 0;
  for (const uint64_t word : words) all |= word;
  return (all & 0x8080808080808080u) != 0;
}

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
  // Takes the next block. Returns the bits of the quotes that are not escaped and of what is inside
  // strings: opening quotes and contents are, closing quotes are not.
  struct Strings {
    uint64_t quotes = 0;
    uint64_t inside = 0;
  };
  Strings Next(const BlockBits& bits) {
    const uint64_t quotes = bits.quotes & ~EscapedBytes(bits.backslashes);
    const uint64_t inside = PrefixXor(quotes) ^ (in_string_ ? ~uint64_t{0} : 0);
    in_string_ = inside >> 63 != 0;
    return {quotes, inside};
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

// The bits of a class of tokens, and whether the last token of the block before was one.
class Followers {
 public:
  // Returns the bits of the tokens that come next behind these, with white space between or none.
  uint64_t Behind(uint64_t tokens, uint64_t spaces) {
    const uint64_t next = tokens << 1 | carry_;
    // Where white space begins, the sum has its first bit behind it.
    uint64_t behind = 0;
    const bool overflows = __builtin_add_overflow(next & spaces, spaces, &behind);
    carry_ = (overflows ? 1 : 0) | tokens >> 63;
    return (next | behind) & ~spaces;
  }

  void Expect() { carry_ = 1; }

 private:
  uint64_t carry_ = 0;
};

// Brackets of a block that are outside of strings, by kind, and which bytes stand in an array.
struct BlockBrackets {
  uint64_t object_begins = 0, object_ends = 0, array_begins = 0, array_ends = 0;
  uint64_t in_array = 0;
};

// Checks the grammar of a bracketed value, 64 bytes at a time: which token may follow which. That
// brackets match is known. Names are told from values by what stands before them:
//
//   {  "a"  :  1  ,  "b"  :  [  "c"  ,  2  ]  }
//      name   val    name   val val    val
class GrammarChecker {
 public:
  // A value is due at the beginning.
  GrammarChecker() { behind_separator_.Expect(); }

  // Returns the bits of bytes that may not stand where they do; not all, but the first is there.
  // Numbers and literals are not looked into: their bytes are in *scalars.
  uint64_t Errors(const char* block, const StringTracker::Strings& strings,
                  const BlockBrackets& brackets, uint64_t* scalars) {
    const uint64_t outside = ~strings.inside;
    const uint64_t controls = InRange(block, 0, 0x1F);
    const uint64_t commas = Matches(block, 0, ',') & outside;
    const uint64_t colons = Matches(block, 0, ':') & outside;
    const uint64_t spaces = (Matches(block, 0, ' ') | controls) & outside;
    const uint64_t string_ends = strings.quotes & outside;
    const uint64_t string_begins = strings.quotes & strings.inside;
    const uint64_t begins = brackets.object_begins | brackets.array_begins;
    const uint64_t ends = brackets.object_ends | brackets.array_ends;
    *scalars = outside & ~(string_ends | commas | colons | spaces | begins | ends);

    const uint64_t first_in_object = behind_object_.Behind(brackets.object_begins, spaces);
    const uint64_t next_name = behind_object_comma_.Behind(commas & ~brackets.in_array, spaces);
    const uint64_t first_in_array = behind_array_.Behind(brackets.array_begins, spaces);
    const uint64_t next_value =
        behind_separator_.Behind(colons | (commas & brackets.in_array), spaces);
    const uint64_t names = string_begins & (first_in_object | next_name);
    // Adding a string's first bit to its run of bits leaves the bit behind it.
    uint64_t name_ends = 0;
    bool in_name = __builtin_add_overflow(strings.inside, names, &name_ends);
    in_name |= __builtin_add_overflow(name_ends, in_name_ ? 1 : 0, &name_ends);
    in_name_ = in_name;
    name_ends &= string_ends;
    const uint64_t behind_name = behind_name_.Behind(name_ends, spaces);
    const uint64_t behind_value =
        behind_value_.Behind((string_ends & ~name_ends) | *scalars | ends, spaces);

    const uint64_t scalar_begins = *scalars & ~(*scalars << 1 | scalar_carry_);
    scalar_carry_ = *scalars >> 63;
    const uint64_t values = (string_begins & ~names) | scalar_begins | begins;
    return (values & ~(first_in_array | next_value)) | (commas & ~behind_value) |
           (colons & ~behind_name) | (brackets.object_ends & ~(first_in_object | behind_value)) |
           (brackets.array_ends & ~(first_in_array | behind_value)) |
           (controls & (strings.inside | ~LineSpaces(block, controls)));
  }

 private:
  // Line feeds, which many writers use, and the other control characters that are white space.
  static uint64_t LineSpaces(const char* block, uint64_t controls) {
    // Tabs and line feeds are next to each other.
    const uint64_t usual = InRange(block, '\t', '\n');
    return controls == usual ? usual : usual | Matches(block, 0, '\r');
  }

  Followers behind_object_, behind_object_comma_, behind_array_, behind_separator_, behind_name_,
      behind_value_;
  bool in_name_ = false;
  uint64_t scalar_carry_ = 0;
};

// Finds numbers and literals that have to be looked at one by one: nearly all are digits, with a
// point between them or without.
class ScalarFilter {
 public:
  // Returns bits of bytes of such scalars, at least one of each that may be wrong.
  uint64_t Suspects(const char* block, uint64_t scalars) {
    const uint64_t digits = InRange(block, '0', '9') & scalars;
    const uint64_t begins = scalars & ~(scalars << 1 | continues_);
    const uint64_t zeros = begins & Matches(block, 0, '0');
    const uint64_t points = Matches(block, 0, '.') & digits << 1 & digits >> 1;
    // "01"; what is neither a digit nor a point; what follows the digits behind a point; and what
    // is no digit in a number that began in the block before, which may have had its point there.
    const uint64_t others = scalars & ~digits;
    const uint64_t continued = scalars & ~(scalars + continues_);
    const uint64_t suspects = (zeros & digits >> 1) | (digits & zero_begins_) | (others & ~points) |
                              (((points << 1) + digits) & others) | (others & continued);
    zero_begins_ = zeros >> 63;
    continues_ = scalars >> 63;
    return suspects;
  }

 private:
  // 1 when the block before ended in a scalar, and when that was a 0 that began there.
  uint64_t continues_ = 0;
  uint64_t zero_begins_ = 0;
};

bool IsJsonScalar(absl::string_view text) {
  for (absl::string_view literal : {"true", "false", "null", "NaN", "Infinity", "-Infinity"}) {
    if (text == literal) return true;
  }
  const auto skip_digits = [&text] {
    const size_t before = text.size();
    while (!text.empty() && absl::ascii_isdigit(text[0])) text.remove_prefix(1);
    return text.size() < before;
  };
  absl::ConsumePrefix(&text, "-");
  if (absl::StartsWith(text, "0")) {
    text.remove_prefix(1);
  } else if (!skip_digits()) {
    return false;
  }
  if (absl::ConsumePrefix(&text, ".") && !skip_digits()) return false;
  if (absl::ConsumePrefix(&text, "e") || absl::ConsumePrefix(&text, "E")) {
    if (!absl::ConsumePrefix(&text, "+")) absl::ConsumePrefix(&text, "-");
    if (!skip_digits()) return false;
  }
  return text.empty();
}

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
  const bool checks_all = checks_ == JsonChecks::kAll;
  if (first == '{' || first == '[') {
    checks_all ? SkipBracketed<JsonChecks::kAll>() : SkipBracketed<JsonChecks::kStructure>();
  } else if (first == '"') {
    SkipString();
    if (checks_all) CheckString(begin, position_);
  } else {
    SkipScalar();
    if (checks_all) CheckScalar(begin);
  }
  return failed_ ? absl::string_view() : text_.substr(begin, position_ - begin);
}

bool JsonCutter::EndsScalar(uint64_t offset) const {
  return offset >= text_.size() || kEndsScalar[static_cast<uint8_t>(text_[offset])];
}

void JsonCutter::SkipScalar() {
  while (!EndsScalar(position_)) ++position_;
}

void JsonCutter::SkipString() {
  uint64_t i = position_ + 1;
#ifdef MERIDIAN_SSE2_JSON
  // Most strings are short.
  if (text_.size() - i >= sizeof(__m128i)) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text_.data() + i));
    const auto bits = [part](char byte) {
      return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(part, _mm_set1_epi8(byte))));
    };
    const uint32_t quotes = bits('"');
    // No backslash below the lowest quote.
    if (quotes != 0 && (bits('\\') & (quotes ^ (quotes - 1))) == 0) {
      position_ = i + absl::countr_zero(quotes) + 1;
      return;
    }
  }
#endif
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

// Fails unless the number or literal at `begin` is one.
void JsonCutter::CheckScalar(uint64_t begin) {
  uint64_t end = begin;
  while (!EndsScalar(end)) ++end;
  const absl::string_view scalar = text_.substr(begin, end - begin);
  if (!IsJsonScalar(scalar)) {
    FailAt(begin, scalar.empty() ? "expected a value" : "neither a number nor true, false or null");
  }
}

// Fails unless the text is UTF-8, and each backslash in it begins an escape.
void JsonCutter::CheckText(uint64_t begin, uint64_t end) {
  absl::string_view rest = text_.substr(begin, end - begin);
  const size_t valid = ValidUtf8Prefix(rest);
  if (valid < rest.size()) return FailAt(begin + valid, "text is not UTF-8");
  std::string meaning;
  for (size_t at; (at = rest.find('\\')) != absl::string_view::npos;) {
    const uint64_t offset = begin + at;
    rest.remove_prefix(at + 1);
    meaning.clear();
    if (!TakeJsonEscape(&rest, &meaning))
      return FailAt(offset, "an escape that means no character");
    begin = end - rest.size();
  }
}

// Fails unless the string, whose quotes are there, is JSON.
void JsonCutter::CheckString(uint64_t begin, uint64_t end) {
  if (failed_) return;
  for (uint64_t i = begin; i < end; ++i) {
    if (static_cast<uint8_t>(text_[i]) < 0x20) return FailAt(i, "a control character in a string");
  }
  CheckText(begin, end);
}

template <JsonChecks kChecks>
void JsonCutter::SkipBracketed() {
  constexpr bool kChecksAll = kChecks == JsonChecks::kAll;
  const uint64_t begin = position_;
  // Where the brackets that are open stand.
  std::array<uint64_t, kMaxJsonDepth> open;
  int depth = 0;
  StringTracker strings;
  GrammarChecker grammar;
  ScalarFilter filter;
  bool needs_check = false;
  for (uint64_t at = begin; at < text_.size(); at += kBlockSize) {
    char tail[kBlockSize];
    const char* block = text_.data() + at;
    if (text_.size() - at < kBlockSize) {
      std::memset(tail, ' ', kBlockSize);
      std::memcpy(tail, block, text_.size() - at);
      block = tail;
    }
    const BlockBits bits = Classify(block);
    const StringTracker::Strings in_strings = strings.Next(bits);
    uint64_t brackets = bits.brackets & ~in_strings.inside;
    BlockBrackets kinds;
    if (kChecksAll) kinds.in_array = depth > 0 && text_[open[depth - 1]] == '[' ? ~uint64_t{0} : 0;
    bool is_done = false;
    for (; brackets != 0; brackets &= brackets - 1) {
      const int i = absl::countr_zero(brackets);
      const uint64_t bit = uint64_t{1} << i;
      const char bracket = block[i];
      if (bracket == '{' || bracket == '[') {
        if (depth == kMaxJsonDepth) return FailAt(at + i, "nested too deep");
        open[depth++] = at + i;
        if (kChecksAll) (bracket == '{' ? kinds.object_begins : kinds.array_begins) |= bit;
      } else if (bracket == '}' || bracket == ']') {
        if (bracket != ClosingBracket(text_[open[depth - 1]])) {
          return FailAt(at + i, bracket == '}' ? "'}' closes a '['" : "']' closes a '{'");
        }
        if (kChecksAll) (bracket == '}' ? kinds.object_ends : kinds.array_ends) |= bit;
        if (--depth == 0) {
          position_ = at + i + 1;
          if (!kChecksAll) return;
          is_done = true;
          break;
        }
      } else {
        continue;
      }
      if (kChecksAll) {
        const uint64_t behind = ~(bit | (bit - 1));
        kinds.in_array &= ~behind;
        if (text_[open[depth - 1]] == '[') kinds.in_array |= behind;
      }
    }
    if (!kChecksAll) continue;
    uint64_t scalars = 0;
    uint64_t errors = grammar.Errors(block, in_strings, kinds, &scalars);
    uint64_t suspects = filter.Suspects(block, scalars);
    if (is_done) {
      const uint64_t inside = ~uint64_t{0} >> (63 - (position_ - 1 - at));
      errors &= inside;
      suspects &= inside;
    }
    needs_check |= bits.backslashes != 0 || HasHighBits(block);
    if ((errors | suspects) != 0 && !CheckBlock(at, in_strings.inside, errors, suspects)) return;
    if (is_done) {
      if (needs_check) CheckText(begin, position_);
      return;
    }
  }
  FailUnterminated(begin, open[depth - 1], strings.in_string());
}

// Looks at the first of the bytes that are wrong or may be. Returns false when it is wrong.
bool JsonCutter::CheckBlock(uint64_t at, uint64_t in_strings, uint64_t errors, uint64_t suspects) {
  while ((errors | suspects) != 0) {
    const int i = absl::countr_zero(errors | suspects);
    const uint64_t bit = uint64_t{1} << i;
    if ((errors & bit) != 0) {
      FailAt(at + i, (in_strings & bit) != 0 && text_[at + i] != '"'
                         ? "a control character in a string"
                         : "not expected here");
      return false;
    }
    uint64_t begin = at + i;
    while (begin > 0 && !EndsScalar(begin - 1)) --begin;
    CheckScalar(begin);
    if (failed_) return false;
    // What is left of it was looked at, too.
    for (int end = i; end < 64 && !EndsScalar(at + end); ++end) {
      suspects &= ~(uint64_t{1} << end);
    }
  }
  return true;
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
  return InvalidArgument("offset ", failure_offset_, ": ", failure_reason_);
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
    return InvalidArgument("no traceEvents found; expected a trace in Chrome's JSON format");
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
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) {
    return InvalidArgument(
        "offset 0: begins with a byte order mark, which JSON does not have; remove the first three "
        "bytes");
  }
  JsonCutter cutter(text, 0, JsonChecks::kAll);
  if (cutter.Peek() == '[') {
    RETURN_IF_ERROR(CutBareArray(cutter, on_event));
  } else {
    RETURN_IF_ERROR(CutMembers(cutter, on_event, on_member));
  }
  if (!cutter.AtEnd()) cutter.Fail("text after the end of the trace");
  return cutter.status();
}

}  // namespace meridian
