// SPDX-License-Identifier: Apache-2.0
// What a step of a recorded job would take on another network, on more ranks, or with other compute.
//
// On its own network every transfer was measured; what is asked is the change. Each transfer is
// scaled so that the simulated network of the recording gives its measured length; with the same
// scale it then runs on the other network. What the model gets wrong on both cancels.
#ifndef FORECAST_FORECAST_H_
#define FORECAST_FORECAST_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/calibration.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/timing/fabric.h"
#include "forecast/forecast_report.pb.h"
#include "forecast/growth_laws.h"
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
  // Device work that does not communicate takes this much of its time; absent: what the number of
  // ranks makes of it.
  std::optional<double> compute;
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
  bool is_of_sweep = true;
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

  const JobOnNetwork& job() const { return job_; }
  // Returns how often the number of ranks must be doubled to get so many.
  double DoublingsTo(int32_t ranks) const {
    return std::log2(static_cast<double>(ranks) / job_.ranks());
  }
  double measured_step_ns() const { return measured_step_ns_; }
  // What more ranks change; assumed by default.
  void set_laws(GrowthLaws laws) { laws_ = std::move(laws); }

 private:
  // The transfers of a job with more ranks. Those of the recording come first, in their order.
  struct GrownJob {
    std::vector<CommEdge> transfers;
    std::vector<EdgeScale> scales;
    // Which of the recording each further transfer is a copy of.
    std::vector<size_t> copy_of;
  };

  Forecaster(const JobOnNetwork& job, const ForecastModel& model) : job_(job), model_(model) {}

  absl::Status CheckRanks(int32_t ranks) const;

  // Returns the network that the question is about, for so many ranks.
  absl::StatusOr<Fabric> NetworkOf(const ForecastQuestion& question, int32_t ranks) const;
  GrownJob GrowTo(int32_t ranks) const;
  // Returns whether every rank sends to the next, and the last to the first.
  bool HasRingOfMessages() const;
  // Returns what computation takes of its time.
  double ComputeOf(const ForecastQuestion& question, int32_t ranks) const;
  absl::StatusOr<JobOnNetwork::RunAgain> RunOn(const Fabric& fabric, int32_t ranks,
                                               const ForecastQuestion& question) const;
  // Fills the breakdown, then the interval, which needs it, then the sentences.
  void Describe(const JobOnNetwork::RunAgain& then, ForecastReport* report) const;
  void SetInterval(const JobOnNetwork::RunAgain& then, const ForecastQuestion& question,
                   ForecastReport* report) const;
  void AddSentences(const JobOnNetwork::RunAgain& then, const ForecastQuestion& question,
                    ForecastReport* report) const;

  const JobOnNetwork& job_;
  const ForecastModel& model_;
  GrowthLaws laws_;
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

// Recordings of one job on several numbers of ranks, which tell what more ranks change.
class RunsForecaster {
 public:
  // There is at least one job. All must outlive this object. InvalidArgument when two have as many
  // ranks.
  static absl::StatusOr<RunsForecaster> Create(std::vector<const JobOnNetwork*> jobs,
                                               const ForecastModel& model);

  // Answers from the recording with the most ranks that can become as many as are asked for.
  absl::StatusOr<ForecastReport> Ask(const ForecastQuestion& question) const;

  // Of the recording with the most ranks.
  const JobOnNetwork& job() const { return forecasters_.back().job(); }

 private:
  // In ascending order of ranks.
  std::vector<Forecaster> forecasters_;
};

// For people (forecast_text.cc): one answer in full: the step now and then, where the time goes, what
// it rests on.
std::string ForecastText(const ForecastReport& report);

// Returns a row for each answer, and what all rest on.
std::string ForecastTable(const ForecastCurve& curve);

// Returns a line for each answer, below one with the names of columns.
std::string ForecastCsv(const ForecastCurve& curve);

}  // namespace meridian

#endif  // FORECAST_FORECAST_H_
