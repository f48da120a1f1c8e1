// The order in which the calls of a thread begin and end, as HTA sees it.
#ifndef CRITICAL_PATH_HTA_CALL_STACK_H_
#define CRITICAL_PATH_HTA_CALL_STACK_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "critical_path/path_graph.h"

namespace meridian {

// Calls visit(event, parent, enters) for the start and the end of each of a thread's events, which
// last longer than 0. The parent is kNoEvent at the top.
//
// At equal times ends come before starts; of starts the longer event's, then the earlier one's in
// the file. An end closes the innermost event that is open, which is another one where events
// overlap without nesting.
void WalkCallStack(
    const std::vector<GraphEvent>& all_events, std::vector<GraphEventId> thread,
    absl::FunctionRef<void(GraphEventId event, GraphEventId parent, bool enters)> visit);

}  // namespace meridian

#endif  // CRITICAL_PATH_HTA_CALL_STACK_H_
