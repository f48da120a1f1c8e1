#include "pipeline/findings.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipeline/findings_parts.h"
#include "report/quantities.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// A mean that differs more from its median is worth telling.
constexpr double kNotableDifference = 0.03;

// A simulation that is farther off gives no answers.
constexpr double kTrustedError = 0.3;

// So many characters of a call or of a group's name are told.
constexpr size_t kMostOfCall = 200;

// Offsets below this are never worth telling.
constexpr double kSmallestMs = 1e-3;

// What is lacking comes first, since all else has to be read with it in mind.
std::optional<Finding> EvidenceFinding(const RunReport& report) {
  const std::string why = WhyNotComparable(report.evidence());
  if (why.empty()) return std::nullopt;
  std::string detail =
      "What needs all ranks is not known: who is late, what the network costs, what would help.";
  for (const CombinedCoverage& lost : report.evidence().lost()) {
    if (report.evidence().lost_size() > static_cast<int>(kMostNamedRanks)) break;
    absl::StrAppend(&detail, " Rank ", lost.rank(), " has ", WithThousands(lost.collectives()),
                    " of ", WithThousands(lost.expected()), " collectives.");
  }
  if (report.evidence().unknown_clocks_size() > 0) {
    absl::StrAppend(&detail, " The clock of ", RankList(report.evidence().unknown_clocks()),
                    " is not known: compare no times with it.");
  }
  return MakeFinding("evidence", "bad", "clocks", absl::StrCat(Capitalised(why), "."),
                     std::move(detail));
}

// "JAX run of 4 of 8 ranks on 2 hosts".
std::string RunText(const RunReport& report) {
  const RunSummary& run = report.run();
  const int64_t job_ranks = report.evidence().job_ranks();
  // Profiles without collectives do not say which ranks they are.
  const int64_t count = run.ranks() > 0 ? run.ranks() : report.combine().nodes_size();
  return absl::StrCat(
      run.framework(), run.framework().empty() ? "" : " run of ", count,
      run.ranks() > 0 && run.ranks() < job_ranks ? absl::StrCat(" of ", job_ranks) : "",
      run.ranks() > 0 ? " rank" : " profile",
      (run.ranks() > 0 ? std::max(count, job_ranks) : count) == 1 ? "" : "s",
      run.hosts_size() == 0
          ? ""
          : absl::StrCat(" on ", run.hosts_size(), run.hosts_size() == 1 ? " host" : " hosts"));
}

// Says how far steps lie apart, and what they are where nothing marks them.
std::vector<std::string> StepDetails(const RunSummary& run) {
  std::vector<std::string> details;
  if (run.steps() > 2 && run.step_spread_ms() > 0) {
    // A few that take longer show in the mean alone.
    const bool is_skewed =
        std::abs(run.step_mean_ms() - run.step_ms()) > kNotableDifference * run.step_ms();
    details.push_back(absl::StrCat(
        "Half of them lie within ", TimeText(run.step_spread_ms()), " of that",
        is_skewed ? absl::StrCat("; the mean is ", TimeText(run.step_mean_ms())) : "", "."));
  }
  if (StepWord(run) != "step") {
    details.push_back(absl::StrCat(
        "The profiles mark no steps: these are ",
        StepWord(run) == "period" ? "periods of repeating work." : "executions of programs."));
  }
  return details;
}

Finding RunFinding(const RunReport& report) {
  const RunSummary& run = report.run();
  std::string headline = RunText(report);
  std::vector<std::string> details;
  if (run.has_step_ms()) {
    absl::StrAppend(&headline, ": ", WithThousands(run.steps()), " ", StepWord(run),
                    run.steps() == 1 ? "" : "s", " of ", TimeText(run.step_ms()),
                    run.steps() > 1 ? " in the median" : "");
    details = StepDetails(run);
  } else if (run.wall_ms() > 0) {
    absl::StrAppend(&headline, ": ", TimeText(run.wall_ms()));
    if (run.events() > 0) {
      absl::StrAppend(&headline, " in one piece");
      details = {absl::StrCat("The profiles mark no steps, and ",
                              report.evidence().communication_only()
                                  ? "communication alone does not tell them."
                                  : "no repeating work was found.")};
    }
  }
  if (!run.recorded().empty()) details.push_back(absl::StrCat("Recorded ", run.recorded(), "."));
  return MakeFinding("run", "info", "timeline", absl::StrCat(headline, "."),
                     absl::StrJoin(details, " "));
}

