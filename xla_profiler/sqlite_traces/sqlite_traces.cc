#include "xla_profiler/sqlite_traces/sqlite_traces.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/strings/substitute.h"
#include "re2/re2.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/hlo/collective_kind.h"
#include "xla_profiler/kineto/communication_calls.h"
#include "xla_profiler/sources/collective_log.h"
#include "xla_profiler/sqlite_traces/nsys_spans.h"
#include "xla_profiler/sqlite_traces/rocpd_spans.h"
#include "xla_profiler/sqlite_traces/sqlite_file.h"
#include "xla_profiler/trace_json/trace_json_writer.h"
#include "xla_profiler/xplane/node_ids.h"

namespace meridian {
namespace {

constexpr int64_t kMaxSpanNs = int64_t{1} << 60;
constexpr int64_t kMaxGpuRanks = int64_t{1} << 20;
constexpr int64_t kMaxMessageBytes = int64_t{1} << 42;
// Longer names are cut, since all rows may have the name of one.
constexpr size_t kMaxNameBytes = 512;
// No host runs more.
constexpr size_t kMaxProcesses = 256;
// In front of a payload stand its domain, its schema, its size and where it begins.
constexpr size_t kPayloadHeaderBytes = 32;

struct GpuSpan {
  // As Kineto names them: "kernel", "cuda_runtime", ...
  absl::string_view category;
  absl::string_view name;
  bool is_device = false;
  // Device and stream, or process and thread.
  int64_t process = 0;
  int64_t line = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // 0 where there is none.
  int64_t correlation = 0;
  int64_t bytes = 0;
  int64_t graph_node = 0;
};

// The SQL that makes the same of all schemas.
struct Schema {
  // The table without which there is nothing to read.
  absl::string_view kernels;
  // The columns of the tables of spans, $0 in the query for these.
  absl::string_view columns;
  // Selects the members of GpuSpan; then the process, in the last 24 bits of a number; what NCCL
  // tells in JSON; and in binary, with its domain.
  absl::string_view spans;
  // Selects names and values: Hostname, base_ns, and the environment's variables, or all as JSON.
  absl::string_view facts;
};

constexpr Schema kSchemas[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     "start, end, globalPid, globalTid, deviceId, streamId, correlationId, bytes, graphNodeId, "
     "demangledName, nameId, textId, text, srcKind, dstKind, memKind, eventType, jsonText, "
     "binaryData, domainId",
     kNsysSpans,
     // Times of the years 2001 to 2223; nothing else is one of a session.
     R"(SELECT name, value FROM {TARGET_INFO_SYSTEM_ENV: name, value} UNION ALL
        SELECT 'base_ns', CAST(utcEpochNs AS TEXT)
        FROM {TARGET_INFO_SESSION_START_TIME: utcEpochNs}
        WHERE utcEpochNs BETWEEN 1000000000000000000 AND 8000000000000000000)"},
    {"rocpd_kernel_dispatch",
     "start, end, start_id, end_id, track_id, agent_id, src_agent_id, dst_agent_id, stream_id, "
     "tid, size, "
     "kernel_id, name_id, event_id",
     kRocpdSpans,
     R"(SELECT 'Hostname', hostname FROM {rocpd_info_node: hostname} UNION ALL
        SELECT 'environment', environment FROM {rocpd_info_process: environment})"},
};

// Where a binary payload has NCCL's values: offset and width in bytes by the value's name, by
// domain and schema.
using PayloadSchemas =
    std::map<std::pair<int64_t, int64_t>, std::map<std::string, std::pair<int64_t, int64_t>>>;

absl::Status ReadPayloadSchemas(SqliteFile& file, PayloadSchemas* schemas) {
  constexpr absl::string_view kSelect =
      R"(SELECT domainId, schemaId, name, offset,
                CASE WHEN name IN ('NCCL communicator ID', 'Message size [bytes]')
                     THEN 8 ELSE 4 END
         FROM {NVTX_PAYLOAD_SCHEMA_ENTRIES: domainId, schemaId, name, offset}
         WHERE name IN ('NCCL communicator ID', 'Message size [bytes]', 'No. of ranks', 'Rank',
                        'Peer rank'))";
  return file.Query(kSelect, "", [&](const SqliteRow& row) {
    (*schemas)[{row.Int(0), row.Int(1)}][std::string(row.Text(2))] = {row.Int(3), row.Int(4)};
  });
}

