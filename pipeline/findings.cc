#include "pipeline/findings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/quantities.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// A rank that others wait for less than this of the steps is no straggler; one that is late in this
// share of them, or that they wait for as much, is what to look at.
constexpr double kNotableShare = 0.02;
constexpr double kMostSteps = 0.5;
constexpr double kLargeShare = 0.05;
constexpr size_t kMostNamedSteps = 4;
constexpr double kNotableSaving = 0.01;
// Communication that the path spends less on than this is not what the run waits for.
constexpr double kNotableCommunication = 0.2;
// Ranks that wait for each other for more than this of the time, nobody being late, need a word.
constexpr double kMuchWaiting = 0.1;
// A mean that differs more from its median is worth telling.
constexpr double kNotableDifference = 0.03;
constexpr size_t kMostNamedRanks = 8;
// Twice what halving communication saves, of a step, below which it does not bound the run.
constexpr double kHardlyBound = 0.1;
// Lengths that differ by less are the same number; what halving communication saves may differ so
// much, of a step, from half of its share.
constexpr double kSameShare = 1e-6;
constexpr double kTolerance = 0.05;

std::string Time(double ms) { return DurationText(ms * kNsPerMs); }

std::string Percent(double share) {
  return share > 0 && share < 0.095 ? absl::StrFormat("%.1f %%", 100 * share)
                                    : absl::StrFormat("%.0f %%", 100 * share);
}

Finding MakeFinding(absl::string_view topic, absl::string_view verdict, absl::string_view section,
                    std::string headline, std::string detail, std::string rests_on = "") {
  Finding finding;
  finding.set_topic(std::string(topic));
  finding.set_verdict(std::string(verdict));
  finding.set_section(std::string(section));
  finding.set_headline(std::move(headline));
  finding.set_detail(std::move(detail));
  finding.set_rests_on(std::move(rests_on));
  return finding;
}

// What the run's steps are called, and one of them, or all of it, in a sentence.
std::string StepWord(const RunSummary& run) {
  return run.step_word().empty() ? "step" : run.step_word();
}
std::string UnitText(const RunReport& report) {
  if (!report.run().has_step_ms()) return "the run";
  const std::string word = StepWord(report.run());
  return absl::StrCat(word == "execution" ? "an " : "a ", word);
}

// All steps together, or all the time where there are none.
double WholeMs(const RunReport& report) {
  return report.run().has_step_mean_ms()
             ? report.run().step_mean_ms() * static_cast<double>(report.run().steps())
             : report.run().wall_ms();
}

// How often a rank may have been late by what clocks are off: in each step, or where there are none
// in each collective.
double Occasions(const RunReport& report) {
  return static_cast<double>(std::max<int64_t>(
      1, report.run().has_step_ms() ? report.run().steps() : report.evidence().collectives()));
}

const WhatIfPart* FindWhatIf(const RunReport& report, WhatIfPart::Change change) {
  for (const WhatIfPart& part : report.what_if()) {
    if (part.change() == change) return &part;
  }
  return nullptr;
}

std::string RankName(const RunReport& report, int64_t rank) {
  const std::map<int64_t, std::string> hosts = HostsByRank(report);
  const auto host = hosts.find(rank);
  std::set<std::string> names;
  for (const auto& [any, name] : hosts) names.insert(name);
  // One host for all is no news.
  if (host == hosts.end() || host->second.empty() || names.size() < 2) {
    return absl::StrCat("rank ", rank);
  }
  return absl::StrCat("rank ", rank, " (host ", host->second, ")");
}

std::string Capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string RankList(const google::protobuf::RepeatedField<int64_t>& ranks) {
  const size_t shown = std::min<size_t>(ranks.size(), kMostNamedRanks);
  std::string text = absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                                  absl::StrJoin(ranks.begin(), ranks.begin() + shown, ", "));
  const size_t more = static_cast<size_t>(ranks.size()) - shown;
  return more == 0 ? text : absl::StrCat(text, " and ", more, " more");
}

// Says why there is no critical path; empty when nobody tried to find it.
std::string WhyNoPath(const RunReport& report) {
  for (const ReportedStage& stage : report.stages()) {
    if (stage.name() == "path" && stage.state() == "failed") {
      return absl::StrCat("The critical path could not be found: ", stage.note(), ".");
    }
  }
  return "";
}

