#include "critical_path/what_if/event_index.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/events/event_category.h"

namespace meridian {
namespace {

using Field = Condition::Field;

// How many names a message lists, and how much of each.
constexpr size_t kListedNames = 8;
constexpr size_t kListedCharacters = 60;

struct DelayName {
  absl::string_view name;
  Delay delay;
};
constexpr DelayName kDelayNames[] = {
    {"launch", Delay::kLaunch}, {"kernel_gap", Delay::kKernelGap}, {"host_gap", Delay::kHostGap}};
constexpr absl::string_view kGroups[] = {"host", "device", "communication", "compute"};

std::optional<Delay> FindDelay(absl::string_view name) {
  for (const DelayName& entry : kDelayNames) {
    if (entry.name == name) return entry.delay;
  }
  return std::nullopt;
}

std::optional<EventCategory> FindCategory(absl::string_view name) {
  for (int i = 0; i < kNumEventCategories; ++i) {
    const auto category = static_cast<EventCategory>(i);
    if (EventCategoryName(category) == name) return category;
  }
  return std::nullopt;
}

std::string ListWords(const std::set<std::string>& words) { return absl::StrJoin(words, ", "); }

}  // namespace

std::optional<Delay> DelayOf(const Schedule& schedule, const GraphEdge& edge) {
  if (edge.bound_by == BoundBy::kNothing) return std::nullopt;
  switch (edge.type) {
    case EdgeType::kKernelLaunchDelay:
      return Delay::kLaunch;
    case EdgeType::kKernelKernelDelay:
      return Delay::kKernelGap;
    case EdgeType::kDependency:
      return Delay::kHostGap;
    case EdgeType::kSyncDependency:
      return schedule.IsWorkStart(edge.to) ? std::make_optional(Delay::kKernelGap) : std::nullopt;
    case EdgeType::kOperator:
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<bool> FindCommunication(const Schedule& schedule) {
  std::vector<bool> communicates(schedule.graph.events.size());
  for (const GraphEdge& edge : schedule.graph.edges) {
    const bool is_transfer =
        edge.bound_by == BoundBy::kGpuCommunication || edge.bound_by == BoundBy::kOtherRanks;
    if (is_transfer && edge.event != kNoEvent) communicates[edge.event] = true;
  }
  return communicates;
}

std::vector<GraphEventId> Selection::ToVector() const {
  std::vector<GraphEventId> ids;
  for (GraphEventId id = 0; id < events.size(); ++id) {
    if (events[id]) ids.push_back(id);
  }
  return ids;
}

EventIndex::EventIndex(const Schedule& schedule)
    : schedule_(schedule),
      graph_(schedule.graph),
      exists_(graph_.events.size()),
      parents_(graph_.events.size(), kNoEvent),
      communicates_(FindCommunication(schedule)) {
  FindExisting();
  FindParents();
}

void EventIndex::FindExisting() {
  for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
    exists_[id] = schedule_.start_nodes[id] != kNoNode;
  }
  for (const GraphEdge& edge : graph_.edges) {
    if (edge.event != kNoEvent) exists_[edge.event] = true;
  }
}

void EventIndex::FindParents() {
  if (schedule_.keeps_order()) {
    NestByOrder();
  } else {
    NestByTime();
  }
  for (const GraphEdge& edge : graph_.edges) {
    const GraphEventId work = graph_.nodes[edge.to].event;
    const GraphEventId call = graph_.nodes[edge.from].event;
    if (edge.type != EdgeType::kKernelLaunchDelay || work == kNoEvent || call == kNoEvent) continue;
    if (schedule_.IsOnDevice(work) && !schedule_.IsOnDevice(call)) parents_[work] = call;
  }
}

void EventIndex::NestByOrder() {
  // By event: the place of its end on its lane.
  std::vector<size_t> ends(graph_.events.size());
  std::vector<GraphEventId> open;
  for (LaneId lane = 0; lane < graph_.lanes.size(); ++lane) {
    if (graph_.lanes[lane].kind == TrackKind::kDevice) continue;
    const std::vector<NodeId>& nodes = schedule_.lane_order[lane];
    for (size_t i = 0; i < nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[nodes[i]];
      if (!node.is_start) ends[node.event] = i;
    }
    open.clear();
    for (NodeId id : nodes) {
      const GraphNode& node = graph_.nodes[id];
      if (!node.is_start) continue;
      while (!open.empty() && ends[open.back()] < ends[node.event]) open.pop_back();
      if (!open.empty()) parents_[node.event] = open.back();
      open.push_back(node.event);
    }
  }
}

void EventIndex::NestByTime() {
  std::vector<GraphEventId> order;
  for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
    if (!schedule_.IsOnDevice(id)) order.push_back(id);
  }
  const auto key = [&](GraphEventId id) {
    const GraphEvent& event = graph_.events[id];
    return std::make_tuple(event.lane, event.start_ps, -event.duration_ps, id);
  };
  std::sort(order.begin(), order.end(),
            [&](GraphEventId a, GraphEventId b) { return key(a) < key(b); });
  std::vector<GraphEventId> open;
  for (GraphEventId id : order) {
    const GraphEvent& event = graph_.events[id];
    const auto encloses = [&](const GraphEvent& outer) {
      return outer.lane == event.lane &&
             event.start_ps + event.duration_ps <= outer.start_ps + outer.duration_ps &&
             event.start_ps < outer.start_ps + outer.duration_ps;
    };
    while (!open.empty() && !encloses(graph_.events[open.back()])) open.pop_back();
    if (!open.empty()) parents_[id] = open.back();
    open.push_back(id);
  }
}

std::vector<bool> EventIndex::FindWaiting(int64_t waiting_rank, int64_t awaited_rank) const {
  std::vector<bool> waits(graph_.events.size());
  if (waiting_rank == awaited_rank) return waits;
  const auto is_of_rank = [&](NodeId node, int64_t rank) {
    return schedule_.IsOfEvent(node) && RankOf(graph_.nodes[node].event) == rank;
  };
  // Where ranks meet, those that leave wait for all that came: a meeting to which the awaited rank
  // comes stands for it.
  std::vector<bool> is_awaited(graph_.nodes.size());
  for (NodeId node = 0; node < graph_.nodes.size(); ++node) {
    is_awaited[node] = is_of_rank(node, awaited_rank);
  }
  for (const GraphEdge& edge : graph_.edges) {
    const bool is_meeting =
        graph_.nodes[edge.to].event != kNoEvent && !schedule_.IsOfEvent(edge.to);
    if (is_meeting && is_of_rank(edge.from, awaited_rank)) is_awaited[edge.to] = true;
  }
  for (const GraphEdge& edge : graph_.edges) {
    if (is_awaited[edge.from] && is_of_rank(edge.to, waiting_rank)) {
      waits[graph_.nodes[edge.to].event] = true;
    }
  }
  return waits;
}

std::vector<bool> EventIndex::MatchNames(const Condition& condition) const {
  std::vector<bool> matches(graph_.names.size());
  for (NameId name = 0; name < matches.size(); ++name) {
    const absl::string_view text = graph_.names.Get(name);
    matches[name] = condition.pattern == nullptr
                        ? text == condition.value
                        : re2::RE2::PartialMatch(std::string(text), *condition.pattern);
  }
  return matches;
}

bool EventIndex::IsWithin(const std::vector<bool>& names, GraphEventId event) const {
  for (; event != kNoEvent; event = parents_[event]) {
    if (names[graph_.events[event].name]) return true;
  }
  return false;
}

absl::Status EventIndex::RestrictToCategory(const std::string& category,
                                            Selection* selection) const {
  if (const std::optional<Delay> delay = FindDelay(category)) {
    // No delay is of two kinds.
    if (selection->delay.has_value() && selection->delay != delay) {
      selection->events.assign(graph_.events.size(), false);
    }
    selection->delay = delay;
    return absl::OkStatus();
  }
  const std::optional<EventCategory> known = FindCategory(category);
  const bool is_group =
      std::find(std::begin(kGroups), std::end(kGroups), category) != std::end(kGroups);
  if (!known.has_value() && !is_group) {
    std::set<std::string> there;
    for (const GraphEvent& event : graph_.events) {
      there.insert(std::string(EventCategoryName(event.category)));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "'", category, "' is no category; there are: ", ListWords(there), "; of events in groups: ",
        absl::StrJoin(kGroups, ", "), "; of delays: launch, kernel_gap, host_gap"));
  }
  for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
    const bool on_device = schedule_.IsOnDevice(id);
    const bool belongs = known.has_value()             ? graph_.events[id].category == *known
                         : category == "host"          ? !on_device
                         : category == "device"        ? on_device
                         : category == "communication" ? communicates_[id]
                                                       : on_device && !communicates_[id];
    if (!belongs) selection->events[id] = false;
  }
  return absl::OkStatus();
}

