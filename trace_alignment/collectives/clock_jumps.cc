#include "trace_alignment/collectives/clock_jumps.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// How many executions before and after are compared, and how many a slew may take at most.
constexpr size_t kCompared = 6;
constexpr size_t kMostCompared = 64;
constexpr size_t kLongestSlew = 127;
// What stands out differs by so many times what the executions scatter.
constexpr int64_t kStandsOut = 6;

// An end of a node's clock, when the others end, and how much later it is than they are.
struct ComparedEnd {
  int64_t end_ps = 0;
  int64_t others_ps = 0;
  int64_t lag_ps = 0;
};

// By the nodes of an instance: the last end of each of them, execution by execution.
using EndsByGroup = std::map<std::vector<uint32_t>, std::vector<std::vector<int64_t>>>;

EndsByGroup GroupEnds(const CollectiveTable& table) {
  EndsByGroup groups;
  std::map<uint32_t, int64_t> last_ps;
  for (const CollectiveInstance& instance : table.instances()) {
    if (!IsSynchronising(table.OpOf(instance).kind) || instance.missing > 0) continue;
    last_ps.clear();
    for (const CollectiveMember& member : table.MembersOf(instance)) {
      int64_t& end_ps = last_ps.try_emplace(table.NodeOf(member), member.end_ps).first->second;
      end_ps = std::max(end_ps, member.end_ps);
    }
    if (last_ps.size() < 2) continue;
    std::vector<uint32_t> nodes;
    std::vector<int64_t> ends_ps;
    for (const auto& [node, end_ps] : last_ps) {
      nodes.push_back(node);
      ends_ps.push_back(end_ps);
    }
    groups[std::move(nodes)].push_back(std::move(ends_ps));
  }
  return groups;
}

// Returns the ends of each node of a group beside the median end of the others, by the offsets that
// the clocks have most of the time: who differs then is the one that has changed.
std::vector<std::vector<ComparedEnd>> CompareEnds(
    const std::vector<std::vector<int64_t>>& executions) {
  const size_t nodes = executions[0].size();
  std::vector<int64_t> offsets_ps(nodes);
  for (size_t n = 1; n < nodes; ++n) {
    std::vector<int64_t> apart_ps;
    for (const std::vector<int64_t>& ends_ps : executions) {
      apart_ps.push_back(ends_ps[n] - ends_ps[0]);
    }
    offsets_ps[n] = UpperMedian(std::move(apart_ps));
  }
  std::vector<std::vector<ComparedEnd>> compared(nodes);
  for (const std::vector<int64_t>& ends_ps : executions) {
    std::vector<int64_t> sorted_ps;
    for (size_t n = 0; n < nodes; ++n) sorted_ps.push_back(ends_ps[n] - offsets_ps[n]);
    std::sort(sorted_ps.begin(), sorted_ps.end());
    for (size_t n = 0; n < nodes; ++n) {
      const int64_t own_ps = ends_ps[n] - offsets_ps[n];
      const auto other_ps = [&](size_t k) { return sorted_ps[sorted_ps[k] < own_ps ? k : k + 1]; };
      // Of two others both are the median, and what is between them: it is the other that differs.
      const int64_t others_ps =
          std::clamp(own_ps, other_ps((nodes - 2) / 2), other_ps((nodes - 1) / 2));
      compared[n].push_back({ends_ps[n], others_ps, own_ps - others_ps});
    }
  }
  return compared;
}

struct Level {
  int64_t lag_ps = 0;
  int64_t scatter_ps = 0;
};

Level LevelOf(absl::Span<const ComparedEnd> ends) {
  std::vector<int64_t> lags_ps, deviations_ps;
  for (const ComparedEnd& end : ends) lags_ps.push_back(end.lag_ps);
  Level level;
  level.lag_ps = UpperMedian(lags_ps);
  for (const int64_t lag_ps : lags_ps) deviations_ps.push_back(std::abs(lag_ps - level.lag_ps));
  level.scatter_ps = UpperMedian(std::move(deviations_ps));
  return level;
}

// Returns when the lags have gone that share of the way, by medians of so many before and after.
int64_t CrossingPs(absl::Span<const ComparedEnd> ends, size_t around, const Level& before,
                   const Level& after, double share) {
  const double way = static_cast<double>(after.lag_ps - before.lag_ps);
  for (size_t i = around; i + around < ends.size(); ++i) {
    const Level level = LevelOf(ends.subspan(i - around, 2 * around + 1));
    if (static_cast<double>(level.lag_ps - before.lag_ps) / way >= share) return ends[i].end_ps;
  }
  return ends.back().end_ps;
}

// Returns a change that goes on evenly for a while. Where it begins and ends is lost in the scatter,
// but not where it has gone a quarter and three quarters of its way.
ClockJump SlewOf(absl::Span<const ComparedEnd> ends, size_t length, const Level& before,
                 const Level& after, uint32_t node) {
  const size_t around = std::max<size_t>(2, length / 8);
  const int64_t quarter_ps = CrossingPs(ends, around, before, after, 0.25);
  const int64_t half_ps = CrossingPs(ends, around, before, after, 0.75) - quarter_ps;
  const int64_t begin_ps = quarter_ps - half_ps / 2, end_ps = quarter_ps + half_ps + half_ps / 2;
  return {node, {{begin_ps, begin_ps}, {end_ps, end_ps - (after.lag_ps - before.lag_ps)}}, {}};
}

