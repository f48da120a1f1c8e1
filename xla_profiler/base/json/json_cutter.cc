#include "xla_profiler/base/json/json_cutter.h"

#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/utf8.h"

namespace meridian {
namespace {

using Bytes = std::array<bool, 256>;

// True for what ends a number, a literal or junk in their place.
constexpr Bytes kEndsScalar = [] {
  Bytes ends = {};
  for (const char c : {',', ':', '"', '[', ']', '{', '}', ' ', '\n', '\r', '\t'}) ends[c] = true;
  return ends;
}();

// True for brackets and quotes.
constexpr Bytes kIsStructure = [] {
  Bytes is_structure = {};
  for (const char c : {'"', '[', ']', '{', '}'}) is_structure[c] = true;
  return is_structure;
}();

// True for what ends a string or needs a look in it: all but printable ASCII.
constexpr Bytes kEndsPlainText = [] {
  Bytes ends = {};
  for (int c = 0; c < 256; ++c) ends[c] = c < 0x20 || c >= 0x80 || c == '"' || c == '\\';
  return ends;
}();

// Returns the place of the first such byte from `begin` on, or the text's size.
uint64_t FirstOf(const Bytes& bytes, absl::string_view text, uint64_t begin) {
  while (begin < text.size() && !bytes[static_cast<uint8_t>(text[begin])]) ++begin;
  return begin;
}

bool IsOpeningBracket(char c) { return c == '{' || c == '['; }

bool IsJsonScalar(absl::string_view whole) {
  absl::string_view text = whole;
  const auto skip_digits = [&text] {
    const size_t before = text.size();
    while (!text.empty() && absl::ascii_isdigit(text[0])) text.remove_prefix(1);
    return text.size() < before;
  };
  absl::ConsumePrefix(&text, "-");
  if (absl::StartsWith(text, "0")) {
    text.remove_prefix(1);
  } else if (!skip_digits()) {
    for (absl::string_view literal : {"true", "false", "null", "NaN", "Infinity", "-Infinity"}) {
      if (whole == literal) return true;
    }
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
  if (IsOpeningBracket(first)) {
    checks_all ? CheckBracketed() : SkipBracketed();
  } else if (first == '"') {
    checks_all ? CheckString() : SkipString();
  } else {
    position_ = FirstOf(kEndsScalar, text_, position_);
    const absl::string_view scalar = text_.substr(begin, position_ - begin);
    if (checks_all && !IsJsonScalar(scalar)) {
      FailAt(begin,
             scalar.empty() ? "expected a value" : "neither a number nor true, false or null");
    }
  }
  return failed_ ? absl::string_view() : text_.substr(begin, position_ - begin);
}

void JsonCutter::SkipString() {
  // Most strings have no backslash before their end.
  uint64_t i = position_ + 1;
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

void JsonCutter::CheckString() {
  std::string meaning;
  uint64_t i = position_ + 1;
  while (true) {
    i = FirstOf(kEndsPlainText, text_, i);
    if (i == text_.size()) return Fail("string without end");
    absl::string_view rest = text_.substr(i);
    if (rest[0] == '"') break;
    if (static_cast<uint8_t>(rest[0]) < 0x20) return FailAt(i, "a control character in a string");
    if (rest[0] == '\\') {
      rest.remove_prefix(1);
      if (rest.empty()) return Fail("string without end");
      if (!TakeJsonEscape(&rest, &meaning)) return FailAt(i, "an escape that means no character");
    } else if (ConsumeCodePoint(&rest) == kNotUtf8) {
      return FailAt(i, "text is not UTF-8");
    }
    i = text_.size() - rest.size();
  }
  position_ = i + 1;
}

void JsonCutter::SkipBracketed() {
  std::array<char, kMaxJsonDepth> open;
  const uint64_t begin = position_;
  int depth = 0;
  do {
    position_ = FirstOf(kIsStructure, text_, position_);
    if (position_ == text_.size()) return FailAt(begin, "bracket without end");
    const char c = text_[position_];
    if (c == '"') {
      SkipString();
      if (failed_) return;
      continue;
    }
    if (IsOpeningBracket(c)) {
      if (depth == kMaxJsonDepth) return Fail("nested too deep");
      open[depth++] = c;
    } else if (open[--depth] != (c == '}' ? '{' : '[')) {
      return Fail("brackets that do not match");
    }
    ++position_;
  } while (depth > 0);
}

void JsonCutter::CheckBracketed() {
  // Where the brackets that are open stand.
  std::array<uint64_t, kMaxJsonDepth> open;
  int depth = 0;
  const auto is_next = [&] {
    absl::string_view key;
    return text_[open[depth - 1]] == '{' ? NextMember(&key) : NextElement();
  };
  do {
    const char first = Peek();
    if (!IsOpeningBracket(first)) {
      CutValue();
    } else if (depth == kMaxJsonDepth) {
      Fail("nested too deep");
    } else {
      open[depth++] = position_;
      Enter(first);
    }
    while (!failed_ && depth > 0 && !is_next()) depth -= failed_ ? 0 : 1;
  } while (!failed_ && depth > 0);
  if (failed_ && failure_offset_ == text_.size()) {
    failure_offset_ = open[depth - 1];
    failure_reason_ = "bracket without end";
  }
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
  ForgettingWalk walk(text);
  const auto on_each_event = [&](absl::string_view element) {
    walk.Reach(element.data());
    return on_event(element);
  };
  JsonCutter cutter(text, 0, JsonChecks::kAll);
  if (cutter.Peek() == '[') {
    RETURN_IF_ERROR(CutBareArray(cutter, on_each_event));
  } else {
    RETURN_IF_ERROR(CutMembers(cutter, on_each_event, on_member));
  }
  if (!cutter.AtEnd()) cutter.Fail("text after the end of the trace");
  ForgetMapped(text);
  return cutter.status();
}

}  // namespace meridian
