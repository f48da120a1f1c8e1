#include "xla_profiler/inspector/inspector_logs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/trace_kind/trace_kind.h"

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
// Between operations whose times are not known.
constexpr int64_t kPauseUs = 10;

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

void ReadTimes(const JsonValue& trace, absl::string_view prefix, InspectorOp* op) {
  op->launched_us = UnixTime(trace.Find(absl::StrCat(prefix, "_start_ts")));
  std::optional<int64_t> first_us, last_us;
  JsonCutter cutter(trace.Find("kernel_events").text());
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const JsonValue channel(cutter.CutValue());
    const std::optional<int64_t> start_us = UnixTime(channel.Find("kernel_start_ts"));
    std::optional<int64_t> end_us = UnixTime(channel.Find("kernel_record_ts"));
    if (!end_us.has_value()) end_us = UnixTime(channel.Find("kernel_stop_ts"));
    if (start_us.has_value()) first_us = std::min(*start_us, first_us.value_or(*start_us));
    if (end_us.has_value()) last_us = std::max(*end_us, last_us.value_or(*end_us));
  }
  if (first_us.has_value()) op->ended_us = *first_us + op->took_us;
  if (last_us.has_value()) op->ended_us = std::min(*last_us, op->ended_us.value_or(*last_us));
}

// What is equal on all ranks of a collective: communicator, kind and number.
using OpKey = std::tuple<std::string, std::string, int64_t>;

OpKey KeyOf(const InspectorOp& op) { return {op.communicator, op.name, op.number}; }

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
                                  const Writer& writer) {
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
    const bool is_word = std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_';
    });
    if (is_word && !word.empty()) absl::StrAppend(&op.protocol, "_", word);
  }
  ReadTimes(perf.Find("event_trace_ts"), prefix, &op);
  return op;
}

// What PyTorch calls an operation, and what one rank puts in and gets out.
struct KinetoCall {
  absl::string_view name;
  int64_t in_bytes = 0;
  int64_t out_bytes = 0;
};

// Nullopt for kinds that are not known, and for more bytes than there are.
std::optional<KinetoCall> CallOf(const InspectorOp& op) {
  int64_t all = 0;
  if (__builtin_mul_overflow(op.bytes, op.ranks, &all)) return std::nullopt;
  if (op.name == "AllReduce") return KinetoCall{"allreduce", op.bytes, op.bytes};
  if (op.name == "AllGather") return KinetoCall{"_allgather_base", op.bytes, all};
  if (op.name == "ReduceScatter") return KinetoCall{"_reduce_scatter_base", all, op.bytes};
  if (op.name == "Broadcast") return KinetoCall{"broadcast", op.bytes, op.bytes};
  if (op.name == "Reduce") return KinetoCall{"reduce", op.bytes, op.bytes};
  if (op.name == "Send") return KinetoCall{"send", op.bytes, op.bytes};
  if (op.name == "Recv") return KinetoCall{"recv", op.bytes, op.bytes};
  return std::nullopt;
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
          return absl::InvalidArgumentError(absl::StrCat(path, ": the communicator ", communicator,
                                                         " has ", op.ranks, " ranks here and ",
                                                         size, " before"));
        }
        if (rank != op.rank) {
          return absl::InvalidArgumentError(absl::StrCat(
              path, ": one process has the ranks ", rank, " and ", op.rank, " of the communicator ",
              communicator, "; only jobs with one process per GPU can be told"));
        }
        return absl::InvalidArgumentError(
            absl::StrCat(Printable(run.logs_[other]->path), " and ", path, " are both of rank ",
                         op.rank, " of the communicator ", communicator, "; is it one log twice?"));
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

  // Gives operations times that nobody noted: all ranks of one end together, one operation comes
  // after the other.
  absl::StatusOr<std::map<OpKey, int64_t>> MadeUpEnds() const {
    struct Span {
      int64_t dumped_us = std::numeric_limits<int64_t>::max();
      int64_t took_us = 0;
    };
    std::map<OpKey, Span> spans;
    for (const InspectorLog* log : logs_) {
      for (const InspectorOp& op : log->ops) {
        Span& span = spans[KeyOf(op)];
        span.dumped_us = std::min(span.dumped_us, op.dumped_us);
        span.took_us = std::max(span.took_us, op.took_us);
      }
    }
    std::vector<std::pair<int64_t, const OpKey*>> order;
    for (const auto& [key, span] : spans) order.push_back({span.dumped_us, &key});
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::map<OpKey, int64_t> ends_us;
    int64_t now_us = kLeastUnixUs;
    for (const auto& [dumped_us, key] : order) {
      now_us += spans[*key].took_us + kPauseUs;
      if (now_us > kMaxUnixUs) {
        return absl::InvalidArgumentError(absl::StrCat(
            Printable(logs_[0]->path), ": operations take longer in sum than can be counted"));
      }
      ends_us[*key] = now_us;
    }
    return ends_us;
  }

 private:
  std::vector<const InspectorLog*> logs_;
  std::map<std::string, int64_t> sizes_;
  // The rank of each log.
  std::vector<int64_t> ranks_;
  std::vector<size_t> guessed_;
  // The ranks of a communicator, by their numbers in it.
  std::map<std::string, std::map<int64_t, int64_t>> members_;
  int64_t world_size_ = 0;
};

