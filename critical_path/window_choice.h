// Which part of a trace to look at: the whole of it, or some occurrences of an annotation such as
// "ProfilerStep".
#ifndef CRITICAL_PATH_WINDOW_CHOICE_H_
#define CRITICAL_PATH_WINDOW_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Both ends belong to it; from 0.
struct InstanceRange {
  int64_t first = 0;
  int64_t last = 0;
};

// Parses "3" or "1..4".
absl::StatusOr<InstanceRange> ParseInstanceRange(absl::string_view text);

struct WindowChoice {
  // Part of the annotation's name; empty for the whole trace.
  std::string annotation;
  // Which of its occurrences: the window spans them all. Occurrences beyond the last are none.
  InstanceRange instances;
};

// The names that a user could have asked for, gathered for the message that says that the one asked
// for is not there.
class KnownAnnotations {
 public:
  void Add(absl::string_view name);

  // NotFound with the names there are: no event's name contains the annotation.
  absl::Status NotFound(absl::string_view annotation) const;

 private:
  absl::flat_hash_set<std::string> names_;
  // Some of them, in the order of first use.
  std::vector<std::string> examples_;
};

// OutOfRange: the annotation occurs only so often.
absl::Status NoSuchInstance(const WindowChoice& choice, int64_t occurrences);

}  // namespace meridian

#endif  // CRITICAL_PATH_WINDOW_CHOICE_H_
