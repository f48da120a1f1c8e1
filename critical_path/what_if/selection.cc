#include "critical_path/what_if/selection.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/events/event_category.h"

namespace meridian {
namespace {

using Field = Condition::Field;

// How many names a message lists, and how much of each.
constexpr size_t kListedNames = 8;
constexpr size_t kListedCharacters = 60;

// The names of delays, in the order of Delay.
constexpr absl::string_view kDelays[] = {"launch", "kernel_gap", "host_gap"};
constexpr absl::string_view kGroups[] = {"host", "device", "communication", "compute"};

std::string ListCategories(const PathGraph& graph) {
  std::set<absl::string_view> categories;
  for (const GraphEvent& event : graph.events) categories.insert(EventCategoryName(event.category));
  return absl::StrJoin(categories, ", ");
}

// Returns by event the one around it on its thread, or the call that launched it if it is device
// work; kNoEvent when there is none. Events have the measured times until the graph is run.
std::vector<GraphEventId> FindParents(const WhatIfGraph& edited) {
  const PathGraph& graph = edited.graph;
  std::vector<GraphEventId> parents(graph.events.size(), kNoEvent);
  std::vector<GraphEventId> order;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    if (!edited.IsOnDevice(id)) order.push_back(id);
  }
  const auto key = [&](GraphEventId id) {
    const GraphEvent& event = graph.events[id];
    return std::make_tuple(event.lane, event.start_ps, -event.duration_ps, id);
  };
  std::sort(order.begin(), order.end(),
            [&](GraphEventId a, GraphEventId b) { return key(a) < key(b); });
  std::vector<GraphEventId> open;
  for (GraphEventId id : order) {
    const GraphEvent& event = graph.events[id];
    const auto encloses = [&](const GraphEvent& outer) {
      return outer.lane == event.lane &&
             event.start_ps + event.duration_ps <= outer.start_ps + outer.duration_ps &&
             event.start_ps < outer.start_ps + outer.duration_ps;
    };
    while (!open.empty() && !encloses(graph.events[open.back()])) open.pop_back();
    if (!open.empty()) parents[id] = open.back();
    open.push_back(id);
  }
  for (const GraphEdge& edge : graph.edges) {
    const GraphEventId work = graph.instants[edge.to].event;
    const GraphEventId call = graph.instants[edge.from].event;
    if (edge.type != EdgeType::kKernelLaunchDelay || work == kNoEvent || call == kNoEvent) continue;
    if (edited.IsOnDevice(work) && !edited.IsOnDevice(call)) parents[work] = call;
  }
  return parents;
}

// Returns by event whether it communicates with a rank, or is of that rank and communicates.
std::vector<bool> FindCompany(const WhatIfGraph& edited, int64_t rank) {
  const PathGraph& graph = edited.graph;
  // Calls visit(meeting, event) for each event that comes to a meeting or leaves it.
  const auto for_each_member = [&](const auto& visit) {
    for (const GraphEdge& edge : graph.edges) {
      if (edited.IsMeeting(edge.to) && edited.IsOfEvent(edge.from)) {
        visit(edge.to, graph.instants[edge.from].event);
      } else if (edited.IsMeeting(edge.from) && edited.IsOfEvent(edge.to)) {
        visit(edge.from, graph.instants[edge.to].event);
      }
    }
  };
  std::vector<bool> has_rank(graph.instants.size()), meets(graph.events.size());
  for_each_member([&](InstantId meeting, GraphEventId event) {
    if (edited.RankOf(event) == rank) has_rank[meeting] = true;
  });
  for_each_member([&](InstantId meeting, GraphEventId event) {
    if (has_rank[meeting]) meets[event] = true;
  });
  return meets;
}

// Returns by name whether the condition holds for it.
std::vector<bool> MatchNames(const PathGraph& graph, const Condition& condition) {
  std::vector<bool> matches(graph.names.size());
  for (NameId name = 0; name < matches.size(); ++name) {
    const absl::string_view text = graph.names.Get(name);
    matches[name] = condition.pattern == nullptr
                        ? text == condition.value
                        : re2::RE2::PartialMatch(std::string(text), *condition.pattern);
  }
  return matches;
}

absl::Status RestrictToCategory(const WhatIfGraph& edited, const std::string& category,
                                Selection* selection) {
  const PathGraph& graph = edited.graph;
  const auto named_delay = std::find(std::begin(kDelays), std::end(kDelays), category);
  if (named_delay != std::end(kDelays)) {
    const auto delay = static_cast<Delay>(named_delay - std::begin(kDelays));
    // No delay is of two kinds, so that nothing is left.
    if (selection->delay.value_or(delay) != delay) {
      selection->events.assign(graph.events.size(), false);
    }
    selection->delay = delay;
    return absl::OkStatus();
  }
  // By category.
  std::array<bool, kNumEventCategories> is_meant = {};
  for (int i = 0; i < kNumEventCategories; ++i) {
    is_meant[i] = EventCategoryName(static_cast<EventCategory>(i)) == category;
  }
  const bool is_known = absl::c_linear_search(is_meant, true);
  const bool is_group =
      std::find(std::begin(kGroups), std::end(kGroups), category) != std::end(kGroups);
  if (!is_known && !is_group) {
    return InvalidArgument("'", category, "' is no category; there are: ", ListCategories(graph),
                           "; of events in groups: ", absl::StrJoin(kGroups, ", "),
                           "; of delays: ", absl::StrJoin(kDelays, ", "));
  }
  const bool host = category == "host", device = category == "device";
  const bool communication = category == "communication";
  const std::vector<bool> communicates = FindCommunication(edited);
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const bool on_device = edited.IsOnDevice(id);
    const bool belongs = is_known        ? is_meant[static_cast<int>(graph.events[id].category)]
                         : host          ? !on_device
                         : device        ? on_device
                         : communication ? communicates[id]
                                         : on_device && !communicates[id];
    if (!belongs) selection->events[id] = false;
  }
  return absl::OkStatus();
}

