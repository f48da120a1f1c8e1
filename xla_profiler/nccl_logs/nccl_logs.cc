#include "xla_profiler/nccl_logs/nccl_logs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/hlo/collective_kind.h"
#include "xla_profiler/sources/collective_log.h"

namespace meridian {
namespace {

constexpr int64_t kNsPerUs = 1000;
// No operation takes longer (19 hours); what would is a difference of clocks gone wrong.
constexpr int64_t kMaxTookUs = int64_t{1} << 36;
// Unix times from 2001 on; what lies beyond is no time in microseconds.
constexpr int64_t kLeastUnixUs = 1'000'000'000'000'000;
constexpr int64_t kMaxUnixUs = int64_t{1} << 53;
// No communicator has more ranks.
constexpr int64_t kMaxRanks = int64_t{1} << 16;

// Sizes of unsigned bytes are written as 2^64 minus their number.
std::optional<int64_t> BytesOf(const JsonValue& value) {
  std::optional<uint64_t> bytes = value.AsUint64();
  if (!bytes.has_value()) return std::nullopt;
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  if (*bytes > kMost) bytes = 0 - *bytes;
  if (*bytes > kMost) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

// Versions print whole microseconds, others who write the same form fractions.
std::optional<int64_t> Microseconds(const JsonValue& value, int64_t most) {
  const std::optional<double> us = value.AsDouble();
  if (!us.has_value() || !(*us >= 0 && *us <= static_cast<double>(most))) return std::nullopt;
  return static_cast<int64_t>(*us);
}

// 0 stands for what was not seen.
std::optional<int64_t> UnixTime(const JsonValue& value) {
  const std::optional<int64_t> us = Microseconds(value, kMaxUnixUs);
  return us.value_or(0) < kLeastUnixUs ? std::nullopt : us;
}

// Returns false when a kernel stops before it starts, of which nothing is taken.
bool ReadTimes(const JsonValue& trace, absl::string_view prefix, InspectorOp* op) {
  op->launched_us = UnixTime(trace.Find(absl::StrCat(prefix, "_start_ts")));
  std::optional<int64_t> first_us, last_us;
  bool is_sound = true;
  JsonCutter cutter(trace.Find("kernel_events").text());
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const JsonValue channel(cutter.CutValue());
    const std::optional<int64_t> start_us = UnixTime(channel.Find("kernel_start_ts"));
    std::optional<int64_t> end_us = UnixTime(channel.Find("kernel_record_ts"));
    if (!end_us.has_value()) end_us = UnixTime(channel.Find("kernel_stop_ts"));
    if (end_us.has_value() && *end_us < start_us.value_or(*end_us)) {
      is_sound = false;
      continue;
    }
    if (start_us.has_value()) first_us = std::min(*start_us, first_us.value_or(*start_us));
    if (end_us.has_value()) last_us = std::max(*end_us, last_us.value_or(*end_us));
  }
  if (first_us.has_value()) op->ended_us = *first_us + op->took_us;
  if (last_us.has_value()) op->ended_us = std::min(*last_us, op->ended_us.value_or(*last_us));
  return is_sound;
}

// What is equal on all ranks of a collective: communicator, kind and number.
using OpKey = std::tuple<std::string, std::string, int64_t>;

OpKey KeyOf(const InspectorOp& op) { return {op.communicator, op.name, op.number}; }

// What tells a record that was written twice from two of one number.
using OpContent = std::tuple<int64_t, int64_t, std::optional<int64_t>>;

OpContent ContentOf(const InspectorOp& op) { return {op.bytes, op.took_us, op.ended_us}; }

// Who wrote the operations that follow.
struct Writer {
  bool is_known = false;
  std::string communicator;
  int64_t rank = -1;
  int64_t ranks = 0;
  int64_t dumped_us = 0;
};

Writer ReadWriter(const JsonValue& header, const JsonValue& metadata, InspectorLog* log) {
  Writer writer;
  writer.communicator = header.Find("id").AsString().value_or("");
  writer.rank = header.Find("rank").AsInt64().value_or(-1);
  writer.ranks = header.Find("n_ranks").AsInt64().value_or(0);
  writer.is_known = !writer.communicator.empty() && writer.rank >= 0 &&
                    writer.rank < writer.ranks && writer.ranks <= kMaxRanks;
  writer.dumped_us = Microseconds(metadata.Find("dump_timestamp_us"), kMaxUnixUs).value_or(0);
  log->pid = metadata.Find("pid").AsInt64().value_or(log->pid);
  log->hostname = metadata.Find("hostname").AsString().value_or(log->hostname);
  return writer;
}

std::optional<InspectorOp> ReadOp(const JsonValue& perf, absl::string_view prefix,
                                  const Writer& writer, InspectorLog* log) {
  const auto find = [&](absl::string_view key) {
    return perf.Find(absl::StrCat(prefix, "_", key));
  };
  InspectorOp op;
  op.communicator = writer.communicator;
  op.rank = writer.rank;
  op.ranks = writer.ranks;
  op.dumped_us = writer.dumped_us;
  op.name = perf.Find(prefix).AsString().value_or("");
  const std::optional<int64_t> number = find("sn").AsInt64();
  const std::optional<int64_t> bytes = BytesOf(find("msg_size_bytes"));
  const std::optional<int64_t> took_us = Microseconds(find("exec_time_us"), kMaxTookUs);
  if (op.name.empty() || number.value_or(-1) < 0 || !bytes.has_value() || !took_us.has_value()) {
    return std::nullopt;
  }
  op.number = *number;
  op.bytes = *bytes;
  op.took_us = *took_us;
  op.peer = find("peer").AsInt64();
  for (absl::string_view key : {"algo", "proto"}) {
    const std::string word = find(key).AsString().value_or("");
    const bool is_word = absl::c_all_of(word, [](unsigned char c) {
      return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_';
    });
    if (!is_word || word.empty()) continue;
    absl::StrAppend(&op.protocol, op.protocol.empty() ? "" : "_", word);
  }
  if (!ReadTimes(perf.Find("event_trace_ts"), prefix, &op)) ++log->inverted;
  return op;
}

// Sets the kind, and what one rank puts in and gets out. False for kinds that are not known, and for
// more bytes than there are.
bool SetKind(const InspectorOp& op, LoggedCollective* collective) {
  using Kind = CollectiveKind;
  static const auto& kinds = *new std::map<absl::string_view, Kind>{
      {"AllReduce", Kind::kAllReduce},
      {"AllGather", Kind::kAllGather},
      {"ReduceScatter", Kind::kReduceScatter},
      {"Broadcast", Kind::kCollectiveBroadcast},
      {"Reduce", Kind::kCollectiveReduce},
      {"Send", Kind::kSend},
      {"Recv", Kind::kRecv},
  };
  const auto kind = kinds.find(op.name);
  int64_t all = 0;
  if (kind == kinds.end() || __builtin_mul_overflow(op.bytes, op.ranks, &all)) return false;
  collective->kind = kind->second;
  collective->in_bytes = kind->second == Kind::kReduceScatter ? all : op.bytes;
  collective->out_bytes = kind->second == Kind::kAllGather ? all : op.bytes;
  return true;
}

// Logs that belong together, and who is who in them.
class InspectorRun {
 public:
  static absl::StatusOr<InspectorRun> Create(std::vector<const InspectorLog*> logs) {
    InspectorRun run;
    run.logs_ = std::move(logs);
    // The rank of each log in its communicators, and the log of each rank.
    std::vector<std::map<std::string, int64_t>> rank_in(run.logs_.size());
    std::map<std::pair<std::string, int64_t>, size_t> log_of;
    for (size_t i = 0; i < run.logs_.size(); ++i) {
      const std::string path = Printable(run.logs_[i]->path);
      for (const InspectorOp& op : run.logs_[i]->ops) {
        const int64_t size = run.sizes_.insert({op.communicator, op.ranks}).first->second;
        const int64_t rank = rank_in[i].insert({op.communicator, op.rank}).first->second;
        const size_t other = log_of.insert({{op.communicator, op.rank}, i}).first->second;
        if (size == op.ranks && rank == op.rank && other == i) continue;
        const std::string communicator = Printable(op.communicator);
        if (size != op.ranks) {
          return InvalidArgument(path, ": the communicator ", communicator, " has ", op.ranks,
                                 " ranks here and ", size, " before");
        }
        if (rank != op.rank) {
          return InvalidArgument(path, ": one process has the ranks ", rank, " and ", op.rank,
                                 " of the communicator ", communicator,
                                 "; only jobs with one process per GPU can be told");
        }
        return InvalidArgument(Printable(run.logs_[other]->path), " and ", path,
                               " are both of rank ", op.rank, " of the communicator ", communicator,
                               "; is it one log twice?");
      }
    }
    std::map<std::string, int64_t> logs_with;
    for (const auto& ranks : rank_in) {
      for (const auto& [communicator, rank] : ranks) ++logs_with[communicator];
    }
    std::string world;
    for (const auto& [communicator, size] : run.sizes_) {
      if (world.empty() || std::make_pair(size, logs_with[communicator]) >
                               std::make_pair(run.sizes_[world], logs_with[world])) {
        world = communicator;
      }
    }
    // A log without operations of all ranks has one of the ranks that are left.
    const bool has_world = run.sizes_[world] >= static_cast<int64_t>(run.logs_.size());
    run.world_size_ = has_world ? run.sizes_[world] : static_cast<int64_t>(run.logs_.size());
    int64_t next = 0;
    for (size_t i = 0; i < run.logs_.size(); ++i) {
      const auto stated = rank_in[i].find(world);
      if (has_world && stated != rank_in[i].end()) {
        run.ranks_.push_back(stated->second);
      } else {
        while (has_world && log_of.count({world, next}) > 0) ++next;
        run.ranks_.push_back(next++);
        run.guessed_.push_back(i);
      }
      for (const auto& [communicator, rank] : rank_in[i]) {
        run.members_[communicator][rank] = run.ranks_[i];
      }
    }
    for (int64_t rank = 0; rank < run.world_size_ && has_world; ++rank) {
      run.members_[world][rank] = rank;
    }
    return run;
  }