// Returns the positions of logs that share communicators, directly or through others, together.
std::vector<std::vector<size_t>> FindRuns(const std::vector<InspectorLog>& logs) {
  std::vector<size_t> parent(logs.size());
  std::iota(parent.begin(), parent.end(), 0);
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

// An operation with the time at which it is taken to have ended.
struct TimedOp {
  const InspectorOp* op;
  KinetoCall call;
  int64_t start_us;
  int64_t end_us;
};

void WriteArgs(const InspectorRun& run, const TimedOp& timed, int64_t correlation, int64_t stream,
               JsonWriter* json) {
  const InspectorOp& op = *timed.op;
  json->BeginObject();
  json->Member("device", 0);
  json->Member("stream", stream);
  json->Member("correlation", correlation);
  json->Member("External id", correlation);
  json->Member("Collective name", timed.call.name);
  json->Member("In msg nelems", timed.call.in_bytes);
  json->Member("Out msg nelems", timed.call.out_bytes);
  json->Member("Group size", op.ranks);
  json->Member("dtype", "Byte");
  json->Member("Process Group Name", op.communicator);
  if (op.peer.has_value()) {
    const std::optional<int64_t> peer = run.MemberOf(op.communicator, *op.peer);
    if (peer.has_value()) json->Member(op.name == "Send" ? "Dst Rank" : "Src Rank", *peer);
  } else {
    ContentHash hash;
    hash.AddText(op.communicator);
    hash.AddText(op.name);
    hash.AddNumber(static_cast<uint64_t>(op.number));
    // Positive, and never 0, which stands for none.
    json->Member("Comms Id", (absl::Uint128Low64(hash.value()) >> 1) | 1);
  }
  json->EndObject();
}

std::string WriteKineto(const InspectorRun& run, size_t log, const std::vector<TimedOp>& ops) {
  int64_t base_us = 0;
  if (!ops.empty()) {
    base_us = ops[0].start_us;
    for (const TimedOp& op : ops) {
      base_us = std::min(base_us, std::min(op.start_us, op.op->launched_us.value_or(op.start_us)));
    }
  }
  std::map<std::string, int64_t> stream_of;
  for (const TimedOp& op : ops) stream_of.insert({op.op->communicator, 0});
  int64_t next_stream = 1;
  for (auto& [communicator, stream] : stream_of) stream = next_stream++;
  const int64_t pid = run.logs()[log]->pid;

  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  json.Member("schemaVersion", 1);
  json.Key("distributedInfo");
  json.BeginObject();
  json.Member("backend", "nccl");
  json.Member("rank", run.rank(log));
  json.Member("world_size", run.world_size());
  json.Key("pg_config");
  json.BeginArray();
  for (const auto& [communicator, ranks] : run.Communicators()) {
    json.BeginObject();
    json.Member("pg_name", communicator);
    json.Key("ranks");
    json.List(ranks);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  if (!run.logs()[log]->hostname.empty()) json.Member(kHostNameKey, run.logs()[log]->hostname);
  json.Member("baseTimeNanoseconds", base_us * kNsPerUs);
  json.Key("traceEvents");
  json.BeginArray(JsonLayout::kLines);
  const auto event = [&](absl::string_view category, absl::string_view name, int64_t process,
                         int64_t thread, int64_t start_us, int64_t took_us) {
    json.BeginObject();
    json.Member("ph", "X");
    json.Member("cat", category);
    json.Member("name", name);
    json.Member("pid", process);
    json.Member("tid", thread);
    json.Member("ts", start_us - base_us);
    json.Member("dur", took_us);
    json.Key("args");
  };
  int64_t correlation = 0;
  for (const TimedOp& op : ops) {
    ++correlation;
    const int64_t stream = stream_of[op.op->communicator];
    // The host notes a launch right after it, when the kernel may have begun.
    const int64_t launched_us = std::min(op.op->launched_us.value_or(op.start_us), op.start_us);
    event("cuda_runtime", "cudaLaunchKernel", pid, pid, launched_us, 0);
    json.BeginObject();
    json.Member("correlation", correlation);
    json.Member("External id", correlation);
    json.EndObject();
    json.EndObject();
    const bool is_message = op.op->peer.has_value();
    event("kernel",
          is_message ? std::string("ncclDevKernel_SendRecv")
                     : absl::StrCat("ncclDevKernel_", op.op->name, op.op->protocol),
          0, stream, op.start_us, op.end_us - op.start_us);
    WriteArgs(run, op, correlation, stream, &json);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return text;
}

// Returns the operations that can be shown, in order of their starts. Ends that were made up count
// in place of the log's, if there are any.
absl::StatusOr<std::vector<TimedOp>> TimeOps(const InspectorLog& log,
                                             const std::map<OpKey, int64_t>& made_up_ends_us,
                                             std::vector<std::string>* notes) {
  const bool make_up_times = !made_up_ends_us.empty();
  std::vector<TimedOp> timed;
  int64_t without_time = 0;
  std::map<std::string, int64_t> unknown;
  for (const InspectorOp& op : log.ops) {
    const std::optional<KinetoCall> call = CallOf(op);
    if (!call.has_value()) {
      ++unknown[op.name];
      continue;
    }
    std::optional<int64_t> end_us = op.ended_us;
    // Ends of messages are not told which belong together by their numbers.
    if (make_up_times) {
      end_us = op.peer.has_value() ? std::nullopt
                                   : std::optional<int64_t>(made_up_ends_us.at(KeyOf(op)));
    }
    if (!end_us.has_value()) {
      ++without_time;
      continue;
    }
    timed.push_back({&op, *call, *end_us - op.took_us, *end_us});
  }
  if (!make_up_times && timed.empty() && without_time > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(log.path),
                     ": says how long operations took, not when; record with "
                     "NCCL_INSPECTOR_DUMP_VERBOSE=1 (without, astra_calibrate takes it)"));
  }
  if (timed.empty() && !unknown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(log.path), ": holds no operation of a known kind; the first is '",
                     Printable(unknown.begin()->first), "'"));
  }
  if (without_time > 0) {
    notes->push_back(absl::StrCat(
        Printable(log.path), ": ", without_time,
        make_up_times ? " messages were left out: without a common clock it can not be told which "
                        "belong together (combine aligns the logs)"
                      : " operations were left out: it is not known when they ran"));
  }
  for (const auto& [name, count] : unknown) {
    notes->push_back(absl::StrCat(Printable(log.path), ": ", count, " operations of kind '",
                                  Printable(name), "' were left out"));
  }
  std::stable_sort(timed.begin(), timed.end(), [](const TimedOp& a, const TimedOp& b) {
    return std::make_pair(a.start_us, a.op->number) < std::make_pair(b.start_us, b.op->number);
  });
  return timed;
}

