// SPDX-License-Identifier: Apache-2.0
// What a step of a recorded job would take on another network, on more ranks, or with other compute.
//
// On its own network every transfer was measured; what is asked is the change. Each transfer is
// scaled so that the simulated network of the recording gives its measured length; with the same
// scale it then runs on the other network. What the model gets wrong on both cancels.
#ifndef FORECAST_FORECAST_H_
#define FORECAST_FORECAST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/calibration.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/timing/fabric.h"
#include "forecast/forecast_report.pb.h"
#include "forecast/job_on_network.h"

namespace meridian {

// A step that is run again without any change is off by more than this only where the job is not
// understood.
inline constexpr double kNotUnderstood = 0.05;

// Another bandwidth or latency: a multiple of what it is, or a value (bytes per ns, or ns).
struct Change {
  bool is_multiple = true;
  double value = 1;
};

// Parses "2x", "100Gbit/s", "12.5GB/s", and "0.5x", "500ns", "10us".
absl::StatusOr<Change> ParseBandwidth(absl::string_view text);
absl::StatusOr<Change> ParseLatency(absl::string_view text);

// What is to be different; nothing by default.
struct ForecastQuestion {
  std::optional<Change> bandwidth;
  std::optional<Change> latency;
  // Another network, of which links may be multiples of the calibrated one.
  std::optional<NetworkConfig> network;
  // 0: as many as there are.
  int32_t ranks = 0;
  // The rank that is to be no slower than the others.
  std::optional<int64_t> fix_rank;
  // Device work that does not communicate takes this much of its time.
  double compute = 1;
  // In words.
  std::string text;
};

// The network on which the job was recorded, as it was calibrated.
struct ForecastModel {
  Fabric fabric;
  double overhead_ns = 0;
  // How far it is off in the mean, as a fraction, where it had not seen a size: of kLargeBytes and
  // more, and of less.
  double large_error = 0;
  double small_error = 0;
  // What the network was fitted to, e.g. "2 sweeps" or "the job's own collectives".
  std::string source;
};

// A network that was fitted to a sweep, or only to the job's own collectives: these have few sizes, so
// that latency and bandwidth are not told apart well, and the error counts twice.
ForecastModel ModelOf(const Calibration& calibration, std::string source, bool is_of_sweep);

class Forecaster {
 public:
  // Finds what makes the job's transfers last as measured on the model's network. Both must outlive
  // this object. Errors are those of Simulate; InvalidArgument for a job without steps.
  static absl::StatusOr<Forecaster> Create(const JobOnNetwork& job, const ForecastModel& model);

  // InvalidArgument for what cannot be: ranks that the job cannot have, a network with too few NPUs,
  // a rank that is not there.
  absl::StatusOr<ForecastReport> Ask(const ForecastQuestion& question) const;

  // Returns how many neighbouring ranks are in no group that grows: the inner part of the mesh.
  int32_t inner_ranks() const;

 private:
  Forecaster(const JobOnNetwork& job, const ForecastModel& model) : job_(job), model_(model) {}

  // Returns the network that the question is about, for so many ranks.
  absl::StatusOr<Fabric> NetworkOf(const ForecastQuestion& question, int32_t ranks) const;
  // Returns whether the ranks of a transfer become more when the job grows.
  bool Grows(const CommEdge& transfer) const;
  absl::StatusOr<WhatIfGraph> RunOn(const Fabric& fabric, int32_t ranks,
                                    const ForecastQuestion& question) const;
  void Describe(const WhatIfGraph& then, ForecastReport* report) const;
  void SetInterval(const WhatIfGraph& then, const ForecastQuestion& question,
                   ForecastReport* report) const;

  const JobOnNetwork& job_;
  const ForecastModel& model_;
  std::vector<EdgeScale> scales_;
  double measured_step_ns_ = 0;
  double unchanged_step_ns_ = 0;
  // How many times as long the job's transfers took as the calibrated network alone would say.
  double mismatch_ = 1;
  // The model's error, by how long the job's transfers of each size took.
  double error_ = 0;
  // How far single steps lie from the median, as a fraction of it, and how many there are.
  double step_spread_ = 0;
  int64_t steps_ = 0;
  int64_t steps_run_again_ = 0;
};

}  // namespace meridian

#endif  // FORECAST_FORECAST_H_
