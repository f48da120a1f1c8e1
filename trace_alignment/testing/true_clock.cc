#include "trace_alignment/testing/true_clock.h"

#include <cstdlib>

#include "absl/numeric/int128.h"

namespace meridian {
namespace {

constexpr int64_t kBillion = 1'000'000'000;

int64_t PartsPerBillion(int64_t time_ps, int64_t ppb) {
  return static_cast<int64_t>(absl::int128(time_ps) * ppb / kBillion);
}

int64_t WanderAt(const std::vector<int64_t>& wander_ps, int64_t true_ps) {
  if (wander_ps.empty()) return 0;
  const int64_t last = static_cast<int64_t>(wander_ps.size()) - 1;
  if (true_ps <= 0) return wander_ps.front();
  const int64_t step = true_ps / kWanderStepPs;
  if (step >= last) return wander_ps.back();
  const int64_t gained_ps = wander_ps[step + 1] - wander_ps[step];
  return wander_ps[step] +
         static_cast<int64_t>(absl::int128(gained_ps) * (true_ps % kWanderStepPs) / kWanderStepPs);
}

}  // namespace

int64_t TrueClock::ShowsPs(int64_t true_ps) const {
  return true_ps + offset_ps + PartsPerBillion(true_ps, drift_ppb) + WanderAt(wander_ps, true_ps);
}

int64_t TrueClock::TruePs(int64_t shown_ps) const {
  const auto error_ps = [&](int64_t true_ps) { return ShowsPs(true_ps) - shown_ps; };
  int64_t true_ps = shown_ps - offset_ps;
  // Each round leaves a thousandth of the error, or less, until only rounding is left.
  for (;;) {
    const int64_t next_ps = true_ps - error_ps(true_ps);
    if (std::abs(error_ps(next_ps)) >= std::abs(error_ps(true_ps))) return true_ps;
    true_ps = next_ps;
  }
}

int64_t Draw(int64_t low, int64_t high, std::mt19937_64* random) {
  return low + static_cast<int64_t>((*random)() % static_cast<uint64_t>(high - low + 1));
}

std::vector<int64_t> RandomWander(int64_t max_ppb, int64_t duration_ps, std::mt19937_64* random) {
  if (max_ppb == 0) return {};
  std::vector<int64_t> wander_ps = {0};
  for (int64_t time_ps = 0; time_ps < duration_ps; time_ps += kWanderStepPs) {
    wander_ps.push_back(wander_ps.back() +
                        PartsPerBillion(kWanderStepPs, Draw(-max_ppb, max_ppb, random)));
  }
  return wander_ps;
}

std::vector<TrueClock> RandomClocks(size_t count, std::mt19937_64* random) {
  constexpr int64_t kMaxOffsetPs = 50 * kBillion;
  constexpr int64_t kMaxDriftPpb = 50'000;
  std::vector<TrueClock> clocks(count);
  for (size_t clock = 1; clock < count; ++clock) {
    clocks[clock].offset_ps = Draw(-kMaxOffsetPs, kMaxOffsetPs, random);
    clocks[clock].drift_ppb = Draw(-kMaxDriftPpb, kMaxDriftPpb, random);
  }
  return clocks;
}

}  // namespace meridian
