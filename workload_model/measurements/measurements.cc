#include "workload_model/measurements/measurements.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "re2/re2.h"
#include "workload_model/measurements/model_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// 31 years, and a petabyte.
constexpr double kMaxValue = 1e15;

absl::Status TooLarge(const std::string& file, int64_t callsite, double value) {
  return InvalidArgument(Printable(file), ": callsite ", callsite, " has ", value,
                         ", more than any time or message");
}

// Fewer values than this, the first aside, say nothing of a drift.
constexpr size_t kLeastDriftValues = 12;

// Compares the medians of the first and the last third of all values but the first: single wild ones do
// not count. What their middles differ by is taken to all of a run.
std::optional<double> DriftOf(absl::Span<const double> values) {
  values.remove_prefix(1);
  if (values.size() < kLeastDriftValues) return std::nullopt;
  const size_t third = values.size() / 3;
  const auto median = [](absl::Span<const double> part) {
    return Median(std::vector<double>(part.begin(), part.end()));
  };
  const double middle = median(values);
  if (!(middle > 0)) return std::nullopt;
  const double apart = 1 - static_cast<double>(third) / static_cast<double>(values.size());
  return (median(values.last(third)) - median(values.first(third))) / middle / apart;
}

// Puts the values of runs together, of so many runs of the cell: the others did it not at all.
CellValue Reduce(const std::vector<const std::vector<double>*>& runs, size_t all_runs) {
  std::vector<double> counts, firsts, steadies, drifts;
  for (const std::vector<double>* values : runs) {
    counts.push_back(static_cast<double>(values->size()));
    firsts.push_back(values->front());
    steadies.push_back(values->size() == 1 ? values->front()
                                           : Mean(absl::MakeConstSpan(*values).subspan(1)));
    if (const std::optional<double> drift = DriftOf(*values)) drifts.push_back(*drift);
  }
  CellValue value;
  value.count = runs.size() == all_runs ? Median(counts)
                                        : Mean(counts) * static_cast<double>(runs.size()) /
                                              static_cast<double>(all_runs);
  value.first = Median(firsts);
  value.steady = Median(steadies);
  if (!drifts.empty()) value.drift = Median(drifts);
  return value;
}

// Puts together what runs and ranks measured, by what it is of and by cell.
template <typename Key>
std::map<Key, std::map<WorkloadCell, CellValue>> ReduceAll(
    const std::vector<RunMeasurements>& runs,
    std::map<Key, std::vector<double>> RunMeasurements::*measured) {
  // How many runs of a cell have such values at all: times and messages may be files of their own.
  std::map<WorkloadCell, size_t> counts;
  std::map<Key, std::map<WorkloadCell, std::vector<const std::vector<double>*>>> all;
  for (const RunMeasurements& run : runs) {
    counts[run.cell] += (run.*measured).empty() ? 0 : 1;
    for (const auto& [key, values] : run.*measured) all[key][run.cell].push_back(&values);
  }
  std::map<Key, std::map<WorkloadCell, CellValue>> result;
  for (const auto& [key, by_cell] : all) {
    for (const auto& [cell, values] : by_cell) result[key][cell] = Reduce(values, counts.at(cell));
  }
  return result;
}

constexpr char kPublishedPattern[] =
    R"(_(?P<nodes>\d+)-(?P<ranks>\d+)-(?P<threads>\d+)-(?P<size>\d+)-(?P<rank>\d+)\.[a-z]+(\.gz)?$)";
constexpr double kMaxRanksPerMachine = 1e6;

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
    if (!call.rank_class().empty()) {
      return InvalidArgument(Printable(file),
                             ": holds models of a generated motif, not measured values (TRACE); "
                             "evaluate such a file with --model");
    }
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
  std::set<WorkloadCell> cells;
  for (const RunMeasurements& run : runs) cells.insert(run.cell);
  result.cells.assign(cells.begin(), cells.end());
  // Once for all files.
  const auto note = [&](int64_t RunMeasurements::*count, absl::string_view what) {
    const auto first =
        std::find_if(runs.begin(), runs.end(), [&](const auto& run) { return run.*count > 0; });
    if (first == runs.end()) return;
    result.notes.push_back(absl::StrCat(Printable(first->file), ": ", what));
  };
  note(&RunMeasurements::breaks,
       "calls do not begin where the one before ended: lines are missing");
  note(&RunMeasurements::negative_times, "some times are negative and taken for 0");
  result.times = ReduceAll(runs, &RunMeasurements::times);
  result.computes = ReduceAll(runs, &RunMeasurements::computes);
  result.messages = ReduceAll(runs, &RunMeasurements::messages);
  return result;
}

absl::StatusOr<RunName> ReadRunName(const std::string& path, const std::string& pattern,
                                    bool is_job) {
  const RE2 regex(pattern.empty() ? kPublishedPattern : pattern, RE2::Quiet);
  if (!regex.ok()) return InvalidArgument("--name_pattern: ", Printable(regex.error()));
  const std::map<std::string, int>& groups = regex.NamedCapturingGroups();
  if ((!is_job && groups.count("nodes") == 0) || groups.count("size") == 0) {
    return InvalidArgument(
        "--name_pattern has no groups called nodes and size; expected e.g. "
        "--name_pattern='n(?P<nodes>\\d+)_s(?P<size>\\d+)'");
  }
  // The last part of the path, since folders may be called anything.
  std::vector<re2::StringPiece> found(static_cast<size_t>(regex.NumberOfCapturingGroups()) + 1);
  const size_t slash = path.find_last_of('/', path.find_last_not_of('/'));
  if (!regex.Match(path, slash == std::string::npos ? 0 : slash + 1, path.size(), RE2::UNANCHORED,
                   found.data(), static_cast<int>(found.size()))) {
    return InvalidArgument(
        Printable(path), ": its name does not tell nodes and size; ",
        pattern.empty() ? "say how with --name_pattern" : "--name_pattern does not match");
  }
  // False for a group that is there and no number.
  const auto number = [&](const std::string& group, double* value) {
    const auto it = groups.find(group);
    if (it == groups.end()) return true;
    const re2::StringPiece& text = found[static_cast<size_t>(it->second)];
    return absl::SimpleAtod(absl::string_view(text.data(), text.size()), value);
  };
  RunName name = {WorkloadCell(), 0, path};
  double threads = 1, ranks = 0, per_machine = 1, rank = -1;
  const bool are_numbers = number("nodes", &name.cell.machines) &&
                           number("size", &name.cell.size) && number("threads", &threads) &&
                           number("ranks", &ranks) && number("ranks_per_node", &per_machine) &&
                           number("rank", &rank);
  if (ranks > 0 && name.cell.machines > 0) per_machine = ranks / name.cell.machines;
  CellKind& kind = name.cell.kind;
  kind.threads = static_cast<int64_t>(std::clamp(threads, 0.0, kMaxMachines));
  kind.ranks_per_machine = static_cast<int64_t>(std::clamp(per_machine, 0.0, kMaxRanksPerMachine));
  const bool can_be = name.cell.machines >= 1 && name.cell.machines <= kMaxMachines &&
                      name.cell.size >= 0 && name.cell.size <= kMaxSize && kind.threads >= 1 &&
                      kind.ranks_per_machine >= 1 && rank <= kMaxMachines &&
                      per_machine == static_cast<double>(kind.ranks_per_machine);
  if (!are_numbers || !can_be) {
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

}  // namespace meridian
