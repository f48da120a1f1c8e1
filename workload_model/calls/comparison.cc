#include "workload_model/calls/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// A transition that was not measured is noted when it is so much of what is predicted in all: rare ones
// do not come in every run.
constexpr double kNotableShare = 0.01;

// The transitions of all cells together.
class TransitionComparison {
 public:
  // Returns what was measured in the cell in all, in us.
  double Add(const Measurements& measurements, const WorkloadCell& cell,
             const WorkloadEvaluation& evaluation) {
    std::map<Transition, double> predicted;
    for (const EvaluatedTransition& t : evaluation.transitions()) {
      predicted[{t.source(), t.destination()}] = t.count() * t.us();
    }
    double measured_us = 0;
    for (const auto& [transition, values] : measurements.times) {
      const auto value = values.find(cell);
      if (value == values.end()) continue;
      measured_us += value->second.Sum();
      const auto found = predicted.find(transition);
      if (found == predicted.end()) {
        unknown_.insert(transition);
      } else {
        AddTimes(value->second.Sum(), found->second, &compared_[transition]);
        predicted.erase(found);
      }
    }
    for (const auto& [transition, us] : predicted) {
      if (us > kNotableShare * evaluation.total_us()) missing_.insert(transition);
    }
    return measured_us;
  }

  // Adds the transitions, the longest first, and what is to be said about others.
  void AddTo(WorkloadComparison* result) {
    for (auto& [transition, compared] : compared_) {
      compared.set_source(transition.first);
      compared.set_destination(transition.second);
      const double cells = static_cast<double>(std::max<int64_t>(1, compared.cells()));
      compared.set_error(compared.error() / cells);
      compared.set_signed_error(compared.signed_error() / cells);
      *result->add_transitions() = compared;
    }
    std::stable_sort(
        result->mutable_transitions()->begin(), result->mutable_transitions()->end(),
        [](const auto& a, const auto& b) { return a.measured_us() > b.measured_us(); });
    for (const auto& [source, destination] : unknown_) {
      result->add_notes(absl::StrCat("there is no model from callsite ", source, " to ",
                                     destination, ": its time is missing in what is predicted"));
    }
    for (const auto& [source, destination] : missing_) {
      result->add_notes(
          absl::StrCat("from callsite ", source, " to ", destination,
                       " nothing was measured in some run, where the model has time"));
    }
  }

 private:
  static void AddTimes(double measured, double predicted, ComparedTransition* compared) {
    compared->set_measured_us(compared->measured_us() + measured);
    compared->set_predicted_us(compared->predicted_us() + predicted);
    if (!(measured > 0)) return;
    const double error = predicted / measured - 1;
    compared->set_error(compared->error() + std::abs(error));
    compared->set_signed_error(compared->signed_error() + error);
    compared->set_cells(compared->cells() + 1);
  }

  // Errors are sums over cells until all are there.
  std::map<Transition, ComparedTransition> compared_;
  // Transitions without a model, and those of the model that were not measured.
  std::set<Transition> unknown_, missing_;
};

}  // namespace

absl::StatusOr<WorkloadComparison> CompareWorkload(const WorkloadModel& model,
                                                   const Measurements& measurements) {
  WorkloadComparison result;
  TransitionComparison transitions;
  double errors = 0;
  for (const WorkloadCell& cell : measurements.cells) {
    ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, cell));
    const double measured_us = transitions.Add(measurements, cell, evaluation);
    if (!(measured_us > 0)) continue;
    ComparedCell& compared = *result.add_cells();
    compared.set_nodes(cell.machines);
    compared.set_size(cell.size);
    compared.set_threads(cell.kind.threads);
    compared.set_measured_us(measured_us);
    compared.set_predicted_us(evaluation.total_us());
    compared.set_low_us(evaluation.low_us());
    compared.set_high_us(evaluation.high_us());
    compared.set_error(evaluation.total_us() / measured_us - 1);
    compared.set_extrapolated(evaluation.extrapolated());
    errors += std::abs(compared.error());
    if (measured_us >= evaluation.low_us() && measured_us <= evaluation.high_us()) {
      result.set_inside(result.inside() + 1);
    }
  }
  if (result.cells_size() == 0) {
    return absl::InvalidArgumentError("there is nothing to compare with: no time was measured");
  }
  result.set_mean_error(errors / result.cells_size());
  transitions.AddTo(&result);
  return result;
}

}  // namespace meridian
