#include "astra_bridge/calibration/time_slices.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {
namespace {

// Times within this factor of the shortest are alike.
constexpr double kAlike = 1.03;
// Fewer are alike by chance.
constexpr size_t kEnoughAlike = 3;
// Times this many times as long as simulated have another cause than the network.
constexpr double kFarMore = 2;
// Devices are handed over every few milliseconds; what takes less is a collective's overhead.
constexpr double kLeastSliceNs = 500'000;
// Collectives are unlike whose simulated times differ by more than this factor, and by so much of
// what they took that it would show if it were added to an overhead that all have.
constexpr double kUnlike = 2;
constexpr double kShows = 0.1;
// What is simulated to take half as long, but took less than a quarter, shows that the network is
// not the cause.
constexpr double kComparable = 0.5;
constexpr double kFarLess = 0.25;

// A kind and size, over all groups.
struct Timed {
  double measured_ns = 0;
  double simulated_ns = 0;

  bool may_be_sliced() const {
    return measured_ns >= kLeastSliceNs && measured_ns >= kFarMore * simulated_ns;
  }
};

// Collectives that take about the same time.
struct Alike {
  // The shortest.
  double measured_ns = 0;
  std::multiset<double> simulated_ns;
};

// `quick_ns` is the longest simulated time of what took far less, 0 when nothing did.
bool IsSlice(const Alike& alike, double quick_ns) {
  if (alike.simulated_ns.size() < kEnoughAlike) return false;
  const double least_ns = *alike.simulated_ns.begin();
  const double most_ns = *alike.simulated_ns.rbegin();
  const bool unlike =
      most_ns > kUnlike * least_ns && most_ns - least_ns > kShows * alike.measured_ns;
  return unlike || (quick_ns > 0 && quick_ns >= kComparable * least_ns);
}

std::optional<double> FindSliceNs(std::vector<Timed> all) {
  std::sort(all.begin(), all.end(),
            [](const Timed& a, const Timed& b) { return a.measured_ns < b.measured_ns; });
  std::vector<Timed> slow;
  std::copy_if(all.begin(), all.end(), std::back_inserter(slow),
               [](const Timed& timed) { return timed.may_be_sliced(); });
  Alike alike;
  auto end_of_alike = slow.begin();
  double quick_ns = 0;
  auto end_of_quick = all.begin();
  for (const Timed& shortest : slow) {
    alike.measured_ns = shortest.measured_ns;
    while (end_of_alike != slow.end() &&
           end_of_alike->measured_ns < kAlike * shortest.measured_ns) {
      alike.simulated_ns.insert(end_of_alike->simulated_ns);
      ++end_of_alike;
    }
    while (end_of_quick->measured_ns <= kFarLess * shortest.measured_ns) {
      quick_ns = std::max(quick_ns, end_of_quick->simulated_ns);
      ++end_of_quick;
    }
    if (IsSlice(alike, quick_ns)) return shortest.measured_ns;
    alike.simulated_ns.erase(alike.simulated_ns.find(shortest.simulated_ns));
  }
  return std::nullopt;
}

}  // namespace

std::map<int32_t, double> FindTimeSlicesNs(absl::Span<const TransferCell> cells,
                                           absl::Span<const double> simulated_ns) {
  struct Times {
    std::vector<double> measured_ns;
    std::vector<double> simulated_ns;
  };
  std::map<int32_t, std::map<std::pair<CollectiveKind, int64_t>, Times>> runs;
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
    const std::optional<double> slice_ns = FindSliceNs(std::move(all));
    if (slice_ns.has_value()) slices_ns[ranks] = *slice_ns;
  }
  return slices_ns;
}

}  // namespace meridian
