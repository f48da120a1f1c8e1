// Numbers as the tables of this package show them.
#ifndef ASTRA_BRIDGE_CALIBRATION_NUMBER_TEXT_H_
#define ASTRA_BRIDGE_CALIBRATION_NUMBER_TEXT_H_

#include <string>

#include "absl/strings/str_format.h"

namespace meridian {

inline std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }
inline std::string SignedPercent(double share) { return absl::StrFormat("%+.1f %%", 100 * share); }
inline std::string Micros(double ns) { return absl::StrFormat("%.1f", ns / 1000); }

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_NUMBER_TEXT_H_
