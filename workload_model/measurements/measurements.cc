#include "workload_model/measurements/measurements.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"
#include "workload_model/measurements/model_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// A time is an outlier when it is so many medians long and so much of its run's time.
constexpr double kOutlierMedians = 20;
constexpr double kOutlierShare = 0.1;
// 31 years, and a petabyte.
constexpr double kMaxValue = 1e15;
// Traces write times to a tenth of a microsecond.
constexpr double kRoundingUs = 0.1;
// Values of one run vary when they differ by more than this share of their mean.
constexpr double kNotableDifference = 0.2;

absl::Status TooLarge(const std::string& file, int64_t callsite, double value) {
  return InvalidArgument(Printable(file), ": callsite ", callsite, " has ", value,
                         ", more than any time or message");
}

// Puts the values of runs together, of so many runs of the cell: the others did it not at all.
CellValue Reduce(const std::vector<const std::vector<double>*>& runs, size_t all_runs) {
  std::vector<double> counts, firsts, steadies;
  for (const std::vector<double>* values : runs) {
    counts.push_back(static_cast<double>(values->size()));
    firsts.push_back(values->front());
    steadies.push_back(values->size() == 1 ? values->front()
                                           : Mean(absl::MakeConstSpan(*values).subspan(1)));
  }
  CellValue value;
  for (const std::vector<double>* values : runs) {
    const auto [least, most] = std::minmax_element(values->begin(), values->end());
    value.varies |= *most - *least > kNotableDifference * std::max(1.0, Mean(*values));
  }
  value.count = runs.size() == all_runs ? Median(counts)
                                        : Mean(counts) * static_cast<double>(runs.size()) /
                                              static_cast<double>(all_runs);
  value.first = Median(firsts);
  value.steady = Median(steadies);
  if (value.steady > 0) {
    std::vector<double> distances;
    for (double steady : steadies) distances.push_back(std::abs(steady - value.steady));
    value.spread = kDeviationsPerMedianDistance * Median(distances) / value.steady;
  }
  return value;
}

// The values of each run and rank, by what was measured and by cell.
template <typename Key>
using ValuesOf = std::map<Key, std::map<WorkloadCell, std::vector<const std::vector<double>*>>>;

template <typename Key>
void AddRun(const WorkloadCell& cell, const std::map<Key, std::vector<double>>& values,
            ValuesOf<Key>* all) {
  for (const auto& [key, of_key] : values) (*all)[key][cell].push_back(&of_key);
}

template <typename Key>
std::map<Key, std::map<WorkloadCell, CellValue>> ReduceAll(
    const ValuesOf<Key>& all, const std::map<WorkloadCell, size_t>& runs) {
  std::map<Key, std::map<WorkloadCell, CellValue>> result;
  for (const auto& [key, by_cell] : all) {
    for (const auto& [cell, values] : by_cell) {
      result[key][cell] = Reduce(values, runs.at(cell));
    }
  }
  return result;
}

// Files that something is to be said about, once for all of them.
struct FilesWith {
  int64_t files = 0;
  std::string first;

  void Add(bool has_it, const std::string& file) {
    if (has_it && ++files == 1) first = file;
  }
  void Note(absl::string_view what, std::vector<std::string>* notes) const {
    if (files == 0) return;
    notes->push_back(absl::StrCat(
        Printable(first), files > 1 ? absl::StrCat(" and ", files - 1, " more") : "", ": ", what));
  }
};

void NoteOutliers(const RunMeasurements& run, std::vector<std::string>* notes) {
  const double total = SumOf(run.times);
  for (const auto& [transition, values] : run.times) {
    const double median = Median(values);
    for (size_t i = 1; i < values.size(); ++i) {
      if (values[i] <= kOutlierMedians * median || values[i] <= kOutlierShare * total) continue;
      notes->push_back(absl::StrFormat(
          "%s: from callsite %d to %d took %.0f us once (time %d of %d), %.0f %% of the run, where "
          "the median is %.0f us; it stays in",
          Printable(run.file), transition.first, transition.second, values[i], i + 1, values.size(),
          100 * values[i] / total, median));
    }
  }
}

constexpr char kPublishedPattern[] =
    R"(_(?P<nodes>\d+)-(?P<ranks>\d+)-(?P<threads>\d+)-(?P<size>\d+)-(?P<rank>\d+)\.[a-z]+(\.gz)?$)";
constexpr double kMaxRanksPerMachine = 1e6;

bool CanBe(const WorkloadCell& cell) {
  return cell.machines >= 1 && cell.machines <= kMaxMachines && cell.size >= 0 &&
         cell.size <= kMaxSize && cell.kind.threads >= 1 && cell.kind.ranks_per_machine >= 1;
}

