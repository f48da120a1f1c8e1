#include "xla_profiler/base/json/json_value.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/utf8.h"

namespace meridian {
namespace {

// Returns the text of a number that may stand in quotes.
absl::string_view NumberText(absl::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
  return text.substr(1, text.size() - 2);
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

}  // namespace

bool TakeJsonEscape(absl::string_view* text, std::string* out) {
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

JsonValue JsonValue::Find(absl::string_view key) const {
  JsonCutter cutter(text_);
  JsonValue found;
  cutter.Enter('{');
  for (absl::string_view name; cutter.NextMember(&name);) {
    const JsonValue value(cutter.CutValue());
    if (name == key) found = value;
  }
  return cutter.status().ok() ? found : JsonValue();
}

std::vector<JsonValue> JsonValue::Elements(size_t most) const {
  std::vector<JsonValue> elements;
  JsonCutter cutter(text_);
  cutter.Enter('[');
  while (elements.size() < most && cutter.NextElement()) elements.emplace_back(cutter.CutValue());
  return elements;
}

std::optional<int64_t> JsonValue::AsInt64() const {
  int64_t value = 0;
  return absl::SimpleAtoi(NumberText(text_), &value) ? std::optional<int64_t>(value) : std::nullopt;
}

std::optional<uint64_t> JsonValue::AsUint64() const {
  uint64_t value = 0;
  return absl::SimpleAtoi(NumberText(text_), &value) ? std::optional<uint64_t>(value)
                                                     : std::nullopt;
}

std::optional<double> JsonValue::AsDouble() const {
  double value = 0;
  return absl::SimpleAtod(NumberText(text_), &value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<std::string> JsonValue::AsString() const { return ParseJsonString(text_); }

std::optional<std::vector<int64_t>> JsonValue::AsInt64Array() const {
  JsonCutter cutter(text_);
  std::vector<int64_t> values;
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const std::optional<int64_t> value = JsonValue(cutter.CutValue()).AsInt64();
    if (!value.has_value()) return std::nullopt;
    values.push_back(*value);
  }
  if (!cutter.status().ok()) return std::nullopt;
  return values;
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
      if (!TakeJsonEscape(&text, &out)) return std::nullopt;
    } else if (c == '"' || static_cast<uint8_t>(c) < 0x20) {
      return std::nullopt;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace meridian
