#include "pipeline/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "pipeline/findings_parts.h"
#include "report/quantities.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {
namespace {

// Changes below this share of a step are not worth a sentence.
constexpr double kNotableChange = 0.01;
// A step that changed by more than this, though that may be chance, is not called the same.
constexpr double kLargeChange = 0.25;
// Transfers that take longer or shorter by less than this share are as fast as before.
constexpr double kNotableOfTransfers = 0.1;
// Operations are many, and devices run at other speeds from run to run: a change below this share of
// what the operation took, or of a step, is none.
constexpr double kNotableOfOperation = 0.05;
constexpr double kLeastOfStep = 1e-4;
// So many rows of each table are told, and printed.
constexpr int kMostRows = 200;
constexpr int kMostPrinted = 8;
constexpr size_t kMostNameCharacters = 60;
// Reports of larger runs are refused.
constexpr size_t kMaxReportBytes = size_t{256} << 20;

// How many standard errors the means of so many steps are off by once in a hundred times (Student's
// distribution, two-sided), by degrees of freedom from 1.
constexpr double kStudent[] = {63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17,
                               3.11,  3.05, 3.01, 2.98, 2.95, 2.92, 2.90, 2.88, 2.86, 2.85};
// And from there on: no fewer, and beyond three times as many.
constexpr double kStudentOfMore = 2.83, kStudentOfMany = 2.66;
// The standard error of a median is so much larger than that of a mean.
constexpr double kMedianError = 1.2533;

double StudentFactor(size_t before_steps, size_t after_steps) {
  const size_t freedom = before_steps + after_steps - 2;
  if (freedom <= std::size(kStudent)) return kStudent[freedom - 1];
  return freedom <= 3 * std::size(kStudent) ? kStudentOfMore : kStudentOfMany;
}

double SquaredError(absl::Span<const double> values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return sum / (count - 1) / count;
}

// What the first half of a run differs by from the second: clocks of devices drift, others come.
double HalvesDiffer(absl::Span<const double> values) {
  const size_t half = values.size() / 2;
  if (half < 2) return 0;
  return std::abs(Mean(values.first(half)) - Mean(values.last(half)));
}

// A run as it is compared.
class ComparedRun {
 public:
  explicit ComparedRun(const RunReport& report) : report(report) {
    for (int i = report.run().first_step_is_cut() ? 1 : 0; i < report.steps_size(); ++i) {
      places_[report.steps(i).step()] = lengths_ns.size();
      lengths_ns.push_back((report.steps(i).end_ms() - report.steps(i).start_ms()) * kNsPerMs);
    }
    for (const PathKind& kind : report.path_kinds()) {
      labels[kind.kind()] = {kind.label(), absl::AsciiStrToLower(PathKind::Role_Name(kind.role()))};
    }
    for (const PathPart& part : report.path()) {
      if (part.has_step()) parts_[labels[part.kind()].first].emplace_back(part.step(), part.ms());
    }
    for (const BlamePart& part : report.blame()) {
      if (!part.has_step() || part.before_profile()) continue;
      waits_[part.rank()].emplace_back(part.step(), part.caused_ms());
    }
    for (const CombinedRank& rank : report.combine().ranks()) ranks.insert(rank.rank());
  }

  // The time on the path that is called so, and how long others waited for the rank, step by step.
  std::vector<double> PartOf(const std::string& label) const { return ByStep(parts_, label); }
  std::vector<double> WaitsFor(int64_t rank) const { return ByStep(waits_, rank); }

  bool HasPath() const { return !parts_.empty(); }
  // Whether it is known who waited for whom.
  bool TellsWaits() const {
    return CanCompareRanks(report.evidence()) && !report.evidence().communication_only() &&
           HasPath();
  }

  const RunReport& report;
  // Of the steps that were recorded whole.
  std::vector<double> lengths_ns;
  // What kinds of the path are called, and their roles.
  std::map<std::string, std::pair<std::string, std::string>> labels;
  std::set<int64_t> ranks;

