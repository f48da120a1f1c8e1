// SPDX-License-Identifier: Apache-2.0
// Dependencies in the words of a test's expectations.
#ifndef XLA_PROFILER_TESTING_DEPENDENCY_TEXT_H_
#define XLA_PROFILER_TESTING_DEPENDENCY_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// Returns a name such as "stream order".
absl::string_view DeviceDependencyKindName(DeviceDependencyKind kind);

// Returns "kind: from -> to" for each edge of that kind, rows by name, in order.
std::vector<std::string> EdgeTexts(const EventTable& table, const DeviceDependencies& dependencies,
                                   DeviceDependencyKind kind);

// Returns "kind: number" for each kind that has edges.
std::vector<std::string> EdgeCounts(const DeviceDependencies& dependencies);

// Returns the first edge that is out of order, repeated or runs backwards in time, or "".
std::string FindBadEdge(const EventTable& table, const DeviceDependencies& dependencies);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_DEPENDENCY_TEXT_H_
