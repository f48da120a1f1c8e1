// Strings as JSON writes them.
#ifndef XLA_PROFILER_BASE_JSON_JSON_STRING_H_
#define XLA_PROFILER_BASE_JSON_JSON_STRING_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace meridian {

// Appends the text in quotes. Control characters are escaped; each byte that is not part of
// well-formed UTF-8 becomes U+FFFD, since JSON has no other way to hold it.
void AppendJsonString(absl::string_view text, std::string* out);

// Returns the text that a JSON string (with its quotes) stands for. Nullopt when it is none: no
// quotes, a bad escape, half a surrogate pair, a raw control character, or not UTF-8.
std::optional<std::string> ParseJsonString(absl::string_view quoted);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_JSON_JSON_STRING_H_
