#include "astra_bridge/calibration/nccl_tests.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "astra_bridge/edges/comm_edge.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// Size, count, type, redop, root; then time, algbw, busbw and wrong out of place, and in place.
constexpr size_t kColumns = 13;
constexpr size_t kTimeColumn = 5;
constexpr size_t kWrongColumn = 8;
constexpr int32_t kMaxListedRanks = 1 << 20;
// A thousand seconds, and more bytes than any buffer has.
constexpr double kMaxMicroseconds = 1e9;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr size_t kMaxRows = 100000;

struct Program {
  absl::string_view name;
  // Absent for kinds that have no model.
  std::optional<CollectiveKind> kind;
};
constexpr Program kPrograms[] = {
    {"all_reduce", CollectiveKind::kAllReduce},
    {"all_gather", CollectiveKind::kAllGather},
    {"reduce_scatter", CollectiveKind::kReduceScatter},
    {"alltoall", CollectiveKind::kAllToAll},
    {"sendrecv", CollectiveKind::kPointToPoint},
    {"broadcast", std::nullopt},
    {"reduce", std::nullopt},
    {"gather", std::nullopt},
    {"scatter", std::nullopt},
    {"hypercube", std::nullopt},
};

const Program* ProgramIn(absl::string_view text) {
  for (const Program& program : kPrograms) {
    if (absl::StrContains(text, absl::StrCat(program.name, "_perf"))) return &program;
  }
  return nullptr;
}

