#include "xla_profiler/table_traces/table_traces.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/hlo/collective_kind.h"
#include "xla_profiler/kineto/communication_calls.h"
#include "xla_profiler/sources/collective_log.h"

namespace meridian {
namespace {

constexpr absl::string_view kColumns[] = {"rank",  "kind", "start_ns", "end_ns", "stream", "name",
                                          "group", "peer", "seq",      "step",   "bytes"};
constexpr char kAllRanks[] = "all";
constexpr absl::string_view kExampleRow =
    R"({"rank": 0, "kind": "compute", "start_ns": 1000, "end_ns": 2000})";
constexpr int64_t kMaxTableNumber = std::numeric_limits<int64_t>::max() / 4;
// How long, at most, clocks let work begin before the end of what it waited for; and of either it is
// no more than the tenth part.
constexpr int64_t kMaxEarlyNs = 25'000;
constexpr int64_t kEarlyPart = 10;
// A rank whose work pauses no longer is not idle.
constexpr int64_t kMaxPauseNs = 20'000;
// How many ends of work are looked at to find one that may have been waited for.
constexpr int kMaxEndsLookedAt = 128;

struct TableRow {
  // What the row is shown as. Of compute, and of what is the host's, only the LoggedWork counts.
  LoggedCollective op;
  bool communicates = false;
  std::optional<int64_t> seq, step;
  // When the rank's work before it had ended.
  int64_t ready_ns = 0;

  bool is_message() const { return communicates && HasPairs(op.kind); }
};

struct TableRank {
  std::vector<TableRow> rows;
  // The ranks of the groups of its collectives. Those of kAllRanks are listed in the end.
  std::map<std::string, std::vector<int64_t>> groups;
};

// Returns the fields of a line of CSV without white space around them. Quotes are left out, also
// those that are doubled to stand for themselves.
std::vector<std::string> CutCsv(absl::string_view line, char delimiter) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == delimiter && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
  return fields;
}

// Returns what parts the fields of a table: the first in its first line that may do so.
char DelimiterOf(absl::string_view text) {
  const size_t at = text.find_first_of(",;\t\n");
  return at == absl::string_view::npos ? ',' : text[at];
}

// Returns the columns that the first line of a table names.
std::vector<std::string> ColumnsOf(absl::string_view text) {
  const std::vector<std::string> keys = KeysOfJson(text);
  return keys.empty() ? CutCsv(text.substr(0, text.find('\n')), DelimiterOf(text)) : keys;
}

// Reads the rows of all files.
class TableReader {
 public:
  // By file and rank.
  std::map<std::pair<size_t, int64_t>, TableRank> ranks;
  // All that rows name, as their own, in groups and as peers.
  std::set<int64_t> named_ranks;
  int64_t first_ns = kMaxTableNumber;
  int64_t last_ns = 0;
  // How many rows communicate, but have no seq.
  size_t counted = 0;
  std::vector<std::string> notes;

  absl::Status Read(const InputFile& file, size_t number) {
    path_ = Printable(file.path());
    file_ = number;
    line_ = 0;
    const size_t rows_before = row_count_;
    std::vector<std::string> columns;
    absl::string_view text = file.bytes();
    absl::ConsumePrefix(&text, "\xef\xbb\xbf");
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      const absl::string_view stripped = absl::StripAsciiWhitespace(line);
      if (stripped.empty()) continue;
      const bool is_json = absl::StartsWith(stripped, "{");
      // The last fields of a line with tabs may be empty.
      if (is_json) line = stripped;
      if (columns.empty()) {
        columns = ColumnsOf(line);
        delimiter_ = DelimiterOf(line);
        RETURN_IF_ERROR(CheckColumns(columns));
        if (!is_json) continue;
      }
      RETURN_IF_ERROR(SetCells(columns, line));
      RETURN_IF_ERROR(AddRow());
    }
    if (row_count_ > rows_before) return absl::OkStatus();
    return InvalidArgument(path_, ": has no rows; expected e.g. ", kExampleRow);
  }

