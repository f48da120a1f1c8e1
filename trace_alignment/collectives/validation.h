// SPDX-License-Identifier: Apache-2.0
// The happens-before check of a run as a report; and why a job hangs.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_
#define TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_

#include <string>
#include <vector>

#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/flight_recorder/flight_recorder.h"

namespace meridian {

class ValidationReport;

// Checks happens-before of every instance of the run's table. The worst violations come first.
ValidationReport Validate(const CollectiveRun& run);

// Returns the report as text for people.
std::string FormatValidation(const ValidationReport& report);

// Returns the violations as comma-separated values with a title line.
std::string ValidationCsv(const ValidationReport& report);

// Says why a job hangs, from the flight recorder dumps of its ranks (flight_recorder.h). All ranks of a
// group number its collectives alike, so under each number they must have called the same:
//
//   call       29          30          31
//   rank 0     all_reduce  all_reduce  all_reduce   waits
//   rank 1     all_reduce  broadcast                called something else: 30 is the first disagreement
//   rank 2     all_reduce                           has not come to 30
//   rank 3           ~     all_reduce  all_reduce   overwritten in the ring buffer: no disagreement
//
// A rank whose dump ends earlier is missing if the others still wait for it; if they have completed
// the call, the rank was there, and its dump was taken before. Messages are paired in order; of
// ranks whose first calls were overwritten, those that have not completed.
//
// The dumps are of different ranks. Without hangs in the report, no ranks disagree.
ValidationReport FindHangs(const std::vector<FlightDump>& dumps);

// Returns the report as text for people: one screen.
std::string FormatHangs(const ValidationReport& report);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_
