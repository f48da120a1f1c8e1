#include "pipeline/timeline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {
namespace {

// More digits are only bytes.
double Nanoseconds(double us) { return std::round(us * 1000) / 1000; }

double Us(int64_t ps) { return static_cast<double>(ps) * kUsPerPs; }

// Some traces only number their threads and streams.
std::string LaneName(const Lane& lane) {
  const bool is_number = absl::c_all_of(lane.thread, absl::ascii_isdigit);
  return absl::StrCat(!is_number                      ? ""
                      : lane.kind == TrackKind::kHost ? "thread "
                                                      : "stream ",
                      lane.thread);
}

// Removes the shortest, the last of those that are equally long, until there are so many.
template <typename Item, typename LengthOf>
bool KeepLongest(size_t most, const LengthOf& length_of, std::vector<Item>* items) {
  if (items->size() <= most) return false;
  std::vector<int64_t> lengths;
  for (const Item& item : *items) lengths.push_back(length_of(item));
  const auto bound = lengths.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(lengths.begin(), bound, lengths.end(), std::greater<>());
  const int64_t shortest = *bound;
  // Of those that are as long as the shortest that stays, as many as there is room for.
  size_t room = most;
  for (auto at = lengths.begin(); at != bound; ++at) room -= *at > shortest ? 1 : 0;
  const auto is_left_out = [&](const Item& item) {
    if (length_of(item) != shortest) return length_of(item) < shortest;
    if (room == 0) return true;
    --room;
    return false;
  };
  items->erase(std::remove_if(items->begin(), items->end(), is_left_out), items->end());
  return true;
}

}  // namespace

void RunTimeline::Read(const PathGraph& graph, const OwnPart& own,
                       const CollectiveEvents& collectives, const CriticalPath& path) {
  std::vector<GraphEventId> ids;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    if (graph.events[id].duration_ps > 0 && own.HasEvent(graph.events[id])) ids.push_back(id);
  }
  is_truncated_ = KeepLongest(
      kMaxTimelineEvents, [&](GraphEventId id) { return graph.events[id].duration_ps; }, &ids);
  // Only what is shown of has a place.
  absl::flat_hash_map<InstantId, uint32_t> meeting_of;
  for (const GraphEventId id : ids) meeting_of[collectives.meetings[id]] = kNoMeeting;
  for (const GraphMeeting& meeting : graph.meetings) {
    if (meeting_of.count(meeting.instant) == 0) continue;
    ShownMeeting& shown = meetings_.emplace_back();
    meeting_of[meeting.instant] = static_cast<uint32_t>(meetings_.size() - 1);
    shown.name = names_.Intern(graph.names.Get(meeting.name));
    if (!meeting.transfer.has_value() || meeting.transfer->bytes <= 0) continue;
    const GraphTransfer& transfer = *meeting.transfer;
    shown.bytes = transfer.bytes;
    shown.moved_bytes = static_cast<double>(transfer.bytes) *
                        BusFactor(transfer.kind, static_cast<double>(transfer.ranks.size()));
  }
  for (LaneId id = 0; id < graph.lanes.size(); ++id) {
    const Lane& lane = graph.lanes[id];
    lanes_.push_back({lane.rank, lane.kind == TrackKind::kHost, id, LaneName(lane)});
  }
  for (const GraphEventId id : ids) {
    const GraphEvent& event = graph.events[id];
    const InstantId meeting = collectives.meetings[id];
    Event shown;
    shown.lane = event.lane;
    shown.name = names_.Intern(graph.names.Get(event.name));
    shown.role = RoleOfEvent(graph, event, meeting != kNoInstant || collectives.communicates[id]);
    shown.start_ps = event.start_ps - graph.window_start_ps;
    shown.duration_ps = event.duration_ps;
    shown.meeting = kNoMeeting;
    shown.met_ps = shown.start_ps;
    if (meeting != kNoInstant) {
      shown.meeting = meeting_of[meeting];
      shown.met_ps = std::clamp(graph.Time(meeting) - graph.window_start_ps, shown.start_ps,
                                shown.start_ps + shown.duration_ps);
    }
    events_.push_back(shown);
  }
  ReadPath(graph, own, path);
}

void RunTimeline::ReadPath(const PathGraph& graph, const OwnPart& own, const CriticalPath& path) {
  for (const EdgeId id : path.edges) {
    const GraphEdge& edge = graph.edges[id];
    if (edge.weight_ps < 1 || !own.HasTime(graph.Time(edge.from))) continue;
    path_.push_back({edge.event == kNoEvent ? kNoLane : graph.events[edge.event].lane,
                     graph.Time(edge.from) - graph.window_start_ps,
                     graph.Time(edge.to) - graph.window_start_ps, edge.weight_ps});
  }
  LeaveOutShortest();
}

uint32_t RunTimeline::FindLane(const ShownLane& lane) {
  const auto known = absl::c_find_if(lanes_, [&](const ShownLane& other) {
    return other.rank == lane.rank && other.is_host == lane.is_host && other.name == lane.name;
  });
  const auto place = static_cast<uint32_t>(known - lanes_.begin());
  if (known == lanes_.end()) {
    lanes_.push_back(lane);
    lanes_.back().number = place;
  }
  return place;
}

