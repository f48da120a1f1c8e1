// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: few digits and a unit.
#ifndef REPORT_QUANTITIES_H_
#define REPORT_QUANTITIES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace meridian {

// "812 ns", "12.3 µs", "-4.57 ms", "86,400 s": three digits at least, rounded to the nearest.
std::string DurationText(double ns);

// The same with a plus where it is positive: for offsets and corrections.
std::string SignedDurationText(double ns);

// "512 B", "1.50 KiB", "16.0 MiB".
std::string BytesText(int64_t bytes);

// "+3.28 ppm".
std::string PpmText(double ppm);

// "42 %"; "0.4 %" below 1 %. The whole must be positive.
std::string ShareText(double part, double whole);

// Runs of numbers in order: "0-3, 8"; each once.
std::string RangesText(std::vector<int64_t> numbers);

}  // namespace meridian

#endif  // REPORT_QUANTITIES_H_
