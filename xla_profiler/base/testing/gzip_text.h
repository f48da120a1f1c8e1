#ifndef XLA_PROFILER_BASE_TESTING_GZIP_TEXT_H_
#define XLA_PROFILER_BASE_TESTING_GZIP_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace meridian {

// Returns the text as one gzip member.
std::string GzipText(absl::string_view text);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TESTING_GZIP_TEXT_H_
