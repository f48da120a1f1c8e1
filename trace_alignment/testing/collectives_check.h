// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as the profile of one node, matches its collectives with those of a good profile,
// and holds the result against what must be true of every result. Used on damaged profiles and by
// the fuzzer.
#ifndef TRACE_ALIGNMENT_TESTING_COLLECTIVES_CHECK_H_
#define TRACE_ALIGNMENT_TESTING_COLLECTIVES_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

// What became of the bytes.
enum class CollectivesVerdict {
  // No profile, or none that can be matched with the other.
  kRefused,
  // A profile that shares no collective with the other.
  kApart,
  kMatched,
};

// The good profile is that of rank 1 of SyntheticRun({}), so that rank 0's matches. Returns an
// Internal error that says what is not true: positions lie within their tables, spans do not end
// before they start, all events are accounted for, and nodes aligned by their collectives violate
// none.
absl::Status CheckCollectives(absl::string_view bytes, CollectivesVerdict* verdict);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_COLLECTIVES_CHECK_H_
