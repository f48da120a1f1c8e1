// SPDX-License-Identifier: Apache-2.0
// Clocks that are off by known amounts:
//
//   ahead ^                    .-'      offset + drift * t + wander(t)
//         |        .--.      .'
//         |   _.--'    '--.-'           the wander's rate changes every kWanderStepPs
//         +-----------------------> true time
#ifndef TRACE_ALIGNMENT_TESTING_TRUE_CLOCK_H_
#define TRACE_ALIGNMENT_TESTING_TRUE_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace meridian {

inline constexpr int64_t kWanderStepPs = 100'000'000'000;

struct TrueClock {
  // How far ahead it is when true time is 0, and what it gains.
  int64_t offset_ps = 0;
  int64_t drift_ppb = 0;
  // What it is ahead besides, every kWanderStepPs from true time 0 on: on straight lines between
  // them, constant outside.
  std::vector<int64_t> wander_ps;

  // What it shows at a time within hours of 0.
  int64_t ShowsPs(int64_t true_ps) const;
  // The inverse, to the picosecond.
  int64_t TruePs(int64_t shown_ps) const;
  // By how much it is ahead when it shows shown_ps.
  int64_t OffsetPs(int64_t shown_ps) const { return shown_ps - TruePs(shown_ps); }
};

// Returns a number from low to high, both included.
int64_t Draw(int64_t low, int64_t high, std::mt19937_64* random);

// Returns a wander over so much time whose rates lie within +-max_ppb.
std::vector<int64_t> RandomWander(int64_t max_ppb, int64_t duration_ps, std::mt19937_64* random);

// Offsets within +-50 ms and drifts within +-50 ppm, the first clock being right.
std::vector<TrueClock> RandomClocks(size_t count, std::mt19937_64* random);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_TRUE_CLOCK_H_