 private:
  absl::Status CheckColumns(const std::vector<std::string>& columns) {
    std::vector<std::string> unknown;
    for (const std::string& column : columns) {
      if (!absl::c_linear_search(kColumns, column)) {
        unknown.push_back(column);
      } else if (absl::c_count(columns, column) > 1) {
        return InvalidArgument(path_, ":", line_, ": has several columns ", column, "; keep one");
      }
    }
    if (unknown.empty()) return absl::OkStatus();
    notes.push_back(absl::StrCat(path_, ": columns that are not known are left out: ",
                                 Printable(FirstCharacters(absl::StrJoin(unknown, ", "), 200))));
    return absl::OkStatus();
  }

  absl::Status SetCells(const std::vector<std::string>& columns, absl::string_view line) {
    cells_ = {{"the row", std::string(line)}};
    if (absl::StartsWith(line, "{")) {
      JsonCutter object(line);
      object.Enter('{');
      for (absl::string_view key; object.NextMember(&key);) {
        const JsonValue value(object.CutValue());
        if (value.text() == "null") continue;
        cells_[key] = value.AsString().value_or(std::string(value.text()));
      }
      if (object.status().ok() && object.AtEnd()) return absl::OkStatus();
      return Error("the row", absl::StrCat("a JSON object, e.g. ", kExampleRow));
    }
    std::vector<std::string> fields = CutCsv(line, delimiter_);
    if (fields.size() != columns.size()) {
      return Error("the row", absl::StrCat(columns.size(), " fields, as in the first"));
    }
    for (size_t i = 0; i < fields.size(); ++i) cells_[columns[i]] = std::move(fields[i]);
    return absl::OkStatus();
  }

  // Adds the row that the cells hold.
  absl::Status AddRow() {
    if (++row_count_ > kMaxTableRows) {
      return Error("the row", absl::StrCat("at most ", kMaxTableRows, " rows in all"));
    }
    for (const absl::string_view column : kColumns) {
      if (cells_[column].size() <= kMaxTableFieldBytes) continue;
      return Error(column, absl::StrCat("at most ", kMaxTableFieldBytes, " bytes"));
    }
    TableRow row;
    LoggedCollective& op = row.op;
    int64_t rank = 0;
    RETURN_IF_ERROR(Number("rank", kMaxTableRank, &rank));
    RETURN_IF_ERROR(Number("start_ns", kMaxTableNumber, &op.start_ns));
    RETURN_IF_ERROR(Number("end_ns", kMaxTableNumber, &op.end_ns));
    RETURN_IF_ERROR(Number("peer", kMaxTableRank, &op.peer));
    RETURN_IF_ERROR(Number("seq", kMaxTableNumber, &row.seq));
    RETURN_IF_ERROR(Number("step", kMaxTableNumber, &row.step));
    RETURN_IF_ERROR(Number("bytes", int64_t{1} << 48, &op.in_bytes));
    if (op.end_ns < op.start_ns) {
      return Error("end_ns", absl::StrCat("no less than start_ns, ", op.start_ns));
    }
    first_ns = std::min(first_ns, op.start_ns);
    last_ns = std::max(last_ns, op.end_ns);
    if (last_ns - first_ns > kMaxTableNs) {
      return Error("end_ns", "times of one run, in ns, within 100 days");
    }
    if (op.peer == rank) return Error("peer", "another rank");
    TableRank& of_rank = ranks[{file_, rank}];
    RETURN_IF_ERROR(SetKind(&row));
    RETURN_IF_ERROR(SetGroup(rank, &row, &of_rank.groups));
    counted += row.communicates && !row.seq.has_value();
    of_rank.rows.push_back(std::move(row));
    return absl::OkStatus();
  }

  // Sets nothing for an empty cell of a column that is not needed. Spreadsheets and pandas write
  // whole numbers as 7.0, too.
  template <typename T>
  absl::Status Number(absl::string_view column, int64_t most, T* out) {
    const std::string& text = cells_[column];
    if (text.empty() && !std::is_same_v<T, int64_t>) return absl::OkStatus();
    int64_t number = 0;
    if (!absl::SimpleAtoi(absl::StripSuffix(text, ".0"), &number) || number < 0 || number > most) {
      return Error(column, absl::StrCat("a whole number from 0 to ", most));
    }
    *out = number;
    return absl::OkStatus();
  }