 private:
  // Numbers of steps and milliseconds, by what they are of.
  template <typename Key>
  using StepTimesBy = std::map<Key, std::vector<std::pair<int64_t, double>>>;

  template <typename Key>
  std::vector<double> ByStep(const StepTimesBy<Key>& times, const Key& key) const {
    std::vector<double> values_ns(lengths_ns.size());
    const auto found = times.find(key);
    if (found == times.end()) return values_ns;
    for (const auto& [step, ms] : found->second) {
      const auto place = places_.find(step);
      if (place != places_.end()) values_ns[place->second] += ms * kNsPerMs;
    }
    return values_ns;
  }

  std::map<int64_t, size_t> places_;
  StepTimesBy<std::string> parts_;
  StepTimesBy<int64_t> waits_;
};

ComparedRow MakeRow(absl::string_view kind, std::string name, std::optional<double> before_ns,
                    std::optional<double> after_ns, std::optional<double> noise_ns,
                    double notable_ns) {
  ComparedRow row;
  row.set_kind(std::string(kind));
  row.set_name(std::move(name));
  if (before_ns.has_value()) row.set_before_ns(*before_ns);
  if (after_ns.has_value()) row.set_after_ns(*after_ns);
  row.set_change_ns(after_ns.value_or(0) - before_ns.value_or(0));
  if (noise_ns.has_value()) row.set_noise_ns(*noise_ns);
  const double change_ns = std::abs(row.change_ns());
  if (!before_ns.has_value() || !after_ns.has_value()) {
    row.set_verdict(before_ns.has_value() ? Comparison::GONE : Comparison::NEW);
  } else if (change_ns <= std::max(noise_ns.value_or(0), notable_ns)) {
    row.set_verdict(Comparison::SAME);
  } else if (noise_ns.has_value()) {
    row.set_verdict(row.change_ns() > 0 ? Comparison::LONGER : Comparison::SHORTER);
  }
  return row;
}

bool HasChanged(const ComparedRow& row) {
  return row.verdict() != Comparison::SAME && row.verdict() != Comparison::UNKNOWN;
}

// What changed comes first, the largest change before others.
void SortRows(google::protobuf::RepeatedPtrField<ComparedRow>* rows) {
  const auto weight = [](const ComparedRow& row) {
    const double ms = std::abs(row.change_ns()) - (HasChanged(row) ? row.noise_ns() : 0);
    // Reports may hold any numbers.
    return std::make_pair(HasChanged(row), std::isfinite(ms) ? ms : 0);
  };
  std::stable_sort(rows->begin(), rows->end(), [&](const ComparedRow& a, const ComparedRow& b) {
    return weight(a) > weight(b);
  });
  if (rows->size() > kMostRows) rows->DeleteSubrange(kMostRows, rows->size() - kMostRows);
}

// "gemm_fusion_dot_75" without its number: compilers number anew.
std::string StemOf(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789.");
  return end == std::string::npos ? name : name.substr(0, end + 1);
}

using OperationPair = std::pair<const Operation*, const Operation*>;

// Pairs the operations of two runs by name, kind and bytes; of what is left, those whose names differ
// in their numbers alone, in order. One of a pair is null for what only one run has.
std::vector<OperationPair> MatchOperations(const RunReport& before, const RunReport& after) {
  using Key = std::tuple<std::string, std::string, int64_t>;
  std::vector<OperationPair> pairs;
  std::set<const Operation*> matched;
  const auto match = [&](const auto& name_of) {
    std::map<Key, std::vector<const Operation*>> candidates;
    for (const Operation& row : before.operations()) {
      if (matched.count(&row) > 0) continue;
      candidates[{name_of(row), row.kind(), row.bytes()}].push_back(&row);
    }
    for (const Operation& row : after.operations()) {
      if (matched.count(&row) > 0) continue;
      std::vector<const Operation*>& found = candidates[{name_of(row), row.kind(), row.bytes()}];
      if (found.empty()) continue;
      pairs.emplace_back(found.front(), &row);
      matched.insert({found.front(), &row});
      found.erase(found.begin());
    }
  };
  match([](const Operation& row) { return row.name(); });
  match([](const Operation& row) { return StemOf(row.name()); });
  for (const Operation& row : before.operations()) {
    if (matched.count(&row) == 0) pairs.emplace_back(&row, nullptr);
  }
  for (const Operation& row : after.operations()) {
    if (matched.count(&row) == 0) pairs.emplace_back(nullptr, &row);
  }
  return pairs;
}

// The standard error of the time that an operation takes in a step, squared.
double SquaredError(const Operation& row, size_t steps) {
  const auto count = static_cast<double>(steps);
  const double error =
      kMedianError * kDeviationsPerMedianDistance * row.step_spread_ms() * kNsPerMs;
  return error * error / static_cast<double>(row.spread_of()) * count / (count - 1);
}

std::optional<double> NoiseOfOperation(const Operation& before, const ComparedRun& before_run,
                                       const Operation& after, const ComparedRun& after_run) {
  const size_t before_steps = before_run.lengths_ns.size();
  const size_t after_steps = after_run.lengths_ns.size();
  if (std::min(before_steps, after_steps) < 2) return std::nullopt;
  if (before.spread_of() < 2 || after.spread_of() < 2) return std::nullopt;
  const double noise_ns =
      StudentFactor(static_cast<size_t>(before.spread_of()),
                    static_cast<size_t>(after.spread_of())) *
      std::sqrt(SquaredError(before, before_steps) + SquaredError(after, after_steps));
  // How much of a message is waiting, and how much transfer, two clocks tell.
  const bool is_message = before.kind() == CollectiveKindName(CollectiveKind::kPointToPoint);
  return is_message ? noise_ns + (before_run.report.evidence().clock_uncertainty_ms() +
                                  after_run.report.evidence().clock_uncertainty_ms()) *
                                     kNsPerMs
                    : noise_ns;
}

// Returns whether the report may have left the operation out, because others took longer.
bool MayLack(const RunReport& report, const Operation& operation) {
  return report.operations_size() >= static_cast<int>(kMostOperations) &&
         operation.total_ms() <= report.operations().rbegin()->total_ms();
}

std::string OperationName(const Operation& row) {
  if (row.kind().empty()) return row.name();
  return absl::StrCat(row.kind(), row.has_bytes() ? " of " : "",
                      row.has_bytes() ? FormatByteSize(row.bytes()) : "", " (", row.name(), ")");
}

class RunComparison {
 public:
  RunComparison(const RunReport& before, const RunReport& after) : before_(before), after_(after) {}