// Says why times of different ranks cannot be compared; empty when they can.
std::string WhyNotComparable(const Evidence& evidence) {
  if (evidence.missing_ranks_size() > 0) {
    return absl::StrCat("no profile has the work of ", RankList(evidence.missing_ranks()), " of ",
                        evidence.job_ranks());
  }
  if (evidence.lost_size() > 0) {
    const LostEvents& first = evidence.lost(0);
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

// What a finding about several ranks rests on.
std::string RestsOn(const RunReport& report) {
  const Evidence& evidence = report.evidence();
  std::vector<std::string> parts;
  if (evidence.collectives() > 0) {
    parts.push_back(absl::StrCat("all ranks of ", WithThousands(evidence.complete_collectives()),
                                 " of ", WithThousands(evidence.collectives()), " collectives"));
  }
  if (evidence.steps() > 0) {
    parts.push_back(absl::StrCat(evidence.common_steps(), " of ", evidence.steps(),
                                 " steps that all ranks have"));
  }
  if (evidence.has_clock_uncertainty_ms() && report.nodes_size() > 1) {
    parts.push_back(absl::StrCat("clocks known within ", Time(evidence.clock_uncertainty_ms())));
  }
  if (evidence.matched_by_order()) parts.push_back("executions matched by their order alone");
  return parts.empty() ? "" : absl::StrCat("Rests on ", absl::StrJoin(parts, ", "), ".");
}

// What may be another execution than it is taken for is not good.
std::string Good(const RunReport& report) {
  return report.evidence().matched_by_order() ? "info" : "good";
}

// What is lacking comes first, since all else has to be read with it in mind.
std::optional<Finding> EvidenceFinding(const RunReport& report) {
  const std::string why = WhyNotComparable(report.evidence());
  if (why.empty()) return std::nullopt;
  std::string detail =
      "What needs all ranks is not known: who is late, what the network costs, what would help.";
  for (const LostEvents& lost : report.evidence().lost()) {
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

Finding RunFinding(const RunReport& report) {
  const RunSummary& run = report.run();
  const Evidence& evidence = report.evidence();
  // Profiles without collectives do not say which ranks they are.
  const int64_t count = run.ranks() > 0 ? run.ranks() : report.nodes_size();
  std::string headline =
      absl::StrCat(run.framework(), run.framework().empty() ? "" : " run of ", count,
                   run.ranks() > 0 && run.ranks() < evidence.job_ranks()
                       ? absl::StrCat(" of ", evidence.job_ranks())
                       : "",
                   run.ranks() > 0 ? " rank" : " profile",
                   std::max(count, evidence.job_ranks()) == 1 ? "" : "s");
  if (run.hosts_size() > 0) {
    absl::StrAppend(&headline, " on ", run.hosts_size(),
                    run.hosts_size() == 1 ? " host" : " hosts");
  }
  std::string detail;
  if (run.has_step_ms()) {
    absl::StrAppend(&headline, ": ", run.steps(), " ", StepWord(run), run.steps() == 1 ? "" : "s",
                    " of ", Time(run.step_ms()), run.steps() > 1 ? " in the median." : ".");
    if (run.steps() > 2 && run.step_spread_ms() > 0) {
      detail = absl::StrCat("Half of them lie within ", Time(run.step_spread_ms()), " of that");
      // A few that take longer show in the mean alone.
      if (std::abs(run.step_mean_ms() - run.step_ms()) > kNotableDifference * run.step_ms()) {
        absl::StrAppend(&detail, "; the mean is ", Time(run.step_mean_ms()));
      }
      absl::StrAppend(&detail, ".");
    }
    if (StepWord(run) != "step") {
      absl::StrAppend(
          &detail, detail.empty() ? "" : " ", "The profiles mark no steps: these are ",
          StepWord(run) == "period" ? "periods of repeating work." : "executions of programs.");
    }
  } else if (run.events() == 0) {
    absl::StrAppend(&headline, run.wall_ms() > 0 ? absl::StrCat(": ", Time(run.wall_ms())) : "",
                    ".");
  } else if (run.wall_ms() > 0) {
    absl::StrAppend(&headline, ": ", Time(run.wall_ms()), " in one piece.");
    detail = "The profiles mark no steps, and no repeating work was found.";
  } else {
    absl::StrAppend(&headline, ".");
  }
  if (!run.recorded().empty()) {
    absl::StrAppend(&detail, detail.empty() ? "" : " ", "Recorded ", run.recorded(), ".");
  }
  return MakeFinding("run", "info", "timeline", std::move(headline), std::move(detail));
}

// How long, of all the time, the ranks waited in collectives for others, in the mean.
double WaitedShare(const RunReport& report) {
  double waited_ms = 0;
  for (const RankWait& rank : report.rank_waits()) waited_ms += rank.waited_ms();
  const double whole_ms = report.run().wall_ms() * static_cast<double>(report.rank_waits_size());
  return whole_ms > 0 ? waited_ms / whole_ms : 0;
}

// Where profiles hold communication alone, nobody recorded what a rank did before it came late:
// only that the others waited for it. Nothing when no wait is longer than clocks may be off.
std::optional<Finding> LateToCollectives(const RunReport& report) {
  const RankWait* last = nullptr;
  for (const RankWait& rank : report.rank_waits()) {
    if (last == nullptr || rank.caused_wait_ms() > last->caused_wait_ms()) last = &rank;
  }
  double longest_ms = 0;
  for (const StepWait& wait : report.waiting()) {
    if (last != nullptr && wait.rank() != last->rank()) {
      longest_ms = std::max(longest_ms, wait.worst_ms());
    }
  }
  if (last == nullptr || longest_ms <= report.evidence().clock_uncertainty_ms())
    return std::nullopt;
  return MakeFinding(
      "straggler", "unknown", "waiting",
      absl::StrCat(RankName(report, last->rank()), " keeps others waiting, once for ",
                   Time(longest_ms), "; why it is late is not known."),
      absl::StrCat("It comes last to ", last->last(), " of ", last->collectives(),
                   " collectives, for which the others wait ", Time(last->caused_wait_ms()),
                   " in all. The profiles hold communication alone: what it did meanwhile, nobody "
                   "recorded."),
      RestsOn(report));
}

std::optional<Finding> StragglerFinding(const RunReport& report) {
  const Evidence& evidence = report.evidence();
  if (report.run().ranks() < 2 && evidence.job_ranks() < 2) return std::nullopt;
  const std::string why_not = WhyNotComparable(evidence);
  if (!why_not.empty()) {
    return MakeFinding("straggler", "unknown", "blame", "Who is late is not known.",
                       absl::StrCat(Capitalised(why_not), "."));
  }
  if (report.run().events() == 0) {
    const std::string why = WhyNoPath(report);
    if (why.empty()) return std::nullopt;
    return MakeFinding("straggler", "unknown", "blame", "Who is late is not known.", why);
  }
  if (report.nodes_size() > 1 && !evidence.has_clock_uncertainty_ms()) {
    return MakeFinding("straggler", "unknown", "blame", "Who is late is not known.",
                       "Nothing tells within what the clocks of the ranks agree.");
  }
  struct OfRank {
    double caused_ms = 0;
    std::set<int64_t> led;
    const BlamePart* worst = nullptr;
  };
  std::map<int64_t, OfRank> ranks;
  // By step, the rank that kept others waiting longest. Rows are sorted by that. What clocks may be
  // off by is no lateness.
  std::map<int64_t, const BlamePart*> leaders;
  const double uncertainty_ms = evidence.clock_uncertainty_ms();
  const BlamePart* longest = nullptr;
  for (const BlamePart& part : report.blame()) {
    // What was outside of the steps is no step's time.
    if (report.run().has_step_ms() && !part.has_step()) continue;
    if (part.caused_ms() <= uncertainty_ms) continue;
    if (longest == nullptr) longest = &part;
    OfRank& rank = ranks[part.rank()];
    rank.caused_ms += part.caused_ms();
    if (rank.worst == nullptr) rank.worst = &part;
    if (part.has_step()) leaders.insert({part.step(), &part});
  }
  // A step in which it hardly matters is none that anybody is late in.
  for (const auto& [step, part] : leaders) {
    if (part->share() >= kNotableShare) ranks[part->rank()].led.insert(step);
  }
  if (evidence.communication_only() && ranks.empty()) {
    std::optional<Finding> late = LateToCollectives(report);
    if (late.has_value()) return late;
  }
  const double whole_ms = WholeMs(report);
  const auto late = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.second.caused_ms < b.second.caused_ms;
  });
  const int64_t all_steps = std::max<int64_t>(1, report.run().steps());
  const auto steps = static_cast<double>(all_steps);
  if (late == ranks.end() || !(whole_ms > 0) || late->second.caused_ms < kNotableShare * whole_ms) {
    const double waited = WaitedShare(report);
    const std::string most =
        late == ranks.end() || !(whole_ms > 0)
            ? ""
            : absl::StrCat(" For the one that does most, ", RankName(report, late->first),
                           ", they wait ", Percent(late->second.caused_ms / whole_ms),
                           " of the time.");
    if (uncertainty_ms * Occasions(report) > kNotableShare * whole_ms) {
      return MakeFinding(
          "straggler", "unknown", "blame",
          absl::StrCat("Whether a rank is late by less than ", Time(uncertainty_ms),
                       " is not known."),
          absl::StrCat("The clocks are known within ", Time(uncertainty_ms), ", and ",
                       UnitText(report), " takes ", Time(whole_ms / steps),
                       report.run().has_step_ms() ? " in the mean." : ".",
                       most.empty() ? " By more than that no rank is late."
                                    : absl::StrCat(" What is more than that is little.", most)),
          RestsOn(report));
    }
    if (waited >= kMuchWaiting) {
      return MakeFinding(
          "straggler", "info", "waiting",
          absl::StrCat("Ranks wait for each other for ", Percent(waited),
                       " of the time, but none is late by its own doing."),
          absl::StrCat(report.slow_links_size() > 0
                           ? "They come from transfers that took longer, or wait for the order of "
                             "the work."
                           : "They wait for the order of the work, or come from transfers that "
                             "ended later for them.",
                       most),
          RestsOn(report));
    }
    return MakeFinding(
        "straggler", Good(report), "blame", "No rank keeps the others waiting for long.",
        most.empty() ? "Nobody waited for a rank that was late by its own doing." : most.substr(1),
        RestsOn(report));
  }
  const OfRank& rank = late->second;
  const double led = static_cast<double>(rank.led.size());
  const double share = rank.caused_ms / whole_ms;
  // Few steps are named; a run without steps has none.
  std::string which;
  if (!rank.led.empty()) {
    which =
        absl::StrCat(" in ", rank.led.size(), " of ", all_steps, " ", StepWord(report.run()), "s");
    if (rank.led.size() <= kMostNamedSteps && led < steps) {
      absl::StrAppend(&which, " (", absl::StrJoin(rank.led, ", "), ")");
    }
  }
  const bool is_bad = led >= kMostSteps * steps || share >= kLargeShare;
  std::string headline =
      absl::StrCat(Capitalised(RankName(report, late->first)), " is late", which,
                   "; the others wait for it for ", Percent(share), " of the time.");
  const auto in_step = [&](const BlamePart& part) {
    return part.has_step() ? absl::StrCat(" (", StepWord(report.run()), " ", part.step(), ")") : "";
  };
  std::string detail = absl::StrCat(Capitalised(rank.worst->reason()), in_step(*rank.worst), ".");
  // Waiting need not make the run longer.
  bool costs_nothing = false;
  const WhatIfPart* level = FindWhatIf(report, WhatIfPart::RANK_AS_FAST_AS_OTHERS);
  if (level != nullptr && level->rank() == late->first) {
    costs_nothing = level->saved_ms() <= kNotableSaving * (level->step_ms() + level->saved_ms());
    const bool helps = level->saved_ms() > kNotableSaving * (level->step_ms() + level->saved_ms());
    absl::StrAppend(&detail, " If it were as fast as the others, ",
                    helps
                        ? absl::StrCat(UnitText(report), " would take ", Time(level->saved_ms()),
                                       report.run().has_step_ms() ? " less in the mean." : " less.")
                        : absl::StrCat(UnitText(report),
                                       " would hardly be shorter: the critical path leads past "
                                       "it."));
  }
  if (longest->rank() != late->first) {
    absl::StrAppend(&detail, " The longest single delay is that of ",
                    RankName(report, longest->rank()), in_step(*longest), ": ", longest->reason(),
                    ".");
  }
  return MakeFinding("straggler", is_bad && !costs_nothing ? "bad" : "info", "blame",
                     std::move(headline), std::move(detail), RestsOn(report));
}

std::optional<Finding> LinksFinding(const RunReport& report) {
  const std::string why_not = WhyNotComparable(report.evidence());
  if (report.link_ranks() < 2 && why_not.empty()) return std::nullopt;
  if (report.slow_links_size() == 0) {
    if (!why_not.empty() || report.link_ranks_compared() < report.link_ranks()) {
      return MakeFinding(
          "links", "unknown", "waiting",
          absl::StrCat(
              "Whether a rank's link is slower than others' is not known",
              report.link_ranks_compared() == 0 || !why_not.empty()
                  ? ""
                  : absl::StrCat(" for ", report.link_ranks() - report.link_ranks_compared(),
                                 " of ", report.link_ranks(), " ranks"),
              "."),
          why_not.empty()
              ? "It takes groups or pairs of ranks that transfer the same bytes in the same way, "
                "often enough; pairs need clocks that are known well, too. Collectives of all "
                "ranks "
                "have nothing beside them."
              : absl::StrCat(Capitalised(why_not), "."));
    }
    return MakeFinding(
        "links", Good(report), "waiting", "No rank's link is much slower than the others'.",
        "Of what each rank transfers, some takes less than 1.4 times what the same transfer takes "
        "elsewhere. Links that all share, as between switches, cannot be told from this.",
        RestsOn(report));
  }
  const ReportedLink& link = report.slow_links(0);
  std::vector<std::string> names = {RankName(report, link.rank())};
  for (const int64_t rank : link.or_ranks()) {
    if (names.size() < kMostNamedRanks) names.push_back(RankName(report, rank));
  }
  const size_t unnamed = static_cast<size_t>(link.or_ranks_size()) + 1 - names.size();
  std::string headline =
      absl::StrCat("The link of ", absl::StrJoin(names, " or "),
                   unnamed == 0 ? "" : absl::StrCat(" or one of ", unnamed, " more"), " is ",
                   absl::StrFormat("%.1f", link.times_slower()), " times slower than the others'",
                   link.has_cost_ms() && link.cost_ms() > 0
                       ? absl::StrCat("; if it were not, ", UnitText(report), " would take ",
                                      Time(link.cost_ms()), " less")
                       : "",
                   ".");
  std::string detail;
  if (link.or_ranks_size() > 0) {
    detail = "Which of them cannot be told: what they transfer, they transfer together. ";
  }
  const int shown = std::min<int>(report.slow_links_size(), kMostNamedRanks);
  for (int i = 1; i < shown; ++i) {
    absl::StrAppend(&detail, "That of ", RankName(report, report.slow_links(i).rank()), " is ",
                    absl::StrFormat("%.1f", report.slow_links(i).times_slower()),
                    " times slower. ");
  }
  if (shown < report.slow_links_size()) {
    absl::StrAppend(&detail, report.slow_links_size() - shown, " more are slower, too. ");
  }
  absl::StrAppend(&detail, "Found by comparing transfers of the same kind and bytes.",
                  link.has_cost_ms()
                      ? " The cost is found by running the measured schedule again with its "
                        "transfers so much shorter."
                      : "");
  return MakeFinding(
      "links", "bad", "waiting", std::move(headline), std::move(detail),
      absl::StrCat("Rests on ", WithThousands(link.transfers()), " of its transfers beside ",
                   WithThousands(link.compared_with()), " of others."));
}

std::optional<Finding> ClockFinding(const RunReport& report) {
  if (report.nodes_size() < 2) return std::nullopt;
  const Evidence& evidence = report.evidence();
  double largest = 0;
  const ReportedNode* farthest = nullptr;
  for (const ReportedNode& node : report.nodes()) {
    if (node.has_offset_ms() && std::abs(node.offset_ms()) > largest) {
      largest = std::abs(node.offset_ms());
      farthest = &node;
    }
  }
  const ReportedOrder& order = report.happens_before();
  const bool is_stated = evidence.has_clock_uncertainty_ms();
  const double uncertainty = evidence.clock_uncertainty_ms();
  if (order.checked() == 0 && !is_stated && evidence.unknown_clocks_size() == 0) {
    return MakeFinding("clocks", "unknown", "clocks", "Nothing tells whether the clocks agree.",
                       "There is no collective to check them with, and nobody measured them.");
  }
  const std::string broken =
      absl::StrCat(WithThousands(order.violations_before()), " of ", WithThousands(order.checked()),
                   " collectives ended before they began on another rank");
  if (evidence.unknown_clocks_size() > 0) {
    return MakeFinding("clocks", "unknown", "clocks",
                       absl::StrCat("The clock of ", RankList(evidence.unknown_clocks()),
                                    " is not known: nothing ties it to the others."),
                       "It keeps its own clock; compare no times with it.");
  }
  const std::string within =
      is_stated ? absl::StrCat(" and are now known within ", Time(uncertainty)) : "";
  if (order.violations_after() > 0) {
    return MakeFinding("clocks", "bad", "clocks",
                       absl::StrCat("Clocks contradict ", WithThousands(order.violations_after()),
                                    " of ", WithThousands(order.checked()), " collectives."),
                       "Times of different ranks cannot be compared, so that nothing is said about "
                       "who waits for whom, nor simulated.");
  }
  const std::string rests_on =
      order.checked() == 0
          ? ""
          : absl::StrCat("Rests on ", WithThousands(order.checked()),
                         " collectives of which two ranks or more are there",
                         evidence.matched_by_order() ? ", matched by their order alone." : ".");
  // What is smaller than its uncertainty may be nothing.
  if (farthest == nullptr ||
      (order.violations_before() == 0 && largest <= std::max(uncertainty, 1e-3))) {
    const bool is_wide =
        is_stated && uncertainty * Occasions(report) > kNotableShare * WholeMs(report);
    return MakeFinding(
        "clocks",
        order.checked() == 0 ? "unknown"
        : is_wide            ? "info"
                             : Good(report),
        "clocks",
        order.checked() > 0
            ? "Clocks agree: no collective contradicts them."
            : "Clocks agree as far as they were measured; no collective was checked.",
        is_stated ? absl::StrCat("They are known within ", Time(uncertainty),
                                 is_wide ? "; between ranks, what is shorter cannot be told." : ".")
                  : "",
        rests_on);
  }
  return MakeFinding("clocks", order.violations_before() > 0 ? "bad" : "info", "clocks",
                     absl::StrCat("Clocks were up to ", Time(largest), " off", within, "."),
                     absl::StrCat("Farthest off: node ", farthest->node_id(),
                                  farthest->hostname().empty() || report.run().hosts_size() < 2
                                      ? ""
                                      : absl::StrCat(" (host ", farthest->hostname(), ")"),
                                  ". ",
                                  order.violations_before() > 0
                                      ? absl::StrCat("Before, ", broken, "; now none does.")
                                      : "No collective contradicted them before either."),
                     rests_on);
}

// How much of the path is communication; nullopt without a path.
struct PathShares {
  double communication = 0;
  // What most of the rest is spent on.
  std::string most;
  double most_share = 0;
};
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
    if (kind.is_communication()) {
      shares.communication = share;
    } else if (share > shares.most_share) {
      shares.most = kind.label();
      shares.most_share = share;
    }
  }
  return shares;
}