// The finding about clocks that are as good as they were measured.
Finding ClocksAgree(const RunReport& report, const std::string& rests_on) {
  const bool is_checked = report.combine().happens_before().checked() > 0;
  const bool is_wide = ClocksMayHide(report);
  return MakeFinding(
      "clocks",
      !is_checked ? "unknown"
      : is_wide   ? "info"
                  : Good(report),
      "clocks",
      is_checked ? "Clocks agree: no collective contradicts them."
                 : "Clocks agree as far as they were measured; no collective was checked.",
      report.evidence().has_clock_uncertainty_ms()
          ? absl::StrCat("They are known within ", ClocksWithin(report),
                         is_wide ? "; between ranks, what is shorter cannot be told." : ".")
          : "",
      rests_on);
}

std::optional<Finding> ClockFinding(const RunReport& report) {
  const CombineReport& combined = report.combine();
  if (combined.nodes_size() < 2) return std::nullopt;
  const Evidence& evidence = report.evidence();
  const HappensBeforeSummary& order = combined.happens_before();
  if (evidence.unknown_clocks_size() > 0) {
    return MakeFinding("clocks", "unknown", "clocks",
                       absl::StrCat("The clock of ", RankList(evidence.unknown_clocks()),
                                    " is not known: nothing ties it to the others."),
                       "It keeps its own clock; compare no times with it.");
  }
  const bool is_stated = evidence.has_clock_uncertainty_ms();
  if (order.checked() == 0 && !is_stated) {
    return MakeFinding("clocks", "unknown", "clocks", "Nothing tells whether the clocks agree.",
                       "There is no collective to check them with, and nobody measured them.");
  }
  const std::string checked = WithThousands(order.checked());
  if (order.violations_after() > 0) {
    return MakeFinding("clocks", "bad", "clocks",
                       absl::StrCat("Clocks contradict ", WithThousands(order.violations_after()),
                                    " of ", checked, " collectives."),
                       "Times of different ranks cannot be compared, so that nothing is said about "
                       "who waits for whom, nor simulated.");
  }
  const std::string rests_on =
      order.checked() == 0
          ? ""
          : absl::StrCat("Rests on ", checked,
                         order.checked() == 1 ? " collective" : " collectives",
                         " of which two ranks or more are there",
                         evidence.matched_by_order() ? ", matched by their order alone." : ".");
  const auto distance_ms = [](const CombinedNode& node) {
    return std::abs(static_cast<double>(node.offset_ns())) * kMsPerNs;
  };
  const CombinedNode& farthest = *std::max_element(
      combined.nodes().begin(), combined.nodes().end(),
      [&](const auto& a, const auto& b) { return distance_ms(a) < distance_ms(b); });
  const double largest_ms = distance_ms(farthest);
  const bool was_wrong = order.violations_before() > 0;
  // What is smaller than its uncertainty may be nothing.
  const double smallest_ms = std::max(evidence.clock_uncertainty_ms(), kSmallestMs);
  if (largest_ms == 0 || (!was_wrong && largest_ms <= smallest_ms)) {
    return ClocksAgree(report, rests_on);
  }
  const std::string within =
      is_stated ? absl::StrCat(" and are now known within ", ClocksWithin(report)) : "";
  const bool names_host = !farthest.hostname().empty() && report.run().hosts_size() >= 2;
  return MakeFinding(
      "clocks", was_wrong ? "bad" : "info", "clocks",
      absl::StrCat("Clocks were up to ", TimeText(largest_ms), " off", within, "."),
      absl::StrCat("Farthest off: node ", farthest.node_id(),
                   names_host ? absl::StrCat(" (host ", farthest.hostname(), ")") : "", ". ",
                   was_wrong ? absl::StrCat("Before, ", WithThousands(order.violations_before()),
                                            " of ", checked,
                                            " collectives ended before they began on another rank; "
                                            "now none does.")
                             : "No collective contradicted them before either."),
      rests_on);
}

