#include "workload_model/measurements/rank_classes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace meridian {
namespace {

constexpr absl::string_view kRules[] = {"all", "first", "diagonal", "ends", "parity"};

// The ranks of each run in each cell.
using Jobs = std::map<std::pair<WorkloadCell, std::string>, std::vector<const RunMeasurements*>>;

std::optional<std::string> ClassOf(absl::string_view rule, const RunMeasurements& run) {
  return RankClassOf(rule, run.rank, std::llround(run.cell.Ranks()));
}

bool CallTheSame(const RunMeasurements& a, const RunMeasurements& b) {
  return std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(),
                    [](const TracedCall& x, const TracedCall& y) {
                      return x.destination == y.destination && x.operation == y.operation;
                    });
}

bool ExplainsCalls(absl::string_view rule, const Jobs& jobs) {
  for (const auto& [place, job] : jobs) {
    std::map<std::string, const RunMeasurements*> first;
    for (const RunMeasurements* run : job) {
      const std::optional<std::string> rank_class = ClassOf(rule, *run);
      if (!rank_class.has_value()) return false;
      const auto [known, is_new] = first.insert({*rank_class, run});
      if (!is_new && !CallTheSame(*known->second, *run)) return false;
    }
  }
  return true;
}

}  // namespace

bool IsRankRule(absl::string_view rule) {
  return std::find(std::begin(kRules), std::end(kRules), rule) != std::end(kRules);
}

std::optional<int64_t> SquareRoot(int64_t number) {
  const auto root = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(number))));
  if (root * root != number) return std::nullopt;
  return root;
}

std::optional<std::string> RankClassOf(absl::string_view rule, int64_t rank, int64_t ranks) {
  if (rule == "first") return rank == 0 ? "first" : "others";
  if (rule == "ends") return rank == 0 ? "first" : rank + 1 == ranks ? "last" : "middle";
  if (rule == "parity") return rank % 2 == 0 ? "even" : "odd";
  if (rule == "diagonal") {
    const std::optional<int64_t> root = SquareRoot(ranks);
    if (!root.has_value()) return std::nullopt;
    return rank / *root == rank % *root ? "diagonal" : "off-diagonal";
  }
  return "all";
}

std::optional<std::string> ClassifyRanks(std::vector<RunMeasurements>* runs,
                                         std::vector<std::string>* notes) {
  Jobs jobs;
  for (const RunMeasurements& run : *runs) {
    if (!run.calls.empty()) jobs[{run.cell, run.run}].push_back(&run);
  }
  if (jobs.empty()) return "all";
  for (absl::string_view rule : kRules) {
    if (!ExplainsCalls(rule, jobs)) continue;
    AssignClasses(rule, runs);
    return std::string(rule);
  }
  notes->push_back(
      "ranks of one run make different calls, and neither the first, the last, the diagonal nor "
      "every second one explains it: there is no control flow, and ranks are taken together");
  return std::nullopt;
}

void AssignClasses(absl::string_view rule, std::vector<RunMeasurements>* runs) {
  for (RunMeasurements& run : *runs) {
    if (!run.calls.empty()) run.cell.kind.rank_class = ClassOf(rule, run).value_or("all");
  }
}

}  // namespace meridian