// Returns the largest change of a node's clock, in the shortest time that it can have taken.
std::optional<ClockJump> LargestJump(std::vector<ComparedEnd> ends, uint32_t node) {
  // The others' clocks are in order, whatever happened to this one.
  std::sort(ends.begin(), ends.end(),
            [](const ComparedEnd& a, const ComparedEnd& b) { return a.others_ps < b.others_ps; });
  const absl::Span<const ComparedEnd> all = ends;
  size_t first = 0, length = 0;
  Level before, after;
  int64_t largest_ps = 0;
  for (size_t slew = 0; slew <= kLongestSlew; slew = 2 * slew + 1) {
    for (size_t i = kCompared; i + slew + kCompared <= ends.size(); ++i) {
      const Level was = LevelOf(all.subspan(i - kCompared, kCompared));
      const Level is = LevelOf(all.subspan(i + slew, kCompared));
      const int64_t size_ps = std::abs(is.lag_ps - was.lag_ps);
      if (size_ps <= kStandsOut * (was.scatter_ps + is.scatter_ps)) continue;
      // What took longer must be more to be taken.
      if (size_ps <= largest_ps + largest_ps / 10) continue;
      largest_ps = size_ps;
      first = i - 1;
      length = slew;
      before = was;
      after = is;
    }
  }
  if (largest_ps == 0) return std::nullopt;
  // The levels are known before the change itself is passed.
  const auto is_before = [&](size_t i) {
    return std::abs(ends[i].lag_ps - before.lag_ps) <= std::abs(ends[i].lag_ps - after.lag_ps);
  };
  while (length == 0 && first + 2 < ends.size() && is_before(first + 1)) ++first;
  // Once it is known where the change is, more executions tell how much it is.
  const size_t begin = first + 1 - std::min(first + 1, kMostCompared);
  before = LevelOf(all.subspan(begin, first + 1 - begin));
  after = LevelOf(all.subspan(first + 1 + length, kMostCompared));
  if (length > 0) return SlewOf(all.subspan(begin), length, before, after, node);
  return ClockJump{
      node,
      {{all[first].end_ps, all[first].end_ps},
       {all[first + 1].end_ps, all[first + 1].end_ps - (after.lag_ps - before.lag_ps)}},
      {}};
}

// A clock that was set forward skipped times: nothing of its node happened in these. Looks for the
// largest gap between the jump's knots.
void Narrow(const CollectiveTable& table, ClockJump* jump) {
  std::vector<int64_t> times_ps = {jump->knots.front().shown_ps, jump->knots.back().shown_ps};
  for (const CollectiveMember& member : table.members()) {
    if (table.NodeOf(member) != jump->node) continue;
    for (const int64_t time_ps : {member.start_ps, member.end_ps}) {
      if (time_ps > times_ps[0] && time_ps < times_ps[1]) times_ps.push_back(time_ps);
    }
  }
  std::sort(times_ps.begin(), times_ps.end());
  size_t widest = 1;
  for (size_t i = 2; i < times_ps.size(); ++i) {
    if (times_ps[i] - times_ps[i - 1] > times_ps[widest] - times_ps[widest - 1]) widest = i;
  }
  const int64_t before_ps = times_ps[widest - 1], after_ps = times_ps[widest];
  const int64_t by_ps = std::min(jump->by_ps(), after_ps - before_ps - 1);
  if (by_ps < jump->by_ps() - jump->by_ps() / 8) return;
  jump->knots = {{before_ps, before_ps}, {after_ps, after_ps - by_ps}};
}

// The changes that the largest groups show of which some shows one.
struct Candidates {
  size_t group_size = 0;
  std::vector<ClockJump> jumps;
  // By node: of how many of these groups it is.
  std::map<uint32_t, int64_t> groups;
};

Candidates FindCandidates(const CollectiveTable& table) {
  const EndsByGroup groups = GroupEnds(table);
  std::vector<const EndsByGroup::value_type*> largest_first;
  for (const EndsByGroup::value_type& group : groups) largest_first.push_back(&group);
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const auto* a, const auto* b) { return a->first.size() > b->first.size(); });
  Candidates found;
  for (const auto* group : largest_first) {
    const std::vector<uint32_t>& nodes = group->first;
    if (nodes.size() < found.group_size) {
      if (!found.jumps.empty()) break;
      found.groups.clear();
    }
    found.group_size = nodes.size();
    std::vector<std::vector<ComparedEnd>> ends = CompareEnds(group->second);
    for (size_t n = 0; n < nodes.size(); ++n) {
      ++found.groups[nodes[n]];
      std::optional<ClockJump> jump = LargestJump(std::move(ends[n]), nodes[n]);
      if (!jump.has_value()) continue;
      if (nodes.size() == 2) jump->or_nodes = {nodes[1 - n]};
      jump->FitInGap();
      found.jumps.push_back(*std::move(jump));
    }
  }
  return found;
}

