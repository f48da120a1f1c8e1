#include "critical_path/testing/random_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace meridian {
JobMaker::JobMaker(int ranks) : ends_ps_(static_cast<size_t>(ranks), 0) {
  for (int rank = 0; rank < ranks; ++rank) {
    RankGraph& added = job_.ranks.emplace_back();
    added.rank = rank;
    added.graph.lanes.push_back({rank, TrackKind::kDevice, absl::StrCat("rank ", rank), "7"});
    added.graph.instants.push_back({0, kNoEvent, /*is_start=*/true});
  }
}

GraphEventId JobMaker::Add(size_t rank, const std::string& name, int64_t start_ps, int64_t end_ps,
                           BoundBy bound_by) {
  PathGraph& graph = job_.ranks[rank].graph;
  const auto event = static_cast<GraphEventId>(graph.events.size());
  GraphEvent added;
  added.name = graph.names.Intern(name);
  added.start_ps = start_ps;
  added.duration_ps = end_ps - start_ps;
  added.category = EventCategory::kKernel;
  added.position = event;
  graph.events.push_back(added);
  graph.instants.push_back({start_ps, event, /*is_start=*/true});
  graph.instants.push_back({end_ps, event, /*is_start=*/false});
  graph.edges.push_back({StartInstant(event) - 1, StartInstant(event), start_ps - ends_ps_[rank],
                         kNoEvent, EdgeType::kDependency, BoundBy::kHostGap});
  graph.edges.push_back({StartInstant(event), EndInstant(event), end_ps - start_ps, event,
                         EdgeType::kOperator, bound_by});
  ends_ps_[rank] = end_ps;
  return event;
}

void JobMaker::Meet(const std::string& name, std::optional<int64_t> step,
                    const std::vector<Member>& members) {
  Meeting meeting;
  meeting.name = name;
  meeting.step = step;
  for (const Member& member : members) {
    meeting.arrivals.push_back({member.rank, StartInstant(member.event)});
    meeting.departures.push_back({member.rank, EndInstant(member.event)});
  }
  job_.meetings.push_back(std::move(meeting));
}

JobGraph JobMaker::Make() && {
  for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
    PathGraph& graph = job_.ranks[rank].graph;
    graph.window_end_ps = ends_ps_[rank];
    const auto end = static_cast<InstantId>(graph.instants.size());
    graph.instants.push_back({ends_ps_[rank], kNoEvent, /*is_start=*/false});
    graph.edges.push_back({end - 1, end, 0, kNoEvent, EdgeType::kDependency, BoundBy::kNothing});
    graph.end_instant = end;
  }
  return std::move(job_);
}

JobGraph RandomJob(std::mt19937& random) {
  const auto draw = [&](int below) { return static_cast<int>(random() % below); };
  const int ranks = 1 + draw(5);
  JobMaker maker(ranks);
  // Every rank has an event, since a rank without any has no graph.
  for (int rank = 0; rank < ranks; ++rank) maker.Add(rank, "first", draw(5), 5 + draw(5));
  const int rounds = draw(30);
  for (int round = 0; round < rounds; ++round) {
    const size_t rank = static_cast<size_t>(draw(ranks));
    if (draw(2) == 0) {
      const int64_t start_ps = maker.EndPs(rank) + draw(6);
      maker.Add(rank, absl::StrCat("op ", draw(4)), start_ps, start_ps + draw(20));
      continue;
    }
    std::vector<size_t> group;
    std::vector<int64_t> starts_ps;
    for (int member = 0; member < ranks; ++member) {
      if (draw(3) != 0) group.push_back(static_cast<size_t>(member));
    }
    if (group.size() < 2) continue;
    for (const size_t member : group) starts_ps.push_back(maker.EndPs(member) + draw(6));
    const int64_t met_ps = *std::max_element(starts_ps.begin(), starts_ps.end());
    std::vector<JobMaker::Member> members;
    for (size_t i = 0; i < group.size(); ++i) {
      members.push_back({group[i], maker.Add(group[i], "all-reduce", starts_ps[i],
                                             met_ps + 1 + draw(10), BoundBy::kGpuCommunication)});
    }
    maker.Meet("all-reduce", round / 10, members);
  }
  return std::move(maker).Make();
}

}  // namespace meridian
