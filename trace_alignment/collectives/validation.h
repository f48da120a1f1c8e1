// SPDX-License-Identifier: Apache-2.0
// The happens-before check of a run as a report.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_
#define TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_

#include <string>

#include "trace_alignment/collectives/collective_run.h"

namespace meridian {

class ValidationReport;

// Checks happens-before of every instance of the run's table. The worst violations come first.
ValidationReport Validate(const CollectiveRun& run);

// Returns the report as text for people.
std::string FormatValidation(const ValidationReport& report);

// Returns the violations as comma-separated values with a title line.
std::string ValidationCsv(const ValidationReport& report);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_