  // Sets kind, stream and name.
  absl::Status SetKind(TableRow* row) {
    LoggedCollective& op = row->op;
    const std::string kind =
        absl::StrReplaceAll(absl::AsciiStrToLower(cells_["kind"]), {{"_", "-"}});
    const std::optional<CollectiveKind> collective =
        KindOfCall(absl::StrReplaceAll(kind, {{"-", ""}}));
    if (!collective.has_value() && kind != "compute" && kind != "host") {
      return Error("kind",
                   "compute, host, send, recv or a collective, e.g. all-reduce or reduce-scatter");
    }
    row->communicates = collective.has_value();
    op.kind = collective.value_or(CollectiveKind::kUnknown);
    if (kind == "host") op.category = "cpu_op";
    op.stream = cells_["stream"].empty() ? kind : cells_["stream"];
    op.name = cells_["name"].empty() ? kind : cells_["name"];
    return absl::OkStatus();
  }

  // Sets group and peer, and lists the group of a collective.
  absl::Status SetGroup(int64_t rank, TableRow* row,
                        std::map<std::string, std::vector<int64_t>>* groups) {
    LoggedCollective& op = row->op;
    std::set<int64_t> members;
    bool is_group = true;
    for (absl::string_view word :
         absl::StrSplit(cells_["group"], absl::ByAnyChar(" ,;[]"), absl::SkipEmpty())) {
      int64_t member = -1;
      is_group &= absl::SimpleAtoi(word, &member) && member >= 0 && member <= kMaxTableRank &&
                  members.insert(member).second;
    }
    if (!is_group || (!members.empty() && members.count(rank) == 0)) {
      return Error("group", absl::StrCat("different ranks up to ", kMaxTableRank,
                                         " with the row's own, ", rank));
    }
    if (row->is_message()) {
      if (!op.peer.has_value() && members.size() == 2) {
        op.peer = *members.begin() == rank ? *members.rbegin() : *members.begin();
      }
      members = {rank, op.peer.value_or(rank)};
    }
    op.group = members.empty() ? kAllRanks : absl::StrJoin(members, " ");
    op.group_size = static_cast<int64_t>(members.size());
    if (row->communicates && !row->is_message()) {
      groups->try_emplace(op.group, members.begin(), members.end());
    }
    named_ranks.insert(rank);
    named_ranks.insert(members.begin(), members.end());
    return absl::OkStatus();
  }

  absl::Status Error(absl::string_view column, absl::string_view expected) {
    return InvalidArgument(path_, ":", line_, ": ", column, ": '",
                           Printable(FirstCharacters(cells_[column], 40)), "'; expected ",
                           expected);
  }

  // What is read.
  std::string path_;
  size_t file_ = 0;
  char delimiter_ = ',';
  int64_t line_ = 0;
  size_t row_count_ = 0;
  // The row by column; "the row" is all of it.
  std::map<absl::string_view, std::string> cells_;
};

// Sorts a rank's rows by their starts, and finds messages that are exchanged together. Two of one
// kind with one rank are not: they would become one.
void SortRows(std::vector<TableRow>* rows) {
  const auto when = [](const TableRow& row) {
    return std::tie(row.op.start_ns, row.op.stream, row.op.end_ns, row.step);
  };
  const auto what = [](const TableRow& row) { return std::tie(row.op.kind, row.op.peer); };
  absl::c_stable_sort(*rows, [&](const TableRow& a, const TableRow& b) {
    return std::make_tuple(when(a), what(a), a.seq) < std::make_tuple(when(b), what(b), b.seq);
  });
  for (size_t i = 1; i < rows->size(); ++i) {
    TableRow& a = (*rows)[i - 1];
    const TableRow& b = (*rows)[i];
    a.op.is_with_next =
        a.is_message() && b.is_message() && when(a) == when(b) && what(a) != what(b);
  }
}

