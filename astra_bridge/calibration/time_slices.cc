#include "astra_bridge/calibration/time_slices.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {
namespace {

// Times whose logarithms differ by less are alike.
constexpr double kAlike = 0.03;
// Fewer are alike by chance.
constexpr size_t kEnoughAlike = 3;
// Times this many times as long as simulated have another cause than the network.
constexpr double kFarMore = 2;
// Simulated times that differ by more than this factor are of unlike collectives.
constexpr double kUnlike = 2;
// What is simulated to take half as long, but took less than a quarter, shows that the network is
// not the cause.
constexpr double kComparable = 0.5;
constexpr double kFarLess = 0.25;

// A kind and size, over all groups.
struct Timed {
  double measured_ns = 0;
  double simulated_ns = 0;

  bool takes_far_more() const { return measured_ns >= kFarMore * simulated_ns; }
};

std::vector<Timed> AlikeTo(const Timed& one, const std::vector<Timed>& all) {
  std::vector<Timed> alike;
  for (const Timed& other : all) {
    const double difference = std::log(other.measured_ns / one.measured_ns);
    if (other.takes_far_more() && std::abs(difference) < kAlike) alike.push_back(other);
  }
  return alike;
}

bool IsSlice(const std::vector<Timed>& alike, const std::vector<Timed>& all) {
  if (alike.size() < kEnoughAlike) return false;
  const auto by_simulated = [](const Timed& a, const Timed& b) {
    return a.simulated_ns < b.simulated_ns;
  };
  const auto [least, most] = std::minmax_element(alike.begin(), alike.end(), by_simulated);
  if (most->simulated_ns > kUnlike * least->simulated_ns) return true;
  return std::any_of(all.begin(), all.end(), [&, least = least](const Timed& other) {
    return other.simulated_ns >= kComparable * least->simulated_ns &&
           other.measured_ns <= kFarLess * least->measured_ns;
  });
}

std::optional<double> FindSliceNs(const std::vector<Timed>& all) {
  std::optional<double> slice_ns;
  for (const Timed& timed : all) {
    if (!timed.takes_far_more() || !IsSlice(AlikeTo(timed, all), all)) continue;
    slice_ns = std::min(slice_ns.value_or(timed.measured_ns), timed.measured_ns);
  }
  return slice_ns;
}

}  // namespace

std::map<int32_t, double> FindTimeSlicesNs(absl::Span<const TransferCell> cells,
                                           absl::Span<const double> simulated_ns) {
  struct Times {
    std::vector<double> measured_ns;
    std::vector<double> simulated_ns;
  };
  std::map<int32_t, std::map<std::pair<CommKind, int64_t>, Times>> runs;
  for (size_t i = 0; i < cells.size(); ++i) {
    Times& times = runs[cells[i].ranks][{cells[i].kind, cells[i].bytes}];
    times.measured_ns.push_back(cells[i].median_ns);
    times.simulated_ns.push_back(simulated_ns[i]);
  }
  std::map<int32_t, double> slices_ns;
  for (const auto& [ranks, sizes] : runs) {
    std::vector<Timed> all;
    for (const auto& [kind_and_bytes, times] : sizes) {
      all.push_back({Median(times.measured_ns), Median(times.simulated_ns)});
    }
    const std::optional<double> slice_ns = FindSliceNs(all);
    if (slice_ns.has_value()) slices_ns[ranks] = *slice_ns;
  }
  return slices_ns;
}

}  // namespace meridian
