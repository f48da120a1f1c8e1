// Who is late by its own doing: blame beyond what the clocks may be off by.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipeline/findings_parts.h"
#include "report/quantities.h"

namespace meridian {
namespace {

// A rank that is late in this share of the steps, and costs something, is a problem.
constexpr double kMostSteps = 0.5;
constexpr size_t kMostNamedSteps = 4, kMostNamedLate = 3;
// Ranks that others wait for at least so much of what they wait for the first one are named with it.
constexpr double kAlikeLate = 0.5;
// A step in which a rank is late by less than this share of what it usually is, is none of its own.
constexpr double kUsuallyLate = 0.25;

struct LateRank {
  double caused_ms = 0;
  // The steps in which it kept the others waiting longest, and notably.
  std::set<int64_t> led;
  const BlamePart* worst = nullptr;
};

struct Lateness {
  std::map<int64_t, LateRank> ranks;
  // By rank, all that others waited for it in steps, also what clocks may be off by.
  std::map<int64_t, double> all_ms;
  // The longest delay of all; null when nobody is late.
  const BlamePart* longest = nullptr;
  // The longest wait for a rank whose profile begins late; null when there is none. It may be the
  // profiler that was late: it counts only where that rank is late later on, too, or none is.
  const BlamePart* beginning = nullptr;
};

// Returns the delay such that longer ones make up half of them all.
double UsualMs(const std::vector<const BlamePart*>& parts) {
  std::vector<double> delays_ms;
  for (const BlamePart* part : parts) delays_ms.push_back(part->caused_ms());
  std::sort(delays_ms.begin(), delays_ms.end(), std::greater<double>());
  double rest_ms = std::accumulate(delays_ms.begin(), delays_ms.end(), 0.0) / 2;
  size_t i = 0;
  while (i + 1 < delays_ms.size() && (rest_ms -= delays_ms[i]) > 0) ++i;
  return delays_ms[i];
}

// What clocks may be off by is no lateness.
Lateness FindLateness(const RunReport& report) {
  Lateness found;
  // By step, the rank that kept others waiting longest: rows are sorted by that.
  std::map<int64_t, const BlamePart*> leaders;
  for (const BlamePart& part : report.blame()) {
    // What was outside of the steps is no step's time.
    if (report.run().has_step_ms() && !part.has_step()) continue;
    if (!part.before_profile()) found.all_ms[part.rank()] += part.caused_ms();
    if (part.caused_ms() <= report.evidence().clock_uncertainty_ms()) continue;
    if (part.before_profile()) {
      if (found.beginning == nullptr) found.beginning = &part;
      continue;
    }
    if (found.longest == nullptr) found.longest = &part;
    LateRank& rank = found.ranks[part.rank()];
    rank.caused_ms += part.caused_ms();
    if (rank.worst == nullptr) rank.worst = &part;
    if (part.has_step()) leaders.insert({part.step(), &part});
  }
  // A step in which it hardly matters is none that anybody is late in.
  std::map<int64_t, std::vector<const BlamePart*>> led;
  for (const auto& [step, part] : leaders) {
    if (part->share() >= kNotableShare) led[part->rank()].push_back(part);
  }
  for (const auto& [rank, parts] : led) {
    const double least_ms = kUsuallyLate * UsualMs(parts);
    for (const BlamePart* part : parts) {
      if (part->caused_ms() >= least_ms) found.ranks[rank].led.insert(part->step());
    }
  }
  return found;
}

// Returns the rank that is late most beyond what the clocks may be off by, if that is notable.
std::optional<int64_t> NotablyLate(const RunReport& report, const Lateness& lateness) {
  const auto most = std::max_element(
      lateness.ranks.begin(), lateness.ranks.end(),
      [](const auto& a, const auto& b) { return a.second.caused_ms < b.second.caused_ms; });
  if (most == lateness.ranks.end()) return std::nullopt;
  if (most->second.caused_ms < kNotableShare * WholeMs(report)) return std::nullopt;
  return most->first;
}

// Says who waited longest outside of the steps, where that is longer than a step: before the first
// collective ranks may begin at any time. Empty when nobody did.
std::string WaitOutsideOfSteps(const RunReport& report) {
  const CombinedStep* longest = nullptr;
  for (const CombinedStep& wait : report.combine().step_waits()) {
    const bool is_long =
        !wait.has_step() && report.run().has_step_ms() && wait.worst_ms() > report.run().step_ms();
    if (is_long && (longest == nullptr || wait.worst_ms() > longest->worst_ms())) longest = &wait;
  }
  if (longest == nullptr) return "";
  return absl::StrCat(" Outside of the ", StepWord(report.run()), "s ranks waited, too: rank ",
                      longest->rank(), " for up to ", TimeText(longest->worst_ms()),
                      " in one collective.");
}

// Says whom others wait for most; empty when they wait for none.
std::string WhomTheyWaitFor(const RunReport& report, const Lateness& lateness) {
  const std::optional<int64_t> most = MostLateRank(report);
  if (!most.has_value()) return "";
  return absl::StrCat("For the one that does most, ", RankName(report, *most), ", they wait ",
                      PercentText(lateness.all_ms.at(*most) / WholeMs(report)), " of the time.");
}

Finding NobodyIsLate(const RunReport& report, const Lateness& lateness) {
  const std::string most = WhomTheyWaitFor(report, lateness);
  if (ClocksMayHide(report)) {
    const std::string uncertainty = TimeText(report.evidence().clock_uncertainty_ms());
    const auto steps = static_cast<double>(std::max<int64_t>(1, report.run().steps()));
    return MakeFinding(
        "straggler", "unknown", "blame",
        absl::StrCat("Whether a rank is late by less than ", uncertainty, " is not known."),
        absl::StrCat("The clocks are known within ", ClocksWithin(report), ", and ",
                     UnitText(report), " takes ", TimeText(WholeMs(report) / steps),
                     InTheMean(report), ". ",
                     lateness.ranks.empty() ? "By more than that no rank is late."
                                            : "What is more than that is little.",
                     lateness.ranks.empty() || most.empty() ? "" : absl::StrCat(" ", most)),
        RestsOn(report));
  }
  const double waited = WaitedShare(report);
  if (waited >= kMuchWaiting) {
    return MakeFinding(
        "straggler", "info", "waiting",
        absl::StrCat("Ranks wait for each other for ", PercentText(waited),
                     " of the time, but none is late by its own doing."),
        absl::StrCat(report.slow_links_size() > 0
                         ? "They come from transfers that took longer, or wait for the order of "
                           "the work."
                         : "They wait for the order of the work, or come from transfers that "
                           "ended later for them.",
                     most.empty() ? "" : " ", most, WaitOutsideOfSteps(report)),
        RestsOn(report));
  }
  return MakeFinding(
      "straggler", Good(report), "blame", "No rank keeps the others waiting for long.",
      absl::StrCat(most.empty() ? "Nobody waited for a rank that was late by its own doing." : most,
                   WaitOutsideOfSteps(report)),
      RestsOn(report));
}

// "in 2 of 6 steps (2, 4)"; few steps are named, and a run without steps has none.
std::string InWhichSteps(const RunReport& report, const std::set<int64_t>& led) {
  if (led.empty()) return "";
  const auto steps = static_cast<size_t>(report.run().steps());
  if (steps == 1) return absl::StrCat(" in the only ", StepWord(report.run()));
  return absl::StrCat(" in ", led.size(), " of ", steps, " ", StepWord(report.run()), "s",
                      led.size() <= kMostNamedSteps && led.size() < steps
                          ? absl::StrCat(" (", absl::StrJoin(led, ", "), ")")
                          : "");
}

// Returns the ranks that are late in other steps than this one, and about as much, most first.
std::vector<int64_t> LateInTurn(const RunReport& report, const Lateness& lateness, int64_t number) {
  const double least_ms =
      std::max(kAlikeLate * lateness.ranks.at(number).caused_ms, kNotableShare * WholeMs(report));
  std::vector<int64_t> others;
  for (const auto& [other, rank] : lateness.ranks) {
    if (other != number && !rank.led.empty() && rank.caused_ms >= least_ms) others.push_back(other);
  }
  std::stable_sort(others.begin(), others.end(), [&](int64_t a, int64_t b) {
    return lateness.ranks.at(a).caused_ms > lateness.ranks.at(b).caused_ms;
  });
  return others;
}

// "Rank 1 is late in 3 of 6 steps, rank 3 in 3; the others wait for them for 12 % of the time."
std::string WhoIsLate(const RunReport& report, const Lateness& lateness, int64_t number,
                      const std::vector<int64_t>& others, double share, const std::string& effect) {
  std::string text = absl::StrCat(Capitalised(RankName(report, number)), " is late",
                                  InWhichSteps(report, lateness.ranks.at(number).led));
  for (size_t i = 0; i < others.size(); ++i) {
    if (i == kMostNamedLate) {
      absl::StrAppend(&text, ", and ", others.size() - i, " more");
      break;
    }
    absl::StrAppend(&text, ", ", RankName(report, others[i]), " in ",
                    lateness.ranks.at(others[i]).led.size());
  }
  return absl::StrCat(text, "; the others wait for ", others.empty() ? "it" : "them", " for ",
                      PercentText(share), " of the time", effect, ".");
}

std::string AtFirst(const BlamePart& part) {
  return absl::StrCat("At first the others wait ", TimeText(part.caused_ms()),
                      " for it: ", part.reason(), ". ");
}

Finding IsLate(const RunReport& report, const Lateness& lateness, int64_t number) {
  const LateRank& rank = lateness.ranks.at(number);
  const BlamePart* first = lateness.beginning;
  const double first_ms = first != nullptr && first->rank() == number ? first->caused_ms() : 0;
  const bool is_first_notable = first_ms >= kNotableShare * WholeMs(report);
  const std::vector<int64_t> others = LateInTurn(report, lateness, number);
  double waited_ms = rank.caused_ms + first_ms;
  size_t led = rank.led.size();
  for (const int64_t other : others) {
    waited_ms += lateness.ranks.at(other).caused_ms;
    led += lateness.ranks.at(other).led.size();
  }
  const double share = waited_ms / WholeMs(report);
  const auto in_step = [&](const BlamePart& part) {
    return part.has_step() ? absl::StrCat(" (", StepWord(report.run()), " ", part.step(), ")") : "";
  };
  std::string detail = absl::StrCat(is_first_notable ? AtFirst(*first) : "",
                                    Capitalised(rank.worst->reason()), in_step(*rank.worst), ".");
  bool is_bad = static_cast<double>(led) >=
                    kMostSteps * static_cast<double>(std::max<int64_t>(1, report.run().steps())) ||
                share >= kLargeShare;
  std::string effect;
  // Waiting need not make the run longer.
  const WhatIfPart* level = FindWhatIf(report, WhatIfPart::RANK_AS_FAST_AS_OTHERS);
  if (level != nullptr && level->rank() == number) {
    const bool helps = level->saved_ms() > kNotableSaving * (level->step_ms() + level->saved_ms());
    // Of several that are late in turn, what one costs does not tell what all do.
    const double now_ms = level->step_ms() + level->saved_ms();
    is_bad = is_bad && (level->saved_ms() > kLargeShare * now_ms || !others.empty());
    if (!helps && others.empty()) {
      effect = absl::StrCat(", which hardly makes ", UnitText(report), " longer");
    }
    absl::StrAppend(&detail, " If ", others.empty() ? "it" : RankName(report, number),
                    " were as fast as the others", is_first_notable ? " from then on, " : ", ",
                    UnitText(report),
                    helps ? absl::StrCat(" would take ", TimeText(level->saved_ms()), " less",
                                         InTheMean(report), ".")
                          : " would hardly be shorter: something else takes as long meanwhile.");
  }
  const BlamePart& longest = *lateness.longest;
  if (longest.rank() != number) {
    absl::StrAppend(&detail, " The longest single delay is that of ",
                    RankName(report, longest.rank()), in_step(longest), ": ", longest.reason(),
                    ".");
  }
  if (first_ms > rank.caused_ms) effect = absl::StrCat(", most of it at first", effect);
  Finding finding = MakeFinding("straggler", is_bad ? "bad" : "info", "blame",
                                WhoIsLate(report, lateness, number, others, share, effect),
                                std::move(detail), RestsOn(report));
  if (level != nullptr && level->rank() == number) {
    SetAtStake(level->saved_ms(),
               absl::StrCat("if ", others.empty() ? "it" : RankName(report, number),
                            " kept up with the others", is_first_notable ? " after that" : ""),
               &finding);
  }
  finding.add_ranks(number);
  for (const int64_t other : others) finding.add_ranks(other);
  ShowIn(report, rank.worst->has_step() ? std::make_optional(rank.worst->step()) : std::nullopt,
         &finding);
  return finding;
}

// Where profiles hold communication alone, nobody recorded what a rank did before it came late:
// only that the others waited for it. Nothing when no wait is longer than clocks may be off.
std::optional<Finding> LateToCollectives(const RunReport& report) {
  const CombinedRank* last = nullptr;
  for (const CombinedRank& rank : report.combine().ranks()) {
    if (last == nullptr || rank.caused_wait_ms() > last->caused_wait_ms()) last = &rank;
  }
  if (last == nullptr) return std::nullopt;
  double longest_ms = 0;
  for (const CombinedStep& wait : report.combine().step_waits()) {
    if (wait.rank() != last->rank()) longest_ms = std::max(longest_ms, wait.worst_ms());
  }
  if (longest_ms <= report.evidence().clock_uncertainty_ms()) return std::nullopt;
  return MakeFinding(
      "straggler", "unknown", "waiting",
      absl::StrCat(RankName(report, last->rank()), " keeps others waiting, once for ",
                   TimeText(longest_ms), "; why it is late is not known."),
      absl::StrCat("It comes last to ", last->last(), " of ", last->collectives(),
                   " collectives, for which the others wait ", TimeText(last->caused_wait_ms()),
                   " in all. The profiles hold communication alone: what it did meanwhile, nobody "
                   "recorded."),
      RestsOn(report));
}

}  // namespace

std::optional<int64_t> MostLateRank(const RunReport& report) {
  const Lateness lateness = FindLateness(report);
  const std::optional<int64_t> late = NotablyLate(report, lateness);
  if (late.has_value() || lateness.all_ms.empty()) return late;
  return std::max_element(lateness.all_ms.begin(), lateness.all_ms.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::optional<Finding> StragglerFinding(const RunReport& report) {
  const Evidence& evidence = report.evidence();
  if (report.run().ranks() < 2 && evidence.job_ranks() < 2) return std::nullopt;
  const auto unknown = [](std::string why) {
    return MakeFinding("straggler", "unknown", "blame", "Who is late is not known.",
                       std::move(why));
  };
  const std::string why_not = WhyNotComparable(evidence);
  if (!why_not.empty()) return unknown(absl::StrCat(Capitalised(why_not), "."));
  if (report.run().events() == 0) {
    const std::string why = WhyNoPath(report);
    return why.empty() ? std::nullopt : std::make_optional(unknown(why));
  }
  if (report.combine().nodes_size() > 1 && !evidence.has_clock_uncertainty_ms()) {
    return unknown("Nothing tells within what the clocks of the ranks agree.");
  }
  const Lateness lateness = FindLateness(report);
  if (lateness.ranks.empty() && evidence.communication_only()) {
    std::optional<Finding> late = LateToCollectives(report);
    if (late.has_value()) return late;
  }
  const std::optional<int64_t> late = NotablyLate(report, lateness);
  if (late.has_value()) return IsLate(report, lateness, *late);
  const BlamePart* first = lateness.beginning;
  if (first != nullptr && first->caused_ms() >= kLargeShare * WholeMs(report)) {
    return MakeFinding(
        "straggler", "unknown", "blame",
        absl::StrCat("Why ", RankName(report, first->rank()), " comes late at first is not known."),
        AtFirst(*first), RestsOn(report));
  }
  return NobodyIsLate(report, lateness);
}

}  // namespace meridian