std::optional<Finding> NetworkFinding(const RunReport& report) {
  const Evidence& evidence = report.evidence();
  if (report.run().ranks() < 2 && evidence.job_ranks() < 2) return std::nullopt;
  if (evidence.communication_only()) {
    double transfer_ms = 0;
    for (const RankWait& rank : report.rank_waits()) transfer_ms += rank.transfer_ms();
    const double whole_ms =
        report.run().wall_ms() * static_cast<double>(std::max(1, report.rank_waits_size()));
    return MakeFinding(
        "network", "unknown", "network",
        "Whether the network is what the run waits for is not known.",
        absl::StrCat(
            "The profiles hold communication alone",
            transfer_ms > 0 && whole_ms > 0
                ? absl::StrCat(", which moves data for ", Percent(transfer_ms / whole_ms),
                               " of the time",
                               WaitedShare(report) > 0
                                   ? absl::StrCat(" and waits for ", Percent(WaitedShare(report)))
                                   : "")
                : "",
            "; what the ranks computed beside it, nobody recorded."),
        RestsOn(report));
  }
  const std::optional<PathShares> shares = SharesOf(report);
  if (!shares.has_value()) {
    const std::string why = WhyNoPath(report);
    if (why.empty()) return std::nullopt;
    return MakeFinding("network", "unknown", "path", "What the network costs is not known.", why);
  }
  const std::string why_not = WhyNotComparable(evidence);
  if (!why_not.empty()) {
    return MakeFinding("network", "unknown", "path", "What the network costs is not known.",
                       absl::StrCat("Waiting for a rank that is not there looks like "
                                    "communication: ",
                                    why_not, "."));
  }
  const double share = shares->communication;
  const std::string communicates =
      absl::StrCat(Percent(share), " of the critical path is exposed communication");
  // What halving it would save says whether it bounds the run.
  const WhatIfPart* half = FindWhatIf(report, WhatIfPart::HALF_THE_COMMUNICATION);
  double bound = share;
  std::string detail;
  if (half != nullptr && half->step_ms() + half->saved_ms() > 0) {
    bound = 2 * half->saved_ms() / (half->step_ms() + half->saved_ms());
    detail = absl::StrCat(
        "If it took half the time, ", UnitText(report), " would take ", Time(half->step_ms()),
        " in place of ", Time(half->step_ms() + half->saved_ms()),
        report.run().has_step_ms() ? " in the mean" : "", " (the measured schedule, run again).");
  }
  if (share >= kNotableCommunication && bound < kHardlyBound) {
    return MakeFinding("network", "info", "path",
                       absl::StrCat(communicates,
                                    ", but a faster network would hardly help: something else, "
                                    "beside it, takes as long."),
                       detail, RestsOn(report));
  }
  if (share >= kNotableCommunication) {
    return MakeFinding("network", share > 0.5 ? "bad" : "info", "path",
                       absl::StrCat(share > 0.5 ? "The network is what the run waits for: " : "",
                                    communicates, "."),
                       detail, RestsOn(report));
  }
  return MakeFinding(
      "network", "info", "path",
      absl::StrCat("Mostly not the network: ", communicates,
                   shares->most.empty()
                       ? ""
                       : absl::StrCat(", ", Percent(shares->most_share), " is ", shares->most),
                   "."),
      detail, RestsOn(report));
}

