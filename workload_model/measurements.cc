#include "workload_model/measurements.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"
#include "workload_model/call_traces.h"
#include "workload_model/model_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr char kPublishedPattern[] =
    R"(_(?P<nodes>\d+)-\d+-(?P<threads>\d+)-(?P<size>\d+)-\d+\.[a-z]+(\.gz)?$)";
// A time is an outlier when it is so many medians long and so much of its run's time.
constexpr double kOutlierMedians = 20;
constexpr double kOutlierShare = 0.1;
constexpr double kDeviationsPerDistance = 1.4826;
// 31 years, and a petabyte.
constexpr double kMaxUs = 1e15;

absl::Status TooLarge(const std::string& file, int64_t callsite, double value) {
  return absl::InvalidArgumentError(absl::StrCat(Printable(file), ": callsite ", callsite, " has ",
                                                 value, ", more than any time or message"));
}

bool CanBe(const WorkloadCell& cell) {
  return cell.nodes >= 1 && cell.nodes <= kMaxNodes && cell.size >= 0 && cell.size <= kMaxSize &&
         cell.threads >= 1;
}

CellValue Reduce(const std::vector<const std::vector<double>*>& runs) {
  std::vector<double> counts, firsts, steadies;
  for (const std::vector<double>* values : runs) {
    counts.push_back(static_cast<double>(values->size()));
    firsts.push_back(values->front());
    steadies.push_back(values->size() == 1 ? values->front()
                                           : Mean(absl::MakeConstSpan(*values).subspan(1)));
  }
  CellValue value;
  value.count = Median(counts);
  value.first = Median(firsts);
  value.steady = Median(steadies);
  if (value.steady > 0) {
    std::vector<double> distances;
    for (double steady : steadies) distances.push_back(std::abs(steady - value.steady));
    value.spread = kDeviationsPerDistance * Median(distances) / value.steady;
  }
  return value;
}

void NoteOutliers(const RunMeasurements& run, std::vector<std::string>* notes) {
  double total = 0;
  for (const auto& [transition, values] : run.times) {
    for (double value : values) total += value;
  }
  for (const auto& [transition, values] : run.times) {
    const double median = Median(values);
    for (size_t i = 1; i < values.size(); ++i) {
      if (values[i] <= kOutlierMedians * median || values[i] <= kOutlierShare * total) continue;
      notes->push_back(absl::StrFormat(
          "%s: from callsite %d to %d took %.0f us once (time %d of %d), %.0f %% of the run, where "
          "the median is %.0f us; it stays in, with little weight",
          Printable(run.file), transition.first, transition.second, values[i], i + 1, values.size(),
          100 * values[i] / total, median));
    }
  }
}

}  // namespace

absl::StatusOr<WorkloadCell> CellOfName(const std::string& path, const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 regex(pattern.empty() ? kPublishedPattern : pattern, options);
  if (!regex.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--name_pattern: ", Printable(regex.error())));
  }
  const std::map<std::string, int>& groups = regex.NamedCapturingGroups();
  if (groups.count("nodes") == 0 || groups.count("size") == 0) {
    return absl::InvalidArgumentError(
        "--name_pattern has no groups called nodes and size; expected e.g. "
        "--name_pattern='n(?P<nodes>\\d+)_s(?P<size>\\d+)'");
  }
  std::vector<re2::StringPiece> found(static_cast<size_t>(regex.NumberOfCapturingGroups()) + 1);
  if (!regex.Match(path, 0, path.size(), RE2::UNANCHORED, found.data(),
                   static_cast<int>(found.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(path), ": its name does not tell nodes and size; ",
                     pattern.empty() ? "say how with --name_pattern, or give a table, --cells"
                                     : "--name_pattern does not match"));
  }
  const auto number = [&](const std::string& name, double* value) {
    const re2::StringPiece& text = found[static_cast<size_t>(groups.at(name))];
    return absl::SimpleAtod(absl::string_view(text.data(), text.size()), value);
  };
  WorkloadCell cell;
  double threads = 1;
  const bool are_numbers = number("nodes", &cell.nodes) && number("size", &cell.size) &&
                           (groups.count("threads") == 0 || number("threads", &threads));
  cell.threads = static_cast<int64_t>(std::clamp(threads, 0.0, kMaxNodes));
  if (!are_numbers || !CanBe(cell)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(path), ": its name tells no nodes, size and threads that can be"));
  }
  return cell;
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
        absl::SimpleAtod(fields[1], &cell.nodes) && absl::SimpleAtod(fields[2], &cell.size) &&
        (fields.size() == 3 || absl::SimpleAtoi(fields[3], &cell.threads)) && CanBe(cell);
    if (!is_cell || !cells.insert({fields[0], cell}).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          Printable(name), ":", number,
          is_cell ? ": the file is there twice"
                  : ": this is no cell; expected e.g. 'run3.trace,16,20' or 'run3.trace,16,20,1'"));
    }
  }
  return cells;
}