  Comparison Compare() {
    result_.set_before(before_.report.title());
    result_.set_after(after_.report.title());
    for (const double ns : before_.lengths_ns) result_.add_before_steps_ns(ns);
    for (const double ns : after_.lengths_ns) result_.add_after_steps_ns(ns);
    AddNotes();
    CompareClocks();
    if (before_.lengths_ns.empty() || after_.lengths_ns.empty()) {
      SayWhyNot();
      return std::move(result_);
    }
    step_ns_ = Mean(before_.lengths_ns);
    *result_.mutable_step() =
        RowOf("step", word(), before_.lengths_ns, after_.lengths_ns, kNotableChange * step_ns_);
    // What may be chance, though it is large, is not known.
    ComparedRow& step = *result_.mutable_step();
    const bool is_large = std::abs(step.change_ns()) > kLargeChange * step_ns_;
    if (step.verdict() == Comparison::SAME && is_large) step.set_verdict(Comparison::UNKNOWN);
    result_.set_verdict(step.verdict());
    CompareOperations();
    CompareParts();
    CompareRanks();
    ListDifferences();
    Say();
    return std::move(result_);
  }

 private:
  std::string word() const { return StepWord(after_.report.run()); }

  ComparedRow RowOf(absl::string_view kind, std::string name, const std::vector<double>& before,
                    const std::vector<double>& after, double notable_ns) const {
    return MakeRow(kind, std::move(name), Mean(before), Mean(after), NoiseOfMeans(before, after),
                   notable_ns);
  }

