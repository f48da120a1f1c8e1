// SPDX-License-Identifier: Apache-2.0
// What the collectives of a run cost, on the common clock: who waited, in which step, for how long, and
// how long data moved.
#ifndef TRACE_ALIGNMENT_RUN_WAITING_SUMMARY_H_
#define TRACE_ALIGNMENT_RUN_WAITING_SUMMARY_H_

#include <cstdint>
#include <optional>

#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/combine/combine_report.pb.h"

namespace meridian {

// Fills in wall time, steps, kinds, ranks, transfers, slow links and which ranks are there. The
// table is that of the run, on the common clock; the report has its nodes, which tell the ids of
// ranks.
void DescribeWaiting(const CollectiveTable& table, const CollectiveRun& run, CombineReport* report);

// True for a node whose clock nothing ties to the others.
bool HasUnknownClock(const CombineReport& report, const CombinedNode& node);

// Returns within what all other clocks are known; nullopt when nobody knows.
std::optional<int64_t> ClockUncertaintyNs(const CombineReport& report);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_RUN_WAITING_SUMMARY_H_
