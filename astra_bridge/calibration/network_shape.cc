#include "astra_bridge/calibration/network_shape.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/holdout.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// What is not expected of hosts is believed only when its error is smaller by this factor.
constexpr double kLeastAdvantage = 0.9;
// How many parts sizes are held out in when shapes are compared.
constexpr size_t kShapeSizeFolds = 4;

// Returns the cells of groups within larger runs by how far their members lie apart: of all ranks
// there is but one placement.
std::map<int64_t, std::vector<size_t>> FindPlacements(absl::Span<const TransferCell> cells) {
  std::map<int64_t, std::vector<size_t>> by_hop;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].kind == CollectiveKind::kPointToPoint ||
        static_cast<int32_t>(cells[i].participants.size()) == cells[i].ranks) {
      continue;
    }
    by_hop[LargestHop(cells[i])].push_back(i);
  }
  return by_hop;
}

// Returns what is held out in turn to compare shapes: sizes in a few parts, numbers of ranks, and
// groups by how far their members lie apart.
Folds MakeShapeFolds(absl::Span<const TransferCell> cells) {
  std::set<int64_t> sizes;
  for (const TransferCell& cell : cells) sizes.insert(cell.bytes);
  std::map<int64_t, std::vector<size_t>> by_hop = FindPlacements(cells);
  Folds folds(kShapeSizeFolds);
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t place = std::distance(sizes.begin(), sizes.find(cells[i].bytes));
    const bool is_end = place == 0 || place + 1 == sizes.size();
    if (!is_end) folds[place % kShapeSizeFolds].push_back(i);
  }
  const Folds groups = MakeFolds(cells, Holdout::kGroup);
  folds.insert(folds.end(), groups.begin(), groups.end());
  if (by_hop.size() > 1) {
    for (auto& [hop, held] : by_hop) folds.push_back(std::move(held));
  }
  folds.erase(std::remove_if(folds.begin(), folds.end(),
                             [&](const std::vector<size_t>& fold) {
                               return fold.empty() || fold.size() == cells.size();
                             }),
              folds.end());
  return folds;
}

// The algorithms that a kind may run by, in any group: trees are for all ranks only. Of direct ones
// a rank sends to all others at once, or to one after the other. The first is what libraries do
// between hosts.
std::vector<CollectiveAlgorithm> AlgorithmsFor(CollectiveKind kind) {
  using Kind = CollectiveAlgorithm::Kind;
  const CollectiveAlgorithm ring{Kind::kRing}, direct{Kind::kDirect}, one_by_one{Kind::kDirect, 1};
  if (kind == CollectiveKind::kAllToAll) return {one_by_one, direct, ring};
  return {ring, one_by_one, direct};
}

// Returns how far the ratios of measured to engine time of one size differ between groups, in the
// mean: corrections make up for all else. Nullopt where no size has several groups.
std::optional<double> DifferenceOfGroups(absl::Span<const TransferCell> cells,
                                         absl::Span<const double> engine_ns) {
  std::map<int64_t, std::vector<double>> by_size;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_size[cells[i].bytes].push_back(std::log(cells[i].median_ns / engine_ns[i]));
  }
  std::vector<double> differences;
  for (const auto& [bytes, ratios] : by_size) {
    if (ratios.size() < 2) continue;
    for (const double ratio : ratios) differences.push_back(std::abs(ratio - Mean(ratios)));
  }
  if (differences.empty()) return std::nullopt;
  return Mean(differences);
}

