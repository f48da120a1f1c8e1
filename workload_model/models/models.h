// SPDX-License-Identifier: Apache-2.0
// Where a run was measured, and what a Model of workload_model.proto is worth there: by our own rules
// and by those of the published Ember motif. What commands and JSON call nodes are machines here.
#ifndef WORKLOAD_MODEL_MODELS_MODELS_H_
#define WORKLOAD_MODEL_MODELS_MODELS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

inline constexpr absl::string_view kConstant = "CONSTANT";
inline constexpr absl::string_view kExponential = "EXPONENTIAL";
inline constexpr absl::string_view kBilinear = "BILINEAR";
inline constexpr absl::string_view kPolynomial = "POLYNOMIAL";
inline constexpr absl::string_view kTrace = "TRACE";
inline constexpr absl::string_view kNormal = "NORMAL";

// Times that drift by more than this within a run would be negative at its beginning, or at its end.
inline constexpr double kMaxDrift = 1.9;

// Beyond these a cell is a slip of the finger.
inline constexpr double kMaxMachines = 1e9;
inline constexpr double kMaxSize = 1e15;

// What tells runs apart that have models of their own.
struct CellKind {
  int64_t threads = 1;
  int64_t ranks_per_machine = 1;
  // Ranks of one class do the same (rank_classes.h); "" asks for all classes.
  std::string rank_class = "all";

  friend bool operator<(const CellKind& a, const CellKind& b) {
    return std::tie(a.threads, a.ranks_per_machine, a.rank_class) <
           std::tie(b.threads, b.ranks_per_machine, b.rank_class);
  }
  friend bool operator==(const CellKind& a, const CellKind& b) { return !(a < b) && !(b < a); }

  // Whether models of this kind answer for the asked one.
  bool Answers(const CellKind& asked) const {
    return threads == asked.threads && ranks_per_machine == asked.ranks_per_machine &&
           (asked.rank_class.empty() || rank_class == asked.rank_class);
  }
};

// Returns the kind of a CallModel or FittedKind, whose absent fields mean 1 and "all".
template <typename Message>
CellKind KindOf(const Message& message) {
  return {message.threads(), std::max<int64_t>(1, message.ranks_per_node()),
          message.rank_class().empty() ? "all" : message.rank_class()};
}

template <typename Message>
void SetKind(const CellKind& kind, Message* message) {
  message->set_threads(kind.threads);
  message->set_ranks_per_node(kind.ranks_per_machine);
  message->set_rank_class(kind.rank_class);
}

// A run's place: how many machines, how large a problem, and of which kind.
struct WorkloadCell {
  WorkloadCell(double machines = 1, double size = 0, CellKind kind = {})  // NOLINT: of any kind
      : machines(machines), size(size), kind(std::move(kind)) {}

  double machines;
  double size;
  CellKind kind;

  // How many ranks all machines have together.
  double Ranks() const { return machines * static_cast<double>(kind.ranks_per_machine); }

  // Returns the cell of the common kind whose machines are this cell's ranks, of which loops depend.
  WorkloadCell InRanks() const { return {Ranks(), size}; }

  friend bool operator<(const WorkloadCell& a, const WorkloadCell& b) {
    return std::tie(a.kind, a.machines, a.size) < std::tie(b.kind, b.machines, b.size);
  }
};

// Return a number of a cell as people read it: "1,000,000" or "0.5"; "1 node" or "1,000,000 nodes".
std::string PlainNumber(double number);
std::string NodesText(double machines);

Model ConstantModel(double value);

// InvalidArgument for an unknown type or term, and for coefficients that are too few, too many or no
// finite numbers.
absl::Status CheckModel(const Model& model);

// Returns 2^size / machines, what one machine has to do, or size / machines where the size is linear.
double ShareOf(bool linear_size, const WorkloadCell& cell);

// Returns what each term of a normal form is worth: one value for each of model.terms().
std::vector<double> NormalTerms(const Model& model, const WorkloadCell& cell);

// Returns the model's value; of a trace the mean. The model has passed CheckModel. Not negative: what
// a model says below 0 is 0. May be infinite, or no number, where an exponential explodes.
double EvaluateModel(const Model& model, const WorkloadCell& cell);

// Returns the model's value as the published motif evaluates it, to the last digit: times a scale
// (1000 for times in us, which become ns; 1 for bytes), rounded half to even except for constants,
// polynomials not below 0, of a trace the first value. The model has passed CheckModel. OutOfRange
// when the motif, which keeps unsigned integers, could not hold the value.
absl::StatusOr<double> EmberValue(const Model& model, double scale, const WorkloadCell& cell);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MODELS_MODELS_H_