// The bytes of another region, which must outlive this one.
class RegionView : public MappedRegion {
 public:
  explicit RegionView(absl::string_view text) : text_(text) {}

  absl::string_view bytes() const override { return text_; }

 private:
  absl::string_view text_;
};

// Passes all calls on, except for reading some files.
class OverlaidFileSystem : public FileSystem {
 public:
  OverlaidFileSystem(FileSystem& base, std::map<std::string, std::unique_ptr<MappedRegion>> regions)
      : base_(base), regions_(std::move(regions)) {}

  absl::StatusOr<std::unique_ptr<MappedRegion>> Map(const std::string& path) override {
    const auto it = regions_.find(path);
    if (it == regions_.end()) return base_.Map(path);
    return std::make_unique<RegionView>(it->second->bytes());
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    return base_.CreateFile(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateTemporary(
      const std::string& directory) override {
    return base_.CreateTemporary(directory);
  }
  absl::StatusOr<std::unique_ptr<MappedRegion>> MapTemporary(const WritableFile& file) override {
    return base_.MapTemporary(file);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return base_.Rename(from, to);
  }
  absl::Status Delete(const std::string& path) override { return base_.Delete(path); }
  absl::Status CreateDirectories(const std::string& path) override {
    return base_.CreateDirectories(path);
  }
  absl::Status SyncDirectory(const std::string& path) override { return base_.SyncDirectory(path); }
  absl::Status SyncFileSystem(const std::string& directory) override {
    return base_.SyncFileSystem(directory);
  }
  absl::StatusOr<FileKind> Kind(const std::string& path) override { return base_.Kind(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    return base_.List(directory);
  }
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) override {
    return base_.Glob(pattern);
  }

 private:
  FileSystem& base_;
  const std::map<std::string, std::unique_ptr<MappedRegion>> regions_;
};

}  // namespace

absl::StatusOr<InspectorLog> ParseInspectorLog(absl::string_view text, const std::string& path) {
  InspectorLog log;
  log.path = path;
  Writer writer;
  // How many more lines the last header counts for, beside its own.
  int64_t inheriting = 0;
  std::set<std::pair<OpKey, int64_t>> seen;
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
      std::optional<InspectorOp> op = ReadOp(perf, prefix, writer);
      if (!op.has_value()) continue;
      is_read = true;
      // It may have been written once before.
      if (!op->peer.has_value() && !seen.insert({KeyOf(*op), op->rank}).second) continue;
      log.ops.push_back(*std::move(op));
    }
    if (!is_read) {
      ++log.unread_lines;
      inheriting = 0;
    }
  }
  if (log.ops.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(Printable(path),
                                                   ": holds no operation of NCCL Inspector (",
                                                   log.unread_lines, " lines could not be read)"));
  }
  return log;
}

