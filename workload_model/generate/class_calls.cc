#include "workload_model/generate/class_calls.h"

#include <map>
#include <set>
#include <utility>

#include "workload_model/calls/flow_walk.h"
#include "workload_model/calls/rank_patterns.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// A rank makes at most so many calls.
constexpr int64_t kMaxCalls = 5000000;

}  // namespace

double ClassCalls::ComputeUs() const {
  double sum = 0;
  for (const Visit& visit : visits) sum += static_cast<double>(visit.compute_ns) / kNsPerUs;
  return sum;
}

absl::StatusOr<ClassCalls> WalkClass(EvaluatedFlow evaluated) {
  ASSIGN_OR_RETURN(
      const std::vector<int64_t> path,
      WalkControlFlow(*evaluated.flow, evaluated.cell_of_ranks, kBranchSeed, kMaxCalls));
  ClassCalls result;
  std::map<int64_t, std::vector<int64_t>> numbers;
  std::set<Transition> seen;
  int64_t source = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    Visit& visit = result.visits.emplace_back();
    ASSIGN_OR_RETURN(visit.callsite, evaluated.CallsiteOf(path[i]));
    visit.operation = OperationOf(visit.callsite->operation());
    visit.bytes = evaluated.BytesOf(path[i]);
    if (visit.callsite->peer().by_visit() != 0) {
      std::vector<int64_t>& of_callsite = numbers[path[i]];
      if (of_callsite.empty()) {
        of_callsite = VisitsSince(path, path[i], visit.callsite->peer().since());
      }
      visit.number = of_callsite[i];
    }
    const EvaluatedFlow::Times times = evaluated.TimesOf({source, path[i]});
    const bool is_first = seen.insert({source, path[i]}).second;
    visit.compute_ns = is_first ? times.first_ns : times.steady_ns;
    source = path[i];
  }
  result.evaluated = std::move(evaluated);
  return result;
}

}  // namespace meridian
