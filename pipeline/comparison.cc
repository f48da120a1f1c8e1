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
constexpr double kStudentOfMany = 2.75;
// The standard error of a median is so much larger than that of a mean.
constexpr double kMedianError = 1.2533;

double StudentFactor(size_t before_steps, size_t after_steps) {
  const size_t freedom = before_steps + after_steps - 2;
  return freedom <= std::size(kStudent) ? kStudent[freedom - 1] : kStudentOfMany;
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
      places_[report.steps(i).step()] = lengths_ms.size();
      lengths_ms.push_back(report.steps(i).end_ms() - report.steps(i).start_ms());
    }
    for (const PathKind& kind : report.path_kinds()) {
      labels[kind.kind()] = {kind.label(), absl::AsciiStrToLower(PathKind::Role_Name(kind.role()))};
    }
    for (const PathPart& part : report.path()) {
      if (part.has_step()) AddTo(part.step(), part.ms(), &parts[labels[part.kind()].first]);
    }
    for (const BlamePart& part : report.blame()) {
      if (part.has_step()) AddTo(part.step(), part.caused_ms(), &waits[part.rank()]);
    }
  }

  const RunReport& report;
  // Of the steps that were recorded whole.
  std::vector<double> lengths_ms;
  // By label, and by rank, step by step: the time on the path, and what others waited for it.
  std::map<std::string, std::vector<double>> parts;
  std::map<int64_t, std::vector<double>> waits;
  // What kinds of the path are called, and their roles.
  std::map<std::string, std::pair<std::string, std::string>> labels;

 private:
  void AddTo(int64_t step, double ms, std::vector<double>* values) {
    values->resize(lengths_ms.size());
    const auto place = places_.find(step);
    if (place != places_.end()) (*values)[place->second] += ms;
  }

  std::map<int64_t, size_t> places_;
};

ComparedRow MakeRow(std::string name, std::optional<double> before_ms,
                    std::optional<double> after_ms, std::optional<double> noise_ms,
                    double notable_ms) {
  ComparedRow row;
  row.set_name(std::move(name));
  if (before_ms.has_value()) row.set_before_ms(*before_ms);
  if (after_ms.has_value()) row.set_after_ms(*after_ms);
  row.set_change_ms(after_ms.value_or(0) - before_ms.value_or(0));
  if (noise_ms.has_value()) row.set_noise_ms(*noise_ms);
  const double change_ms = std::abs(row.change_ms());
  if (!before_ms.has_value() || !after_ms.has_value()) {
    row.set_verdict(before_ms.has_value() ? Comparison::GONE : Comparison::NEW);
  } else if (change_ms <= std::max(noise_ms.value_or(0), notable_ms)) {
    row.set_verdict(Comparison::SAME);
  } else if (noise_ms.has_value()) {
    row.set_verdict(row.change_ms() > 0 ? Comparison::LONGER : Comparison::SHORTER);
  }
  return row;
}

bool HasChanged(const ComparedRow& row) {
  return row.verdict() != Comparison::SAME && row.verdict() != Comparison::UNKNOWN;
}

