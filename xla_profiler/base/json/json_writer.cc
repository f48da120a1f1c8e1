#include "xla_profiler/base/json/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "xla_profiler/base/utf8.h"

namespace meridian {
namespace {

constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

bool MustBeEscaped(char c) { return c == '"' || c == '\\' || static_cast<uint8_t>(c) < 0x20; }

void AppendEscaped(char c, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  out->push_back('\\');
  switch (c) {
    case '"':
    case '\\':
      return out->push_back(c);
    case '\n':
      return out->push_back('n');
    case '\t':
      return out->push_back('t');
    case '\r':
      return out->push_back('r');
    default:
      out->append("u00");
      out->push_back(kHex[c >> 4]);
      out->push_back(kHex[c & 0xF]);
  }
}

// Returns how many bytes at the front need neither escapes nor a look at their UTF-8, eight at a time.
size_t PlainPrefix(absl::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  constexpr uint64_t kHighs = 0x8080808080808080u;
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= text.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof(word));
    // The high bit of a byte, if it is 0 or less than the number that is subtracted.
    const uint64_t quote = word ^ kOnes * '"', backslash = word ^ kOnes * '\\';
    const uint64_t special = word | (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes);
    if ((special & kHighs) != 0) break;
  }
  while (at < text.size() && static_cast<int8_t>(text[at]) >= 0x20 && !MustBeEscaped(text[at]))
    ++at;
  return at;
}

void AppendWellFormed(absl::string_view text, std::string* out) {
  size_t done = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!MustBeEscaped(text[i])) continue;
    out->append(text.data() + done, i - done);
    AppendEscaped(text[i], out);
    done = i + 1;
  }
  out->append(text.data() + done, text.size() - done);
}

}  // namespace

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  const size_t plain = PlainPrefix(text);
  out->append(text.data(), plain);
  text.remove_prefix(plain);
  while (!text.empty()) {
    const size_t valid = ValidUtf8Prefix(text);
    AppendWellFormed(text.substr(0, valid), out);
    text.remove_prefix(valid);
    if (text.empty()) break;
    out->append(kReplacementCharacter.data(), kReplacementCharacter.size());
    text.remove_prefix(1);
  }
  out->push_back('"');
}

void AppendJsonNumber(double number, std::string* out) {
  if (std::isnan(number)) return AppendJsonString("NaN", out);
  if (std::isinf(number)) return AppendJsonString(number < 0 ? "-Infinity" : "Infinity", out);
  char digits[32];
  const std::to_chars_result result = std::to_chars(digits, digits + sizeof(digits), number);
  out->append(digits, result.ptr - digits);
}

void JsonWriter::Begin(char bracket, JsonLayout layout) {
  BeginValue();
  out_.push_back(bracket);
  levels_.push_back({layout, false});
  if (layout == JsonLayout::kIndented) ++indentation_;
}

void JsonWriter::ContinueObject(absl::string_view text) {
  Raw(text);
  levels_.push_back({JsonLayout::kInline, true});
}

void JsonWriter::End(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.layout == JsonLayout::kIndented) --indentation_;
  if (level.layout != JsonLayout::kInline) BreakLine();
  out_.push_back(bracket);
}

void JsonWriter::Key(absl::string_view key) {
  BeginValue();
  AppendJsonString(key, &out_);
  absl::StrAppend(&out_, is_spaced_ ? ": " : ":");
  is_behind_key_ = true;
}

void JsonWriter::BeginValue() {
  if (is_behind_key_ || levels_.empty()) {
    is_behind_key_ = false;
    return;
  }
  Level& level = levels_.back();
  if (level.has_items) out_.push_back(',');
  if (level.layout != JsonLayout::kInline) {
    BreakLine();
  } else if (level.has_items && is_spaced_) {
    out_.push_back(' ');
  }
  level.has_items = true;
}

void JsonWriter::BreakLine() {
  out_.push_back('\n');
  out_.append(indentation_width_ * indentation_, ' ');
}

}  // namespace meridian