std::optional<Finding> WhatIfFinding(const RunReport& report) {
  const WhatIfPart* best = nullptr;
  for (const WhatIfPart& part : report.what_if()) {
    // What is simulated has a finding of its own.
    if (part.change() == WhatIfPart::TWICE_THE_BANDWIDTH) continue;
    if (best == nullptr || part.saved_ms() > best->saved_ms()) best = &part;
  }
  if (best == nullptr ||
      !(best->saved_ms() > kNotableSaving * (best->step_ms() + best->saved_ms()))) {
    return std::nullopt;
  }
  return MakeFinding("what_if", "info", "what_if",
                     absl::StrCat("What would help most: if ", best->what(), ", ", UnitText(report),
                                  " takes ", Time(best->step_ms()), ", ", Time(best->saved_ms()),
                                  " less", report.run().has_step_ms() ? " in the mean." : "."),
                     "Found by running the measured schedule again with that changed.",
                     RestsOn(report));
}

std::optional<Finding> SimulationFinding(const RunReport& report) {
  if (!report.has_simulation() || report.simulation().cells_size() == 0) return std::nullopt;
  const SimulationPart& simulation = report.simulation();
  std::string headline = absl::StrCat("The simulated network gives this run's collectives within ",
                                      Percent(simulation.mean_error()), " in the mean");
  if (simulation.has_step_error()) {
    absl::StrAppend(&headline, ", and its steps within ", Percent(simulation.step_error()));
  }
  const double worst = std::max(simulation.mean_error(), simulation.step_error());
  return MakeFinding("simulation",
                     worst <= 0.15  ? CanCompareRanks(report.evidence()) ? "good" : "info"
                     : worst <= 0.3 ? "info"
                                    : "bad",
                     "simulation", absl::StrCat(headline, "."),
                     absl::StrCat("Calibrated from ", simulation.calibrated_from(),
                                  "; network: ", simulation.network(), "."));
}

}  // namespace

