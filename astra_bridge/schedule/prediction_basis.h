// What reports of predictions have in common, whether of a list of edges or of a workload: who
// timed them and how, what the cache saved, and where another had to step in.
#ifndef ASTRA_BRIDGE_SCHEDULE_PREDICTION_BASIS_H_
#define ASTRA_BRIDGE_SCHEDULE_PREDICTION_BASIS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/schedule/prediction_report.pb.h"

namespace meridian {

// Sets engine, version and mode, and adds the warnings of the setup. Comes before the timing.
void AddTimingBasis(const TimingSetup& setup, TimingMode mode, PredictionReport* report);

// Sets hits and misses, and adds the warnings of the cache, if there is one. Comes after the
// timing.
void AddCacheUse(const TimingSetup& setup, PredictionReport* report);

// Counts an edge, or a batch when the id is empty, that another than the engine timed; the first
// 100 are listed.
void AddFallback(absl::string_view edge_id, absl::string_view reason, PredictionReport* report);

// Returns the values of the report's lines for people: "3 hits, 4 misses" or "not used", and
// "0" or "2, the first: AstraSim crashed".
std::string CacheUseText(const PredictionReport& report);
std::string FallbacksText(const PredictionReport& report);

// Returns seconds as microseconds without their unit, e.g. "20.031".
std::string MicrosText(double seconds);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_PREDICTION_BASIS_H_
