// SPDX-License-Identifier: Apache-2.0
// What would help a run: the questions that everybody has, asked of its graph and its calibrated
// network (forecast/forecast.h).
#ifndef PIPELINE_FORECAST_STAGE_H_
#define PIPELINE_FORECAST_STAGE_H_

#include "astra_bridge/calibration/calibration.h"
#include "critical_path/graph/path_graph.h"
#include "report/run_report.pb.h"

namespace meridian {

// Fills in the report's forecasts: links and computation of several speeds, half the latency, twice
// the ranks, and what the what-if of a late rank asks, which may be null. Where there is no answer a
// note says why.
void DescribeForecasts(PathGraph graph, const Calibration& calibration, bool has_sweep,
                       const WhatIfPart* late_rank, RunReport* report);

}  // namespace meridian

#endif  // PIPELINE_FORECAST_STAGE_H_