// Gives each kind the algorithm whose times change with the number and the places of ranks as the
// measured ones do: the first of AlgorithmsFor unless another is better by kLeastAdvantage. The
// fabric has one dimension.
absl::Status ChooseAlgorithms(absl::Span<const TransferCell> cells, Fabric* fabric) {
  for (size_t kind = 0; kind < kSimulatedCollectives; ++kind) {
    fabric->system.algorithms[kind][0] = AlgorithmsFor(static_cast<CollectiveKind>(kind))[0];
  }
  std::map<CollectiveKind, std::vector<TransferCell>> by_kind;
  for (const TransferCell& cell : cells) {
    if (cell.kind != CollectiveKind::kPointToPoint) by_kind[cell.kind].push_back(cell);
  }
  ASSIGN_OR_RETURN(const ParameterFit fit, FitParameters(*fabric, cells));
  for (const auto& [kind, of_kind] : by_kind) {
    const size_t k = static_cast<size_t>(kind);
    std::optional<double> least;
    for (const CollectiveAlgorithm& algorithm : AlgorithmsFor(kind)) {
      Fabric candidate = fit.fabric;
      candidate.system.algorithms[k][0] = algorithm;
      ASSIGN_OR_RETURN(const std::vector<double> engine_ns, EngineTimesNs(candidate, of_kind));
      const std::optional<double> difference = DifferenceOfGroups(of_kind, engine_ns);
      if (!difference.has_value()) break;
      if (least.has_value() && *difference >= *least * kLeastAdvantage) continue;
      least = difference;
      fabric->system.algorithms[k][0] = algorithm;
    }
  }
  return absl::OkStatus();
}

}  // namespace

Fabric StartOf(const Fabric& shape, int32_t ranks) {
  Fabric start = FabricForRanks(shape, ranks);
  if (start.system.local_memory_bandwidth == 0) {
    start.system.local_memory_bandwidth = kFreeReductions;
  }
  return start;
}

absl::StatusOr<std::vector<HeldOutError>> FindHeldOutErrors(const Fabric& start,
                                                            absl::Span<const TransferCell> cells) {
  std::vector<HeldOutError> errors;
  for (const std::vector<size_t>& fold : MakeShapeFolds(cells)) {
    ASSIGN_OR_RETURN(const auto predicted_ns, PredictHeldOut(start, cells, {fold}, nullptr));
    std::map<CollectiveKind, std::set<double>> seen_ranks;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (std::binary_search(fold.begin(), fold.end(), i)) continue;
      seen_ranks[cells[i].kind].insert(EffectiveRanksOf(cells[i]));
    }
    for (const auto& [i, time_ns] : predicted_ns) {
      HeldOutError& error = errors.emplace_back();
      error.bytes = cells[i].bytes;
      error.log_error = std::log(time_ns / cells[i].median_ns);
      error.doublings = std::nullopt;
      for (const double ranks : seen_ranks[cells[i].kind]) {
        const double doublings = std::abs(std::log2(EffectiveRanksOf(cells[i]) / ranks));
        error.doublings = std::min(error.doublings.value_or(doublings), doublings);
      }
    }
  }
  return errors;
}

double ShapeScore::MeanError() const {
  std::vector<double> sizes;
  for (const HeldOutError& error : errors) sizes.push_back(std::abs(error.log_error));
  return sizes.empty() ? 0 : Mean(sizes);
}

absl::StatusOr<std::vector<ShapeScore>> CompareShapes(int32_t ranks,
                                                      absl::Span<const TransferCell> cells) {
  std::vector<ShapeScore> scores;
  std::vector<BlockShape> shapes = {BlockShape::kFullyConnected, BlockShape::kSwitch};
  if (FindPlacements(cells).size() > 1) shapes.push_back(BlockShape::kRing);
  for (const BlockShape shape : shapes) {
    Fabric start = StartOf(AssumedFabric(ranks, shape), ranks);
    RETURN_IF_ERROR(ChooseAlgorithms(cells, &start));
    ASSIGN_OR_RETURN(std::vector<HeldOutError> errors, FindHeldOutErrors(start, cells));
    scores.push_back({std::move(start), std::move(errors)});
  }
  std::stable_sort(scores.begin(), scores.end(), [](const ShapeScore& a, const ShapeScore& b) {
    const auto weighed = [](const ShapeScore& score) {
      const bool is_expected =
          score.start.network.dimensions[0].shape == BlockShape::kFullyConnected;
      return is_expected ? score.MeanError() : score.MeanError() / kLeastAdvantage;
    };
    return weighed(a) < weighed(b);
  });
  return scores;
}

}  // namespace meridian
