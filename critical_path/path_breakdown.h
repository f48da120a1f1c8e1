// What the time on a critical path is spent on.
#ifndef CRITICAL_PATH_PATH_BREAKDOWN_H_
#define CRITICAL_PATH_PATH_BREAKDOWN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "critical_path/longest_path.h"
#include "critical_path/path_graph.h"

namespace meridian {

// The time on the path that is booked on one event for one reason.
struct EventShare {
  // kNoEvent: time that is booked on none, all of one reason together.
  GraphEventId event = kNoEvent;
  EdgeType type = EdgeType::kOperator;
  BoundBy bound_by = BoundBy::kNothing;
  int64_t time_ps = 0;
  // The number of edges.
  int64_t count = 0;
};

struct PathBreakdown {
  // Their sum is the path's length.
  std::array<int64_t, kNumBoundBy> time_ps = {};
  // In the order in which the path meets them. The sum of their times is the path's length, too.
  std::vector<EventShare> shares;

  int64_t Of(BoundBy bound_by) const { return time_ps[static_cast<int>(bound_by)]; }
};

PathBreakdown BreakDown(const PathGraph& graph, const CriticalPath& path);

}  // namespace meridian

#endif  // CRITICAL_PATH_PATH_BREAKDOWN_H_
