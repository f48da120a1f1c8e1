#include "report/html_text.h"

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/utf8.h"

namespace meridian {
namespace {

constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

bool IsIn(char32_t c, char32_t first, char32_t last) { return first <= c && c <= last; }

// Code points that HTML forbids, or that act on what stands around them.
bool IsHarmful(char32_t c) {
  return c < 0x20 || IsIn(c, 0x7F, 0x9F) || IsIn(c, 0x200E, 0x200F) || IsIn(c, 0x2028, 0x202E) ||
         IsIn(c, 0x2066, 0x2069) || IsIn(c, 0xFDD0, 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

absl::string_view EntityOf(char32_t c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    case '\n':
    case '\r':
    case '\t':
      return " ";
    default:
      return "";
  }
}

}  // namespace

std::string HtmlEscape(absl::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const absl::string_view before = text;
    const char32_t c = ConsumeCodePoint(&text);
    const absl::string_view entity = EntityOf(c);
    if (!entity.empty()) {
      absl::StrAppend(&escaped, entity);
    } else if (c == kNotUtf8 || IsHarmful(c)) {
      absl::StrAppend(&escaped, kReplacementCharacter);
    } else {
      absl::StrAppend(&escaped, before.substr(0, before.size() - text.size()));
    }
  }
  return escaped;
}

}  // namespace meridian
