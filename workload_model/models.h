// SPDX-License-Identifier: Apache-2.0
// Models of workload_model.proto: what they are worth somewhere, by our own rules and by those of
// the published motif.
#ifndef WORKLOAD_MODEL_MODELS_H_
#define WORKLOAD_MODEL_MODELS_H_

#include <cstddef>
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
inline constexpr absl::string_view kLogistic = "LOGISTIC";

// Beyond these a cell is a slip of the finger.
inline constexpr double kMaxNodes = 1e9;
inline constexpr double kMaxSize = 1e15;

// What tells runs apart that have models of their own.
struct CellKind {
  int64_t threads = 1;
  int64_t ranks_per_node = 1;
  // Of ranks that do the same: rank_classes.h.
  std::string rank_class = "all";

  friend bool operator<(const CellKind& a, const CellKind& b) {
    return std::tie(a.threads, a.ranks_per_node, a.rank_class) <
           std::tie(b.threads, b.ranks_per_node, b.rank_class);
  }
  friend bool operator==(const CellKind& a, const CellKind& b) { return !(a < b) && !(b < a); }
};

// A run's place: how many nodes, how large a problem, and of which kind.
struct WorkloadCell {
  WorkloadCell(double nodes = 1, double size = 0, CellKind kind = {})  // NOLINT: nodes of any kind
      : nodes(nodes), size(size), kind(std::move(kind)) {}

  double nodes;
  double size;
  CellKind kind;

  // How many ranks there are.
  double Ranks() const { return nodes * static_cast<double>(kind.ranks_per_node); }

  friend bool operator<(const WorkloadCell& a, const WorkloadCell& b) {
    return std::tie(a.kind, a.nodes, a.size) < std::tie(b.kind, b.nodes, b.size);
  }
};

Model ConstantModel(double value);

// InvalidArgument for an unknown type or term, and for coefficients that are too few, too many or no
// finite numbers.
absl::Status CheckModel(const Model& model);

// Returns what each term of a normal form is worth: one value for each of model.terms().
std::vector<double> NormalTerms(const Model& model, const WorkloadCell& cell);

// Returns the model's value; of a trace the mean. The model has passed CheckModel. Not negative: what
// a model says below 0 is 0. May be infinite, or no number, where an exponential explodes.
double EvaluateModel(const Model& model, const WorkloadCell& cell);

// A model as the published motif evaluates it, to the last digit: values times a scale (1000 for
// times in us, which become ns; 1 for bytes), rounded half to even except for constants, polynomials
// not below 0. Traces give one value after the other.
class EmberModel {
 public:
  // The model must outlive this object and have passed CheckModel.
  EmberModel(const Model& model, double scale) : model_(model), scale_(scale) {}

  // OutOfRange when the motif, which keeps unsigned integers, could not hold the value.
  absl::StatusOr<double> Next(const WorkloadCell& cell);

 private:
  const Model& model_;
  const double scale_;
  // Of a trace.
  int next_ = 0;
};

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MODELS_H_