// What would help, where no other finding says it: links and late ranks have their own.
std::optional<Finding> WhatIfFinding(const RunReport& report) {
  const WhatIfPart* best = nullptr;
  for (const WhatIfPart& part : report.what_if()) {
    const bool is_told = part.change() == WhatIfPart::HALF_THE_COMMUNICATION ||
                         part.change() == WhatIfPart::LINK_AS_FAST_AS_OTHERS ||
                         part.change() == WhatIfPart::RANK_AS_FAST_AS_OTHERS;
    if (!is_told && (best == nullptr || part.saved_ms() > best->saved_ms())) best = &part;
  }
  if (best == nullptr) return std::nullopt;
  const double now_ms = best->step_ms() + best->saved_ms();
  if (!(best->saved_ms() > kNotableSaving * now_ms)) return std::nullopt;
  const std::optional<PathShares> shares = SharesOf(report);
  const bool is_host =
      best->change() == WhatIfPart::NO_HOST_TIME && shares.has_value() && shares->host > 0.5;
  Finding finding = MakeFinding(
      "what_if", is_host && best->saved_ms() > kLargeShare * now_ms ? "bad" : "info", "what_if",
      absl::StrCat(is_host ? "The hosts are what the run waits for: if " : "If ", best->what(),
                   ", ", UnitText(report), " takes ", TimeText(best->step_ms()), ", ",
                   TimeText(best->saved_ms()), " less", InTheMean(report), "."),
      absl::StrCat(is_host ? absl::StrCat(PercentText(shares->host),
                                          " of the critical path is on hosts, in calls and between "
                                          "them. ")
                           : "",
                   "Found by running the measured schedule again with that changed."),
      RestsOn(report));
  SetAtStake(best->saved_ms(), absl::StrCat("if ", best->what()), &finding);
  ShowIn(report, std::nullopt, &finding);
  return finding;
}

std::optional<Finding> SimulationFinding(const RunReport& report) {
  if (!report.has_simulation() || report.simulation().cells_size() == 0) return std::nullopt;
  const SimulationPart& simulation = report.simulation();
  const double worst = std::max(simulation.mean_error(), simulation.step_error());
  const std::string steps =
      simulation.has_step_error()
          ? absl::StrCat(", and its steps ", worst <= kTrustedError ? "within " : "by ",
                         PercentText(simulation.step_error()))
          : "";
  return MakeFinding(
      "simulation",
      worst > kTrustedError                ? "unknown"
      : worst > 0.15                       ? "info"
      : CanCompareRanks(report.evidence()) ? "good"
                                           : "info",
      "simulation",
      absl::StrCat("The simulated network ",
                   worst <= kTrustedError ? "gives this run's collectives within "
                                          : "does not give this run: it misses its collectives by ",
                   PercentText(simulation.mean_error()), " in the mean", steps, "."),
      absl::StrCat("Calibrated from ", simulation.calibrated_from(),
                   "; network: ", simulation.network(), "."));
}

// What is wrong with one rank or link, unlike with the others: it can be mended where it is.
bool IsDefect(const Finding& finding) {
  return finding.verdict() == "bad" &&
         (finding.topic() == "straggler" || finding.topic() == "links");
}

// The order in which findings are read: what makes all others doubtful, defects, what costs time, other
// problems, what is known, the run itself, what is not known.
int PlaceOf(const RunReport& report, const Finding& finding) {
  const std::string& topic = finding.topic();
  const bool is_bad = finding.verdict() == "bad";
  const bool contradicts = report.combine().happens_before().violations_after() > 0;
  if (topic == "hang" || topic == "evidence") return 0;
  if (topic == "clocks" && is_bad && contradicts) return 0;
  if (IsDefect(finding)) return 1;
  // A rank that others wait for is worth a look, though mending it alone would not help.
  const bool names_rank = topic == "straggler" && finding.ranks_size() > 0;
  if (finding.has_at_stake_ms() || names_rank) return 2;
  if (is_bad) return 3;
  if (finding.verdict() == "unknown") return 6;
  const bool is_side = topic == "clocks" || topic == "simulation";
  return topic == "run" ? 5 : is_side ? 7 : 4;
}

// Says why a defect comes first where something else would save more.
void ExplainOrder(RunReport* report) {
  Finding& first = *report->mutable_findings(0);
  for (const Finding& finding : report->findings()) {
    if (!IsDefect(first) || finding.at_stake_ms() <= first.at_stake_ms()) continue;
    absl::StrAppend(first.mutable_detail(), " What comes next would save more, ",
                    finding.at_stake_if(),
                    "; this comes first because it can be mended where it is.");
    return;
  }
}

}  // namespace

