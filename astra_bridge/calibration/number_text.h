// Numbers as the tables of this package show them.
#ifndef ASTRA_BRIDGE_CALIBRATION_NUMBER_TEXT_H_
#define ASTRA_BRIDGE_CALIBRATION_NUMBER_TEXT_H_

#include <cmath>
#include <string>

#include "absl/strings/str_format.h"

namespace meridian {

// One digit behind the point is shown; what rounds to nothing is no "-0.0".
inline double WithoutNegativeZero(double value) { return std::abs(value) < 0.05 ? 0 : value; }

inline std::string Percent(double share) {
  return absl::StrFormat("%.1f %%", WithoutNegativeZero(100 * share));
}
inline std::string SignedPercent(double share) {
  return absl::StrFormat("%+.1f %%", WithoutNegativeZero(100 * share));
}
inline std::string Micros(double ns) {
  return absl::StrFormat("%.1f", WithoutNegativeZero(ns / 1000));
}

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_NUMBER_TEXT_H_