absl::StatusOr<RunMeasurements> ParseMeasurements(absl::string_view text, const std::string& file,
                                                  const WorkloadCell& cell) {
  RunMeasurements run;
  run.file = file;
  run.cell = cell;
  if (IsCallTrace(text)) {
    ASSIGN_OR_RETURN(const std::vector<TracedCall> calls, ParseCallTrace(text, file));
    for (const TracedCall& call : calls) {
      if (call.source != 0) {
        if (call.us > kMaxUs) return TooLarge(file, call.source, call.us);
        run.negative_times += call.us < 0 ? 1 : 0;
        run.times[{call.source, call.destination}].push_back(std::max(0.0, call.us));
      }
      if (call.bytes.has_value()) run.messages[call.destination].push_back(*call.bytes);
    }
    return run;
  }
  if (!IsModelFile(text)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(file), ": is neither a trace of A-mpiP nor a trace model of the motif"));
  }
  ASSIGN_OR_RETURN(const std::vector<CallModel> models, ParseModelFile(text, file));
  for (const CallModel& call : models) {
    if (call.value().type() != kTrace && call.value().type() != kConstant) {
      return absl::InvalidArgumentError(
          absl::StrCat(Printable(file), ": holds a model of type ", call.value().type(),
                       ", not measured values (TRACE); evaluate such a file with --model"));
    }
    if (call.threads() != cell.threads) {
      return absl::InvalidArgumentError(absl::StrCat(Printable(file), ": holds values of ",
                                                     call.threads(), " threads, its name says ",
                                                     cell.threads));
    }
    std::vector<double> values(call.value().coefficients().begin(),
                               call.value().coefficients().end());
    for (double value : values) {
      if (value > kMaxUs && call.source() != 0) return TooLarge(file, call.source(), value);
      if (value >= 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(Printable(file), ": callsite ", call.source(),
                                                     " has the negative value ", value));
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
  std::map<Transition, std::map<WorkloadCell, std::vector<const std::vector<double>*>>> times;
  std::map<int64_t, std::map<WorkloadCell, std::vector<const std::vector<double>*>>> messages;
  for (const RunMeasurements& run : runs) {
    cells.insert(run.cell);
    for (const auto& [transition, values] : run.times) {
      times[transition][run.cell].push_back(&values);
    }
    for (const auto& [callsite, values] : run.messages) {
      messages[callsite][run.cell].push_back(&values);
    }
    NoteOutliers(run, &result.notes);
    if (run.negative_times > 0) {
      result.notes.push_back(absl::StrCat(Printable(run.file), ": ", run.negative_times,
                                          " times are negative and taken for 0"));
    }
  }
  result.cells.assign(cells.begin(), cells.end());
  for (const auto& [transition, by_cell] : times) {
    for (const auto& [cell, values] : by_cell) result.times[transition][cell] = Reduce(values);
  }
  for (const auto& [callsite, by_cell] : messages) {
    for (const auto& [cell, values] : by_cell) result.messages[callsite][cell] = Reduce(values);
  }
  return result;
}

}  // namespace meridian