std::optional<Finding> HangFinding(const ValidationReport& dumps) {
  if (dumps.hangs().empty()) return std::nullopt;
  const HangReport& hang = dumps.hangs(0);
  const bool is_missing = hang.missing_ranks_size() > 0;
  std::vector<std::string> calls;
  for (const HangCall& call : hang.calls()) {
    calls.push_back(absl::StrCat(RankList(call.ranks()), " called ",
                                 FirstCharacters(call.call(), kMostOfCall)));
  }
  Finding finding = MakeFinding(
      "hang", "bad", "waiting",
      is_missing ? absl::StrCat("The job hangs: it waits for ", RankList(hang.missing_ranks()), ".")
                 : "The job hangs: its ranks do not agree on a call.",
      absl::StrCat("Call ", hang.seq(), " of group ", FirstCharacters(hang.group(), kMostOfCall),
                   ": ", absl::StrJoin(calls, "; "),
                   ". The command validate_collectives says what each rank called last."),
      absl::StrCat("Rests on ", WithThousands(dumps.checked()),
                   " calls that the dumps of two ranks or more hold."));
  *finding.mutable_ranks() = is_missing ? hang.missing_ranks() : hang.ranks();
  return finding;
}

std::map<int64_t, std::string> HostsByRank(const RunReport& report) {
  std::map<int64_t, std::string> hosts;
  for (const CombinedNode& node : report.combine().nodes()) {
    for (int64_t rank : node.ranks()) hosts[rank] = node.hostname();
  }
  return hosts;
}

bool CanCompareRanks(const Evidence& evidence) { return WhyNotComparable(evidence).empty(); }

void AddFindings(RunReport* report) {
  const auto added = report->findings();
  report->clear_findings();
  for (const std::optional<Finding>& finding :
       {EvidenceFinding(*report), std::make_optional(RunFinding(*report)),
        StragglerFinding(*report), LinksFinding(*report), NetworkFinding(*report),
        ClockFinding(*report), WhatIfFinding(*report), SimulationFinding(*report)}) {
    if (finding.has_value()) *report->add_findings() = *finding;
  }
  report->mutable_findings()->MergeFrom(added);
  const double unit_ms =
      report->run().has_step_mean_ms() ? report->run().step_mean_ms() : report->run().wall_ms();
  for (Finding& finding : *report->mutable_findings()) {
    if (finding.at_stake_ms() <= kNotableSaving * unit_ms) finding.clear_at_stake_ms();
  }
  const auto weight = [&](const Finding& finding) {
    return std::make_pair(PlaceOf(*report, finding), -finding.at_stake_ms());
  };
  std::stable_sort(report->mutable_findings()->begin(), report->mutable_findings()->end(),
                   [&](const Finding& a, const Finding& b) { return weight(a) < weight(b); });
  ExplainOrder(report);
}

void AddComparisonFinding(RunReport* report) {
  const Comparison& comparison = report->comparison();
  const Comparison::Verdict verdict = comparison.verdict();
  const std::string word = StepWord(report->run());
  Finding finding =
      MakeFinding("comparison",
                  verdict == Comparison::LONGER    ? "bad"
                  : verdict == Comparison::SAME    ? "info"
                  : verdict == Comparison::SHORTER ? "good"
                                                   : "unknown",
                  "comparison", comparison.headline(), comparison.detail(),
                  absl::StrCat("Rests on ", comparison.before_steps_ns_size(), " ", word,
                               "s before and ", comparison.after_steps_ns_size(), " now."));
  if (verdict == Comparison::LONGER) {
    SetAtStake(comparison.step().change_ns() * kMsPerNs, "as before", &finding);
  }
  *report->add_findings() = finding;
  // To the front.
  for (int i = report->findings_size() - 1; i > 0; --i) {
    report->mutable_findings()->SwapElements(i, i - 1);
  }
}

std::string FindingsText(const RunReport& report) {
  std::string text;
  for (const Finding& finding : report.findings()) {
    absl::StrAppend(&text, Printable(finding.headline()));
    for (const std::string& more : {finding.detail(), finding.rests_on()}) {
      if (!more.empty()) absl::StrAppend(&text, " ", Printable(more));
    }
    text.push_back('\n');
  }
  return text;
}

}  // namespace meridian
