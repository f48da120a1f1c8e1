#include "xla_profiler/base/json/json_writer.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
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

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto continuation = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F)));
  };
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out->push_back(static_cast<char>(0xC0 | code_point >> 6));
    continuation(0);
  } else if (code_point < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | code_point >> 12));
    continuation(6);
    continuation(0);
  } else {
    out->push_back(static_cast<char>(0xF0 | code_point >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

// Takes "XXXX" off the front.
bool TakeHex4(absl::string_view* text, uint32_t* value) {
  if (text->size() < 4) return false;
  *value = 0;
  for (char c : text->substr(0, 4)) {
    if (!absl::ascii_isxdigit(c)) return false;
    *value = *value * 16 + (absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10);
  }
  text->remove_prefix(4);
  return true;
}

// Takes what follows "\u" off the front; characters beyond U+FFFF are written as "XXXX\uXXXX".
bool TakeCodePoint(absl::string_view* text, uint32_t* code_point) {
  if (!TakeHex4(text, code_point)) return false;
  if (*code_point < 0xD800 || *code_point > 0xDFFF) return true;
  if (*code_point > 0xDBFF || text->substr(0, 2) != "\\u") return false;
  text->remove_prefix(2);
  uint32_t low = 0;
  if (!TakeHex4(text, &low) || low < 0xDC00 || low > 0xDFFF) return false;
  *code_point = 0x10000 + ((*code_point - 0xD800) << 10) + (low - 0xDC00);
  return true;
}

// Takes what follows a backslash off the front.
bool TakeEscape(absl::string_view* text, std::string* out) {
  constexpr absl::string_view kEscapes = "\"\\/bfnrt";
  constexpr absl::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (text->empty()) return false;
  const char escape = text->front();
  text->remove_prefix(1);
  if (escape == 'u') {
    uint32_t code_point = 0;
    if (!TakeCodePoint(text, &code_point)) return false;
    AppendUtf8(code_point, out);
    return true;
  }
  const size_t index = kEscapes.find(escape);
  if (index == absl::string_view::npos) return false;
  out->push_back(kMeanings[index]);
  return true;
}

}  // namespace

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
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

std::optional<std::string> ParseJsonString(absl::string_view quoted) {
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"') return std::nullopt;
  absl::string_view text = quoted.substr(1, quoted.size() - 2);
  if (!IsValidUtf8(text)) return std::nullopt;
  std::string out;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      if (!TakeEscape(&text, &out)) return std::nullopt;
    } else if (MustBeEscaped(c)) {
      return std::nullopt;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace meridian
