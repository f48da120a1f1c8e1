#include "critical_path/testing/random_graph.h"

#include "absl/strings/str_cat.h"

namespace meridian {

PathGraph RandomGraph(int instants, std::mt19937& random) {
  const auto draw = [&](int below) { return static_cast<int>(random() % below); };
  PathGraph graph;
  graph.lanes.push_back({0, TrackKind::kHost, "1", "1"});
  graph.lanes.push_back({0, TrackKind::kDevice, "0", "7"});
  for (int instant = 0; instant < instants; ++instant) {
    const GraphEventId event = static_cast<GraphEventId>(instant / 2);
    const bool is_start = instant % 2 == 0;
    if (is_start) {
      GraphEvent added;
      added.name = graph.names.Intern(absl::StrCat("event ", event % 5));
      added.lane = static_cast<LaneId>(draw(2));
      added.start_ps = instant;
      added.duration_ps = 1;
      added.category = static_cast<EventCategory>(draw(kNumEventCategories));
      added.position = static_cast<uint32_t>(3 * event);
      graph.events.push_back(added);
    }
    graph.instants.push_back({instant, event, is_start});
  }
  for (int from = 0; from < instants; ++from) {
    for (int to = from + 1; to < instants; ++to) {
      if (draw(3) != 0) continue;
      GraphEdge edge;
      edge.from = static_cast<InstantId>(from);
      edge.to = static_cast<InstantId>(to);
      edge.weight_ps = draw(4);
      edge.type = static_cast<EdgeType>(draw(kNumEdgeTypes));
      edge.bound_by =
          edge.weight_ps == 0 ? BoundBy::kNothing : static_cast<BoundBy>(1 + draw(kNumBoundBy - 1));
      if (draw(2) == 0) edge.event = static_cast<GraphEventId>(draw((instants + 1) / 2));
      graph.edges.push_back(edge);
    }
  }
  return graph;
}

}  // namespace meridian
