#include "tools/pipeline/findings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/pipeline/simulation_stage.h"
#include "tools/report/quantities.h"
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
// A simulation that is farther off answers nothing.
constexpr double kUselessError = 0.3;
constexpr absl::string_view kCommunicationLabel = "communication";

std::string Time(double ms) { return DurationText(ms * kNsPerMs); }

std::string Percent(double share) {
  return share > 0 && share < 0.095 ? absl::StrFormat("%.1f %%", 100 * share)
                                    : absl::StrFormat("%.0f %%", 100 * share);
}

Finding MakeFinding(absl::string_view topic, absl::string_view verdict, absl::string_view section,
                    std::string headline, std::string detail) {
  Finding finding;
  finding.set_topic(std::string(topic));
  finding.set_verdict(std::string(verdict));
  finding.set_section(std::string(section));
  finding.set_headline(std::move(headline));
  finding.set_detail(std::move(detail));
  return finding;
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

Finding RunFinding(const RunReport& report) {
  const RunSummary& run = report.run();
  // Profiles without collectives do not say which ranks they are.
  const int64_t count = run.ranks() > 0 ? run.ranks() : report.nodes_size();
  std::string headline =
      absl::StrCat(run.framework(), run.framework().empty() ? "" : " run of ", count,
                   run.ranks() > 0 ? " rank" : " profile", count == 1 ? "" : "s");
  if (run.hosts_size() > 0) {
    absl::StrAppend(&headline, " on ", run.hosts_size(),
                    run.hosts_size() == 1 ? " host" : " hosts");
  }
  std::string detail;
  if (run.has_step_ms()) {
    absl::StrAppend(&headline, ": ", run.steps(), run.steps() == 1 ? " step of " : " steps of ",
                    Time(run.step_ms()), run.steps() > 1 ? " in the median." : ".");
    if (run.steps() > 2 && run.step_spread_ms() > 0) {
      detail =
          absl::StrCat("Half of the steps lie within ", Time(run.step_spread_ms()), " of that.");
    }
  } else if (run.wall_ms() > 0) {
    absl::StrAppend(&headline, ": ", Time(run.wall_ms()), ".");
  } else {
    absl::StrAppend(&headline, ".");
  }
  if (!run.recorded().empty()) {
    absl::StrAppend(&detail, detail.empty() ? "" : " ", "Recorded ", run.recorded(), ".");
  }
  return MakeFinding("run", "info", "timeline", std::move(headline), std::move(detail));
}

std::optional<Finding> StragglerFinding(const RunReport& report) {
  if (report.run().ranks() < 2 || report.path_size() == 0) return std::nullopt;
  struct OfRank {
    double caused_ms = 0;
    std::set<int64_t> led;
    const BlamePart* worst = nullptr;
  };
  std::map<int64_t, OfRank> ranks;
  // By step, the rank that kept others waiting longest. Rows are sorted by that.
  std::map<int64_t, const BlamePart*> leaders;
  for (const BlamePart& part : report.blame()) {
    OfRank& rank = ranks[part.rank()];
    rank.caused_ms += part.caused_ms();
    if (rank.worst == nullptr) rank.worst = &part;
    if (part.has_step()) leaders.insert({part.step(), &part});
  }
  // A step in which it hardly matters is none that anybody is late in.
  for (const auto& [step, part] : leaders) {
    if (part->share() >= kNotableShare) ranks[part->rank()].led.insert(step);
  }
  const double whole_ms = report.run().has_step_ms()
                              ? report.run().step_ms() * static_cast<double>(report.run().steps())
                              : report.run().wall_ms();
  const auto late = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.second.caused_ms < b.second.caused_ms;
  });
  const int64_t all_steps = std::max<int64_t>(1, report.run().steps());
  const auto steps = static_cast<double>(all_steps);
  if (late == ranks.end() || !(whole_ms > 0) || late->second.caused_ms < kNotableShare * whole_ms) {
    return MakeFinding(
        "straggler", "good", "blame", "No rank keeps the others waiting for long.",
        late == ranks.end() || !(whole_ms > 0)
            ? "Nobody waited for a rank that was late by its own doing."
            : absl::StrCat("For the one that does most, ", RankName(report, late->first),
                           ", they wait ", Percent(late->second.caused_ms / whole_ms),
                           " of the time."));
  }
  const OfRank& rank = late->second;
  const double led = static_cast<double>(rank.led.size());
  const double share = rank.caused_ms / whole_ms;
  // Few steps are named; a run without steps has none.
  std::string which;
  if (!rank.led.empty()) {
    which = absl::StrCat(" in ", rank.led.size(), " of ", all_steps, " steps");
    if (rank.led.size() <= kMostNamedSteps && led < steps) {
      absl::StrAppend(&which, " (", absl::StrJoin(rank.led, ", "), ")");
    }
  }
  const bool is_bad = led >= kMostSteps * steps || share >= kLargeShare;
  std::string headline =
      absl::StrCat(Capitalised(RankName(report, late->first)), " is late", which,
                   "; the others wait for it for ", Percent(share), " of the time.");
  const auto in_step = [](const BlamePart& part) {
    return part.has_step() ? absl::StrCat(" (step ", part.step(), ")") : "";
  };
  std::string detail = absl::StrCat(Capitalised(rank.worst->reason()), in_step(*rank.worst), ".");
  // Waiting need not make the run longer.
  for (const WhatIfPart& part : report.what_if()) {
    if (part.what() != absl::StrCat("rank ", late->first, " is as fast as the others")) continue;
    const bool helps = part.saved_ms() > kNotableSaving * (part.step_ms() + part.saved_ms());
    absl::StrAppend(&detail,
                    helps ? absl::StrCat(" If it were as fast as the others, a step would take ",
                                         Time(part.saved_ms()), " less.")
                          : " If it were as fast as the others, steps would hardly be "
                            "shorter: the critical path leads past it.");
  }
  const BlamePart& longest = report.blame(0);
  if (longest.rank() != late->first) {
    absl::StrAppend(&detail, " The longest single delay is that of ",
                    RankName(report, longest.rank()), in_step(longest), ": ", longest.reason(),
                    ".");
  }
  return MakeFinding("straggler", is_bad ? "bad" : "open", "blame", std::move(headline),
                     std::move(detail));
}

