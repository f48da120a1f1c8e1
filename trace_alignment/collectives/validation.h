// The happens-before check as a report.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_
#define TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_

#include <string>

#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/validation_report.pb.h"

namespace meridian {

// Reports list at most this many violations.
inline constexpr int kMaxViolationDetails = 1000;

ValidationReport Validate(const CollectiveRun& run);

// Returns the report as text for people.
std::string FormatValidation(const ValidationReport& report);

// Returns the violations as comma-separated values with a title line.
std::string ValidationCsv(const ValidationReport& report);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_
