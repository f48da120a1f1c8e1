// SPDX-License-Identifier: Apache-2.0
// Forecasts as people read them.
#ifndef FORECAST_FORECAST_TEXT_H_
#define FORECAST_FORECAST_TEXT_H_

#include <string>

#include "forecast/forecast_report.pb.h"

namespace meridian {

// Returns one answer in full: the step now and then, where the time goes, what it rests on.
std::string ForecastText(const ForecastReport& report);

// Returns a row for each answer, and what all rest on.
std::string ForecastTable(const ForecastCurve& curve);

// Returns a line for each answer, below one with the names of columns.
std::string ForecastCsv(const ForecastCurve& curve);

}  // namespace meridian

#endif  // FORECAST_FORECAST_TEXT_H_
