// What becomes of clocks that are set, or run at another rate for a while, in the middle of recorded
// runs, whose ranks share one clock. Each draw puts all clocks off by some offset and drift and changes
// one of them, the reference's, too. Prints how many draws of each run were
//
//   unseen    contradicting no collective: nothing to be seen, or no more than is uncertain anyway
//   mapped    with the truth inside what is stated, of all clocks at all collectives
//   refused   naming whose clock it may be, or nobody's
//   repeated  of these: the clock was set back over times that it had shown, which no map mends
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/collectives/testing/aligned_check.h"
#include "trace_alignment/testing/recorded_files.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/collectives/run_resolution.h"

namespace meridian {
namespace {

constexpr int64_t kMs = 1'000'000'000;
constexpr int kDraws = 12;

// From at_ps on, by the node's clock, that gains by_ps within for_ps.
struct Change {
  uint32_t node = 0;
  int64_t at_ps = 0;
  int64_t for_ps = 0;
  int64_t by_ps = 0;

  int64_t GainedPs(int64_t time_ps) const {
    if (time_ps <= at_ps) return 0;
    if (time_ps >= at_ps + for_ps) return by_ps;
    return static_cast<int64_t>(static_cast<double>(time_ps - at_ps) / static_cast<double>(for_ps) *
                                static_cast<double>(by_ps));
  }
};

// A recorded run on clocks that are off, one of which changes.
struct DrawnRun {
  std::vector<TrueClock> clocks;
  Change change;
  CollectiveTable table;
  // What the changed clock would show at its last collective.
  int64_t last_ps = std::numeric_limits<int64_t>::min();
  // Whether it is set back over times of collectives that it had shown.
  bool repeats = false;
};

double DrawLog(double low, double high, std::mt19937_64* random) {
  return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(*random));
}

// Half of the changes are steps of 0.1 to 100 ms, a sixth of 1 to 10 s, and a third are slews of 300 to
// 50,000 ppm for up to half of the run.
DrawnRun DrawRun(const CollectiveTable& recorded, std::mt19937_64* random) {
  DrawnRun drawn;
  drawn.clocks = RandomClocks(recorded.node_count(), random);
  Change& change = drawn.change;
  change.node =
      static_cast<uint32_t>(Draw(0, static_cast<int64_t>(recorded.node_count()) - 1, random));
  std::vector<int64_t> times_ps;
  for (const CollectiveMember& member : recorded.members()) {
    if (recorded.NodeOf(member) != change.node) continue;
    for (const int64_t time_ps : {member.start_ps, member.end_ps}) {
      times_ps.push_back(drawn.clocks[change.node].ShowsPs(time_ps));
    }
  }
  std::sort(times_ps.begin(), times_ps.end());
  drawn.last_ps = times_ps.back();
  change.at_ps = Draw(times_ps.front(), times_ps.back(), random);
  const double sign = Draw(0, 1, random) == 0 ? 1 : -1;
  const int64_t kind = Draw(0, 5, random);
  double by_ps = 0;
  if (kind < 4) {
    by_ps =
        kind < 3 ? DrawLog(0.1 * kMs, 100.0 * kMs, random) : DrawLog(1e3 * kMs, 1e4 * kMs, random);
  } else {
    change.for_ps = Draw(kMs, std::max(kMs, (times_ps.back() - times_ps.front()) / 2), random);
    by_ps = static_cast<double>(change.for_ps) * 1e-6 * DrawLog(300, 50'000, random);
  }
  change.by_ps = static_cast<int64_t>(sign * by_ps);
  const auto after = std::upper_bound(times_ps.begin(), times_ps.end() - 1, change.at_ps);
  drawn.repeats =
      change.for_ps == 0 && after != times_ps.begin() && *after + change.by_ps <= *(after - 1);
  drawn.table = recorded;
  drawn.table.MapTimes([&](uint32_t node, int64_t time_ps) {
    const int64_t shown_ps = drawn.clocks[node].ShowsPs(time_ps);
    return node == change.node ? shown_ps + change.GainedPs(shown_ps) : shown_ps;
  });
  return drawn;
}

// Whether the time, by the node's clock, is in a stretch of which a note says that it may be off by the
// whole change.
bool IsInChange(const ClockAlignment& found, uint32_t node, int64_t time_ps) {
  return absl::c_any_of(found.jumps, [&](const ClockJump& jump) {
    return jump.node == node && jump.may_be_set && time_ps > jump.begin_ps && time_ps < jump.end_ps;
  });
}

// Returns what is stated of clocks and does not hold, at collectives or in the middle of them.
std::vector<std::string> WrongOffsets(const CollectiveTable& recorded, const DrawnRun& drawn,
                                      bool is_certain, const ClockAlignment& found) {
  std::vector<std::string> wrong;
  for (size_t m = 0; m < recorded.members().size(); ++m) {
    const CollectiveMember& shown = drawn.table.members()[m];
    const CollectiveMember& real = recorded.members()[m];
    const uint32_t n = recorded.NodeOf(real);
    const NodeOffset& node = found.nodes[n];
    if (!node.reachable) continue;
    for (const auto& [shown_ps, true_ps] : {std::make_pair(shown.start_ps, real.start_ps),
                                            std::make_pair(shown.end_ps, real.end_ps)}) {
      if (IsInChange(found, n, shown_ps)) continue;
      const int64_t error_ps = std::abs(shown_ps - OffsetPs(node, shown_ps) - true_ps);
      const bool is_stated = shown_ps == node.offset_at_ps + node.offset_ps;
      // A picosecond for what the drawn clock rounds.
      if ((is_certain && error_ps > node.uncertainty_max_ps + 1) ||
          (is_stated && error_ps > node.certified_uncertainty_ps + 1)) {
        wrong.push_back(absl::StrCat("node ", n, " at ", shown_ps, " ps is off by ", error_ps));
      }
    }
  }
  return wrong;
}

// Returns what is stated of the change and does not hold.
std::vector<std::string> WrongChange(const DrawnRun& drawn, const ClockJump& jump) {
  const Change& change = drawn.change;
  if (jump.node != change.node) {
    if (absl::c_linear_search(jump.or_nodes, change.node)) return {};
    return {absl::StrCat("not the clock of node ", jump.node)};
  }
  std::vector<std::string> wrong;
  const auto [begin_ps, end_ps] =
      std::minmax(change.at_ps, change.at_ps + change.for_ps + change.by_ps + 1);
  if (jump.end_ps < begin_ps || jump.begin_ps > end_ps) wrong.push_back("not at that time");
  const int64_t by_ps = change.GainedPs(drawn.last_ps);
  if (std::abs(jump.by_ps() - by_ps) > jump.uncertainty_ps) {
    wrong.push_back(absl::StrCat("not by ", jump.by_ps(), " ps"));
  }
  if (!(change.for_ps > 0 ? jump.may_be_slewed : jump.may_be_set)) wrong.push_back("not like that");
  return wrong;
}

// Returns the nodes that a refusal names, by their positions.
std::vector<uint32_t> SuspectsIn(absl::string_view message) {
  std::vector<uint32_t> nodes;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(message, absl::MaxSplits("The clock of node ", 1));
  if (parts.size() < 2) return nodes;
  for (const absl::string_view word : absl::StrSplit(parts[1], ' ')) {
    uint32_t node = 0;
    if (absl::SimpleAtoi(word, &node)) {
      nodes.push_back(node);
    } else if (word != "or") {
      break;
    }
  }
  return nodes;
}

struct Outcomes {
  int unseen = 0, mapped = 0, named = 0, misnamed = 0, unnamed = 0, repeated = 0;

  int refused() const { return named + misnamed + unnamed; }
};

// Aligns by what is certain, or by what is likely.
void AddDraw(const CollectiveRun& run, const DrawnRun& drawn, bool is_certain, Outcomes* outcomes) {
  ProbeFreeOptions options;
  options.end_agreement = !is_certain;
  options.clocks_may_jump =
      run.runs.method == RunMethod::kRunId || run.runs.method == RunMethod::kStep;
  const absl::StatusOr<ClockAlignment> found = AlignByCollectives(drawn.table, options);
  if (!found.ok()) {
    const std::vector<uint32_t> suspects = SuspectsIn(found.status().message());
    const bool is_right = absl::c_linear_search(suspects, drawn.change.node);
    ++(suspects.empty() ? outcomes->unnamed : is_right ? outcomes->named : outcomes->misnamed);
    outcomes->repeated += drawn.repeats ? 1 : 0;
    return;
  }
  if (found->jumps.empty()) {
    ++outcomes->unseen;
    return;
  }
  std::vector<std::string> wrong = WrongOffsets(run.table, drawn, is_certain, *found);
  for (const ClockJump& jump : found->jumps) {
    for (std::string& what : WrongChange(drawn, jump)) wrong.push_back(std::move(what));
  }
  if (wrong.empty()) {
    ++outcomes->mapped;
  } else if (!drawn.repeats) {
    ADD_FAILURE() << "node " << drawn.change.node << " by " << drawn.change.by_ps << " ps at "
                  << drawn.change.at_ps << " ps over " << drawn.change.for_ps
                  << " ps: " << wrong[0];
  }
}

TEST(ClockJumpsRecordedTest, WhatIsMappedHoldsTheTruth) {
  std::printf("%-36s unseen mapped refused (named, misnamed, not) repeated\n", "run");
  Outcomes all;
  for (const auto& [name, files] : RecordedFiles()) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const CollectiveRun run, ReadCollectiveRun(FileSystem::Posix(), files));
    if (run.table.members().empty()) continue;
    std::mt19937_64 random(7);
    Outcomes of;
    for (int draw = 0; draw < kDraws; ++draw) {
      const DrawnRun drawn = DrawRun(run.table, &random);
      for (const bool is_certain : {true, false}) AddDraw(run, drawn, is_certain, &of);
    }
    std::printf("%-36s %6d %6d %7d (%d, %d, %d) %d\n", name.c_str(), of.unseen, of.mapped,
                of.refused(), of.named, of.misnamed, of.unnamed, of.repeated);
    all.mapped += of.mapped;
    all.misnamed += of.misnamed;
    // What is refused though a map could mend it, and though executions are surely matched rightly.
    if (run.runs.method == RunMethod::kRunId) all.named += of.refused() - of.repeated;
  }
  EXPECT_LE(all.named, all.mapped / 10);
  EXPECT_LE(all.misnamed, all.mapped / 50);
}

}  // namespace
}  // namespace meridian