  const std::vector<const InspectorLog*>& logs() const { return logs_; }
  int64_t rank(size_t log) const { return ranks_[log]; }
  int64_t world_size() const { return world_size_; }
  // Positions of logs that have no operation of the largest communicator: their ranks are guesses.
  const std::vector<size_t>& guessed() const { return guessed_; }

  // Returns the communicators of which all ranks are known, with these in their order.
  std::vector<std::pair<std::string, std::vector<int64_t>>> Communicators() const {
    std::vector<std::pair<std::string, std::vector<int64_t>>> result;
    for (const auto& [communicator, members] : members_) {
      if (static_cast<int64_t>(members.size()) != sizes_.at(communicator)) continue;
      result.push_back({communicator, {}});
      for (const auto& [inside, rank] : members) result.back().second.push_back(rank);
    }
    return result;
  }

  // Nullopt when no log is of that rank of the communicator.
  std::optional<int64_t> MemberOf(const std::string& communicator, int64_t inside) const {
    const std::map<int64_t, int64_t>& members = members_.at(communicator);
    const auto it = members.find(inside);
    return it == members.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }

 private:
  std::vector<const InspectorLog*> logs_;
  std::map<std::string, int64_t> sizes_;
  std::vector<int64_t> ranks_;
  std::vector<size_t> guessed_;
  // The ranks of a communicator, by their numbers in it.
  std::map<std::string, std::map<int64_t, int64_t>> members_;
  int64_t world_size_ = 0;
};

// Returns the positions of logs that share communicators, directly or through others, together.
std::vector<std::vector<size_t>> FindRuns(const std::vector<InspectorLog>& logs) {
  std::vector<size_t> parent(logs.size());
  absl::c_iota(parent, 0);
  const auto root = [&](size_t log) {
    while (parent[log] != log) log = parent[log] = parent[parent[log]];
    return log;
  };
  std::map<std::string, size_t> first_with;
  for (size_t i = 0; i < logs.size(); ++i) {
    for (const InspectorOp& op : logs[i].ops) {
      const auto [it, is_new] = first_with.insert({op.communicator, i});
      if (!is_new)
        parent[std::max(root(i), root(it->second))] = std::min(root(i), root(it->second));
    }
  }
  std::map<size_t, std::vector<size_t>> by_root;
  for (size_t i = 0; i < logs.size(); ++i) by_root[root(i)].push_back(i);
  std::vector<std::vector<size_t>> runs;
  for (auto& [first, members] : by_root) runs.push_back(std::move(members));
  return runs;
}

// Returns the operations of one of the run's logs that can be shown, in order of their starts. Where
// times are made up, one comes after the other, for as long as it took.
absl::StatusOr<CollectiveLog> ShownLog(const InspectorRun& run, size_t position, bool make_up_times,
                                       std::vector<std::string>* notes) {
  const InspectorLog& log = *run.logs()[position];
  CollectiveLog shown;
  shown.rank = run.rank(position);
  shown.world_size = run.world_size();
  shown.hostname = log.hostname;
  shown.pid = log.pid;
  shown.groups = run.Communicators();
  int64_t without_time = 0, now_us = kMaxUnixUs / 8;
  std::map<std::string, int64_t> unknown;
  for (const InspectorOp& op : log.ops) {
    LoggedCollective collective;
    if (!SetKind(op, &collective)) {
      ++unknown[op.name];
      continue;
    }
    std::optional<int64_t> end_us = op.ended_us;
    // Ends of messages are not told which belong together by their numbers.
    if (make_up_times) {
      collective.ran_ns = op.took_us * kNsPerUs;
      now_us = std::min(now_us + op.took_us, kMaxUnixUs);
      end_us = op.peer.has_value() ? std::nullopt : std::make_optional(now_us);
    }
    if (!end_us.has_value()) {
      ++without_time;
      continue;
    }
    collective.group = op.communicator;
    collective.group_size = op.ranks;
    collective.start_ns = (*end_us - op.took_us) * kNsPerUs;
    collective.end_ns = *end_us * kNsPerUs;
    if (op.launched_us.has_value() && !make_up_times) {
      collective.launched_ns = *op.launched_us * kNsPerUs;
    }
    if (op.peer.has_value()) {
      collective.peer = run.MemberOf(op.communicator, *op.peer);
    } else {
      collective.execution = ExecutionNumber(op.communicator, op.name, op.number);
      collective.protocol = op.protocol;
    }
    shown.collectives.push_back(std::move(collective));
  }
  if (!make_up_times && shown.collectives.empty() && log.inverted > 0) {
    return InvalidArgument(Printable(log.path), ": kernels of ", log.inverted,
                           " operation(s) stop before they start, and of no operation is it known "
                           "when it ran (astra_calibrate takes it, by how long they took)");
  }
  if (!make_up_times && shown.collectives.empty() && without_time > 0) {
    return InvalidArgument(Printable(log.path),
                           ": says how long operations took, not when; record with "
                           "NCCL_INSPECTOR_DUMP_VERBOSE=1 (without, astra_calibrate takes it)");
  }
  if (shown.collectives.empty() && !unknown.empty()) {
    return InvalidArgument(Printable(log.path),
                           ": holds no operation of a known kind; the first is '",
                           Printable(unknown.begin()->first), "'");
  }
  if (without_time > 0) {
    notes->push_back(absl::StrCat(
        Printable(log.path), ": ", without_time,
        make_up_times ? " messages were left out: without a common clock it cannot be told which "
                        "belong together (combine aligns the logs)"
                      : " operations were left out: it is not known when they ran"));
  }
  for (const auto& [name, count] : unknown) {
    notes->push_back(absl::StrCat(Printable(log.path), ": ", count, " operations of kind '",
                                  Printable(name), "' were left out"));
  }
  absl::c_stable_sort(shown.collectives, [](const LoggedCollective& a, const LoggedCollective& b) {
    return a.start_ns < b.start_ns;
  });
  return shown;
}

// Returns the host that NCCL Inspector names a log after: <host>-pid<process>.log. Empty for other
// names.
std::string HostOfLog(absl::string_view path) {
  absl::string_view name = path.substr(path.rfind('/') + 1);
  absl::ConsumeSuffix(&name, ".gz");
  const size_t pid = name.rfind("-pid");
  const bool is_named = absl::EndsWith(name, ".log") && pid != absl::string_view::npos;
  return is_named ? std::string(name.substr(0, pid)) : "";
}

bool IsRecord(absl::string_view line) {
  const std::vector<std::string> keys = KeysOfJson(line);
  const auto has = [&](absl::string_view key) { return absl::c_linear_search(keys, key); };
  return has("coll_perf") || has("p2p_perf") || (has("header") && has("dump_stats"));
}

}  // namespace

absl::StatusOr<InspectorLog> ParseInspectorLog(absl::string_view text, const std::string& path) {
  InspectorLog log;
  log.path = path;
  Writer writer;
  // How many more lines the last header counts for, beside its own.
  int64_t inheriting = 0;
  std::map<std::pair<OpKey, int64_t>, OpContent> seen;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const JsonValue row(line);
    const JsonValue header = row.Find("header"), stats = row.Find("dump_stats");
    if (header.exists()) {
      writer = ReadWriter(header, row.Find("metadata"), &log);
      inheriting = 0;
      for (absl::string_view kind : {"coll", "p2p", "proxy"}) {
        const auto count = [&](absl::string_view what) {
          const std::optional<int64_t> number = stats.Find(absl::StrCat(kind, "_", what)).AsInt64();
          return std::clamp<int64_t>(number.value_or(0), 0, kMaxUnixUs);
        };
        inheriting += count("records");
        log.dropped += count("dropped_since_last_dump");
      }
    } else {
      // Whose it is, is not known behind a line that could not be read.
      writer.is_known = writer.is_known && inheriting > 0;
      --inheriting;
    }
    bool is_read = stats.exists() || row.Find("proxy_trace").exists();
    for (absl::string_view prefix : {"coll", "p2p"}) {
      const JsonValue perf = row.Find(absl::StrCat(prefix, "_perf"));
      if (!perf.exists() || !writer.is_known) continue;
      std::optional<InspectorOp> op = ReadOp(perf, prefix, writer, &log);
      if (!op.has_value()) continue;
      is_read = true;
      if (!op->peer.has_value()) {
        const auto [first, is_new] = seen.insert({{KeyOf(*op), op->rank}, ContentOf(*op)});
        // It may have been written once before.
        if (!is_new && first->second != ContentOf(*op)) ++log.repeated;
        if (!is_new) continue;
      }
      log.ops.push_back(*std::move(op));
    }
    if (!is_read) {
      ++log.unread_lines;
      inheriting = 0;
    }
  }
  if (log.ops.empty()) {
    return InvalidArgument(Printable(path), ": holds no operation of NCCL Inspector (",
                           log.unread_lines, " lines could not be read)");
  }
  return log;
}