// Matches the last part of the path, since folders may be called anything. Groups that do not take
// part are empty; all are where the published form does not match and need not.
absl::StatusOr<std::vector<re2::StringPiece>> MatchName(const RE2& regex, const std::string& path,
                                                        bool must_match, bool is_published) {
  std::vector<re2::StringPiece> found(static_cast<size_t>(regex.NumberOfCapturingGroups()) + 1);
  const size_t slash = path.find_last_of('/', path.find_last_not_of('/'));
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  if (regex.Match(path, begin, path.size(), RE2::UNANCHORED, found.data(),
                  static_cast<int>(found.size()))) {
    return found;
  }
  if (!must_match) return std::vector<re2::StringPiece>(found.size());
  return InvalidArgument(Printable(path), ": its name does not tell nodes and size; ",
                         is_published ? "say how with --name_pattern, or give a table, --cells"
                                      : "--name_pattern does not match");
}

}  // namespace

absl::StatusOr<RunMeasurements> MeasureCalls(std::vector<TracedCall> calls, const std::string& file,
                                             const RunName& name) {
  RunMeasurements run;
  static_cast<RunName&>(run) = name;
  run.file = file;
  for (size_t i = 0; i < calls.size(); ++i) {
    const TracedCall& call = calls[i];
    if (i > 0 && call.source != calls[i - 1].destination) ++run.breaks;
    if (call.source != 0) {
      if (call.us > kMaxValue) return TooLarge(file, call.source, call.us);
      run.negative_times += call.us < 0 ? 1 : 0;
      const Transition transition(call.source, call.destination);
      run.times[transition].push_back(std::max(0.0, call.us));
      if (call.call_us.has_value()) {
        run.longer_calls += *call.call_us > call.us + kRoundingUs ? 1 : 0;
        run.computes[transition].push_back(std::max(0.0, call.us - *call.call_us));
      }
    }
    if (call.bytes.has_value()) {
      if (*call.bytes > kMaxValue) return TooLarge(file, call.destination, *call.bytes);
      run.messages[call.destination].push_back(*call.bytes);
    }
  }
  run.calls = std::move(calls);
  return run;
}

absl::StatusOr<RunMeasurements> ParseMeasurements(absl::string_view text, const std::string& file,
                                                  const RunName& name,
                                                  const std::map<int64_t, Callsite>& callsites) {
  if (IsCallTrace(text)) {
    ASSIGN_OR_RETURN(std::vector<TracedCall> calls, ParseCallTrace(text, file));
    if (!callsites.empty()) RETURN_IF_ERROR(AddCallTimes(callsites, file, &calls));
    return MeasureCalls(std::move(calls), file, name);
  }
  RunMeasurements run;
  static_cast<RunName&>(run) = name;
  run.file = file;
  if (!IsModelFile(text)) {
    return InvalidArgument(Printable(file),
                           ": is neither a trace of A-mpiP nor a trace model of the motif");
  }
  ASSIGN_OR_RETURN(const std::vector<CallModel> models, ParseModelFile(text, file));
  for (const CallModel& call : models) {
    if (call.value().type() != kTrace && call.value().type() != kConstant) {
      return InvalidArgument(Printable(file), ": holds a model of type ", call.value().type(),
                             ", not measured values (TRACE); evaluate such a file with --model");
    }
    if (call.threads() != run.cell.kind.threads) {
      return InvalidArgument(Printable(file), ": holds values of ", call.threads(),
                             " threads, its name says ", run.cell.kind.threads);
    }
    std::vector<double> values(call.value().coefficients().begin(),
                               call.value().coefficients().end());
    for (double value : values) {
      if (value > kMaxValue && call.source() != 0) return TooLarge(file, call.source(), value);
      if (value >= 0) continue;
      return InvalidArgument(Printable(file), ": callsite ", call.source(),
                             " has the negative value ", value);
    }
    if (!call.has_destination()) {
      run.messages[call.source()] = std::move(values);
    } else if (call.source() != 0) {
      run.times[{call.source(), call.destination()}] = std::move(values);
    }
  }
  return run;
}

Measurements Aggregate(const std::vector<RunMeasurements>& runs) {
  Measurements result;
  // How many runs each has, with times and with messages: these may be files of their own.
  std::map<WorkloadCell, size_t> timed, messaged;
  ValuesOf<Transition> times, computes;
  ValuesOf<int64_t> messages;
  struct Totals {
    std::vector<double> us, calls, bytes;
  };
  std::map<WorkloadCell, Totals> totals;
  FilesWith breaks, longer, negative;
  for (const RunMeasurements& run : runs) {
    timed[run.cell] += run.times.empty() ? 0 : 1;
    messaged[run.cell] += run.messages.empty() ? 0 : 1;
    AddRun(run.cell, run.times, &times);
    AddRun(run.cell, run.computes, &computes);
    AddRun(run.cell, run.messages, &messages);
    Totals& of_cell = totals[run.cell];
    of_cell.us.push_back(SumOf(run.times));
    of_cell.bytes.push_back(SumOf(run.messages));
    of_cell.calls.push_back(static_cast<double>(run.calls.size()));
    NoteOutliers(run, &result.notes);
    breaks.Add(run.breaks > 0, run.file);
    longer.Add(run.longer_calls > static_cast<int64_t>(run.calls.size() / 10), run.file);
    negative.Add(run.negative_times > 0, run.file);
  }
  breaks.Note("calls do not begin where the one before ended: lines are missing", &result.notes);
  longer.Note("many calls took longer than from the call before: are their times of another run?",
              &result.notes);
  negative.Note("some times are negative and taken for 0", &result.notes);
  for (const auto& [cell, count] : timed) result.cells.push_back(cell);
  result.times = ReduceAll(times, timed);
  result.computes = ReduceAll(computes, timed);
  result.messages = ReduceAll(messages, messaged);
  for (const auto& [cell, of_cell] : totals) {
    MeasuredCell& measured = result.measured.emplace_back();
    measured.set_nodes(cell.machines);
    measured.set_size(cell.size);
    SetKind(cell.kind, &measured);
    measured.set_total_us(Median(of_cell.us));
    measured.set_calls(Median(of_cell.calls));
    measured.set_bytes(Median(of_cell.bytes));
  }
  return result;
}