absl::StatusOr<std::vector<std::string>> InspectorToKineto(
    const std::vector<InspectorLog>& logs, InspectorTimes times,
    absl::FunctionRef<absl::Status(size_t log, const std::string& trace)> write) {
  std::vector<std::string> notes;
  for (const InspectorLog& log : logs) {
    if (log.unread_lines > 0) {
      notes.push_back(absl::StrCat(Printable(log.path), ": ", log.unread_lines,
                                   " lines that are no whole records were left out"));
    }
    if (log.dropped > 0) {
      notes.push_back(absl::StrCat(Printable(log.path), ": NCCL Inspector dropped ", log.dropped,
                                   " operations"));
    }
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
    std::map<OpKey, int64_t> made_up_ends_us;
    if (times == InspectorTimes::kDurationsSuffice) {
      ASSIGN_OR_RETURN(made_up_ends_us, run.MadeUpEnds());
    }
    for (size_t i = 0; i < members.size(); ++i) {
      ASSIGN_OR_RETURN(const std::vector<TimedOp> ops,
                       TimeOps(logs[members[i]], made_up_ends_us, &notes));
      RETURN_IF_ERROR(write(members[i], WriteKineto(run, i, ops)));
    }
  }
  return notes;
}

absl::StatusOr<std::shared_ptr<FileSystem>> InspectorLogsAsKineto(
    FileSystem& base, const std::vector<std::string>& paths, const InputFileOptions& options,
    InspectorTimes times, std::vector<std::string>* notes) {
  std::vector<InspectorLog> logs;
  for (const std::string& path : paths) {
    // What can not be read is for its reader to refuse.
    const absl::StatusOr<TraceKind> kind = TellTraceKind(base, path);
    if (!kind.ok() || *kind != TraceKind::kInspector) continue;
    ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(base, path, options));
    ASSIGN_OR_RETURN(InspectorLog log, ParseInspectorLog(file.bytes(), path));
    logs.push_back(std::move(log));
  }
  // The base is not this object's to delete.
  if (logs.empty()) return std::shared_ptr<FileSystem>(&base, [](FileSystem*) {});
  std::map<std::string, std::unique_ptr<MappedRegion>> regions;
  const auto write = [&](size_t log, const std::string& trace) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                     base.CreateTemporary(options.temporary_directory));
    RETURN_IF_ERROR(file->Append(trace));
    ASSIGN_OR_RETURN(regions[logs[log].path], base.MapTemporary(*file));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const std::vector<std::string> of_logs, InspectorToKineto(logs, times, write));
  notes->insert(notes->end(), of_logs.begin(), of_logs.end());
  return std::make_shared<OverlaidFileSystem>(base, std::move(regions));
}

}  // namespace meridian
