#include "critical_path/path_breakdown.h"

#include <cstddef>
#include <limits>

namespace meridian {
namespace {

// Finds the share of an edge among those of its event, which are few.
class ShareIndex {
 public:
  ShareIndex(size_t events, std::vector<EventShare>* shares)
      : shares_(*shares), last_of_event_(events + 1, kNone) {}

  EventShare& Find(const GraphEdge& edge) {
    // Edges without an event have the place behind the last.
    size_t& last = last_of_event_[edge.event == kNoEvent ? last_of_event_.size() - 1 : edge.event];
    for (size_t i = last; i != kNone; i = before_[i]) {
      EventShare& share = shares_[i];
      if (share.type == edge.type && share.bound_by == edge.bound_by) return share;
    }
    before_.push_back(last);
    last = shares_.size();
    shares_.push_back({edge.event, edge.type, edge.bound_by, 0, 0});
    return shares_.back();
  }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  std::vector<EventShare>& shares_;
  std::vector<size_t> last_of_event_;
  // For each share the one before of the same event.
  std::vector<size_t> before_;
};

}  // namespace

PathBreakdown BreakDown(const PathGraph& graph, const CriticalPath& path) {
  PathBreakdown breakdown;
  ShareIndex index(graph.events.size(), &breakdown.shares);
  for (EdgeId id : path.edges) {
    const GraphEdge& edge = graph.edges[id];
    breakdown.time_ps[static_cast<int>(edge.bound_by)] += edge.weight_ps;
    EventShare& share = index.Find(edge);
    share.time_ps += edge.weight_ps;
    ++share.count;
  }
  return breakdown;
}

}  // namespace meridian