absl::StatusOr<RunName> ReadRunName(const std::string& path, const std::string& pattern,
                                    const std::optional<WorkloadCell>& known) {
  const RE2 regex(pattern.empty() ? kPublishedPattern : pattern, RE2::Quiet);
  if (!regex.ok()) return InvalidArgument("--name_pattern: ", Printable(regex.error()));
  const std::map<std::string, int>& groups = regex.NamedCapturingGroups();
  if (!known.has_value() && (groups.count("nodes") == 0 || groups.count("size") == 0)) {
    return InvalidArgument(
        "--name_pattern has no groups called nodes and size; expected e.g. "
        "--name_pattern='n(?P<nodes>\\d+)_s(?P<size>\\d+)'");
  }
  ASSIGN_OR_RETURN(const std::vector<re2::StringPiece> found,
                   MatchName(regex, path, !known.has_value() || !pattern.empty(), pattern.empty()));
  // False for a group that is there and no number.
  const auto number = [&](const std::string& group, double* value) {
    const auto it = groups.find(group);
    if (it == groups.end()) return true;
    const re2::StringPiece& text = found[static_cast<size_t>(it->second)];
    if (text.empty()) return known.has_value();
    return absl::SimpleAtod(absl::string_view(text.data(), text.size()), value);
  };
  RunName name = {known.value_or(WorkloadCell()), 0, path};
  CellKind& kind = name.cell.kind;
  double threads = static_cast<double>(kind.threads), ranks = 0, rank = -1;
  double per_machine = static_cast<double>(kind.ranks_per_machine);
  const bool are_numbers = number("nodes", &name.cell.machines) &&
                           number("size", &name.cell.size) && number("threads", &threads) &&
                           number("ranks", &ranks) && number("ranks_per_node", &per_machine) &&
                           number("rank", &rank);
  if (ranks > 0 && name.cell.machines > 0) per_machine = ranks / name.cell.machines;
  kind.threads = static_cast<int64_t>(std::clamp(threads, 0.0, kMaxMachines));
  kind.ranks_per_machine = static_cast<int64_t>(std::clamp(per_machine, 0.0, kMaxRanksPerMachine));
  if (!are_numbers || !CanBe(name.cell) ||
      per_machine != static_cast<double>(kind.ranks_per_machine) || rank > kMaxMachines) {
    return InvalidArgument(Printable(path),
                           ": its name tells no nodes, size, threads and ranks that can be");
  }
  re2::StringPiece digits;
  static const RE2& at_end = *new RE2(R"(_(\d{1,9})(?:\.gz)?$)");
  if (rank >= 0) {
    digits = found[static_cast<size_t>(groups.at("rank"))];
  } else if (RE2::PartialMatch(path, at_end, &digits)) {
    absl::SimpleAtod(absl::string_view(digits.data(), digits.size()), &rank);
  }
  if (!digits.empty()) {
    name.rank = static_cast<int64_t>(rank);
    name.run.replace(static_cast<size_t>(digits.data() - path.data()), digits.size(), "*");
  }
  return name;
}

absl::StatusOr<std::map<std::string, WorkloadCell>> ParseCells(absl::string_view text,
                                                               const std::string& name) {
  std::map<std::string, WorkloadCell> cells;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || (number == 1 && absl::StartsWith(line, "file,"))) continue;
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    WorkloadCell cell;
    const bool is_cell =
        (fields.size() == 3 || fields.size() == 4) && !fields[0].empty() &&
        absl::SimpleAtod(fields[1], &cell.machines) && absl::SimpleAtod(fields[2], &cell.size) &&
        (fields.size() == 3 || absl::SimpleAtoi(fields[3], &cell.kind.threads)) && CanBe(cell);
    if (!is_cell) {
      return LineError(name, number,
                       "this is no cell; expected e.g. 'run3.trace,16,20' or 'run3.trace,16,20,1'");
    }
    if (!cells.insert({fields[0], cell}).second) {
      return LineError(name, number, "the file is there twice");
    }
  }
  return cells;
}

}  // namespace meridian