// Leaves out what the condition does not hold for.
absl::Status Restrict(const WhatIfGraph& edited, const Condition& condition, Selection* selection) {
  const PathGraph& graph = edited.graph;
  const auto keep_if = [&](const auto& holds) {
    for (GraphEventId id = 0; id < graph.events.size(); ++id) {
      if (selection->events[id]) selection->events[id] = holds(id);
    }
    return absl::OkStatus();
  };
  switch (condition.field) {
    case Field::kCategory:
      return RestrictToCategory(edited, condition.value, selection);
    case Field::kName: {
      const std::vector<bool> names = MatchNames(graph, condition);
      return keep_if([&](GraphEventId id) { return names[graph.events[id].name]; });
    }
    case Field::kWithin: {
      const std::vector<bool> names = MatchNames(graph, condition);
      const std::vector<GraphEventId> parents = FindParents(edited);
      return keep_if([&](GraphEventId id) {
        while (id != kNoEvent && !names[graph.events[id].name]) id = parents[id];
        return id != kNoEvent;
      });
    }
    case Field::kWith: {
      const std::vector<bool> meets = FindCompany(edited, condition.number);
      return keep_if([&](GraphEventId id) { return meets[id]; });
    }
    case Field::kRank:
      return keep_if([&](GraphEventId id) { return graph.LaneOf(id).rank == condition.number; });
    case Field::kEvent:
      return keep_if(
          [&](GraphEventId id) { return graph.events[id].position == condition.number; });
  }
  return absl::OkStatus();
}

// Says what there is where nothing matches.
std::string DescribeCandidates(const PathGraph& graph, const Selector& selector) {
  const bool is_about_names = std::any_of(
      selector.conditions.begin(), selector.conditions.end(),
      [](const Condition& c) { return c.field == Field::kName || c.field == Field::kWithin; });
  if (is_about_names) {
    std::vector<std::pair<int64_t, NameId>> counts(graph.names.size());
    for (NameId name = 0; name < counts.size(); ++name) counts[name].second = name;
    for (const GraphEvent& event : graph.events) --counts[event.name].first;
    std::sort(counts.begin(), counts.end());
    std::vector<std::string> names;
    for (const auto& [count, name] : counts) {
      if (count == 0 || names.size() == kListedNames) break;
      names.push_back(
          absl::StrCat("'", Printable(FirstCharacters(graph.names.Get(name), kListedCharacters)),
                       "' (", -count, "x)"));
    }
    return absl::StrCat("the most frequent names are ", absl::StrJoin(names, ", "));
  }
  std::set<int64_t> ranks;
  for (const Lane& lane : graph.lanes) ranks.insert(lane.rank);
  return absl::StrCat("there are the categories ", ListCategories(graph), "; the ranks ",
                      absl::StrJoin(ranks, ", "));
}

}  // namespace

std::optional<Delay> DelayOf(const WhatIfGraph& edited, const GraphEdge& edge) {
  // In Chakra traces a gap may be an event.
  if (edge.bound_by == BoundBy::kHostGap) return Delay::kHostGap;
  if (edge.bound_by == BoundBy::kNothing || edge.bound_by == BoundBy::kBeforeStep ||
      edge.type == EdgeType::kOperator) {
    return std::nullopt;
  }
  if (edge.type == EdgeType::kKernelLaunchDelay) return Delay::kLaunch;
  if (edge.type == EdgeType::kDependency) return std::nullopt;
  const bool is_gap = edge.type == EdgeType::kKernelKernelDelay || edited.IsWorkStart(edge.to);
  return is_gap ? std::make_optional(Delay::kKernelGap) : std::nullopt;
}

std::vector<bool> FindCommunication(const WhatIfGraph& edited) {
  std::vector<bool> communicates(edited.graph.events.size());
  for (const GraphEdge& edge : edited.graph.edges) {
    const bool is_transfer =
        edge.bound_by == BoundBy::kGpuCommunication || edge.bound_by == BoundBy::kOtherRanks;
    if (is_transfer && edge.event != kNoEvent) communicates[edge.event] = true;
  }
  return communicates;
}

bool IsSelectedDelay(const WhatIfGraph& edited, const Selection& selection, const GraphEdge& edge) {
  const GraphEventId event = edited.graph.instants[edge.to].event;
  return DelayOf(edited, edge) == selection.delay &&
         (event == kNoEvent ? selection.includes_window_end : selection.events[event]);
}

absl::StatusOr<Selection> Select(const WhatIfGraph& edited, const Selector& selector) {
  const PathGraph& graph = edited.graph;
  Selection selection;
  selection.events.assign(graph.events.size(), true);
  for (const Condition& condition : selector.conditions) {
    RETURN_IF_ERROR(Restrict(edited, condition, &selection));
  }
  // The delay before the window's end has no event that another condition could be about.
  selection.includes_window_end = selection.delay.has_value() && selector.conditions.size() == 1;
  selection.count = selection.delay.has_value()
                        ? std::count_if(graph.edges.begin(), graph.edges.end(),
                                        [&](const GraphEdge& edge) {
                                          return IsSelectedDelay(edited, selection, edge);
                                        })
                        : std::count(selection.events.begin(), selection.events.end(), true);
  if (selection.count == 0) {
    return InvalidArgument("nothing matches ", selector.text, "; ",
                           DescribeCandidates(graph, selector));
  }
  return selection;
}

}  // namespace meridian