absl::Status EventIndex::Restrict(const Condition& condition, Selection* selection) const {
  if (condition.field == Field::kCategory) return RestrictToCategory(condition.value, selection);
  std::vector<bool> names;
  if (condition.field == Field::kName || condition.field == Field::kWithin) {
    names = MatchNames(condition);
  }
  std::vector<bool> waits;
  if (condition.field == Field::kLink) {
    waits = FindWaiting(condition.waiting_rank, condition.number);
  }
  for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
    if (!selection->events[id]) continue;
    const GraphEvent& event = graph_.events[id];
    const Lane& lane = graph_.lanes[event.lane];
    bool holds = false;
    switch (condition.field) {
      case Field::kName:
        holds = names[event.name];
        break;
      case Field::kWithin:
        holds = IsWithin(names, id);
        break;
      case Field::kRank:
        holds = lane.rank == condition.number;
        break;
      case Field::kLink:
        holds = waits[id];
        break;
      case Field::kProcess:
        holds = lane.process == condition.value;
        break;
      case Field::kThread:
        holds = lane.thread == condition.value;
        break;
      case Field::kStream:
        holds = lane.kind == TrackKind::kDevice && lane.thread == condition.value;
        break;
      case Field::kEvent:
        holds = event.position == condition.number;
        break;
      case Field::kCategory:
        break;
    }
    selection->events[id] = holds;
  }
  return absl::OkStatus();
}