  void AddNotes() {
    const RunSummary &before = before_.report.run(), &after = after_.report.run();
    // What is not known of a run does not differ.
    const auto differ = [&](absl::string_view what, const auto& a, const auto& b) {
      const auto is_known = [](const auto& value) {
        return value != std::decay_t<decltype(value)>();
      };
      if (a == b || !is_known(a) || !is_known(b)) return;
      result_.add_notes(absl::StrCat(what, ": ", a, " before, ", b, " now."));
    };
    differ("Ranks", before.ranks(), after.ranks());
    differ("Hosts", before.hosts_size(), after.hosts_size());
    differ("Framework", before.framework(), after.framework());
    differ("What steps are", before.step_word(), after.step_word());
    differ("Version of Meridian", before_.report.version(), after_.report.version());
    if (before.ranks() != after.ranks()) {
      result_.add_notes(
          "Times are those of one rank: with other numbers of ranks each does "
          "another share of the work.");
    }
    for (const ComparedRun* run : {&before_, &after_}) {
      const std::string why = WhyNotComparable(run->report.evidence());
      if (!why.empty()) result_.add_notes(absl::StrCat(run->report.title(), ": ", why, "."));
    }
  }

  void CompareClocks() {
    const auto within = [](const ComparedRun& run) {
      const Evidence& evidence = run.report.evidence();
      return evidence.has_clock_uncertainty_ms()
                 ? std::make_optional(evidence.clock_uncertainty_ms() * kNsPerMs)
                 : std::nullopt;
    };
    const std::optional<double> before_ns = within(before_), after_ns = within(after_);
    if (!before_ns.has_value() || !after_ns.has_value()) return;
    // Half as well, or twice as well, is worth telling.
    *result_.add_clocks() = MakeRow("clocks", "known within", before_ns, after_ns,
                                    std::max(*before_ns, *after_ns) / 2, /*notable_ns=*/0);
  }

  void SayWhyNot() {
    const auto& missing = before_.lengths_ns.empty() ? before_.report : after_.report;
    result_.set_headline("Whether the runs differ is not known.");
    const std::string why = WhyNoPath(missing);
    result_.set_detail(absl::StrCat("No steps are known of ",
                                    missing.title().empty() ? "one of them" : missing.title(), ": ",
                                    why.empty() ? "record several steps, and mark them." : why));
  }

  // How many times as long the transfers take that both runs have; 1 where none changed notably.
  double TransferRatio() const {
    if (!(same_transfers_before_ns_ > 0)) return 1;
    const double ratio = same_transfers_after_ns_ / same_transfers_before_ns_;
    return std::abs(ratio - 1) > kNotableOfTransfers ? ratio : 1;
  }

  // The parts of the path, where both runs have one: a part that only one has took no time in the
  // other, so that the changes add up.
  void CompareParts() {
    if (!before_.HasPath() || !after_.HasPath()) return;
    std::map<std::string, std::string> roles;
    for (const ComparedRun* run : {&before_, &after_}) {
      for (const auto& [kind, label] : run->labels) roles[label.first] = label.second;
    }
    for (const auto& [label, role] : roles) {
      ComparedRow& row = *result_.add_parts();
      row = RowOf("part", label, before_.PartOf(label), after_.PartOf(label),
                  kNotableChange * step_ns_);
      row.set_role(role);
      const bool is_network = role == "transfer" && HasChanged(row) && TransferRatio() != 1 &&
                              (TransferRatio() > 1) == (row.change_ns() > 0);
      if (is_network) row.set_kind("network");
    }
    SortRows(result_.mutable_parts());
  }

