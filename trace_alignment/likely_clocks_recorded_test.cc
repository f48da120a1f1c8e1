// How good the likely clocks are: recorded runs, whose ranks share one clock, put off at random and
// found again by their collectives alone, with each rank as the reference in turn. Prints a table: the
// mean error of the estimate, of the plain median of the differences of ends and of the middle of
// what is certain; how many ranks lie inside the stated range; and by how much the error of the
// estimate exceeds that of the median on disjoint quarters of the run, with its standard error.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/collectives/testing/aligned_check.h"
#include "trace_alignment/testing/recorded_files.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

constexpr int kDraws = 100;

// Returns by how much each node's clock is ahead of the reference by the plain median of the differences
// of ends, from node to node along those that share most instances; absent where there are none.
std::vector<std::optional<double>> MediansOfEnds(const CollectiveTable& table, uint32_t reference) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<double>> differences;
  for (const CollectiveInstance& instance : table.instances()) {
    for (const CollectiveMember& a : table.MembersOf(instance)) {
      for (const CollectiveMember& b : table.MembersOf(instance)) {
        differences[{table.NodeOf(a), table.NodeOf(b)}].push_back(
            static_cast<double>(b.end_ps - a.end_ps));
      }
    }
  }
  std::vector<std::optional<double>> found(table.node_count());
  found[reference] = 0;
  while (true) {
    std::vector<double>* most = nullptr;
    std::pair<uint32_t, uint32_t> nodes;
    for (auto& [pair, values] : differences) {
      if (!found[pair.first].has_value() || found[pair.second].has_value()) continue;
      if (most != nullptr && values.size() <= most->size()) continue;
      most = &values;
      nodes = pair;
    }
    if (most == nullptr) return found;
    found[nodes.second] = *found[nodes.first] + Median(*most);
  }
}

struct Errors {
  double estimate_us = 0, medians_us = 0, middle_us = 0, range_us = 0;
  int ranks = 0, inside = 0, certain = 0, violations = 0;
  // Of those draws whose reference is the first rank, as it is unless told otherwise.
  int first_ranks = 0, first_inside = 0;

  double Excess() const { return estimate_us - medians_us; }
};

// Puts the clocks off, but for that of the reference, and finds them again.
void AddDraw(const CollectiveTable& recorded, uint32_t reference, std::mt19937_64* random,
             Errors* errors) {
  std::vector<TrueClock> clocks = RandomClocks(recorded.node_count(), random);
  std::swap(clocks[0], clocks[reference]);
  CollectiveTable table = recorded;
  table.MapTimes([&](uint32_t node, int64_t time_ps) { return clocks[node].ShowsPs(time_ps); });
  ProbeFreeOptions options;
  options.reference_node = reference;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(table, options));
  options.end_agreement = false;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment middle, AlignByCollectives(table, options));
  const std::vector<std::optional<double>> medians = MediansOfEnds(table, reference);
  const auto truth_ps = [&](const NodeOffset& node, size_t n) {
    return clocks[n].OffsetPs(node.offset_at_ps + node.offset_ps);
  };
  for (size_t n = 0; n < found.nodes.size(); ++n) {
    const NodeOffset& node = found.nodes[n];
    if (!node.reachable || n == reference) continue;
    const int64_t error_ps = std::abs(node.offset_ps - truth_ps(node, n));
    errors->ranks += 1;
    const int inside = error_ps <= node.uncertainty_ps ? 1 : 0;
    errors->inside += inside;
    errors->first_ranks += reference == 0 ? 1 : 0;
    errors->first_inside += reference == 0 ? inside : 0;
    errors->certain += error_ps <= node.certified_uncertainty_ps ? 1 : 0;
    errors->estimate_us += static_cast<double>(error_ps) * 1e-6;
    errors->range_us += static_cast<double>(node.uncertainty_ps) * 1e-6;
    errors->medians_us +=
        std::abs(medians[n].value_or(0) - static_cast<double>(truth_ps(node, n))) * 1e-6;
    const NodeOffset& centre = middle.nodes[n];
    errors->middle_us +=
        static_cast<double>(std::abs(centre.offset_ps - truth_ps(centre, n))) * 1e-6;
  }
  errors->violations += static_cast<int>(CheckAligned(table, found).violations.size());
}

