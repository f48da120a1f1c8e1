#include "pipeline/forecast_stage.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "forecast/forecast.h"
#include "forecast/forecast_report.pb.h"
#include "forecast/job_on_network.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// The page's sliders move over these, all combinations.
constexpr double kBandwidths[] = {0.5, 1, 2, 4};
constexpr double kComputes[] = {1, 0.5};

// A job with more transfers takes too long to ask so much.
constexpr size_t kMostTransfers = 20000;

absl::Status AskAll(const PathGraph& graph, const ForecastModel& model, RunReport* report) {
  ASSIGN_OR_RETURN(const JobOnNetwork job, JobOnNetwork::Create(graph));
  if (job.transfers().size() > kMostTransfers) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run has ", job.transfers().size(),
                     " transfers; ask `forecast` about single questions"));
  }
  ASSIGN_OR_RETURN(const Forecaster forecaster, Forecaster::Create(job, model));
  const auto ask = [&](const ForecastQuestion& question) -> absl::Status {
    ASSIGN_OR_RETURN(*report->add_forecasts(), forecaster.Ask(question));
    return absl::OkStatus();
  };
  for (const double compute : kComputes) {
    for (const double bandwidth : kBandwidths) {
      ForecastQuestion question;
      question.bandwidth = Change{true, bandwidth};
      question.compute = compute;
      question.text = absl::StrCat("bandwidth ", bandwidth, "x",
                                   compute == 1 ? "" : absl::StrCat(", compute ", compute, "x"));
      RETURN_IF_ERROR(ask(question));
    }
  }
  ForecastQuestion latency;
  latency.latency = Change{true, 0.5};
  latency.text = "latency 0.5x";
  RETURN_IF_ERROR(ask(latency));
  ForecastQuestion ranks;
  ranks.ranks = 2 * job.ranks();
  ranks.text = absl::StrCat(ranks.ranks, " ranks");
  return ask(ranks);
}

}  // namespace

void DescribeForecasts(const PathGraph& graph, const Calibration& calibration, bool has_sweep,
                       RunReport* report) {
  const ForecastModel model =
      ModelOf(calibration, has_sweep ? "a sweep" : "the run's own collectives", has_sweep);
  const absl::Status status = AskAll(graph, model, report);
  if (status.ok()) return;
  report->clear_forecasts();
  report->add_notes(absl::StrCat("no forecast: ", status.message()));
}

}  // namespace meridian
