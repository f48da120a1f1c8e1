// The host's calls into the device's runtime or driver, found by correlation id.
#ifndef XLA_PROFILER_DEPENDENCIES_CALL_INDEX_H_
#define XLA_PROFILER_DEPENDENCIES_CALL_INDEX_H_

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// A snapshot of a table that holds one process's profile: ids of other processes mean other calls.
class CallIndex {
 public:
  explicit CallIndex(const EventTable& table);

  // Returns the host's row of that correlation id, the last to start if there are several (calls
  // nest: it is the innermost). Profilers give 0 to what no call has caused, so that 0 is nullopt.
  std::optional<EventRow> Find(std::optional<uint64_t> correlation) const;

 private:
  absl::flat_hash_map<uint64_t, EventRow> rows_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_DEPENDENCIES_CALL_INDEX_H_