// Returns a number of so many bytes, little-endian; 0 when it is not there.
uint64_t NumberAt(absl::string_view bytes, size_t at, size_t width) {
  uint64_t number = 0;
  if (at > bytes.size() || width > bytes.size() - at) return 0;
  for (size_t i = width; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

// Returns the values of a binary payload with their names: "Rank: 3, ".
std::string PayloadText(const PayloadSchemas& schemas, int64_t domain, absl::string_view bytes) {
  std::string text;
  const auto schema = schemas.find({domain, NumberAt(bytes, 8, 8)});
  if (bytes.size() <= kPayloadHeaderBytes || schema == schemas.end()) return text;
  for (const auto& [name, place] : schema->second) {
    const auto& [offset, width] = place;
    absl::StrAppend(&text, name, ": ", NumberAt(bytes, kPayloadHeaderBytes + offset, width), ", ");
  }
  return text;
}

// Returns the number behind a key: {"key": 7, or {AllReduce: key: 7, as RCCL writes it. Nullopt for
// one beyond `most`; negative ones count from 2^64 down.
std::optional<int64_t> NumberBehind(absl::string_view text, absl::string_view key, uint64_t most) {
  const size_t at = text.find(key);
  if (at == absl::string_view::npos) return std::nullopt;
  text.remove_prefix(std::min(text.size(), text.find_first_not_of("\": ", at + key.size())));
  text = text.substr(0, text.find_first_not_of("-0123456789"));
  uint64_t number = 0;
  int64_t negative = 0;
  const bool is_number = absl::SimpleAtoi(text, &number) || absl::SimpleAtoi(text, &negative);
  number += static_cast<uint64_t>(negative);
  return is_number && number <= most ? std::optional<int64_t>(number) : std::nullopt;
}

struct NcclCall {
  // In lower case, without "nccl".
  std::string name;
  // As a batch.
  GpuSpan span;
  std::optional<int64_t> communicator, bytes;
  // The other end's rank in the communicator.
  std::optional<int64_t> peer;
};

// A process's rank in a communicator, and the communicator's size; 0 when no annotation tells.
struct Place {
  int64_t rank = 0;
  int64_t size = 0;

  bool operator==(const Place& other) const { return rank == other.rank && size == other.size; }
};

// What a process did, all of it as events; its rank is kUnknownId until it is known.
struct GpuProcess : CollectiveLog {
  std::string path;
  bool has_device_work = false;
  // Whether a call of the runtime waits for work, or lets a stream wait.
  bool has_waits = false;
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  // Spans whose times cannot be.
  int64_t left_out = 0;
  std::vector<NcclCall> calls;
  std::map<int64_t, Place> communicators;
  // Thread and name of the ranges that are steps, without their number.
  std::optional<std::pair<int64_t, std::string>> steps;

  GpuProcess() { rank = kUnknownId; }

  // `payload` is what NCCL tells of itself: "Message size [bytes]": 4096, as JSON or without
  // quotes.
  void Add(const GpuSpan& span, absl::string_view payload) {
    if (span.start_ns < 0 || span.end_ns < span.start_ns || span.end_ns > kMaxSpanNs) {
      ++left_out;
      return;
    }
    Write(span);
    first_ns = std::min(first_ns, span.start_ns);
    has_device_work |= span.is_device;
    has_waits |=
        absl::StrContains(span.name, "Synchronize") || absl::StrContains(span.name, "WaitEvent");
    if (span.category != "user_annotation") return;
    WriteStep(span);
    AddCall(span, payload);
  }

  void AddCall(const GpuSpan& span, absl::string_view payload) {
    // RCCL tells it in the name: {AllReduce: Message size [bytes]: 4096}.
    const std::vector<absl::string_view> parts = absl::StrSplit(span.name, absl::MaxSplits(':', 1));
    const std::string text = absl::StrCat(parts.size() > 1 ? parts[1] : "", payload);
    const absl::string_view name = absl::StripPrefix(absl::StripPrefix(parts[0], "{"), "nccl");
    NcclCall call;
    // RCCL may also name the function that does the work.
    call.name = absl::AsciiStrToLower(absl::StripSuffix(name, "_impl"));
    call.span = span;
    call.span.category = "user_annotation";
    call.span.name = "nccl:coalesced";
    call.communicator = NumberBehind(text, "NCCL communicator ID", UINT64_MAX);
    call.bytes = NumberBehind(text, "Message size [bytes]", kMaxMessageBytes);
    call.peer = NumberBehind(text, "Peer rank", kMaxGpuRanks);
    const bool is_group = call.name == "groupstart" || call.name == "groupend";
    if (!is_group && !call.communicator.has_value()) return;
    if (!is_group) {
      Place& place = communicators[*call.communicator];
      const int64_t size = NumberBehind(text, "No. of ranks", kMaxGpuRanks).value_or(0);
      const int64_t its_rank = NumberBehind(text, "Rank", kMaxGpuRanks).value_or(size);
      if (its_rank < size) place = {its_rank, size};
    }
    calls.push_back(std::move(call));
  }

  void Write(const GpuSpan& span, TraceJsonArgs args = {}) {
    if (span.correlation != 0) args.AddInt64("correlation", span.correlation);
    if (span.is_device) args.AddInt64("device", span.process);
    if (span.is_device) args.AddInt64("stream", span.line);
    if (span.bytes != 0) args.AddInt64("bytes", span.bytes);
    if (span.graph_node != 0) args.AddInt64("graph node id", span.graph_node);
    const int64_t start_ns = span.start_ns + kBaseBeforeFirstNs;
    const int64_t took_ns = span.end_ns - span.start_ns;
    absl::StrAppend(&events, events.empty() ? "" : ",\n", R"({"ph":"X","cat":")", span.category,
                    R"(","name":)");
    AppendJsonString(span.name, &events);
    absl::StrAppendFormat(&events, R"(,"pid":%d,"tid":%d,"ts":%d.%03d,"dur":%d.%03d,"args":{%s}})",
                          span.process, span.line, start_ns / 1000, start_ns % 1000, took_ns / 1000,
                          took_ns % 1000, args.members());
  }

  void WriteStep(GpuSpan span) {
    static const auto& pattern =
        *new RE2("(?is)(.*(?:step|iteration|iter)[ _#:=/-]*)([0-9]+)", RE2::Latin1);
    std::pair<int64_t, std::string> family(span.line, "");
    int64_t number = 0;
    if (!RE2::FullMatch(std::string(span.name), pattern, &family.second, &number)) return;
    if (!steps.has_value()) steps = family;
    if (steps != family) return;
    const std::string name = absl::StrCat("ProfilerStep#", number);
    if (span.name == name) return;
    span.name = name;
    Write(span);
  }
};

using Facts = std::map<std::string, std::string>;

// Sets rank and size by what torchrun, Open MPI, MPICH and srun set.
void SetRank(Facts& facts, GpuProcess* process) {
  const JsonValue environment(facts["environment"]);
  const auto find = [&](std::initializer_list<const char*> names) -> std::optional<int64_t> {
    for (const char* name : names) {
      int64_t number = 0;
      const std::string value = environment.Find(name).AsString().value_or(facts[name]);
      if (absl::SimpleAtoi(value, &number) && number >= 0 && number <= kMaxGpuRanks) return number;
    }
    return std::nullopt;
  };
  process->rank =
      find({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}).value_or(kUnknownId);
  const int64_t size =
      find({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}).value_or(0);
  if (process->rank != kUnknownId && process->rank < size) process->world_size = size;
}

// Adds the processes of the tables with that suffix.
absl::Status ReadTables(SqliteFile& file, const Schema& schema, absl::string_view suffix,
                        std::vector<GpuProcess>* processes) {
  PayloadSchemas payloads;
  RETURN_IF_ERROR(ReadPayloadSchemas(file, &payloads));
  std::map<int64_t, GpuProcess> by_number;
  const auto add = [&](const SqliteRow& row) {
    GpuSpan span{row.Text(0),    row.Text(1),    row.Int(2) != 0, row.Int(3), row.Int(4),
                 row.Int(5, -1), row.Int(6, -1), row.Int(7),      row.Int(8), row.Int(9)};
    if (by_number.size() > kMaxProcesses) return;
    GpuProcess& process = by_number[row.Int(10)];
    // cudaLaunchKernel_v7000
    if (span.category == "cuda_runtime") span.name = span.name.substr(0, span.name.rfind("_v"));
    if (span.category == "user_annotation") span.correlation = 0;
    // Versions of rocpd differ in which of the two is what the program said.
    std::string message;
    if (absl::StartsWith(span.name, "roctx")) {
      message = JsonValue(row.Text(11)).Find("message").AsString().value_or("");
      if (!message.empty()) span.name = message;
    }
    span.name = span.name.substr(0, kMaxNameBytes);
    process.Add(span, absl::StrCat(row.Text(11), PayloadText(payloads, row.Int(13), row.Text(12))));
  };
  RETURN_IF_ERROR(file.Query(absl::Substitute(schema.spans, schema.columns), suffix, add));
  if (processes->size() + by_number.size() > kMaxProcesses) {
    return InvalidArgument(Printable(file.path()), ": has events of more than ", kMaxProcesses,
                           " processes; record fewer in one file");
  }
  Facts facts;
  RETURN_IF_ERROR(file.Query(schema.facts, suffix, [&](const SqliteRow& row) {
    facts[std::string(row.Text(0))] = std::string(row.Text(1));
  }));
  int64_t base_ns = 0;
  const bool has_base = absl::SimpleAtoi(facts["base_ns"], &base_ns);
  const size_t first = processes->size();
  for (auto& [number, process] : by_number) {
    if (!process.has_device_work) continue;
    process.path = file.path();
    process.pid = number & 0xffffff;
    process.hostname = facts["Hostname"];
    if (has_base) process.base_ns = std::max(base_ns, kBaseBeforeFirstNs) - kBaseBeforeFirstNs;
    processes->push_back(std::move(process));
  }
  // nsys notes its own environment, which is that of a process only if there is but one.
  if (processes->size() == first + 1) SetRank(facts, &processes->back());
  return absl::OkStatus();
}

// Returns the processes that used a GPU.
absl::StatusOr<std::vector<GpuProcess>> ReadProcesses(SqliteFile& file) {
  std::vector<GpuProcess> processes;
  for (const Schema& schema : kSchemas) {
    for (const auto& [table, columns] : file.tables()) {
      absl::string_view suffix = table;
      if (!absl::ConsumePrefix(&suffix, schema.kernels)) continue;
      RETURN_IF_ERROR(ReadTables(file, schema, suffix, &processes));
    }
  }
  if (processes.empty()) {
    return InvalidArgument(Printable(file.path()), ": has no work of a GPU; record with nsys ",
                           "profile --trace=cuda,nvtx, or with rocprofv3 --runtime-trace");
  }
  return processes;
}

// The processes of a run.
class GpuJob {
 public:
  void Add(GpuProcess process) {
    int64_t& first_ns = first_ns_.insert({process.hostname, process.first_ns}).first->second;
    first_ns = std::min(first_ns, process.first_ns);
    process.events = std::string();
    process.calls = {};
    members_.push_back(std::move(process));
  }

  // To be called once all are there.
  void AssignRanks(std::vector<std::string>* notes) {
    size_t timeless = 0, without_waits = 0;
    std::vector<GpuProcess*> open;
    for (GpuProcess& member : members_) {
      timeless += !member.base_ns.has_value();
      without_waits += !member.has_waits;
      if (member.rank == kUnknownId) open.push_back(&member);
      if (member.rank != kUnknownId) taken_.insert(member.rank);
      if (member.left_out == 0) continue;
      notes->push_back(absl::StrCat(Printable(member.path), ": ", member.left_out,
                                    " events with impossible times were left out"));
    }
    if (!open.empty()) {
      notes->push_back(absl::StrCat(Printable(open[0]->path), ": the rank of ", open.size(), " of ",
                                    members_.size(), " processes is not told, e.g. here; taken is ",
                                    AssignOpen(open)));
    }
    const std::string of_all = absl::StrCat(" of ", members_.size(), " processes have no ");
    if (timeless > 0) {
      notes->push_back(
          absl::StrCat(timeless, of_all, "time of day; collectives alone set their clocks"));
    }
    if (without_waits > 0) {
      notes->push_back(absl::StrCat(
          "warning: ", without_waits, of_all, "call that waits (cudaStreamSynchronize, ",
          "cudaStreamWaitEvent, ...): what hosts and streams waited for is not known, and so how "
          "much communication is exposed; record all calls of the runtime"));
    }
    AddGroups(notes);
  }

  // Returns the trace of the process that was added at that position.
  absl::StatusOr<std::string> ToKineto(size_t position, GpuProcess process) const {
    const auto identity = [](const GpuProcess& of) {
      return std::tie(of.path, of.pid, of.hostname, of.communicators);
    };
    if (position >= size() || identity(members_[position]) != identity(process)) return Changed();
    WriteCalls(&process);
    const GpuProcess& member = members_[position];
    process.rank = member.rank;
    process.world_size = member.world_size;
    process.base_ns = process.base_ns.value_or(kMadeUpTimesNs - first_ns_.at(process.hostname) -
                                               kBaseBeforeFirstNs);
    for (const auto& [id, group] : groups_) {
      if (member.communicators.count(id) == 0 || !group.is_complete()) continue;
      process.groups.push_back(
          {absl::StrCat(absl::Hex(id)), {group.ranks.begin(), group.ranks.end()}});
    }
    return CollectiveLogToKineto(process);
  }

  size_t size() const { return members_.size(); }

  absl::Status Changed() const {
    return InvalidArgument(
        Printable(members_[0].path),
        ", or a file after it, changed while it was read; wait until it is complete");
  }

 private:
  struct Group {
    int64_t size = 0;
    // The job's ranks: all, and by those in the communicator as far as these are known.
    std::set<int64_t> ranks;
    std::map<int64_t, int64_t> by_place;

    bool is_complete() const { return static_cast<int64_t>(ranks.size()) == size; }
  };

  // Gives the processes these ranks, if there is one for each and no two would have the same.
  bool Take(const std::vector<GpuProcess*>& open, const std::vector<int64_t>& ranks) const {
    std::set<int64_t> taken = taken_;
    taken.insert(ranks.begin(), ranks.end());
    if (ranks.size() != open.size() || taken.size() != taken_.size() + open.size()) return false;
    for (size_t i = 0; i < open.size(); ++i) open[i]->rank = ranks[i];
    return true;
  }

  // Gives ranks to the processes that do not tell theirs, and returns how.
  std::string AssignOpen(std::vector<GpuProcess*> open) const {
    absl::c_stable_sort(open, [](const GpuProcess* a, const GpuProcess* b) {
      return LastIntegerInFileName(a->path) < LastIntegerInFileName(b->path);
    });
    // The size of the largest communicator, and which it is.
    std::pair<int64_t, int64_t> world;
    std::vector<std::string> names;
    for (const GpuProcess* process : open) {
      names.push_back(process->path);
      for (const auto& [id, place] : process->communicators) {
        world = std::max(world, std::make_pair(place.size, id));
      }
    }
    std::vector<int64_t> places, free;
    for (const GpuProcess* process : open) {
      const auto place = process->communicators.find(world.second);
      const bool is_in_world = place != process->communicators.end() && place->second.size > 0;
      if (is_in_world) places.push_back(place->second.rank);
      free.push_back(free.empty() ? 0 : free.back() + 1);
      while (taken_.count(free.back()) > 0) ++free.back();
    }
    if (Take(open, places)) {
      for (GpuProcess* process : open) process->world_size = world.first;
      return absl::StrCat("that in the largest communicator, of ", world.first, " ranks");
    }
    if (Take(open, RanksInFileNames(names).value_or(places))) return "that in the file's name";
    Take(open, free);
    return "the place in the list, in the order of the numbers in names";
  }

  void AddGroups(std::vector<std::string>* notes) {
    for (const GpuProcess& member : members_) {
      for (const auto& [id, place] : member.communicators) {
        Group& group = groups_[id];
        group.size = std::max(group.size, place.size);
        group.ranks.insert(member.rank);
        if (place.size > 0) group.by_place[place.rank] = member.rank;
      }
    }
    for (auto& [id, group] : groups_) {
      if (group.size > 0) continue;
      group.size = static_cast<int64_t>(group.ranks.size());
      for (const int64_t rank : group.ranks) group.by_place[group.by_place.size()] = rank;
      notes->push_back(absl::StrCat("communicator ", absl::Hex(id),
                                    " is older than the profiles; its ranks are taken to be the ",
                                    group.size, " that use it in them"));
    }
  }

  // Returns the arguments of a call as PyTorch writes them.
  TraceJsonArgs ArgsOf(const NcclCall& call) const {
    using Kind = CollectiveKind;
    const auto& [id, group] = *groups_.find(*call.communicator);
    const Kind kind = *KindOfCall(call.name);
    // Whether a rank puts in or gets out the bytes once for every rank.
    const bool in_is_all =
        kind == Kind::kAllToAll || kind == Kind::kReduceScatter || kind == Kind::kCollectiveScatter;
    const bool out_is_all =
        kind == Kind::kAllToAll || kind == Kind::kAllGather || kind == Kind::kCollectiveGather;
    TraceJsonArgs args;
    args.AddString("Collective name", call.name);
    args.AddString("dtype", "Byte");
    args.AddInt64("In msg nelems", *call.bytes * (in_is_all ? group.size : 1));
    args.AddInt64("Out msg nelems", *call.bytes * (out_is_all ? group.size : 1));
    args.AddInt64("Group size", group.size);
    args.AddString("Process Group Name", absl::StrCat(absl::Hex(id)));
    const auto peer = group.by_place.find(call.peer.value_or(-1));
    if (peer != group.by_place.end()) {
      args.AddInt64(kind == Kind::kSend ? "Dst Rank" : "Src Rank", peer->second);
    }
    return args;
  }

  // Writes NCCL's calls, and those that launch kernels, calls outside of groups and the ends of
  // groups, as batches of the calls since the last one.
  void WriteCalls(GpuProcess* process) const {
    absl::c_stable_sort(process->calls, [](const NcclCall& a, const NcclCall& b) {
      return std::tie(a.span.line, a.span.start_ns, b.span.end_ns) <
             std::tie(b.span.line, b.span.start_ns, a.span.end_ns);
    });
    std::map<int64_t, int64_t> depth_of_thread;
    for (const NcclCall& call : process->calls) {
      int64_t& depth = depth_of_thread[call.span.line];
      if (call.name == "groupstart") ++depth;
      if (call.name == "groupend") depth = std::max<int64_t>(0, depth - 1);
      if (KindOfCall(call.name).has_value() && call.bytes.has_value()) {
        GpuSpan record = call.span;
        record.category = "cpu_op";
        record.name = "record_param_comms";
        process->Write(record, ArgsOf(call));
      }
      if (depth == 0) process->Write(call.span);
    }
  }

  // Without their events.
  std::vector<GpuProcess> members_;
  // What processes tell of their ranks.
  std::set<int64_t> taken_;
  // When the first process of a host began, by the host's clock.
  std::map<std::string, int64_t> first_ns_;
  std::map<int64_t, Group> groups_;
};

}  // namespace