// Drops those that are less than half of the largest: what they are is seen once that is undone.
void KeepLarge(std::vector<ClockJump>* jumps) {
  int64_t largest_ps = 0;
  for (const ClockJump& jump : *jumps) largest_ps = std::max(largest_ps, std::abs(jump.by_ps()));
  jumps->erase(std::remove_if(
                   jumps->begin(), jumps->end(),
                   [&](const ClockJump& jump) { return std::abs(jump.by_ps()) < largest_ps / 2; }),
               jumps->end());
}

// Returns where `from` leads on the line from one knot to the next.
int64_t OnLine(int64_t from, int64_t from_a, int64_t from_b, int64_t to_a, int64_t to_b) {
  return to_a +
         static_cast<int64_t>(absl::int128(from - from_a) * (to_b - to_a) / (from_b - from_a));
}

}  // namespace

bool ClockJump::GoesUp() const {
  for (size_t k = 1; k < knots.size(); ++k) {
    if (knots[k].shown_ps <= knots[k - 1].shown_ps) return false;
    if (knots[k].undone_ps <= knots[k - 1].undone_ps) return false;
  }
  return true;
}

void ClockJump::FitInGap() {
  const int64_t gap_ps = knots.back().shown_ps - knots.front().shown_ps;
  const int64_t fit_ps = std::min(by_ps(), gap_ps - 1);
  if (by_ps() <= 0 || fit_ps < by_ps() - by_ps() / 8) return;
  knots.back().undone_ps = knots.back().shown_ps - fit_ps;
}

int64_t ClockJump::Undo(int64_t shown_ps) const {
  if (shown_ps <= knots.front().shown_ps) return shown_ps;
  if (shown_ps >= knots.back().shown_ps) return shown_ps - by_ps();
  size_t k = 1;
  while (knots[k].shown_ps < shown_ps) ++k;
  return OnLine(shown_ps, knots[k - 1].shown_ps, knots[k].shown_ps, knots[k - 1].undone_ps,
                knots[k].undone_ps);
}

int64_t ClockJump::Redo(int64_t undone_ps) const {
  if (undone_ps <= knots.front().undone_ps) return undone_ps;
  if (undone_ps >= knots.back().undone_ps) return undone_ps + by_ps();
  size_t k = 1;
  while (knots[k].undone_ps < undone_ps) ++k;
  return OnLine(undone_ps, knots[k - 1].undone_ps, knots[k].undone_ps, knots[k - 1].shown_ps,
                knots[k].shown_ps);
}

std::optional<ClockJump> FindClockJump(const CollectiveTable& table, uint32_t reference_node) {
  Candidates candidates = FindCandidates(table);
  KeepLarge(&candidates.jumps);
  // By node: in how many of its groups it shows one, less those in which it does not.
  std::map<uint32_t, int64_t> shown;
  for (const auto& [node, groups] : candidates.groups) shown[node] = -groups;
  for (const ClockJump& jump : candidates.jumps) shown[jump.node] += 2;
  const auto rank_of = [&](const ClockJump& jump) {
    return std::make_tuple(shown[jump.node], jump.GoesUp(), jump.node != reference_node,
                           std::abs(jump.by_ps()));
  };
  std::optional<ClockJump> best;
  for (const ClockJump& jump : candidates.jumps) {
    if (!best.has_value() || rank_of(jump) > rank_of(*best)) best = jump;
  }
  if (!best.has_value()) return std::nullopt;
  if (!best->or_nodes.empty() && shown[best->or_nodes[0]] < shown[best->node]) {
    best->or_nodes.clear();
  }
  // A slew has no gap.
  if (best->by_ps() > 0 && best->GoesUp()) Narrow(table, &*best);
  return best;
}

std::optional<int64_t> ChangeOfClock(const CollectiveTable& table, uint32_t node, int64_t before_ps,
                                     int64_t after_ps) {
  std::optional<int64_t> change_ps;
  size_t largest = 0;
  for (const auto& [nodes, executions] : GroupEnds(table)) {
    const auto place = std::find(nodes.begin(), nodes.end(), node);
    if (place == nodes.end() || nodes.size() <= largest) continue;
    std::vector<ComparedEnd> before, after;
    const std::vector<std::vector<ComparedEnd>> ends = CompareEnds(executions);
    for (const ComparedEnd& end : ends[static_cast<size_t>(place - nodes.begin())]) {
      if (end.end_ps <= before_ps) before.push_back(end);
      if (end.end_ps >= after_ps && after.size() < kMostCompared) after.push_back(end);
    }
    if (before.empty() || after.empty()) continue;
    const size_t first = before.size() - std::min(before.size(), kMostCompared);
    change_ps = LevelOf(after).lag_ps - LevelOf(absl::MakeConstSpan(before).subspan(first)).lag_ps;
    largest = nodes.size();
  }
  return change_ps;
}

}  // namespace meridian