int64_t EventIndex::CountDelays(const Selection& selection) const {
  return std::count_if(graph_.edges.begin(), graph_.edges.end(), [&](const GraphEdge& edge) {
    return DelayOf(schedule_, edge) == selection.delay &&
           selection.Contains(graph_.nodes[edge.to].event);
  });
}

std::string EventIndex::DescribeCandidates(const Selector& selector) const {
  const bool is_about_names = std::any_of(
      selector.conditions.begin(), selector.conditions.end(),
      [](const Condition& c) { return c.field == Field::kName || c.field == Field::kWithin; });
  if (is_about_names) {
    std::vector<std::pair<int64_t, NameId>> counts(graph_.names.size());
    for (NameId name = 0; name < counts.size(); ++name) counts[name].second = name;
    for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
      if (exists_[id]) --counts[graph_.events[id].name].first;
    }
    std::sort(counts.begin(), counts.end());
    std::vector<std::string> names;
    for (const auto& [count, name] : counts) {
      if (count == 0 || names.size() == kListedNames) break;
      names.push_back(
          absl::StrCat("'", Printable(FirstCharacters(graph_.names.Get(name), kListedCharacters)),
                       "' (", -count, "x)"));
    }
    return absl::StrCat("the most frequent names are ", absl::StrJoin(names, ", "));
  }
  std::set<std::string> categories, lanes, ranks;
  for (const GraphEvent& event : graph_.events) {
    categories.insert(std::string(EventCategoryName(event.category)));
  }
  for (const Lane& lane : graph_.lanes) {
    lanes.insert(Printable(lane.thread));
    ranks.insert(absl::StrCat(lane.rank));
  }
  return absl::StrCat("there are the categories ", ListWords(categories), "; the ranks ",
                      ListWords(ranks), "; the threads and streams ",
                      FirstCharacters(ListWords(lanes), 200));
}

absl::StatusOr<Selection> EventIndex::Select(const Selector& selector) const {
  Selection selection;
  selection.events = exists_;
  for (const Condition& condition : selector.conditions) {
    RETURN_IF_ERROR(Restrict(condition, &selection));
  }
  // The delay before the window's end has no event that another condition could be about.
  selection.includes_window_end = selection.delay.has_value() && selector.conditions.size() == 1;
  selection.count = selection.delay.has_value()
                        ? CountDelays(selection)
                        : std::count(selection.events.begin(), selection.events.end(), true);
  if (selection.count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing matches ", selector.text, "; ", DescribeCandidates(selector)));
  }
  return selection;
}

absl::StatusOr<Selection> EventIndex::SelectEvents(const Selector& selector) const {
  ASSIGN_OR_RETURN(Selection selection, Select(selector));
  if (selection.delay.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(selector.text, " means delays; expected events"));
  }
  for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
    if (schedule_.start_nodes[id] == kNoNode) selection.events[id] = false;
  }
  selection.count = std::count(selection.events.begin(), selection.events.end(), true);
  if (selection.count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(selector.text, " means only events that are no part of the schedule"));
  }
  return selection;
}

}  // namespace meridian