// Returns the line without what "srun -l" puts before it.
absl::string_view WithoutLabel(absl::string_view line) {
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line);
  size_t digits = 0;
  while (digits < rest.size() && absl::ascii_isdigit(rest[digits])) ++digits;
  if (digits > 0 && digits < rest.size() && rest[digits] == ':') rest.remove_prefix(digits + 1);
  return absl::StripAsciiWhitespace(rest);
}

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  absl::StatusOr<CalibrationRun> Parse(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      RETURN_IF_ERROR(AddLine(WithoutLabel(line)));
    }
    if (ranks_.empty()) {
      return Error("the table does not list its ranks (\"#  Rank  0 ... on host device\")");
    }
    if (ranks_.rbegin()->first + 1 != static_cast<int32_t>(ranks_.size())) {
      return Error(absl::StrCat("the table lists ", ranks_.size(), " ranks, up to rank ",
                                ranks_.rbegin()->first, ": some are missing"));
    }
    if (!is_whole_) {
      return Error("the table is cut off: the line \"# Out of bounds values\" is missing");
    }
    if (program_ == nullptr) program_ = ProgramIn(path_.substr(path_.rfind('/') + 1));
    if (program_ == nullptr) {
      return Error(
          "which program printed the table is not known; name the file after it, e.g. "
          "all_gather_perf.txt");
    }
    CalibrationRun run;
    run.folder = path_;
    run.device_kinds = {"GPU"};
    run.transfers.ranks = static_cast<int32_t>(ranks_.size());
    run.transfers.groups.emplace_back(ranks_.size());
    std::iota(run.transfers.groups[0].begin(), run.transfers.groups[0].end(), 0);
    std::map<std::string, uint32_t> hosts;
    std::vector<uint32_t> node_of_rank;
    for (const auto& [rank, host] : ranks_) {
      node_of_rank.push_back(
          hosts.insert({host, static_cast<uint32_t>(hosts.size())}).first->second);
    }
    run.within_nodes = hosts.size() == 1;
    run.across_nodes = hosts.size() > 1;
    run.ranks_per_node = RanksPerNode(node_of_rank);
    if (rows_.empty()) return Error("the table has no row without wrong values");
    if (!program_->kind.has_value()) {
      run.transfers.other_kinds = static_cast<int64_t>(rows_.size());
      return run;
    }
    for (const auto& [bytes, ns] : rows_) {
      TransferSample sample;
      sample.kind = *program_->kind;
      // One after the other.
      const TransferSample* last =
          run.transfers.samples.empty() ? nullptr : &run.transfers.samples.back();
      if (last != nullptr) sample.start_ns = last->start_ns + std::llround(last->transfer_ns) + 1;
      // The column is what all ranks together get.
      sample.bytes =
          sample.kind == CollectiveKind::kAllGather ? bytes / run.transfers.ranks : bytes;
      sample.transfer_ns = ns;
      if (sample.kind == CollectiveKind::kPointToPoint) {
        sample.pairs = run.transfers.ranks;
        sample.is_both_ways = true;
        // Each sends to the next; the slowest are those that cross nodes.
        const int32_t first = run.across_nodes ? std::max(run.ranks_per_node, 1) - 1 : 0;
        run.transfers.groups[0] = {first, first + 1};
      }
      if (sample.bytes <= 0 || run.transfers.ranks < 2) {
        ++run.transfers.without_transfer;
        continue;
      }
      run.transfers.samples.push_back(sample);
    }
    if (wrong_rows_ > 0) {
      run.notes.push_back(absl::StrCat(Printable(path_), ": ", wrong_rows_,
                                       " rows with wrong values were left out"));
    }
    return run;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return InvalidArgument(Printable(path_), ", line ", line_, ": ", what);
  }

  absl::Status AddLine(absl::string_view line) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) return absl::OkStatus();
    if (words[0][0] == '#') {
      int32_t rank = 0;
      if (words.size() > 2 && words[1] == "Rank" && absl::SimpleAtoi(words[2], &rank)) {
        if (rank < 0 || rank >= kMaxListedRanks) return Error("this is no rank");
        const auto group = std::find(words.begin(), words.end(), "Group");
        if (group != words.end() && group + 1 != words.end() && *(group + 1) != "0") {
          return Error(
              "the ranks are split into several groups, whose times are one row; run without "
              "NCCL_TESTS_SPLIT");
        }
        const auto on = std::find(words.begin(), words.end(), "on");
        if (on == words.end() || on + 1 == words.end()) return Error("the rank has no host");
        ranks_[rank] = std::string(*(on + 1));
      }
      if (absl::StrContains(line, "nThread") && !rows_.empty()) {
        return Error("a second table begins here; give each table a file of its own");
      }
      if (absl::StrContains(line, "cputime")) {
        return Error("times are those of the processor (-C 1), not of the transfers");
      }
      is_whole_ |= absl::StrContains(line, "Out of bounds values");
      if (absl::StrContains(line, "Collective test starting")) program_ = ProgramIn(line);
      return absl::OkStatus();
    }
    int64_t bytes = 0;
    // What else a program prints begins with no number.
    if (!absl::SimpleAtoi(words[0], &bytes)) return absl::OkStatus();
    if (words.size() != kColumns) {
      return Error(absl::StrCat("the row has ", words.size(), " columns, not ", kColumns,
                                ": the table is cut off, or of a form that is not known"));
    }
    double time_us = 0;
    if (bytes < 0 || bytes > kMaxBytes || rows_.size() >= kMaxRows) {
      return Error(absl::StrCat(Printable(words[0]), " is no size, or the rows are too many"));
    }
    if (!absl::SimpleAtod(words[kTimeColumn], &time_us) || !(time_us >= 0) ||
        time_us > kMaxMicroseconds) {
      return Error(absl::StrCat(Printable(words[kTimeColumn]), " is no time in microseconds"));
    }
    // "N/A" where nothing was checked.
    if (words[kWrongColumn] != "0" && words[kWrongColumn] != "N/A") {
      ++wrong_rows_;
    } else if (bytes > 0 && time_us > 0) {
      rows_.push_back({bytes, time_us * kNsPerUs});
    }
    return absl::OkStatus();
  }

  const std::string& path_;
  int64_t line_ = 0;
  const Program* program_ = nullptr;
  // The host of each rank.
  std::map<int32_t, std::string> ranks_;
  // Bytes and nanoseconds.
  std::vector<std::pair<int64_t, double>> rows_;
  int64_t wrong_rows_ = 0;
  // What ends a table was seen.
  bool is_whole_ = false;
};

}  // namespace

bool IsNcclTestsTable(absl::string_view head) {
  return absl::StrContains(head, "nThread") && absl::StrContains(head, "minBytes");
}

absl::StatusOr<CalibrationRun> ParseNcclTestsTable(absl::string_view text,
                                                   const std::string& path) {
  return Parser(path).Parse(text);
}

}  // namespace meridian