bool SqliteTraceSource::Detect(const FileHead& head) const {
  static constexpr absl::string_view kMarks[] = {"CREATE TABLE StringIds", "CUPTI_ACTIVITY_KIND_",
                                                 "TARGET_INFO_", "ENUM_NSYS_", "rocpd_"};
  return absl::StartsWith(head.bytes(), absl::string_view("SQLite format 3\0", 16)) &&
         absl::c_any_of(
             kMarks, [&](absl::string_view mark) { return absl::StrContains(head.bytes(), mark); });
}

absl::StatusOr<std::vector<std::string>> SqliteTraceSource::Convert(size_t files, OpenFunction open,
                                                                    const ConversionOptions&,
                                                                    WriteFunction write) const {
  std::vector<std::string> notes;
  GpuJob job;
  for (const bool is_first : {true, false}) {
    size_t position = 0;
    for (size_t i = 0; i < files; ++i) {
      ASSIGN_OR_RETURN(const InputFile file, open(i));
      ASSIGN_OR_RETURN(const auto database, SqliteFile::Open(file.bytes(), file.path()));
      ASSIGN_OR_RETURN(std::vector<GpuProcess> processes, ReadProcesses(*database));
      const bool is_only = processes.size() == 1;
      for (GpuProcess& process : processes) {
        const std::string part = is_only ? "" : absl::StrCat("process ", process.pid);
        if (is_first) {
          job.Add(std::move(process));
        } else {
          ASSIGN_OR_RETURN(const std::string trace, job.ToKineto(position++, std::move(process)));
          RETURN_IF_ERROR(write(i, trace, part));
        }
      }
    }
    if (is_first) job.AssignRanks(&notes);
    if (!is_first && position < job.size()) return job.Changed();
  }
  return notes;
}

}  // namespace meridian
