#include "workload_model/measurements/rank_classes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

constexpr absl::string_view kRules[] = {"all", "first", "diagonal", "ends", "parity"};
// A rule that only times speak for explains so much of how they differ, and they differ by so much.
constexpr double kExplained = 0.8;
constexpr double kNotable = 0.1;
// With fewer ranks anything is explained by chance.
constexpr size_t kLeastRanks = 8;

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

double SquaresAboutMean(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

// Whether the computation of the ranks, where it is known apart from their calls, differs by class and
// hardly within classes, in the median of all jobs.
bool ExplainsTimes(absl::string_view rule, const Jobs& jobs) {
  std::vector<double> explained, differences;
  for (const auto& [place, job] : jobs) {
    std::map<std::string, std::vector<double>> times;
    std::vector<double> all;
    for (const RunMeasurements* run : job) {
      const std::optional<std::string> rank_class = ClassOf(rule, *run);
      if (!rank_class.has_value()) return false;
      const double total = SumOf(run->computes);
      if (!(total > 0)) return false;
      times[*rank_class].push_back(std::log(total));
      all.push_back(std::log(total));
    }
    if (all.size() < kLeastRanks || times.size() < 2) continue;
    double within = 0;
    std::vector<double> means;
    for (const auto& [name, values] : times) {
      within += SquaresAboutMean(values);
      means.push_back(Mean(values));
    }
    const double about = SquaresAboutMean(all);
    if (!(about > 0)) return false;
    explained.push_back(1 - within / about);
    const auto [least, most] = std::minmax_element(means.begin(), means.end());
    differences.push_back(*most - *least);
  }
  return !explained.empty() && Median(explained) >= kExplained && Median(differences) >= kNotable;
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
  std::optional<std::string> chosen;
  for (absl::string_view rule : kRules) {
    if (!ExplainsCalls(rule, jobs)) continue;
    if (!chosen.has_value()) chosen = std::string(rule);
    if (rule != "all" && ExplainsTimes(rule, jobs)) {
      chosen = std::string(rule);
      break;
    }
  }
  if (!chosen.has_value()) {
    notes->push_back(
        "ranks of one run make different calls, and neither the first, the last, the diagonal nor "
        "every second one explains it: there is no control flow, and ranks are taken together");
    return std::nullopt;
  }
  AssignClasses(*chosen, runs);
  return chosen;
}

void AssignClasses(absl::string_view rule, std::vector<RunMeasurements>* runs) {
  for (RunMeasurements& run : *runs) {
    if (!run.calls.empty()) run.cell.kind.rank_class = ClassOf(rule, run).value_or("all");
  }
}

}  // namespace meridian
