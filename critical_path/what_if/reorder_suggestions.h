// SPDX-License-Identifier: Apache-2.0
// Other orders of a stream's work with which a run would be shorter.
//
//   stream 7    |-- x --|-- y --|                 y first:   |-- y --|-- x --|
//   stream 20                   |-- reduce y --|                     |-- reduce y --|
//
// Two patterns on the critical path are tried: where it leaves a stream, because something else
// waits for work there, that work (alone, or with up to 15 before it) goes before other work that
// delayed it; and where it comes to a stream that was idle, waiting, the work that comes next goes
// first. Each try is a replay of the whole graph.
//
// Work is independent as far as the trace shows: what one kernel reads and another wrote on the
// same stream is in no trace, so that a suggestion is a question to whoever knows the program.
#ifndef CRITICAL_PATH_WHAT_IF_REORDER_SUGGESTIONS_H_
#define CRITICAL_PATH_WHAT_IF_REORDER_SUGGESTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/what_if/what_if_graph.h"

namespace meridian {

struct ReorderSuggestion {
  // The events that are moved, in order, and the one that they go before.
  std::vector<GraphEventId> moved;
  GraphEventId target = kNoEvent;
  // By how much the path would be shorter, with this one alone.
  int64_t gain_ps = 0;
  // The same move as the user would write it (what_if_edits.h).
  std::string edits;
};

struct ReorderSuggestions {
  // The ten best, the greatest gain first; each has some.
  std::vector<ReorderSuggestion> suggestions;
  // How many orders came into question, and how many of them were replayed.
  int64_t candidates = 0;
  int64_t tried = 0;
};

// The graph must keep its lanes' order and have its times (PutTimes). Large graphs are replayed
// less often than max_replays.
absl::StatusOr<ReorderSuggestions> SuggestReorderings(const WhatIfGraph& edited,
                                                      const CriticalPath& path,
                                                      int64_t max_replays = 300);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_REORDER_SUGGESTIONS_H_