std::optional<Finding> ClockFinding(const RunReport& report) {
  if (report.nodes_size() < 2) return std::nullopt;
  double largest = 0, uncertainty = 0;
  const ReportedNode* farthest = nullptr;
  std::vector<std::string> unknown;
  // Some clocks, at least.
  const bool is_stated = absl::c_any_of(
      report.nodes(), [](const ReportedNode& node) { return node.has_uncertainty_max_ms(); });
  for (const ReportedNode& node : report.nodes()) {
    if (node.method() == "unreachable" || (is_stated && !node.has_offset_ms())) {
      unknown.push_back(absl::StrCat(node.node_id()));
    }
    if (node.has_offset_ms() && std::abs(node.offset_ms()) > largest) {
      largest = std::abs(node.offset_ms());
      farthest = &node;
    }
    if (node.has_uncertainty_max_ms()) {
      uncertainty = std::max(uncertainty, node.uncertainty_max_ms());
    }
  }
  const ReportedOrder& order = report.happens_before();
  if (order.checked() == 0 && !is_stated && unknown.empty()) {
    return MakeFinding("clocks", "open", "clocks", "Nothing tells whether the clocks agree.",
                       "There is no collective to check them with, and nobody measured them.");
  }
  const std::string broken =
      absl::StrCat(WithThousands(order.violations_before()), " of ", WithThousands(order.checked()),
                   " collectives ended before they began on another rank");
  if (!unknown.empty()) {
    return MakeFinding("clocks", "bad", "clocks",
                       absl::StrCat("The clock of node ", absl::StrJoin(unknown, ", "),
                                    " is not known: nothing ties it to the others."),
                       "It keeps its own clock; compare no times with it.");
  }
  const std::string within =
      is_stated ? absl::StrCat(" and are now known within ", Time(uncertainty)) : "";
  if (order.violations_after() > 0) {
    return MakeFinding(
        "clocks", "bad", "clocks",
        absl::StrCat("Clocks contradict ", WithThousands(order.violations_after()), " of ",
                     WithThousands(order.checked()), " collectives."),
        "Times of different ranks can not be compared, so that nothing is said about "
        "who waits for whom, nor simulated.");
  }
  // What is smaller than its uncertainty may be nothing.
  if (farthest == nullptr ||
      (order.violations_before() == 0 && largest <= std::max(uncertainty, 1e-3))) {
    return MakeFinding(
        "clocks", order.checked() > 0 ? "good" : "open", "clocks",
        order.checked() > 0
            ? "Clocks agree: no collective contradicts them."
            : "Clocks agree as far as they were measured; no collective was checked.",
        is_stated ? absl::StrCat("They are known within ", Time(uncertainty), ".") : "");
  }
  return MakeFinding(
      "clocks", order.violations_before() > 0 ? "bad" : "info", "clocks",
      absl::StrCat("Clocks were up to ", Time(largest), " off", within, "."),
      absl::StrCat("Farthest off: node ", farthest == nullptr ? 0 : farthest->node_id(),
                   farthest->hostname().empty() || report.run().hosts_size() < 2
                       ? ""
                       : absl::StrCat(" (host ", farthest->hostname(), ")"),
                   ". ",
                   order.violations_before() > 0
                       ? absl::StrCat("Before, ", broken, "; now none does.")
                       : "No collective contradicted them before either."));
}

