#include "pipeline/findings_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/quantities.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// Lists of ranks that are longer name the first ones alone.
constexpr size_t kLongList = 40;

// The kind of the path that is between the calls of a host.
constexpr absl::string_view kHostGap = "host_gap";

}  // namespace

Finding MakeFinding(absl::string_view topic, absl::string_view verdict, absl::string_view section,
                    std::string headline, std::string detail, std::string rests_on) {
  Finding finding;
  finding.set_topic(std::string(topic));
  finding.set_verdict(std::string(verdict));
  finding.set_section(std::string(section));
  finding.set_headline(std::move(headline));
  finding.set_detail(std::move(detail));
  finding.set_rests_on(std::move(rests_on));
  return finding;
}

std::string Good(const RunReport& report) {
  return report.evidence().matched_by_order() ? "info" : "good";
}

std::string TimeText(double ms) { return DurationText(ms * kNsPerMs); }

std::string StepWord(const RunSummary& run) {
  return run.step_word().empty() ? "step" : run.step_word();
}

std::string UnitText(const RunReport& report) {
  if (!report.run().has_step_ms()) return "the run";
  const std::string word = StepWord(report.run());
  return absl::StrCat(word == "execution" ? "an " : "a ", word);
}

std::string InTheMean(const RunReport& report) {
  return report.run().has_step_ms() ? " in the mean" : "";
}

std::string RankName(const RunReport& report, int64_t rank) {
  const std::map<int64_t, std::string> hosts = HostsByRank(report);
  const auto host = hosts.find(rank);
  std::set<std::string> names;
  for (const auto& [any, name] : hosts) names.insert(name);
  if (host == hosts.end() || host->second.empty() || names.size() < 2) {
    return absl::StrCat("rank ", rank);
  }
  return absl::StrCat("rank ", rank, " (host ", host->second, ")");
}

std::string RankList(const google::protobuf::RepeatedField<int64_t>& ranks) {
  std::vector<int64_t> named(ranks.begin(), ranks.end());
  std::string text = RangesText(named);
  if (text.size() > kLongList) {
    named.resize(std::min(named.size(), kMostNamedRanks));
    text = absl::StrCat(RangesText(named), " and ", ranks.size() - named.size(), " more");
  }
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", text);
}

std::string Capitalised(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  return text;
}

std::string WhyNoPath(const RunReport& report) {
  for (const ReportedStage& stage : report.stages()) {
    if (stage.name() == "path" && stage.state() == "failed") {
      return absl::StrCat("The critical path could not be found: ", stage.note(), ".");
    }
  }
  return "";
}

std::string WhyNotComparable(const Evidence& evidence) {
  if (evidence.missing_ranks_size() > 0) {
    return absl::StrCat("no profile has the work of ", RankList(evidence.missing_ranks()), " of ",
                        evidence.job_ranks());
  }
  if (evidence.lost_size() > 0) {
    const CombinedCoverage& first = evidence.lost(0);
    return absl::StrCat(
        "the profile of rank ", first.rank(), " has ", WithThousands(first.collectives()),
        " of the ", WithThousands(first.expected()),
        " collectives that the others say it took part in",
        evidence.lost_size() == 1
            ? ""
            : absl::StrCat(", and ", evidence.lost_size() - 1, " more ranks lack some, too"));
  }
  if (evidence.unknown_clocks_size() > 0) {
    return absl::StrCat("nothing ties the clock of ", RankList(evidence.unknown_clocks()),
                        " to the others");
  }
  return "";
}

std::string ClocksWithin(const RunReport& report) {
  const bool is_range = absl::c_any_of(report.combine().nodes(), [](const CombinedNode& node) {
    return (node.method() == "collectives" || node.method() == "none") &&
           node.uncertainty_ns() < node.certified_uncertainty_ns();
  });
  return absl::StrCat(TimeText(report.evidence().clock_uncertainty_ms()),
                      is_range ? " (90 % range)" : "");
}

