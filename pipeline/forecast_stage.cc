#include "pipeline/forecast_stage.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "forecast/forecast.h"
#include "forecast/forecast_report.pb.h"
#include "forecast/job_on_network.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel.h"

namespace meridian {
namespace {

// The page's sliders move over these, and one other change beside each.
constexpr double kBandwidths[] = {0.5, 1, 2, 4};

// A job with more messages takes too long to ask so much: rings have about twice the square of their
// members.
constexpr int64_t kMostMessages = 2'000'000;

// Each question has a graph of its own while it is answered.
constexpr size_t kAskedAtOnce = 4;

absl::Status AskAll(PathGraph graph, const ForecastModel& model, const WhatIfPart* late_rank,
                    RunReport* report) {
  ASSIGN_OR_RETURN(const JobOnNetwork job, JobOnNetwork::Create(std::move(graph)));
  int64_t messages = 0;
  for (const CommEdge& transfer : job.transfers()) {
    const int64_t ranks = static_cast<int64_t>(transfer.participants.size());
    messages += 2 * ranks * ranks;
  }
  if (messages > kMostMessages) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run's transfers have some ", messages,
                     " messages, which takes too long; ask `forecast` about single questions"));
  }
  ASSIGN_OR_RETURN(const Forecaster forecaster, Forecaster::Create(job, model));
  std::vector<ForecastQuestion> questions;
  for (const double bandwidth : kBandwidths) {
    // Asks about the links of this speed and what else is changed, in words.
    const auto ask_with = [&](ForecastQuestion question, std::string what) {
      question.bandwidth = Change{true, bandwidth};
      question.text = what.empty()     ? absl::StrCat("bandwidth ", bandwidth, "x")
                      : bandwidth == 1 ? std::move(what)
                                       : absl::StrCat("bandwidth ", bandwidth, "x, ", what);
      questions.push_back(std::move(question));
    };
    ask_with({}, "");
    ForecastQuestion compute, latency, ranks, level;
    compute.compute = 0.5;
    ask_with(compute, "compute 0.5x");
    latency.latency = Change{true, 0.5};
    ask_with(latency, "latency 0.5x");
    ranks.ranks = 2 * job.ranks();
    ask_with(ranks, absl::StrCat(ranks.ranks, " ranks"));
    if (late_rank == nullptr) continue;
    level.fix_rank = late_rank->rank();
    ask_with(level, late_rank->what());
  }
  std::vector<absl::StatusOr<ForecastReport>> answers(questions.size());
  RETURN_IF_ERROR(ParallelFor(
      questions.size(),
      [&](size_t i) {
        answers[i] = forecaster.Ask(questions[i]);
        return absl::OkStatus();
      },
      /*progress=*/nullptr, kAskedAtOnce));
  for (size_t i = 0; i < questions.size(); ++i) {
    if (answers[i].ok()) {
      *report->add_forecasts() = *std::move(answers[i]);
    } else {
      report->add_notes(
          absl::StrCat("no forecast of ", questions[i].text, ": ", answers[i].status().message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void DescribeForecasts(PathGraph graph, const Calibration& calibration, bool has_sweep,
                       const WhatIfPart* late_rank, RunReport* report) {
  const ForecastModel model =
      ModelOf(calibration, has_sweep ? "a sweep" : "the run's own collectives", has_sweep);
  const absl::Status status = AskAll(std::move(graph), model, late_rank, report);
  if (status.ok()) return;
  report->clear_forecasts();
  report->add_notes(absl::StrCat("no forecast: ", status.message()));
}

}  // namespace meridian
