// How good the likely clocks are: recorded runs, whose ranks share one clock, put off at random and
// found again by their collectives alone. Prints a table: the mean error of the estimate, of the
// plain median of the differences of ends and of the middle of what is certain; and how many ranks
// lie inside the stated range.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/collectives/testing/aligned_check.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

constexpr int kDraws = 100;

// Runs by their names, each with its files. Those with "_skewed" are put off already.
std::map<std::string, std::vector<std::string>> RecordedFiles() {
  std::vector<std::string> roots = {"examples"};
  const std::optional<std::string> shared = SharedDataDirectory();
  if (shared.has_value()) roots.push_back(*shared + "/traces");
  std::map<std::string, std::vector<std::string>> runs;
  for (const std::string& root : roots) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             root, std::filesystem::directory_options::follow_directory_symlink)) {
      const std::string name = entry.path().filename();
      const std::string run =
          std::filesystem::relative(entry.path().parent_path(), std::filesystem::path(root));
      if (absl::StrContains(run, "_skewed") ||
          !(absl::StrContains(name, ".xplane.pb") || absl::StartsWith(name, "kineto_"))) {
        continue;
      }
      runs[absl::StrCat(run, root == "examples" ? "" : " (shared)")].push_back(entry.path());
    }
  }
  for (auto& [run, files] : runs) std::sort(files.begin(), files.end());
  return runs;
}

// Returns by how much each node's clock is ahead of the first by the plain median of the differences
// of ends, from node to node along those that share most instances; absent where there are none.
std::vector<std::optional<double>> MediansOfEnds(const CollectiveTable& table) {
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
  found[0] = 0;
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
    std::sort(most->begin(), most->end());
    found[nodes.second] = *found[nodes.first] + (*most)[most->size() / 2];
  }
}

struct Errors {
  double estimate_us = 0, medians_us = 0, middle_us = 0, range_us = 0;
  int ranks = 0, inside = 0, certain = 0, violations = 0;
};

void AddDraw(const CollectiveTable& recorded, const std::vector<TrueClock>& clocks,
             Errors* errors) {
  CollectiveTable table = recorded;
  table.MapTimes([&](uint32_t node, int64_t time_ps) { return clocks[node].ShowsPs(time_ps); });
  ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(table, {}));
  ProbeFreeOptions certified;
  certified.end_agreement = false;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment middle, AlignByCollectives(table, certified));
  const std::vector<std::optional<double>> medians = MediansOfEnds(table);
  const auto truth_ps = [&](const NodeOffset& node, size_t n) {
    return clocks[n].OffsetPs(node.offset_at_ps + node.offset_ps);
  };
  for (size_t n = 1; n < found.nodes.size(); ++n) {
    const NodeOffset& node = found.nodes[n];
    if (!node.reachable) continue;
    const int64_t error_ps = std::abs(node.offset_ps - truth_ps(node, n));
    errors->ranks += 1;
    errors->inside += error_ps <= node.uncertainty_ps ? 1 : 0;
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

TEST(LikelyClocksRecordedTest, RangesHoldAndErrorsAreNoneTheWorse) {
  std::printf("%-36s %10s %10s %10s %10s  inside\n", "run (us)", "estimate", "medians", "middle",
              "range");
  std::mt19937_64 random(41);
  for (const auto& [name, files] : RecordedFiles()) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const CollectiveRun run, ReadCollectiveRun(FileSystem::Posix(), files));
    Errors errors;
    for (int draw = 0; draw < kDraws; ++draw) {
      AddDraw(run.table, RandomClocks(files.size(), &random), &errors);
    }
    if (errors.ranks == 0) continue;
    for (double* sum :
         {&errors.estimate_us, &errors.medians_us, &errors.middle_us, &errors.range_us}) {
      *sum /= errors.ranks;
    }
    std::printf("%-36s %10.1f %10.1f %10.1f %10.1f  %d of %d\n", name.c_str(), errors.estimate_us,
                errors.medians_us, errors.middle_us, errors.range_us, errors.inside, errors.ranks);
    EXPECT_EQ(errors.certain, errors.ranks);
    EXPECT_EQ(errors.violations, 0);
    EXPECT_GE(errors.inside, 0.9 * errors.ranks);
    // Recorded clocks agree to a few microseconds only, and few executions leave noise: what is a
    // small part of the range is no difference.
    EXPECT_LE(errors.estimate_us, 1.25 * errors.medians_us + 5 + errors.range_us / 8);
  }
}

}  // namespace
}  // namespace meridian
