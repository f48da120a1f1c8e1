// What the network does to a run: links that are slower than others, and exposed communication.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "pipeline/findings_parts.h"
#include "report/quantities.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// Communication that the path spends less on than this is not what the run waits for.
constexpr double kNotableCommunication = 0.2;
// Twice what halving communication saves, of a step, below which it does not bound the run.
constexpr double kHardlyBound = 0.1;
// What halving communication saves may differ so much, of a step, from half of its share.
constexpr double kTolerableDifference = 0.05;

Finding NoSlowLink(const RunReport& report, const std::string& why_not) {
  const int64_t ranks = report.combine().link_ranks();
  const int64_t compared = report.combine().link_ranks_compared();
  if (why_not.empty() && compared == ranks) {
    return MakeFinding(
        "links", Good(report), "waiting", "No rank's link is much slower than the others'.",
        "Of what each rank transfers, some takes less than 1.4 times what the same transfer takes "
        "elsewhere. Links that all share, as between switches, cannot be told from this.",
        RestsOn(report));
  }
  return MakeFinding(
      "links", "unknown", "waiting",
      absl::StrCat("Whether a rank's link is slower than others' is not known",
                   compared == 0 || !why_not.empty()
                       ? ""
                       : absl::StrCat(" for ", ranks - compared, " of ", ranks, " ranks"),
                   "."),
      why_not.empty()
          ? "It takes groups or pairs of ranks that transfer the same bytes in the same way, "
            "often enough; pairs need clocks that are known well, too. Collectives of all ranks "
            "have nothing beside them."
          : absl::StrCat(Capitalised(why_not), "."));
}

// Says how much slower the other slow links are.
std::string OtherSlowLinks(const RunReport& report) {
  std::string text;
  const int shown = std::min<int>(report.slow_links_size(), kMostNamedRanks);
  for (int i = 1; i < shown; ++i) {
    absl::StrAppend(&text, "That of ", RankName(report, report.slow_links(i).rank()), " is ",
                    absl::StrFormat("%.1f", report.slow_links(i).times_slower()),
                    " times slower. ");
  }
  if (shown < report.slow_links_size()) {
    absl::StrAppend(&text, report.slow_links_size() - shown, " more are slower, too. ");
  }
  return text;
}

// The finding about logs of collectives, which show nothing beside them.
Finding OnlyCommunication(const RunReport& report) {
  double transfer_ms = 0;
  for (const CombinedRank& rank : report.combine().ranks()) transfer_ms += rank.transfer_ms();
  const double whole_ms =
      report.run().wall_ms() * static_cast<double>(report.combine().ranks_size());
  const double waited = WaitedShare(report);
  return MakeFinding(
      "network", "unknown", "network",
      "Whether the network is what the run waits for is not known.",
      absl::StrCat("The profiles hold communication alone",
                   transfer_ms > 0 && whole_ms > 0
                       ? absl::StrCat(", which moves data for ",
                                      PercentText(transfer_ms / whole_ms), " of the time")
                       : "",
                   waited > 0 ? absl::StrCat(" and waits for ", PercentText(waited)) : "",
                   "; what the ranks computed beside it, nobody recorded."),
      RestsOn(report));
}

}  // namespace

std::optional<Finding> LinksFinding(const RunReport& report) {
  const std::string why_not = WhyNotComparable(report.evidence());
  if (report.combine().link_ranks() < 2 && why_not.empty()) return std::nullopt;
  if (report.slow_links_size() == 0) return NoSlowLink(report, why_not);
  const CombinedLink& link = report.slow_links(0);
  std::vector<std::string> names = {RankName(report, link.rank())};
  for (const int64_t rank : link.or_ranks()) {
    if (names.size() < kMostNamedRanks) names.push_back(RankName(report, rank));
  }
  const size_t unnamed = static_cast<size_t>(link.or_ranks_size()) + 1 - names.size();
  std::string headline = absl::StrCat(
      "The link of ", absl::StrJoin(names, " or "),
      unnamed == 0 ? "" : absl::StrCat(" or one of ", unnamed, " more"), " is ",
      absl::StrFormat("%.1f", link.times_slower()), " times slower than the others'",
      link.cost_ms() > 0 ? absl::StrCat("; if it were not, ", UnitText(report), " would take ",
                                        TimeText(link.cost_ms()), " less")
                         : "",
      ".");
  std::string detail = absl::StrCat(
      link.or_ranks().empty()
          ? ""
          : "Which of them cannot be told: what they transfer, they transfer together. ",
      OtherSlowLinks(report), "Found by comparing transfers of the same kind and bytes.",
      link.has_cost_ms() ? " The cost is found by running the measured schedule again with its "
                           "transfers so much shorter."
                         : "");
  Finding finding = MakeFinding(
      "links", "bad", "waiting", std::move(headline), std::move(detail),
      absl::StrCat("Rests on ", WithThousands(link.transfers()), " of its transfers beside ",
                   WithThousands(link.compared_with()), " of others."));
  if (link.has_cost_ms()) SetAtStake(link.cost_ms(), "if it were as fast as the others", &finding);
  finding.add_ranks(link.rank());
  finding.mutable_ranks()->MergeFrom(link.or_ranks());
  ShowIn(report, std::nullopt, &finding);
  return finding;
}