std::map<int64_t, std::string> HostsByRank(const RunReport& report) {
  std::map<int64_t, std::string> hosts;
  for (const ReportedNode& node : report.nodes()) {
    for (int64_t rank : node.ranks()) hosts[rank] = node.hostname();
  }
  return hosts;
}

bool CanCompareRanks(const Evidence& evidence) { return WhyNotComparable(evidence).empty(); }

std::vector<std::string> FindContradictions(const RunReport& report) {
  std::vector<std::string> found;
  const auto differ = [](double a, double b) {
    return std::abs(a - b) > kSameShare * std::max(std::abs(a), std::abs(b)) + 1e-6;
  };
  const RunSummary& run = report.run();
  // Step lengths are everywhere equal.
  std::map<int64_t, double> lengths_ms, on_path_ms;
  std::vector<double> all_ms;
  for (const ReportedStep& step : report.steps()) {
    all_ms.push_back(lengths_ms[step.step()] = step.end_ms() - step.start_ms());
  }
  if (!all_ms.empty() && differ(Median(all_ms), run.step_ms())) {
    found.push_back("the header's step is not the median of the steps");
  }
  for (const PathPart& part : report.path()) {
    if (part.has_step()) on_path_ms[part.step()] += part.ms();
  }
  for (const auto& [step, ms] : on_path_ms) {
    if (differ(ms, lengths_ms[step])) {
      found.push_back(
          absl::StrCat("step ", step, " takes ", lengths_ms[step], " ms, its path ", ms));
    }
  }
  const double now_ms = run.has_step_mean_ms() ? run.step_mean_ms() : 0;
  for (const WhatIfPart& part : report.what_if()) {
    if (now_ms > 0 && differ(part.step_ms() + part.saved_ms(), now_ms)) {
      found.push_back(absl::StrCat("what if ", part.what(), " begins with a step of ",
                                   part.step_ms() + part.saved_ms(), " ms, not ", now_ms));
    }
  }
  // What halving communication saves is no more than half of it, and what it bounds saves
  // something.
  const std::optional<PathShares> shares = SharesOf(report);
  const WhatIfPart* half = FindWhatIf(report, WhatIfPart::HALF_THE_COMMUNICATION);
  std::map<std::string, const Finding*> findings;
  for (const Finding& finding : report.findings()) findings[finding.topic()] = &finding;
  if (shares.has_value() && half != nullptr && now_ms > 0) {
    const double saved = half->saved_ms() / now_ms;
    if (saved > shares->communication / 2 + kTolerance) {
      found.push_back(absl::StrCat("half of ", Percent(shares->communication),
                                   " communication saves ", Percent(saved)));
    }
    if (findings.count("network") > 0 && findings["network"]->verdict() == "bad" &&
        saved < kTolerance) {
      found.push_back("the network is what the run waits for, but half of it saves nothing");
    }
  }
  // Nobody is late, and the tables agree; a finding about several ranks needs all of them.
  if (findings.count("straggler") > 0 && findings["straggler"]->verdict() == "good" &&
      WaitedShare(report) >= kMuchWaiting) {
    found.push_back("no rank keeps the others waiting, but they wait");
  }
  if (!CanCompareRanks(report.evidence())) {
    for (const Finding& finding : report.findings()) {
      const bool needs_all = finding.topic() == "straggler" || finding.topic() == "network" ||
                             finding.topic() == "what_if";
      const bool is_good = finding.topic() == "links" && finding.verdict() == "good";
      if ((needs_all && finding.verdict() != "unknown") || is_good) {
        found.push_back(absl::StrCat("'", finding.headline(), "' needs ranks that are not known"));
      }
    }
  }
  for (const Finding& finding : report.findings()) {
    if (finding.verdict() == "good" && finding.topic() != "simulation" &&
        finding.rests_on().empty()) {
      found.push_back(absl::StrCat("'", finding.headline(), "' rests on nothing"));
    }
  }
  return found;
}

void AddFindings(RunReport* report) {
  std::vector<Finding> findings;
  for (const std::optional<Finding>& finding :
       {EvidenceFinding(*report), std::make_optional(RunFinding(*report)),
        StragglerFinding(*report), LinksFinding(*report), NetworkFinding(*report),
        ClockFinding(*report), WhatIfFinding(*report), SimulationFinding(*report)}) {
    if (finding.has_value()) findings.push_back(*finding);
  }
  for (const Finding& finding : report->findings()) findings.push_back(finding);
  report->clear_findings();
  for (const Finding& finding : findings) *report->add_findings() = finding;
}

std::string FindingsText(const RunReport& report) {
  std::string text;
  for (const Finding& finding : report.findings()) {
    absl::StrAppend(
        &text, Printable(finding.headline()),
        finding.detail().empty() ? "" : absl::StrCat(" ", Printable(finding.detail())),
        finding.rests_on().empty() ? "" : absl::StrCat(" ", Printable(finding.rests_on())), "\n");
  }
  return text;
}

}  // namespace meridian