// The larger one of collectives and steps.
double SimulationError(const RunReport& report) {
  return std::max(report.simulation().mean_error(), report.simulation().step_error());
}

std::optional<Finding> NetworkFinding(const RunReport& report) {
  std::set<std::string> communication;
  for (const PathKind& kind : report.path_kinds()) {
    if (kind.label() == kCommunicationLabel) communication.insert(kind.kind());
  }
  double all = 0, exposed = 0;
  std::map<std::string, double> others;
  for (const PathPart& part : report.path()) {
    all += part.ms();
    if (communication.count(part.kind()) > 0) {
      exposed += part.ms();
    } else {
      others[part.kind()] += part.ms();
    }
  }
  if (!(all > 0)) return std::nullopt;
  const double share = exposed / all;
  std::string most;
  double most_ms = 0;
  for (const PathKind& kind : report.path_kinds()) {
    const auto found = others.find(kind.kind());
    if (found == others.end() || found->second <= most_ms) continue;
    most_ms = found->second;
    most = kind.label();
  }
  std::string detail;
  for (const WhatIfPart& part : report.what_if()) {
    if (part.what() != kTwiceTheBandwidth) continue;
    if (SimulationError(report) > kUselessError) {
      detail = "What twice the bandwidth would bring is not known: the simulation is too far off.";
      break;
    }
    detail = absl::StrCat("At twice the bandwidth the step would take ", Time(part.step_ms()));
    if (part.has_low_ms() && part.has_high_ms()) {
      absl::StrAppend(&detail, " (nine of ten between ", Time(part.low_ms()), " and ",
                      Time(part.high_ms()), ")");
    }
    absl::StrAppend(&detail, ", by simulation.");
  }
  const std::string communicates =
      absl::StrCat(Percent(share), " of the critical path is communication that nothing hides");
  if (share >= kNotableCommunication) {
    return MakeFinding("network", share > 0.5 ? "bad" : "open", "path",
                       absl::StrCat(share > 0.5 ? "The network is what the run waits for: " : "",
                                    communicates, "."),
                       detail);
  }
  return MakeFinding(
      "network", "info", "path",
      absl::StrCat("Not the network: ", communicates,
                   most.empty() ? "" : absl::StrCat(", ", Percent(most_ms / all), " is ", most),
                   "."),
      detail);
}

std::optional<Finding> WhatIfFinding(const RunReport& report) {
  const WhatIfPart* best = nullptr;
  for (const WhatIfPart& part : report.what_if()) {
    // What is simulated has a finding of its own.
    if (part.what() == kTwiceTheBandwidth) continue;
    if (best == nullptr || part.saved_ms() > best->saved_ms()) best = &part;
  }
  if (best == nullptr || !(best->saved_ms() > 0)) return std::nullopt;
  return MakeFinding("what_if", "info", "what_if",
                     absl::StrCat("What would help most: if ", best->what(), ", a step takes ",
                                  Time(best->step_ms()), ", ", Time(best->saved_ms()), " less."),
                     "Found by running the measured schedule again with that changed.");
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
                     worst <= 0.15  ? "good"
                     : worst <= 0.3 ? "open"
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

void AddFindings(RunReport* report) {
  std::vector<Finding> findings = {RunFinding(*report)};
  for (const std::optional<Finding>& finding :
       {StragglerFinding(*report), NetworkFinding(*report), ClockFinding(*report),
        WhatIfFinding(*report), SimulationFinding(*report)}) {
    if (finding.has_value()) findings.push_back(*finding);
  }
  for (const Finding& finding : report->findings()) findings.push_back(finding);
  report->clear_findings();
  for (const Finding& finding : findings) *report->add_findings() = finding;
}

std::string FindingsText(const RunReport& report) {
  std::string text;
  for (const Finding& finding : report.findings()) {
    absl::StrAppend(&text, Printable(finding.headline()),
                    finding.detail().empty() ? "" : absl::StrCat(" ", Printable(finding.detail())),
                    "\n");
  }
  return text;
}

}  // namespace meridian
