// SPDX-License-Identifier: Apache-2.0
// UTF-8 text that may be broken.
#ifndef XLA_PROFILER_BASE_UTF8_H_
#define XLA_PROFILER_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace meridian {

// Stands for a byte that starts no valid sequence.
inline constexpr char32_t kNotUtf8 = 0xFFFFFFFF;

// Removes the first code point from the text, which must not be empty, and returns it; or removes
// one byte and returns kNotUtf8. Overlong forms, surrogates and values past U+10FFFF are not UTF-8.
char32_t ConsumeCodePoint(absl::string_view* text);

// Returns how many leading bytes are valid; text.size() when all are. ASCII runs are cheap.
size_t ValidUtf8Prefix(absl::string_view text);

inline bool IsValidUtf8(absl::string_view text) { return ValidUtf8Prefix(text) == text.size(); }

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_UTF8_H_