  void CompareOperations() {
    for (const auto& [before, after] : MatchOperations(before_.report, after_.report)) {
      const Operation& any = after != nullptr ? *after : *before;
      // What one report has left out may be in both runs.
      const RunReport& other = after == nullptr ? after_.report : before_.report;
      const bool is_alone = before == nullptr || after == nullptr;
      if (is_alone && MayLack(other, any)) continue;
      // Waiting for a rank that is not there looks like communication.
      const bool can_compare =
          CanCompareRanks(before_.report.evidence()) && CanCompareRanks(after_.report.evidence());
      if (any.role() == PathKind::TRANSFER && !can_compare) continue;
      std::optional<double> before_ns, after_ns, noise_ns;
      if (before != nullptr) before_ns = before->step_ms() * kNsPerMs;
      if (after != nullptr) after_ns = after->step_ms() * kNsPerMs;
      if (before_ns.value_or(0) == 0 && after_ns.value_or(0) == 0) continue;
      if (before != nullptr && after != nullptr) {
        noise_ns = NoiseOfOperation(*before, before_, *after, after_);
      }
      const double notable =
          any.role() == PathKind::TRANSFER ? kNotableOfTransfers : kNotableOfOperation;
      const double notable_ns = std::max(kLeastOfStep * step_ns_, notable * before_ns.value_or(0));
      const bool is_transfer = any.role() == PathKind::TRANSFER;
      ComparedRow row = MakeRow(is_transfer ? "collective" : "operation", OperationName(any),
                                before_ns, after_ns, noise_ns, notable_ns);
      row.set_role(absl::AsciiStrToLower(PathKind::Role_Name(any.role())));
      if (is_transfer && !is_alone) {
        same_transfers_before_ns_ += *before_ns;
        same_transfers_after_ns_ += *after_ns;
      }
      *(is_transfer ? result_.add_collectives() : result_.add_operations()) = std::move(row);
    }
    SortRows(result_.mutable_operations());
    SortRows(result_.mutable_collectives());
  }

  // What others waited for a rank is known where both runs tell it, of the ranks of both.
  void CompareRanks() {
    if (!before_.TellsWaits() || !after_.TellsWaits()) return;
    for (const int64_t rank : before_.ranks) {
      if (after_.ranks.count(rank) == 0) continue;
      *result_.add_ranks() = RowOf("rank", absl::StrCat("rank ", rank), before_.WaitsFor(rank),
                                   after_.WaitsFor(rank), kNotableChange * step_ns_);
    }
    SortRows(result_.mutable_ranks());
  }

  // Computation is told by its operations.
  void ListDifferences() {
    for (const auto* rows :
         {&result_.parts(), &result_.operations(), &result_.collectives(), &result_.ranks()}) {
      for (const ComparedRow& row : *rows) {
        const bool is_told = rows == &result_.parts() && row.role() == "computation";
        if (HasChanged(row) && !is_told) *result_.add_differences() = row;
      }
    }
    const double sign = result_.verdict() == Comparison::SHORTER ? -1 : 1;
    const auto cost = [&](const ComparedRow& row) {
      return std::isfinite(row.change_ns()) ? sign * row.change_ns() : 0;
    };
    std::stable_sort(result_.mutable_differences()->begin(), result_.mutable_differences()->end(),
                     [&](const ComparedRow& a, const ComparedRow& b) { return cost(a) > cost(b); });
  }

  void Say() {
    const ComparedRow& step = result_.step();
    const std::string now = absl::StrCat(UnitText(after_.report), " takes ",
                                         DurationText(step.after_ns()), " in the mean");
    if (step.verdict() == Comparison::SAME) {
      result_.set_headline(
          absl::StrCat("No difference: ", now, ", before ", DurationText(step.before_ns()), "."));
      result_.set_detail(
          step.has_noise_ns()
              ? absl::StrCat("Means of as many ", word(), "s differ by up to ",
                             DurationText(std::max(step.noise_ns(), kNotableChange * step_ns_)),
                             " by chance.")
              : "");
      AddOperation(0);
      return;
    }
    const bool is_longer = step.change_ns() > 0;
    const bool is_known = step.verdict() != Comparison::UNKNOWN;
    const std::string by = absl::StrCat(DurationText(std::abs(step.change_ns())), " (",
                                        PercentText(std::abs(step.change_ns()) / step_ns_),
                                        is_longer ? ") more than before" : ") less than before");
    result_.set_headline(absl::StrCat(
        Capitalised(now), ", ", by, is_known ? CauseText(is_longer) : "; that may be chance", "."));
    if (!is_known) {
      result_.set_detail(absl::StrCat(
          step.has_noise_ns()
              ? absl::StrCat("Means of as many ", word(), "s differ by up to ",
                             DurationText(step.noise_ns()), " by chance: record more ", word(),
                             "s.")
              : absl::StrCat("It takes two ", word(), "s of each run at least to tell.")));
      return;
    }
    std::vector<std::string> sentences = {
        absl::StrCat("Means of as many ", word(), "s differ by up to ",
                     DurationText(step.noise_ns()), " by chance.")};
    if (!transfers_.empty()) sentences.push_back(transfers_);
    AddRanks(is_longer, &sentences);
    AddLinks(&sentences);
    result_.set_detail(absl::StrJoin(sentences, " "));
    AddOperation(0.1 * std::abs(step.change_ns()));
  }