// Finds when a rank could have begun its rows, which is when work before had ended, or had begun and
// still runs; and takes early starts back. The rows are in order of their starts.
void FindReady(absl::Span<TableRow> rows) {
  // Ends of work with its starts.
  std::vector<std::pair<int64_t, int64_t>> ends;
  for (const TableRow& row : rows) ends.push_back({row.op.end_ns, row.op.start_ns});
  absl::c_sort(ends);
  int64_t start_ns = 0, start_before_ns = 0;
  for (TableRow& row : rows) {
    if (row.op.start_ns > start_ns) start_before_ns = std::exchange(start_ns, row.op.start_ns);
    row.ready_ns = start_ns;
    auto it = absl::c_upper_bound(ends, std::make_pair(start_ns + kMaxEarlyNs, kMaxTableNumber));
    for (int tries = 0; it != ends.begin() && tries < kMaxEndsLookedAt; ++tries) {
      const auto [other_end_ns, other_start_ns] = *--it;
      const int64_t early_ns = other_end_ns - start_ns;
      const int64_t shorter_ns = std::min(other_end_ns - other_start_ns, row.op.end_ns - start_ns);
      const bool runs_on =
          early_ns > 0 && (other_end_ns >= row.op.end_ns || early_ns * kEarlyPart > shorter_ns);
      if (other_start_ns >= start_ns || runs_on) continue;
      row.op.start_ns = std::max(start_ns, other_end_ns);
      row.ready_ns = std::max(other_end_ns, start_before_ns);
      break;
    }
  }
}

// Lets the members of a collective or message begin so much earlier as they had waited for others,
// and tells all its bytes.
void FindWaits(absl::Span<TableRow* const> members) {
  int64_t first_ns = kMaxTableNumber, last_ns = 0, shortest_ns = kMaxTableNumber, ready_ns = 0;
  std::optional<int64_t> bytes;
  for (const TableRow* row : members) {
    first_ns = std::min(first_ns, row->op.start_ns);
    last_ns = std::max(last_ns, row->op.start_ns);
    shortest_ns = std::min(shortest_ns, row->op.end_ns - row->op.start_ns);
    ready_ns = std::max(ready_ns, row->ready_ns);
    // Who puts in most decides how long it takes.
    bytes = std::max(bytes, row->op.in_bytes);
  }
  for (TableRow* row : members) {
    LoggedCollective& op = row->op;
    op.in_bytes = op.out_bytes = bytes;
    const int64_t put_in = bytes.value_or(0);
    if (op.kind == CollectiveKind::kAllGather && bytes) op.out_bytes = put_in * op.group_size;
    if (op.kind == CollectiveKind::kReduceScatter && bytes) op.out_bytes = put_in / op.group_size;
    // Starts that lie further apart are those of ranks that wait for each other within.
    if (last_ns - first_ns > shortest_ns || op.start_ns < ready_ns) continue;
    op.start_ns -= ready_ns - row->ready_ns;
  }
}

// Finds which rows of different ranks are one, and who waited for whom in them: the n-th on each rank
// of one kind, name, step, group and seq, of messages of one sender, receiver, step and seq.
void FindInstances(std::map<std::pair<size_t, int64_t>, TableRank>* ranks) {
  struct Counted {
    // How many each rank has, and the rows that are the first, the second and so on of their ranks.
    std::map<int64_t, size_t> counts;
    std::vector<std::vector<TableRow*>> rows;
  };
  std::map<uint64_t, Counted> counted;
  for (auto& [key, table] : *ranks) {
    for (TableRow& row : table.rows) {
      const LoggedCollective& op = row.op;
      if (!row.communicates) continue;
      const int64_t sender = op.kind == CollectiveKind::kSend ? key.second : op.peer.value_or(-1);
      const std::string what = row.is_message()
                                   ? absl::StrCat("from ", sender)
                                   : absl::StrCat(CollectiveKindName(op.kind), " ", op.name);
      Counted& same = counted[ExecutionNumber(
          op.group, absl::StrCat(what, " ", row.step.value_or(-1)), row.seq.value_or(-1))];
      const size_t count = same.counts[key.second]++;
      if (same.rows.size() <= count) same.rows.resize(count + 1);
      same.rows[count].push_back(&row);
    }
  }
  for (const auto& [number, same] : counted) {
    const size_t of_first = same.counts.begin()->second;
    const bool is_known =
        absl::c_all_of(same.counts, [&](const auto& rank) { return rank.second == of_first; });
    for (size_t i = 0; i < same.rows.size(); ++i) {
      if (is_known) FindWaits(same.rows[i]);
      for (TableRow* row : same.rows[i]) {
        // One of them lacks a row: which, and so which is which, is not known. Messages without a
        // number would be counted again, and get one that nobody else has.
        if (!is_known && !row->is_message()) continue;
        row->op.execution = ExecutionNumber(
            absl::StrCat(number), is_known ? "" : std::string(CollectiveKindName(row->op.kind)),
            static_cast<int64_t>(i));
      }
    }
  }
}

