// SPDX-License-Identifier: Apache-2.0
// What the collectives of a run cost, on the common clock: who waited, in which step, for how long, and
// how long data moved.
#ifndef TOOLS_PIPELINE_WAITING_SUMMARY_H_
#define TOOLS_PIPELINE_WAITING_SUMMARY_H_

#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/combine/combine_report.pb.h"

namespace meridian {

// Fills in wall time, steps, kinds, ranks, transfers and slow links. The table is that of the run, on the common
// clock; the report has its nodes, which tell the ids of ranks.
void DescribeWaiting(const CollectiveTable& table, const CollectiveRun& run, CombineReport* report);

}  // namespace meridian

#endif  // TOOLS_PIPELINE_WAITING_SUMMARY_H_