  // Names the part of the path that changed most in the direction of the step; nothing where none
  // changed by more than chance.
  std::string CauseText(bool is_longer) {
    const ComparedRow* most = nullptr;
    for (const ComparedRow& part : result_.parts()) {
      const bool is_along = HasChanged(part) && is_longer == (part.change_ns() > 0);
      if (is_along &&
          (most == nullptr || std::abs(part.change_ns()) > std::abs(most->change_ns()))) {
        most = &part;
      }
    }
    if (most == nullptr) return "";
    const bool is_communication = most->role() == "transfer";
    if (is_communication) {
      transfers_ = TransfersText(is_longer);
    }
    return absl::StrCat(most->kind() == "network" ? ", because of the network" : "", ": ",
                        is_communication ? "exposed communication" : most->name(), " takes ",
                        DurationText(std::abs(most->change_ns())), is_longer ? " more" : " less");
  }

  std::string TransfersText(bool is_longer) const {
    if (!(same_transfers_before_ns_ > 0)) return "The runs have no transfers in common.";
    if (TransferRatio() == 1) {
      return "The transfers that both runs have take as long as before: others came or went, or "
             "another part of them is hidden behind computation.";
    }
    return absl::StrFormat("The same transfers take %.2f times as long%s.", TransferRatio(),
                           (TransferRatio() > 1) == is_longer
                               ? ""
                               : ", but others came or went, or another part of them is hidden "
                                 "behind computation");
  }

  void AddRanks(bool is_longer, std::vector<std::string>* sentences) const {
    if (result_.ranks().empty()) return;
    const ComparedRow& row = result_.ranks(0);
    if (!HasChanged(row) || is_longer != (row.change_ns() > 0)) return;
    sentences->push_back(absl::StrCat("The others wait ", DurationText(std::abs(row.change_ns())),
                                      is_longer ? " longer" : " less", " for ", row.name(), "."));
  }

  void AddLinks(std::vector<std::string>* sentences) const {
    std::set<int64_t> known;
    for (const CombinedLink& link : before_.report.slow_links()) known.insert(link.rank());
    const CombineReport& before = before_.report.combine();
    const bool was_compared =
        before.link_ranks() > 0 && before.link_ranks_compared() == before.link_ranks();
    for (const CombinedLink& link : after_.report.slow_links()) {
      if (known.count(link.rank()) > 0) continue;
      sentences->push_back(absl::StrFormat(
          "The link of rank %d is %.1f times slower than the others'%s.", link.rank(),
          link.times_slower(), was_compared ? "; before it was not" : ""));
    }
  }

  // Names the operation that changed most, if it changed by so much.
  void AddOperation(double least_ns) {
    if (result_.operations().empty()) return;
    const ComparedRow& row = result_.operations(0);
    if (!HasChanged(row) || std::abs(row.change_ns()) < least_ns) return;
    const std::string name = FirstCharacters(row.name(), kMostNameCharacters);
    const std::string how =
        row.verdict() == Comparison::NEW    ? "is new"
        : row.verdict() == Comparison::GONE ? "is gone"
        : row.before_ns() > 0
            ? absl::StrFormat("takes %.2f times as long", row.after_ns() / row.before_ns())
            : absl::StrCat("takes ", DurationText(row.change_ns()), " more");
    absl::StrAppend(result_.mutable_detail(), result_.detail().empty() ? "" : " ",
                    "Of the operations ", name, " changed most: it ", how, ".");
  }