// Lets messages that are exchanged together begin with the first of them, and sorts a rank's rows
// by these starts, those of the host before all others.
void SortShownRows(std::vector<TableRow>* rows) {
  for (size_t i = rows->size(); i-- > 1;) {
    LoggedCollective& op = (*rows)[i - 1].op;
    if (op.is_with_next) op.start_ns = std::min(op.start_ns, (*rows)[i].op.start_ns);
  }
  for (size_t i = 1; i < rows->size(); ++i) {
    const LoggedCollective& before = (*rows)[i - 1].op;
    if (before.is_with_next) (*rows)[i].op.start_ns = before.start_ns;
  }
  absl::c_stable_sort(*rows, [](const TableRow& a, const TableRow& b) {
    return std::tie(a.op.category, a.op.start_ns) < std::tie(b.op.category, b.op.start_ns);
  });
}

// Writes down what one rank did. What it does without a pause is launched before it begins, a
// nanosecond after each other so that the order is known, and then waited for.
CollectiveLog LogOfRank(int64_t rank, int64_t world_size, const TableRank& table) {
  CollectiveLog log;
  log.rank = rank;
  log.world_size = world_size;
  log.pid = rank + 1;
  log.groups.assign(table.groups.begin(), table.groups.end());
  const auto add_call = [&](absl::string_view category, std::string name, int64_t start_ns,
                            int64_t end_ns) {
    log.work.push_back({category, std::move(name), "", start_ns, end_ns, std::nullopt});
  };
  const std::vector<TableRow>& rows = table.rows;
  const auto is_host = [](const TableRow& other) { return other.op.category != "kernel"; };
  size_t host = 0, row = absl::c_count_if(rows, is_host);
  // By step: from its first launch to its last end.
  std::map<int64_t, std::pair<int64_t, int64_t>> steps;
  for (int64_t idle_since_ns = 0; row < rows.size();) {
    const std::optional<int64_t> step = rows[row].step;
    int64_t busy_until_ns = rows[row].op.end_ns;
    size_t end = row;
    while (end < rows.size() && rows[end].step == step &&
           rows[end].op.start_ns <= busy_until_ns + kMaxPauseNs) {
      busy_until_ns = std::max(busy_until_ns, rows[end++].op.end_ns);
    }
    // What follows at once is launched as soon as it is known that this has ended.
    const bool follows = end < rows.size() && rows[end].op.start_ns <= busy_until_ns;
    const int64_t end_ns = busy_until_ns + (follows ? 0 : 1);
    int64_t launch_ns = rows[row].op.start_ns - static_cast<int64_t>(end - row);
    // Steps that overlap are launched while the host still waits for another.
    launch_ns = std::min(std::max(launch_ns, idle_since_ns), rows[row].op.start_ns);
    // What the host does in a pause is shown within it, so that it is seen to fill the pause.
    for (; is_host(rows[host]) && rows[host].op.start_ns < rows[row].op.start_ns; ++host) {
      LoggedWork& work = log.work.emplace_back(rows[host].op);
      if (work.end_ns <= rows[row].op.start_ns) work.end_ns = std::min(work.end_ns, launch_ns - 1);
      if (work.start_ns == idle_since_ns - 1) ++work.start_ns;
      work.start_ns = std::min(work.start_ns, work.end_ns);
    }
    if (step.has_value()) {
      auto& span = steps.insert({*step, {launch_ns, end_ns}}).first->second;
      span.second = std::max(span.second, end_ns);
    }
    for (; row < end; ++row) {
      LoggedCollective op = rows[row].op;
      op.launched_ns = std::min(launch_ns++, op.start_ns);
      if (rows[row].communicates) log.collectives.push_back(op);
      if (!rows[row].communicates) log.work.push_back(op);
    }
    if (launch_ns < end_ns) add_call("cuda_runtime", "cudaDeviceSynchronize", launch_ns, end_ns);
    idle_since_ns = std::max(launch_ns, end_ns);
  }
  for (; host < rows.size() && is_host(rows[host]); ++host) log.work.push_back(rows[host].op);
  for (const auto& [step, span] : steps) {
    add_call("user_annotation", absl::StrCat("ProfilerStep#", step), span.first, span.second);
  }
  return log;
}