std::optional<Finding> NetworkFinding(const RunReport& report) {
  const Evidence& evidence = report.evidence();
  if (report.run().ranks() < 2 && evidence.job_ranks() < 2) return std::nullopt;
  if (evidence.communication_only()) return OnlyCommunication(report);
  const std::optional<PathShares> shares = SharesOf(report);
  const std::string why_not = shares.has_value() ? WhyNotComparable(evidence) : WhyNoPath(report);
  if (!why_not.empty()) {
    return MakeFinding("network", "unknown", "path", "What the network costs is not known.",
                       shares.has_value()
                           ? absl::StrCat("Waiting for a rank that is not there looks like "
                                          "communication: ",
                                          why_not, ".")
                           : why_not);
  }
  if (!shares.has_value()) return std::nullopt;
  const double share = shares->communication;
  const std::string communicates =
      absl::StrCat(PercentText(share), " of the critical path is exposed communication");
  // What halving it would save says whether it bounds the run.
  const WhatIfPart* half = FindWhatIf(report, WhatIfPart::HALF_THE_COMMUNICATION);
  double bound = share;
  std::optional<double> at_stake_ms;
  absl::string_view condition = "if communication took half the time";
  std::string detail;
  if (half != nullptr && half->step_ms() + half->saved_ms() > 0) {
    const double now_ms = half->step_ms() + half->saved_ms();
    bound = 2 * half->saved_ms() / now_ms;
    at_stake_ms = half->saved_ms();
    const std::string half_text = TimeText(half->step_ms()), now_text = TimeText(now_ms);
    detail = absl::StrCat(
        "If it took half the time, ", UnitText(report), " would take ", half_text,
        half_text == now_text ? " as it does now" : absl::StrCat(" in place of ", now_text),
        InTheMean(report), " (the measured schedule, run again).");
  }
  // What the waits of the trace do not show, the schedule, run again, does.
  const double least_share = bound - 2 * kTolerableDifference;
  if (half != nullptr && share < least_share) {
    return MakeFinding(
        "network", "unknown", "path", "What the network costs is not known.",
        absl::StrCat(Capitalised(communicates), ", but if it took half the time, ",
                     UnitText(report), " would be shorter by ", PercentText(bound / 2),
                     ": the trace does not show who waited for it."));
  }
  if (const ForecastReport* twice = FindForecast(report, /*bandwidth=*/2, /*compute=*/1)) {
    const double now_ns = twice->measured_step_ns();
    // What hardly saves anything needs no doubt.
    const bool is_sure =
        twice->high_ns() < now_ns || twice->step_ns() > (1 - kNotableSaving) * now_ns;
    // The forecast is of the median step; all that is shown beside it is of the mean.
    const double scale =
        report.run().has_step_mean_ms() ? report.run().step_mean_ms() / now_ns : kMsPerNs;
    bound = 2 * (1 - twice->step_ns() / now_ns);
    at_stake_ms = (now_ns - twice->step_ns()) * scale;
    condition = is_sure ? "on links twice as fast" : "on links twice as fast (not sure)";
    detail =
        absl::StrCat("On links twice as fast ", UnitText(report), " would take ",
                     TimeText(twice->step_ns() * scale), " in place of ", TimeText(now_ns * scale),
                     InTheMean(report), ", 90 % interval ", TimeText(twice->low_ns() * scale),
                     " to ", TimeText(twice->high_ns() * scale), " (a forecast",
                     is_sure ? ")." : "; by its interval it may also save nothing).");
  }
  std::string headline;
  if (share < kNotableCommunication) {
    headline = absl::StrCat(
        "Mostly not the network: ", communicates,
        shares->most.empty()
            ? ""
            : absl::StrCat(", ", PercentText(shares->most_share), " is ", shares->most),
        ".");
  } else if (bound < kHardlyBound) {
    headline = absl::StrCat(communicates,
                            ", but a faster network would hardly help: something else, beside it, "
                            "takes as long.");
  } else {
    headline = absl::StrCat(share > 0.5 ? "The network is what the run waits for: " : "",
                            communicates, ".");
  }
  const bool is_bad = share > 0.5 && bound >= kHardlyBound;
  Finding finding = MakeFinding("network", is_bad ? "bad" : "info", "path", std::move(headline),
                                std::move(detail), RestsOn(report));
  if (at_stake_ms.has_value()) SetAtStake(*at_stake_ms, condition, &finding);
  ShowIn(report, std::nullopt, &finding);
  return finding;
}

}  // namespace meridian
