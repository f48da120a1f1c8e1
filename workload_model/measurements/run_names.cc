#include "workload_model/measurements/run_names.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"
#include "workload_model/measurements/call_traces.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

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
  return absl::InvalidArgumentError(
      absl::StrCat(Printable(path), ": its name does not tell nodes and size; ",
                   is_published ? "say how with --name_pattern, or give a table, --cells"
                                : "--name_pattern does not match"));
}

}  // namespace

absl::StatusOr<RunName> ReadRunName(const std::string& path, const std::string& pattern,
                                    const std::optional<WorkloadCell>& known) {
  const RE2 regex(pattern.empty() ? kPublishedPattern : pattern, RE2::Quiet);
  if (!regex.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--name_pattern: ", Printable(regex.error())));
  }
  const std::map<std::string, int>& groups = regex.NamedCapturingGroups();
  if (!known.has_value() && (groups.count("nodes") == 0 || groups.count("size") == 0)) {
    return absl::InvalidArgumentError(
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
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(path), ": its name tells no nodes, size, threads and ranks that can be"));
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