// Says what of a table is inferred.
void AddNotes(TableReader* table) {
  const auto add = [&](const auto&... text) { table->notes.push_back(absl::StrCat(text...)); };
  add("a table does not tell what work waited for: that is inferred from its times, so that "
      "collectives may be shown from earlier on");
  if (table->counted > 0) {
    add(table->counted, " collectives and messages have no seq, so that their run_id is counted: ",
        "the n-th of a name, step and group on each rank, of a sender's messages to one rank");
  }
  if (table->first_ns < kMadeUpTimesNs) {
    add("times of the table do not count from 1970: its first, ", table->first_ns,
        ", is shown as 2001-09-09 01:46:40");
  }
  const int64_t highest = *table->named_ranks.rbegin(), size = table->named_ranks.size();
  if (highest < size) return;
  add("the table names ", size, " ranks, the highest of them ", highest,
      ": these are taken for all of the job, and counted without gaps, ", highest, " as rank ",
      size - 1);
}

}  // namespace

bool TableSource::Detect(const FileHead& head) const {
  const std::vector<std::string> columns = ColumnsOf(head.text());
  const auto has = [&](absl::string_view column) { return absl::c_linear_search(columns, column); };
  return has("start_ns") && has("end_ns") && (has("rank") || has("kind"));
}

absl::StatusOr<std::vector<std::string>> TableSource::Convert(size_t files, OpenFunction open,
                                                              const ConversionOptions&,
                                                              WriteFunction write) const {
  TableReader table;
  for (size_t i = 0; i < files; ++i) {
    ASSIGN_OR_RETURN(const InputFile file, open(i));
    RETURN_IF_ERROR(table.Read(file, i));
  }
  const std::set<int64_t>& named = table.named_ranks;
  const auto world_size = static_cast<int64_t>(named.size());
  const bool has_gaps = *named.rbegin() >= world_size;
  AddNotes(&table);
  // Times that are no Unix times are shown as of those that are made up.
  const int64_t shift_ns = table.first_ns < kMadeUpTimesNs ? kMadeUpTimesNs - table.first_ns : 0;
  std::vector<size_t> ranks_in(files);
  for (auto& [key, of_rank] : table.ranks) {
    ++ranks_in[key.first];
    for (TableRow& row : of_rank.rows) {
      row.op.start_ns += shift_ns;
      row.op.end_ns += shift_ns;
      if (row.op.group == kAllRanks) row.op.group_size = world_size;
    }
    SortRows(&of_rank.rows);
    FindReady(absl::MakeSpan(of_rank.rows));
  }
  FindInstances(&table.ranks);
  for (auto& [key, of_rank] : table.ranks) {
    const auto [file, rank] = key;
    SortShownRows(&of_rank.rows);
    if (const auto all = of_rank.groups.find(kAllRanks); all != of_rank.groups.end()) {
      all->second.assign(named.begin(), named.end());
    }
    const CollectiveLog log = LogOfRank(rank, has_gaps ? 0 : world_size, of_rank);
    RETURN_IF_ERROR(write(file, CollectiveLogToKineto(log),
                          ranks_in[file] == 1 ? "" : absl::StrCat("rank ", rank)));
    // Lists of all ranks would be too much memory for all ranks at once.
    of_rank = {};
  }
  return std::move(table.notes);
}

}  // namespace meridian
