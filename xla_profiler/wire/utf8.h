#ifndef XLA_PROFILER_WIRE_UTF8_H_
#define XLA_PROFILER_WIRE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace meridian {

// Returns how many leading bytes of text are well-formed UTF-8 (RFC 3629: no overlong forms, no
// surrogates, nothing beyond U+10FFFF); text.size() when all are. ASCII runs are cheap.
size_t ValidUtf8Prefix(absl::string_view text);

inline bool IsValidUtf8(absl::string_view text) { return ValidUtf8Prefix(text) == text.size(); }

}  // namespace meridian

#endif  // XLA_PROFILER_WIRE_UTF8_H_
