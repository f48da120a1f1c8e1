#include "critical_path/job_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trace_alignment/collectives/happens_before.h"

namespace meridian {
namespace {

// Messages name at most this many.
constexpr size_t kMaxNamedRanks = 10;

}  // namespace

absl::Status CheckClocks(const CollectiveRun& run, const JobOptions& options,
                         std::vector<std::string>* notes) {
  const HappensBefore check = CheckHappensBefore(run.table);
  if (!options.allow_violations) return RefuseViolations(run, check);
  if (!check.violations.empty()) {
    notes->push_back(absl::StrCat("the clocks disagree: ", check.violations.size(), " of ",
                                  check.checked,
                                  " collectives end before they began elsewhere; times between "
                                  "ranks are not to be trusted"));
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const std::vector<int64_t>& there, int64_t rank_count,
                        const JobOptions& options, std::vector<std::string>* notes) {
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < rank_count && missing.size() < kMaxNamedRanks; ++rank) {
    if (!std::binary_search(there.begin(), there.end(), rank)) missing.push_back(rank);
  }
  if (missing.empty()) return absl::OkStatus();
  const std::string text = absl::StrCat("no trace has the work of rank ",
                                        absl::StrJoin(missing, ", "), " of ", rank_count);
  if (there.size() > 1 && !options.rank.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, "; give the traces of all ranks, or choose one rank with --rank"));
  }
  notes->push_back(absl::StrCat(text, ": waiting for them looks like communication"));
  return absl::OkStatus();
}

}  // namespace meridian
