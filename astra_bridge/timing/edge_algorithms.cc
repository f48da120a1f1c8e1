#include "astra_bridge/timing/edge_algorithms.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

absl::Status EdgeError(const CommEdge& edge, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("edge ", Printable(edge.id), ": ", reason));
}

absl::StatusOr<std::vector<CollectiveAlgorithm>> SystemAlgorithms(const CommEdge& edge,
                                                                  const Fabric& fabric) {
  const std::vector<CollectiveAlgorithm>& algorithms = fabric.system.algorithms_of(edge.kind);
  if (algorithms.empty()) {
    return EdgeError(edge, absl::StrCat(fabric.system.source, ": ", CollectiveKindName(edge.kind),
                                        "-implementation is missing; expected e.g. [\"ring\"]"));
  }
  return algorithms;
}

}  // namespace

bool IsWorld(const CommEdge& edge, const Fabric& fabric) {
  return edge.participants.size() == static_cast<size_t>(fabric.network.npus());
}

absl::StatusOr<std::vector<CollectiveAlgorithm>> EdgeAlgorithms(const CommEdge& edge,
                                                                const Fabric& fabric) {
  using Kind = CollectiveAlgorithm::Kind;
  const bool by_dimension = IsWorld(edge, fabric) && fabric.network.dimensions.size() > 1;
  const auto one_phase = [&](Kind kind) {
    CollectiveAlgorithm algorithm;
    algorithm.kind = kind;
    algorithm.over_all_ranks = by_dimension;
    return std::vector<CollectiveAlgorithm>{algorithm};
  };
  switch (edge.hint) {
    case AlgorithmHint::kNone:
      return SystemAlgorithms(edge, fabric);
    case AlgorithmHint::kRing:
      return one_phase(Kind::kRing);
    case AlgorithmHint::kDirect:
      return one_phase(Kind::kDirect);
    case AlgorithmHint::kTree:
      if (by_dimension) {
        return EdgeError(edge, absl::StrCat("collective_algo is tree, but ", fabric.network.source,
                                            " has several dimensions; trees need one"));
      }
      return one_phase(Kind::kDoubleBinaryTree);
    case AlgorithmHint::kHierarchical:
      if (!by_dimension) {
        return EdgeError(
            edge, absl::StrCat("collective_algo is hierarchical, which needs all ranks of a "
                               "network of several dimensions; ",
                               fabric.network.source, " has ", fabric.network.dimensions.size(),
                               " and ", fabric.network.npus(), " ranks, ", edge.participants.size(),
                               " of which take part"));
      }
      return SystemAlgorithms(edge, fabric);
  }
  return SystemAlgorithms(edge, fabric);
}

}  // namespace meridian