void RunTimeline::Merge(RunTimeline later, int64_t shift_ps) {
  std::vector<uint32_t> lanes, names;
  for (const ShownLane& lane : later.lanes_) lanes.push_back(FindLane(lane));
  for (NameId id = 0; id < later.names_.size(); ++id) {
    names.push_back(names_.Intern(later.names_.Get(id)));
  }
  const auto first_meeting = static_cast<uint32_t>(meetings_.size());
  for (ShownMeeting meeting : later.meetings_) {
    meeting.name = names[meeting.name];
    meetings_.push_back(meeting);
  }
  for (Event event : later.events_) {
    event.lane = lanes[event.lane];
    event.name = names[event.name];
    event.start_ps += shift_ps;
    event.met_ps += shift_ps;
    if (event.meeting != kNoMeeting) event.meeting += first_meeting;
    events_.push_back(event);
  }
  for (Stretch stretch : later.path_) {
    if (stretch.lane != kNoLane) stretch.lane = lanes[stretch.lane];
    stretch.start_ps += shift_ps;
    stretch.end_ps += shift_ps;
    path_.push_back(stretch);
  }
  is_truncated_ |= later.is_truncated_;
  LeaveOutShortest();
}

void RunTimeline::LeaveOutShortest() {
  const auto duration_of = [](const Event& event) { return event.duration_ps; };
  is_truncated_ |= KeepLongest(kMaxTimelineEvents, duration_of, &events_);
  const auto weight_of = [](const Stretch& stretch) { return stretch.weight_ps; };
  (void)KeepLongest(kMaxTimelineEvents, weight_of, &path_);
}

void RunTimeline::Report(Timeline* timeline) const {
  for (int role = PathKind::Role_MIN; role <= PathKind::Role_MAX; ++role) {
    timeline->add_kinds(
        absl::AsciiStrToLower(PathKind::Role_Name(static_cast<PathKind::Role>(role))));
  }
  timeline->set_truncated(is_truncated_);
  // Lanes that have events, those of a rank together, devices first.
  std::map<std::tuple<int64_t, bool, LaneId>, std::vector<uint32_t>> by_lane;
  for (uint32_t i = 0; i < events_.size(); ++i) {
    const ShownLane& lane = lanes_[events_[i].lane];
    by_lane[{lane.rank, lane.is_host, lane.number}].push_back(i);
  }
  std::vector<int> numbers(lanes_.size(), -1), names(names_.size(), -1);
  // By event: where it is shown, and its waiting before; -1 when it did not wait.
  std::vector<std::pair<int, int>> places(events_.size(), {-1, -1});
  TimelineEvents& columns = *timeline->mutable_events();
  const auto add = [&](int lane, const Event& event, PathKind::Role role, int64_t start_ps,
                       int64_t end_ps) {
    int& name = names[event.name];
    if (name < 0) {
      name = timeline->names_size();
      timeline->add_names(ShownName(names_.Get(event.name)));
    }
    columns.add_lane(lane);
    columns.add_name(name);
    columns.add_kind(role);
    columns.add_start_us(Nanoseconds(Us(start_ps)));
    columns.add_duration_us(Nanoseconds(Us(end_ps - start_ps)));
    return columns.lane_size() - 1;
  };
  for (auto& [key, ids] : by_lane) {
    absl::c_stable_sort(
        ids, [&](uint32_t a, uint32_t b) { return events_[a].start_ps < events_[b].start_ps; });
    const int number = timeline->lanes_size();
    const ShownLane& lane = lanes_[events_[ids[0]].lane];
    numbers[events_[ids[0]].lane] = number;
    timeline->add_lanes()->set_rank(lane.rank);
    timeline->mutable_lanes(number)->set_name(lane.name);
    for (const uint32_t id : ids) {
      const Event& event = events_[id];
      if (event.met_ps > event.start_ps) {
        places[id].second = add(number, event, PathKind::WAIT, event.start_ps, event.met_ps);
      }
      places[id].first =
          add(number, event, event.role, event.met_ps, event.start_ps + event.duration_ps);
    }
  }
  ReportPath(numbers, timeline);
  std::vector<TimelineCollective> collectives(meetings_.size());
  for (uint32_t i = 0; i < events_.size(); ++i) {
    if (events_[i].meeting == kNoMeeting) continue;
    collectives[events_[i].meeting].add_events(places[i].first);
    collectives[events_[i].meeting].add_waits(places[i].second);
  }
  for (size_t i = 0; i < meetings_.size(); ++i) {
    TimelineCollective& found = collectives[i];
    if (found.events_size() < 2) continue;
    found.set_name(std::string(names_.Get(meetings_[i].name)));
    // What it moved, and how fast: from when all were there until the last had it.
    if (meetings_[i].bytes > 0) {
      found.set_bytes(meetings_[i].bytes);
      double longest_us = 0;
      for (const int event : found.events()) {
        longest_us = std::max(longest_us, columns.duration_us(event));
      }
      const double moved = meetings_[i].moved_bytes;
      if (longest_us > 0 && moved > 0) found.set_bus_gb_per_s(moved / (longest_us * 1e3));
    }
    *timeline->add_collectives() = std::move(found);
  }
}

void RunTimeline::ReportPath(const std::vector<int>& numbers, Timeline* timeline) const {
  TimelinePath& path = *timeline->mutable_path();
  for (const Stretch& stretch : path_) {
    path.add_lane(stretch.lane == kNoLane ? -1 : numbers[stretch.lane]);
    path.add_start_us(Us(stretch.start_ps));
    path.add_end_us(Us(stretch.end_ps));
  }
}

}  // namespace meridian