// What changed comes first, the largest change before others.
void SortRows(google::protobuf::RepeatedPtrField<ComparedRow>* rows) {
  const auto weight = [](const ComparedRow& row) {
    const double ms = std::abs(row.change_ms()) - (HasChanged(row) ? row.noise_ms() : 0);
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
  const double error = kMedianError * kDeviationsPerMedianDistance * row.step_spread_ms();
  return error * error / static_cast<double>(row.spread_of()) * count / (count - 1);
}

std::optional<double> NoiseOfOperation(const Operation& before, const ComparedRun& before_run,
                                       const Operation& after, const ComparedRun& after_run) {
  const size_t before_steps = before_run.lengths_ms.size();
  const size_t after_steps = after_run.lengths_ms.size();
  if (std::min(before_steps, after_steps) < 2) return std::nullopt;
  if (before.spread_of() < 2 || after.spread_of() < 2) return std::nullopt;
  const double noise_ms =
      StudentFactor(static_cast<size_t>(before.spread_of()),
                    static_cast<size_t>(after.spread_of())) *
      std::sqrt(SquaredError(before, before_steps) + SquaredError(after, after_steps));
  // How much of a message is waiting, and how much transfer, two clocks tell.
  const bool is_message = before.kind() == CollectiveKindName(CollectiveKind::kPointToPoint);
  return is_message ? noise_ms + before_run.report.evidence().clock_uncertainty_ms() +
                          after_run.report.evidence().clock_uncertainty_ms()
                    : noise_ms;
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
    for (const double ms : before_.lengths_ms) result_.add_before_steps_ms(ms);
    for (const double ms : after_.lengths_ms) result_.add_after_steps_ms(ms);
    AddNotes();
    CompareClocks();
    if (before_.lengths_ms.empty() || after_.lengths_ms.empty()) {
      SayWhyNot();
      return std::move(result_);
    }
    step_ms_ = Mean(before_.lengths_ms);
    *result_.mutable_step() =
        RowOf(word(), before_.lengths_ms, after_.lengths_ms, kNotableChange * step_ms_);
    // What may be chance, though it is large, is not known.
    ComparedRow& step = *result_.mutable_step();
    const bool is_large = std::abs(step.change_ms()) > kLargeChange * step_ms_;
    if (step.verdict() == Comparison::SAME && is_large) step.set_verdict(Comparison::UNKNOWN);
    result_.set_verdict(step.verdict());
    CompareParts();
    CompareOperations();
    CompareRanks();
    Say();
    return std::move(result_);
  }

 private:
  std::string word() const { return StepWord(after_.report.run()); }

  ComparedRow RowOf(std::string name, const std::vector<double>& before,
                    const std::vector<double>& after, double notable_ms) const {
    return MakeRow(std::move(name), Mean(before), Mean(after), NoiseOfMeans(before, after),
                   notable_ms);
  }

  void AddNotes() {
    const RunSummary &before = before_.report.run(), &after = after_.report.run();
    const auto differ = [&](absl::string_view what, const auto& a, const auto& b) {
      if (a != b) result_.add_notes(absl::StrCat(what, ": ", a, " before, ", b, " now."));
    };
    differ("Ranks", before.ranks(), after.ranks());
    differ("Hosts", before.hosts_size(), after.hosts_size());
    differ("Framework", before.framework(), after.framework());
    differ("What steps are", StepWord(before), StepWord(after));
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
                 ? std::make_optional(evidence.clock_uncertainty_ms())
                 : std::nullopt;
    };
    ComparedRow& row = *result_.add_clocks();
    row.set_name("clocks known within");
    if (within(before_).has_value()) row.set_before_ms(*within(before_));
    if (within(after_).has_value()) row.set_after_ms(*within(after_));
    row.set_change_ms(row.after_ms() - row.before_ms());
  }

  void SayWhyNot() {
    const auto& missing = before_.lengths_ms.empty() ? before_.report : after_.report;
    result_.set_headline("Whether the runs differ is not known.");
    result_.set_detail(absl::StrCat("No steps are known of ", missing.title(),
                                    ": record several steps, and mark them."));
  }

  // The parts of the path, of which both runs have all that one has: their changes add up.
  void CompareParts() {
    std::map<std::string, std::string> roles;
    for (const ComparedRun* run : {&before_, &after_}) {
      for (const auto& [kind, label] : run->labels) roles[label.first] = label.second;
    }
    for (const auto& [label, role] : roles) {
      std::vector<double> before = before_.parts[label], after = after_.parts[label];
      before.resize(before_.lengths_ms.size());
      after.resize(after_.lengths_ms.size());
      ComparedRow& row = *result_.add_parts();
      row = RowOf(label, before, after, kNotableChange * step_ms_);
      row.set_role(role);
    }
    SortRows(result_.mutable_parts());
  }

  void CompareOperations() {
    for (const auto& [before, after] : MatchOperations(before_.report, after_.report)) {
      const Operation& any = after != nullptr ? *after : *before;
      std::optional<double> before_ms, after_ms, noise_ms;
      if (before != nullptr) before_ms = before->step_ms();
      if (after != nullptr) after_ms = after->step_ms();
      if (before_ms.value_or(0) == 0 && after_ms.value_or(0) == 0) continue;
      if (before != nullptr && after != nullptr) {
        noise_ms = NoiseOfOperation(*before, before_, *after, after_);
      }
      const double notable =
          any.role() == PathKind::TRANSFER ? kNotableOfTransfers : kNotableOfOperation;
      const double notable_ms = std::max(kLeastOfStep * step_ms_, notable * before_ms.value_or(0));
      ComparedRow row = MakeRow(OperationName(any), before_ms, after_ms, noise_ms, notable_ms);
      row.set_role(absl::AsciiStrToLower(PathKind::Role_Name(any.role())));
      if (any.role() == PathKind::TRANSFER && before != nullptr && after != nullptr) {
        same_transfers_before_ms_ += *before_ms;
        same_transfers_after_ms_ += *after_ms;
      }
      *(any.role() == PathKind::TRANSFER ? result_.add_collectives() : result_.add_operations()) =
          std::move(row);
    }
    SortRows(result_.mutable_operations());
    SortRows(result_.mutable_collectives());
  }

  void CompareRanks() {
    std::set<int64_t> ranks;
    for (const ComparedRun* run : {&before_, &after_}) {
      for (const auto& [rank, values] : run->waits) ranks.insert(rank);
    }
    for (const int64_t rank : ranks) {
      std::vector<double> before = before_.waits[rank], after = after_.waits[rank];
      before.resize(before_.lengths_ms.size());
      after.resize(after_.lengths_ms.size());
      *result_.add_ranks() =
          RowOf(absl::StrCat("rank ", rank), before, after, kNotableChange * step_ms_);
    }
    SortRows(result_.mutable_ranks());
  }

  void Say() {
    const ComparedRow& step = result_.step();
    const std::string now =
        absl::StrCat(UnitText(after_.report), " takes ", TimeText(step.after_ms()), " in the mean");
    if (step.verdict() == Comparison::SAME) {
      result_.set_headline(
          absl::StrCat("No difference: ", now, ", before ", TimeText(step.before_ms()), "."));
      result_.set_detail(
          step.has_noise_ms()
              ? absl::StrCat("Means of as many ", word(), "s differ by up to ",
                             TimeText(std::max(step.noise_ms(), kNotableChange * step_ms_)),
                             " by chance.")
              : "");
      AddOperation(kNotableChange * step_ms_);
      return;
    }
    const bool is_longer = step.change_ms() > 0;
    const bool is_known = step.verdict() != Comparison::UNKNOWN;
    const std::string by = absl::StrCat(TimeText(std::abs(step.change_ms())), " (",
                                        PercentText(std::abs(step.change_ms()) / step_ms_),
                                        is_longer ? ") more than before" : ") less than before");
    result_.set_headline(absl::StrCat(
        Capitalised(now), ", ", by, is_known ? CauseText(is_longer) : "; that may be chance", "."));
    if (!is_known) {
      result_.set_detail(absl::StrCat(
          step.has_noise_ms()
              ? absl::StrCat("Means of as many ", word(), "s differ by up to ",
                             TimeText(step.noise_ms()), " by chance: record more ", word(), "s.")
              : absl::StrCat("It takes two ", word(), "s of each run at least to tell.")));
      return;
    }
    std::vector<std::string> sentences = {absl::StrCat("Means of as many ", word(),
                                                       "s differ by up to ",
                                                       TimeText(step.noise_ms()), " by chance.")};
    if (!transfers_.empty()) sentences.push_back(transfers_);
    AddRanks(is_longer, &sentences);
    AddLinks(&sentences);
    result_.set_detail(absl::StrJoin(sentences, " "));
    AddOperation(0.1 * std::abs(step.change_ms()));
  }

  // Names the part of the path that changed most in the direction of the step.
  std::string CauseText(bool is_longer) {
    const ComparedRow* most = nullptr;
    for (const ComparedRow& part : result_.parts()) {
      const bool is_along = is_longer == (part.change_ms() > 0);
      if (is_along &&
          (most == nullptr || std::abs(part.change_ms()) > std::abs(most->change_ms()))) {
        most = &part;
      }
    }
    if (most == nullptr) return "";
    const bool is_network = most->role() == "transfer";
    const double ratio =
        same_transfers_before_ms_ > 0 ? same_transfers_after_ms_ / same_transfers_before_ms_ : 1;
    const bool has_changed = std::abs(ratio - 1) > kNotableOfTransfers;
    const bool is_same = is_network && has_changed && (ratio > 1) == is_longer;
    if (is_network) {
      transfers_ =
          has_changed
              ? absl::StrFormat("The same transfers take %.2f times as long.", ratio)
              : "The transfers that both runs have take as long as before: others came or went, "
                "or another part of them is hidden behind computation.";
    }
    return absl::StrCat(is_same ? ", because of the network" : "", ": ",
                        is_network ? "exposed communication" : most->name(), " takes ",
                        TimeText(std::abs(most->change_ms())), is_longer ? " more" : " less");
  }

  void AddRanks(bool is_longer, std::vector<std::string>* sentences) const {
    if (result_.ranks().empty()) return;
    const ComparedRow& row = result_.ranks(0);
    if (!HasChanged(row) || is_longer != (row.change_ms() > 0)) return;
    sentences->push_back(absl::StrCat("The others wait ", TimeText(std::abs(row.change_ms())),
                                      is_longer ? " longer" : " less", " for ", row.name(), "."));
  }

  void AddLinks(std::vector<std::string>* sentences) const {
    std::set<int64_t> known;
    for (const CombinedLink& link : before_.report.slow_links()) known.insert(link.rank());
    for (const CombinedLink& link : after_.report.slow_links()) {
      if (known.count(link.rank()) > 0) continue;
      sentences->push_back(
          absl::StrFormat("The link of rank %d is %.1f times slower than the "
                          "others'; before it was not.",
                          link.rank(), link.times_slower()));
    }
  }

  // Names the operation that changed most, if it changed by so much.
  void AddOperation(double least_ms) {
    if (result_.operations().empty()) return;
    const ComparedRow& row = result_.operations(0);
    if (!HasChanged(row) || std::abs(row.change_ms()) < least_ms) return;
    const std::string name = FirstCharacters(row.name(), kMostNameCharacters);
    const std::string how =
        row.verdict() == Comparison::NEW ? "is new"
        : row.verdict() == Comparison::GONE
            ? "is gone"
            : absl::StrFormat("takes %.2f times as long", row.after_ms() / row.before_ms());
    absl::StrAppend(result_.mutable_detail(), result_.detail().empty() ? "" : " ",
                    "Of the operations ", name, " changed most: it ", how, ".");
  }

  ComparedRun before_;
  ComparedRun after_;
  double step_ms_ = 0;
  // Collectives that both runs have, of one rank in a step.
  double same_transfers_before_ms_ = 0;
  double same_transfers_after_ms_ = 0;
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
  const auto time = [](bool known, double ms) { return known ? TimeText(ms) : std::string("-"); };
  int shown = 0;
  for (const ComparedRow& row : rows) {
    if ((only_changed && !HasChanged(row)) || shown == kMostPrinted) continue;
    ++shown;
    table.AddRow({FirstCharacters(row.name(), kMostNameCharacters),
                  time(row.has_before_ms(), row.before_ms()),
                  time(row.has_after_ms(), row.after_ms()), TimeText(row.change_ms()),
                  time(row.has_noise_ms(), row.noise_ms()), VerdictText(row.verdict())});
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
  return comparison.verdict() != Comparison::SAME && step.change_ms() > share * step.before_ms();
}

absl::StatusOr<RunReport> ReadRunReport(FileSystem& file_system, const std::string& folder) {
  const std::string path =
      absl::EndsWith(folder, ".json") ? folder : absl::StrCat(folder, "/report.json");
  ASSIGN_OR_RETURN(const FileKind kind, file_system.Kind(path));
  if (kind != FileKind::kRegular) return NotFound(path, ": no file");
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