// Returns means over all draws and ranks.
Errors ErrorsOf(const CollectiveTable& table, int draws, std::mt19937_64* random) {
  Errors errors;
  for (int draw = 0; draw < draws; ++draw) {
    AddDraw(table, static_cast<uint32_t>(draw) % table.node_count(), random, &errors);
  }
  for (double* sum :
       {&errors.estimate_us, &errors.medians_us, &errors.middle_us, &errors.range_us}) {
    *sum /= std::max(1, errors.ranks);
  }
  return errors;
}

// Returns the run's complete instances, in the order of time, in so many parts.
std::vector<CollectiveTable> PartsOf(const CollectiveRun& run, size_t parts) {
  const std::vector<CollectiveInstance>& instances = run.table.instances();
  std::vector<CollectiveTable> tables;
  for (size_t part = 0; part < parts; ++part) {
    std::vector<std::set<uint32_t>> kept(run.profiles.size());
    for (size_t i = instances.size() * part / parts; i < instances.size() * (part + 1) / parts;
         ++i) {
      if (instances[i].missing > 0) continue;
      for (const CollectiveMember& member : run.table.MembersOf(instances[i])) {
        kept[run.table.NodeOf(member)].insert(member.event);
      }
    }
    std::vector<ProfileCollectives> profiles = run.profiles;
    for (size_t p = 0; p < profiles.size(); ++p) {
      profiles[p].events.clear();
      for (const uint32_t event : kept[p]) {
        profiles[p].events.push_back(run.profiles[p].events[event]);
      }
    }
    absl::StatusOr<CollectiveRun> matched = MatchCollectives(std::move(profiles));
    if (matched.ok()) tables.push_back(std::move(matched->table));
  }
  return tables;
}

TEST(LikelyClocksRecordedTest, RangesHoldAndErrorsAreNoneTheWorse) {
  // Of the t distribution of four parts: what chance exceeds once in 20 times.
  constexpr double kChance = 2.35;
  constexpr size_t kParts = 4;
  std::printf("%-36s %10s %10s %10s %10s  inside, quarters\n", "run (us)", "estimate", "medians",
              "middle", "range");
  std::mt19937_64 random(41);
  int runs = 0, worse = 0, ranks = 0, inside = 0;
  double log_ratios = 0;
  for (const auto& [name, files] : RecordedFiles()) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const CollectiveRun run, ReadCollectiveRun(FileSystem::Posix(), files));
    const Errors errors = ErrorsOf(run.table, kDraws, &random);
    if (errors.ranks == 0) continue;
    std::vector<double> excess_us;
    for (const CollectiveTable& part : PartsOf(run, kParts)) {
      const Errors of_part = ErrorsOf(part, kDraws / 10, &random);
      if (of_part.ranks > 0) excess_us.push_back(of_part.Excess());
    }
    const double mean_us = excess_us.empty() ? 0 : Mean(excess_us);
    double squares = 0;
    for (const double us : excess_us) squares += (us - mean_us) * (us - mean_us);
    const double error_us = std::sqrt(squares / (kParts * (kParts - 1)));
    const bool is_worse =
        errors.Excess() > 5 && excess_us.size() == kParts && mean_us > kChance * error_us;
    std::printf("%-36s %10.1f %10.1f %10.1f %10.1f  %d of %d, %.1f +- %.1f%s\n", name.c_str(),
                errors.estimate_us, errors.medians_us, errors.middle_us, errors.range_us,
                errors.inside, errors.ranks, mean_us, error_us, is_worse ? " worse" : "");
    runs += 1;
    worse += is_worse ? 1 : 0;
    ranks += errors.ranks;
    inside += errors.inside;
    log_ratios += std::log((errors.estimate_us + 1) / (errors.medians_us + 1));
    EXPECT_EQ(errors.certain, errors.ranks);
    EXPECT_EQ(errors.violations, 0);
    EXPECT_GE(errors.first_inside, 0.9 * errors.first_ranks);
    EXPECT_GE(errors.inside, 0.85 * errors.ranks);
    // Recorded clocks agree to a few microseconds only, and few executions leave noise: what is a
    // small part of the range is no difference.
    EXPECT_LE(errors.estimate_us, errors.medians_us + 5 + errors.range_us / 8);
  }
  EXPECT_GE(inside, 0.95 * ranks);
  EXPECT_LE(worse, 1 + runs / 20);
  EXPECT_LT(std::exp(log_ratios / runs), 0.6);
}

}  // namespace
}  // namespace meridian