absl::StatusOr<std::vector<std::string>> InspectorToKineto(const std::vector<InspectorLog>& logs,
                                                           const ConversionOptions& options,
                                                           TraceSource::WriteFunction write) {
  std::vector<std::string> notes;
  for (const InspectorLog& log : logs) {
    const auto note = [&](int64_t count, absl::string_view before, absl::string_view behind) {
      if (count == 0) return;
      notes.push_back(absl::StrCat(Printable(log.path), ": ", before, count, " ", behind));
    };
    note(log.unread_lines, "", "lines that are no whole records were left out");
    note(log.repeated, "",
         "operations have the number (coll_sn) of another one and were left out: they cannot be "
         "told apart");
    note(log.inverted, "",
         "operations have kernels that stop before they start, of which no time is taken");
    note(log.dropped, "NCCL Inspector dropped ", "operations");
  }
  const std::vector<std::vector<size_t>> runs = FindRuns(logs);
  if (runs.size() > 1) {
    notes.push_back(
        absl::StrCat("the logs are of ", runs.size(), " runs that share no communicator"));
  }
  for (const std::vector<size_t>& members : runs) {
    std::vector<const InspectorLog*> of_run;
    for (size_t i : members) of_run.push_back(&logs[i]);
    ASSIGN_OR_RETURN(const InspectorRun run, InspectorRun::Create(std::move(of_run)));
    for (size_t guessed : run.guessed()) {
      notes.push_back(absl::StrCat(Printable(logs[members[guessed]].path),
                                   ": has no operation of all ranks; that it is rank ",
                                   run.rank(guessed), " is a guess"));
    }
    for (size_t i = 0; i < members.size(); ++i) {
      ASSIGN_OR_RETURN(const CollectiveLog log,
                       ShownLog(run, i, options.durations_suffice, &notes));
      RETURN_IF_ERROR(write(members[i], CollectiveLogToKineto(log), ""));
    }
  }
  return notes;
}

// A log may begin with lines that are no records: cut off, or of the program.
bool NcclLogSource::Detect(const FileHead& head) const {
  constexpr int kLinesLookedAt = 100;
  absl::string_view text = head.text();
  for (int line = 0; line < kLinesLookedAt && !text.empty(); ++line) {
    const absl::string_view row = text.substr(0, text.find('\n'));
    if (IsRecord(row)) return true;
    text.remove_prefix(std::min(text.size(), row.size() + 1));
  }
  return false;
}

absl::StatusOr<std::vector<std::string>> NcclLogSource::Convert(size_t files, OpenFunction open,
                                                                const ConversionOptions& options,
                                                                WriteFunction write) const {
  std::vector<InspectorLog> logs;
  for (size_t i = 0; i < files; ++i) {
    ASSIGN_OR_RETURN(const InputFile file, open(i));
    ASSIGN_OR_RETURN(InspectorLog log, ParseInspectorLog(file.bytes(), file.path()));
    // The name tells hosts apart that call themselves alike, as containers do.
    const std::string host = HostOfLog(file.path());
    if (!host.empty()) log.hostname = host;
    logs.push_back(std::move(log));
  }
  return InspectorToKineto(logs, options, write);
}

}  // namespace meridian