std::string RestsOn(const RunReport& report) {
  const Evidence& evidence = report.evidence();
  std::vector<std::string> parts;
  if (evidence.collectives() > 0) {
    parts.push_back(absl::StrCat("all ranks of ", WithThousands(evidence.complete_collectives()),
                                 " of ", WithThousands(evidence.collectives()), " collectives"));
  }
  if (evidence.steps() > 0) {
    parts.push_back(absl::StrCat(evidence.common_steps(), " of ", evidence.steps(), " ",
                                 StepWord(report.run()), "s that all ranks have"));
  }
  if (evidence.has_clock_uncertainty_ms() && report.combine().nodes_size() > 1) {
    parts.push_back(absl::StrCat("clocks known within ", ClocksWithin(report)));
  }
  if (evidence.matched_by_order()) parts.push_back("executions matched by their order alone");
  return parts.empty() ? "" : absl::StrCat("Rests on ", absl::StrJoin(parts, ", "), ".");
}

double WholeMs(const RunReport& report) {
  return report.run().has_step_mean_ms()
             ? report.run().step_mean_ms() * static_cast<double>(report.run().steps())
             : report.run().wall_ms();
}

bool ClocksMayHide(const RunReport& report) {
  const int64_t occasions =
      report.run().has_step_ms() ? report.run().steps() : report.evidence().collectives();
  return report.evidence().clock_uncertainty_ms() *
             static_cast<double>(std::max<int64_t>(1, occasions)) >
         kNotableShare * WholeMs(report);
}

double WaitedShare(const RunReport& report) {
  const auto& ranks = report.combine().ranks();
  double waited_ms = 0, in_steps_ms = 0;
  for (const CombinedRank& rank : ranks) waited_ms += rank.waited_ms();
  bool has_steps = false;
  for (const CombinedStep& wait : report.combine().step_waits()) {
    has_steps = has_steps || wait.has_step();
    if (wait.has_step()) in_steps_ms += wait.waited_ms();
  }
  has_steps = has_steps && report.run().has_step_ms();
  const double whole_ms =
      (has_steps ? WholeMs(report) : report.run().wall_ms()) * static_cast<double>(ranks.size());
  return whole_ms > 0 ? (has_steps ? in_steps_ms : waited_ms) / whole_ms : 0;
}

void SetAtStake(double ms, absl::string_view condition, Finding* finding) {
  finding->set_at_stake_ms(ms);
  finding->set_at_stake_if(std::string(condition));
}

void ShowIn(const RunReport& report, std::optional<int64_t> step, Finding* finding) {
  const ReportedStep* shown = nullptr;
  for (const ReportedStep& candidate : report.steps()) {
    const auto length = [](const ReportedStep& one) { return one.end_ms() - one.start_ms(); };
    const bool is_better = step.has_value()
                               ? candidate.step() == *step
                               : shown == nullptr || length(candidate) > length(*shown);
    if (is_better) shown = &candidate;
  }
  if (shown == nullptr) return;
  finding->set_step(shown->step());
  finding->set_start_ms(shown->start_ms());
  finding->set_end_ms(shown->end_ms());
}

const ForecastReport* FindForecast(const RunReport& report, double bandwidth, double compute) {
  for (const ForecastReport& forecast : report.forecasts()) {
    if (forecast.has_bandwidth() && forecast.bandwidth() == bandwidth &&
        forecast.compute() == compute && forecast.latency() == 1 && !forecast.has_fix_rank() &&
        forecast.ranks() == report.run().ranks()) {
      return &forecast;
    }
  }
  return nullptr;
}

const WhatIfPart* FindWhatIf(const RunReport& report, WhatIfPart::Change change) {
  for (const WhatIfPart& part : report.what_if()) {
    if (part.change() == change) return &part;
  }
  return nullptr;
}

std::optional<PathShares> SharesOf(const RunReport& report) {
  std::map<std::string, double> by_kind;
  double all = 0;
  // Where there are steps, those are what counts that can be run again.
  const bool has_steps = report.run().has_step_ms();
  const bool is_cut = report.run().first_step_is_cut() && report.steps_size() > 0;
  for (const PathPart& part : report.path()) {
    if (has_steps && !part.has_step()) continue;
    if (is_cut && part.step() == report.steps(0).step()) continue;
    all += part.ms();
    by_kind[part.kind()] += part.ms();
  }
  if (!(all > 0)) return std::nullopt;
  PathShares shares;
  for (const PathKind& kind : report.path_kinds()) {
    const double share = by_kind[kind.kind()] / all;
    if (kind.role() == PathKind::HOST || kind.kind() == kHostGap) shares.host += share;
    if (kind.role() == PathKind::TRANSFER) {
      shares.communication = share;
    } else if (share > shares.most_share) {
      shares.most = kind.label();
      shares.most_share = share;
    }
  }
  return shares;
}

}  // namespace meridian
