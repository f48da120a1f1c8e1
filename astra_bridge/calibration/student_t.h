// Student's t: how far a mean may be off in units of a deviation that was itself estimated.
#ifndef ASTRA_BRIDGE_CALIBRATION_STUDENT_T_H_
#define ASTRA_BRIDGE_CALIBRATION_STUDENT_T_H_

namespace meridian {

// The two-sided 95 % quantile of the normal distribution, which Student's is with all freedom.
inline constexpr double kNormalQuantile95 = 1.959964;

// Returns t with P(|T| <= t) = 0.95 for so many degrees of freedom, at least one, not necessarily
// whole; to a thousandth of it.
double StudentQuantile95(double degrees_of_freedom);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_STUDENT_T_H_
