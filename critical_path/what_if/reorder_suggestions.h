// Other orders of a stream's work with which a run would be shorter.
//
//   stream 7    |-- x --|-- y --|                 y first:   |-- y --|-- x --|
//   stream 20                   |-- reduce y --|                     |-- reduce y --|
//
// Two patterns on the critical path are tried: where it leaves a stream, because something else
// waits for work there, that work (alone, or with up to 15 before it) goes before other work that
// delayed it; and where it comes to a stream that was idle, waiting, the work that comes next goes
// first. Each try is a replay of the whole schedule.
//
// Work is independent as far as the trace shows: what one kernel reads and another wrote on the
// same stream is in no trace, so that a suggestion is a question to whoever knows the program.
#ifndef CRITICAL_PATH_WHAT_IF_REORDER_SUGGESTIONS_H_
#define CRITICAL_PATH_WHAT_IF_REORDER_SUGGESTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/longest_path.h"
#include "critical_path/what_if/schedule.h"

namespace meridian {

struct ReorderOptions {
  // Nodes and edges that all replays together may visit; at least four are made.
  int64_t max_work = 100'000'000;
  int max_replays = 300;
  // The best so many are returned.
  size_t max_suggestions = 10;
};

struct ReorderSuggestion {
  // In order, and what they go before.
  std::vector<GraphEventId> moved;
  GraphEventId target = kNoEvent;
  // By how much the path would be shorter, with this one alone.
  int64_t gain_ps = 0;
  // The same as edits.
  std::string edits;
};

struct ReorderSuggestions {
  // The greatest gain first; each has some.
  std::vector<ReorderSuggestion> suggestions;
  int64_t candidates = 0;
  int64_t tried = 0;
};

// The schedule must keep its lanes' order and have its times (schedule_simulation.h).
absl::StatusOr<ReorderSuggestions> SuggestReorderings(const Schedule& schedule,
                                                      const CriticalPath& path,
                                                      const ReorderOptions& options = {});

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_REORDER_SUGGESTIONS_H_