  ComparedRun before_;
  ComparedRun after_;
  double step_ns_ = 0;
  // Collectives that both runs have, of one rank in a step.
  double same_transfers_before_ns_ = 0;
  double same_transfers_after_ns_ = 0;
  // What is to be said about them.
  std::string transfers_;
  Comparison result_;
};

std::string VerdictText(Comparison::Verdict verdict) {
  if (verdict == Comparison::SAME) return "no difference";
  if (verdict == Comparison::UNKNOWN) return "not known";
  return absl::AsciiStrToLower(Comparison::Verdict_Name(verdict));
}

void AddTable(const google::protobuf::RepeatedPtrField<ComparedRow>& rows, absl::string_view title,
              bool only_changed, std::string* text) {
  TextTable table({std::string(title), ">before", ">now", ">change", ">chance", ""});
  const auto time = [](bool known, double ms) {
    return known ? DurationText(ms) : std::string("-");
  };
  int shown = 0;
  for (const ComparedRow& row : rows) {
    if ((only_changed && !HasChanged(row)) || shown == kMostPrinted) continue;
    ++shown;
    table.AddRow({FirstCharacters(row.name(), kMostNameCharacters),
                  time(row.has_before_ns(), row.before_ns()),
                  time(row.has_after_ns(), row.after_ns()), DurationText(row.change_ns()),
                  time(row.has_noise_ns(), row.noise_ns()), VerdictText(row.verdict())});
  }
  if (shown > 0) absl::StrAppend(text, "\n", table.ToString());
}

}  // namespace

std::optional<double> NoiseOfMeans(absl::Span<const double> before,
                                   absl::Span<const double> after) {
  if (before.size() < 2 || after.size() < 2) return std::nullopt;
  const double error = std::sqrt(SquaredError(before) + SquaredError(after));
  return std::max({StudentFactor(before.size(), after.size()) * error, HalvesDiffer(before),
                   HalvesDiffer(after)});
}

Comparison CompareRuns(const RunReport& before, const RunReport& after) {
  return RunComparison(before, after).Compare();
}

std::string ComparisonText(const Comparison& comparison) {
  std::string text =
      absl::StrCat(Printable(comparison.headline()), " ", Printable(comparison.detail()), "\n");
  AddTable(comparison.parts(), "part of a step", /*only_changed=*/false, &text);
  AddTable(comparison.operations(), "operation, in a step of one rank", true, &text);
  AddTable(comparison.collectives(), "collective, in a step of one rank", true, &text);
  AddTable(comparison.ranks(), "others wait for", true, &text);
  if (comparison.notes_size() > 0) absl::StrAppend(&text, "\n");
  for (const std::string& note : comparison.notes()) {
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  }
  return text;
}

bool IsRegression(const Comparison& comparison, double share) {
  const ComparedRow& step = comparison.step();
  return comparison.verdict() == Comparison::LONGER && step.change_ns() > share * step.before_ns();
}

absl::StatusOr<RunReport> ReadRunReport(FileSystem& file_system, const std::string& folder) {
  const std::string path =
      absl::EndsWith(folder, ".json") ? folder : absl::StrCat(folder, "/report.json");
  const absl::StatusOr<FileKind> kind = file_system.Kind(path);
  if (!kind.ok() || *kind != FileKind::kRegular) return NotFound(path, ": no report");
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> file, file_system.Map(path));
  if (file->bytes().size() > kMaxReportBytes) {
    return InvalidArgument(path, ": larger than a report may be, ", kMaxReportBytes, " bytes");
  }
  RunReport report;
  const absl::Status status = ReportFromJson(file->bytes(), &report);
  if (!status.ok()) {
    return InvalidArgument(path, ": no report of this version: ", status.message(),
                           "; run combine again");
  }
  return report;
}

}  // namespace meridian
