#include "xla_profiler/flight_recorder/flight_recorder.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/flight_recorder/pickle_json.h"
#include "xla_profiler/hlo/collective_kind.h"
#include "xla_profiler/kineto/communication_calls.h"
#include "xla_profiler/xplane/node_ids.h"

namespace meridian {
namespace {

constexpr int64_t kMaxFlightBytes = int64_t{1} << 50;
constexpr int64_t kMaxFlightRank = int64_t{1} << 20;
// No collective takes longer (19 hours), and no dump is from before 2001 or after 2096.
constexpr double kMaxTookMs = 7e7;
constexpr int64_t kLeastUnixNs = 1'000'000'000'000'000'000, kMaxUnixNs = 4 * kLeastUnixNs;

std::optional<int64_t> FlightTime(const JsonValue& value) {
  const std::optional<int64_t> ns = value.AsInt64();
  return ns.value_or(0) < kLeastUnixNs || *ns > kMaxUnixNs ? std::nullopt : ns;
}

// Returns the bytes of tensors of one type; 0 when that is not known or cannot be.
int64_t FlightBytes(const JsonValue& sizes, const std::string& type) {
  double elements = 0;
  for (const JsonValue& tensor : sizes.Elements()) {
    double product = 1;
    for (const int64_t size : tensor.AsInt64Array().value_or(std::vector<int64_t>{0})) {
      product *= static_cast<double>(size);
    }
    elements += product;
  }
  const double bytes = elements * static_cast<double>(MessageBytes(1, type).value_or(0));
  return bytes >= 0 && bytes <= kMaxFlightBytes ? static_cast<int64_t>(bytes) : 0;
}

// Returns the place of the innermost call that is not PyTorch's own.
std::string PlaceOfCall(const JsonValue& frames) {
  for (const JsonValue& frame : frames.Elements()) {
    const std::string file = frame.Find("filename").AsString().value_or("");
    if (file.empty() || absl::StrContains(file, "/torch/")) continue;
    return absl::StrCat(file.substr(file.rfind('/') + 1), ":", frame.Find("line").text());
  }
  return "";
}

// The text of a dump as JSON, and what is found in it.
class FlightDumpReader {
 public:
  FlightDumpReader(const std::string& path, int64_t rank) {
    dump_.path = path;
    dump_.rank = rank;
  }

  absl::StatusOr<FlightDump> Read(absl::string_view json) {
    JsonCutter whole(json, 0, JsonChecks::kAll);
    const JsonValue object(whole.CutValue());
    if (!whole.AtEnd()) whole.Fail("text behind the dump");
    RETURN_IF_ERROR(whole.status());
    RETURN_IF_ERROR(ReadGroups(object.Find("pg_config")));
    const JsonValue entries = object.Find("entries");
    if (!absl::StartsWith(entries.text(), "[")) return InvalidArgument("entries is no list");
    int64_t position = 0;
    for (const JsonValue& row : entries.Elements()) {
      if (position == 0) dump_.is_overwritten = row.Find("record_id").AsInt64().value_or(0) > 0;
      RETURN_IF_ERROR(Annotate(ReadEntry(row), absl::StrCat("entry ", position++)));
    }
    return std::move(dump_);
  }

 private:
  absl::Status ReadGroups(const JsonValue& config) {
    const absl::string_view example = R"(; expected e.g. "ranks": "[0, 1]" with the file's rank)";
    bool is_member = false;
    JsonCutter cutter(config.text());
    cutter.Enter('{');
    for (absl::string_view key; cutter.NextMember(&key);) {
      const JsonValue value(cutter.CutValue());
      const std::string list = value.Find("ranks").AsString().value_or("");
      FlightGroup group;
      group.ranks = JsonValue(list).AsInt64Array().value_or(std::vector<int64_t>());
      std::vector<int64_t> sorted = group.ranks;
      absl::c_sort(sorted);
      if (sorted.empty() || sorted.front() < 0 || sorted.back() > kMaxFlightRank ||
          std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        return InvalidArgument("pg_config: no ranks of group '", Printable(key), "', each once",
                               example);
      }
      const std::string desc = value.Find("desc").AsString().value_or("");
      group.name = desc.empty() ? std::string(key) : absl::StrCat(key, " (", desc, ")");
      is_member |= absl::c_linear_search(group.ranks, dump_.rank);
      // Groups that were split off others share a name, but no rank.
      std::string& unique = names_[std::string(key)];
      unique = sorted[0] == 0 ? std::string(key) : absl::StrCat(key, "@", sorted[0]);
      dump_.groups[unique] = std::move(group);
    }
    if (cutter.status().ok() && is_member) return absl::OkStatus();
    return InvalidArgument("pg_config: no group with rank ", dump_.rank,
                           ", the last number in the file's name", example);
  }

  absl::Status ReadEntry(const JsonValue& row) {
    FlightEntry entry;
    const std::vector<JsonValue> group = row.Find("process_group").Elements(1);
    const auto name = names_.find(group.empty() ? "" : group[0].AsString().value_or(""));
    if (name == names_.end()) return InvalidArgument("its process_group is not in pg_config");
    entry.group = name->second;
    const std::vector<int64_t>& ranks = dump_.groups[entry.group].ranks;
    entry.group_size = static_cast<int64_t>(ranks.size());
    const std::string title = row.Find("profiling_name").AsString().value_or("");
    // "nccl:send 0->1", "nccl:recv 1<-0": the other end comes second, by its rank in the group.
    const std::vector<std::string> words =
        absl::StrSplit(title, absl::ByAnyChar(" <>-"), absl::SkipEmpty());
    if (!words.empty()) entry.name = words[0].substr(words[0].find(':') + 1);
    const bool is_message = row.Find("is_p2p").text() == "true";
    size_t peer = 0;
    if (words.size() == 3 && absl::SimpleAtoi(words[2], &peer) && peer < ranks.size()) {
      entry.peer = ranks[peer];
    }
    const std::optional<int64_t> number =
        row.Find(is_message ? "p2p_seq_id" : "collective_seq_id").AsInt64();
    const std::optional<int64_t> created_ns = FlightTime(row.Find("time_created_ns"));
    if (entry.name.empty() || number.value_or(-1) < 0 || !created_ns.has_value()) {
      return InvalidArgument(
          "no profiling_name, collective_seq_id or time_created_ns; expected a dump of PyTorch 2.5 "
          "or later");
    }
    entry.kind = KindOfCall(entry.name).value_or(CollectiveKind::kUnknown);
    entry.number = *number;
    if (!is_message) entry.execution = ExecutionNumber(entry.group, entry.name, *number);
    entry.launched_ns = entry.start_ns = *created_ns;
    entry.end_ns = FlightTime(row.Find("time_discovered_completed_ns")).value_or(0);
    const std::vector<JsonValue> types = row.Find("input_dtypes").Elements(1);
    if (!types.empty()) entry.dtype = types[0].AsString().value_or("");
    entry.in_bytes = FlightBytes(row.Find("input_sizes"), entry.dtype);
    entry.out_bytes = FlightBytes(row.Find("output_sizes"), entry.dtype);
    entry.state = row.Find("state").AsString().value_or("");
    if (entry.state != "scheduled" && entry.state != "started" && !entry.is_completed()) {
      return InvalidArgument("state '", Printable(entry.state),
                             "'; expected scheduled, started or completed");
    }
    entry.where = PlaceOfCall(row.Find("frames"));
    const double took_ms = row.Find("duration_ms").AsDouble().value_or(-1);
    if (took_ms >= 0 && took_ms <= kMaxTookMs) entry.ran_ns = static_cast<int64_t>(took_ms * 1e6);
    AddEntry(std::move(entry), is_message);
    return absl::OkStatus();
  }

  void AddEntry(FlightEntry entry, bool is_message) {
    std::vector<size_t>& batch = by_number_[{entry.group, is_message, entry.number}];
    if (is_message ? entry.peer.has_value() : batch.empty()) {
      batch.push_back(dump_.entries.size());
      dump_.entries.push_back(std::move(entry));
      return;
    }
    // A batch's other collectives count as its first; "coalesced", the last, has no bytes.
    for (const size_t i : batch) {
      FlightEntry& call = dump_.entries[i];
      call.in_bytes = std::min(*call.in_bytes + *entry.in_bytes, kMaxFlightBytes);
      call.out_bytes = std::min(*call.out_bytes + *entry.out_bytes, kMaxFlightBytes);
      call.state = entry.state;
      call.end_ns = entry.end_ns;
      // How long each of several messages took, nobody knows.
      if (!is_message || batch.size() == 1) call.ran_ns = entry.ran_ns;
    }
    // Messages of a batch end with it; no others have their number.
    if (is_message) batch.clear();
  }

  FlightDump dump_;
  // The keys of dump_.groups, by the names in pg_config.
  std::map<std::string, std::string> names_;
  // Positions of entries by group, whether they are messages, and number: several are a batch.
  std::map<std::tuple<std::string, bool, int64_t>, std::vector<size_t>> by_number_;
};

// Why calls are not shown, or not in full, with how many there are and of which ranks.
using FlightGaps = std::map<absl::string_view, std::pair<int64_t, std::set<int64_t>>>;
constexpr absl::string_view kNotTimed =
    "do not say how long they took (TORCH_NCCL_ENABLE_TIMING=1 records it): their transfers are "
    "not known";

// Returns why a call cannot be shown in full; empty when it can. Messages that `may_be_any` cannot be
// paired with those of the other end.
absl::string_view GapOf(const FlightEntry& entry, bool may_be_any) {
  if (entry.kind == CollectiveKind::kUnknown) return "are left out: their kind is not known";
  if (entry.end_ns == 0) {
    return "were not seen to end and are left out; validate_collectives --traces=... of the dumps "
           "says who is waited for";
  }
  if (entry.peer.has_value() && may_be_any) {
    return "are messages that are left out: those before them are lost in a ring buffer or left "
           "out, so that nobody knows which at the other end they belong to";
  }
  return entry.ran_ns.has_value() ? "" : kNotTimed;
}

// Returns what of the dump can be shown, and counts what cannot. Takes the ranks whose first calls
// are overwritten.
CollectiveLog LogOfDump(const FlightDump& dump, const std::set<int64_t>& overwritten,
                        bool durations_suffice, FlightGaps* gaps) {
  CollectiveLog log;
  log.rank = dump.rank;
  for (const auto& [key, group] : dump.groups) log.groups.push_back({key, group.ranks});
  // Messages are paired in order, which is lost behind one that is left out.
  std::set<std::tuple<std::string, std::string, int64_t>> lost;
  for (const FlightEntry& entry : dump.entries) {
    const int64_t peer = entry.peer.value_or(-1);
    const auto way = std::make_tuple(entry.group, entry.name, peer);
    const absl::string_view gap =
        GapOf(entry, overwritten.count(dump.rank) + overwritten.count(peer) + lost.count(way) > 0);
    if (!gap.empty()) {
      ++(*gaps)[gap].first;
      (*gaps)[gap].second.insert(dump.rank);
    }
    if (!gap.empty() && (gap != kNotTimed || durations_suffice)) {
      lost.insert(way);
      continue;
    }
    LoggedCollective shown = entry;
    shown.name.clear();
    // A dump has 0 where it does not know.
    if (*shown.in_bytes == 0) shown.in_bytes.reset();
    if (*shown.out_bytes == 0) shown.out_bytes.reset();
    shown.start_ns = std::min(entry.start_ns, entry.end_ns);
    shown.ran_ns = entry.ran_ns.value_or(0);
    log.collectives.push_back(std::move(shown));
  }
  return log;
}

}  // namespace

absl::StatusOr<FlightDump> ParseFlightDump(absl::string_view bytes, const std::string& path) {
  std::optional<int64_t> rank = RankInFileName(path);
  if (!rank.has_value()) rank = LastIntegerInFileName(path);
  if (!rank.has_value()) {
    return InvalidArgument(
        Printable(path), ": whose dump is it? Its name must have the rank, e.g. nccl_trace_rank_3");
  }
  if (bytes.empty()) {
    return InvalidArgument(Printable(path), ": the file is empty; expected a flight recorder dump");
  }
  std::string json;
  if (IsPickle(bytes)) {
    ASSIGN_OR_RETURN(json, Annotate(PickleToJson(bytes), Printable(path)));
    bytes = json;
  }
  return Annotate(FlightDumpReader(path, *rank).Read(bytes), Printable(path));
}

absl::StatusOr<std::vector<FlightDump>> ReadFlightDumps(size_t files,
                                                        TraceSource::OpenFunction open,
                                                        std::vector<std::string>* notes) {
  std::vector<FlightDump> dumps;
  std::map<int64_t, std::string> path_of;
  absl::Status first_error;
  for (size_t i = 0; i < files; ++i) {
    const absl::StatusOr<InputFile> file = open(i);
    absl::StatusOr<FlightDump> dump =
        file.ok() ? ParseFlightDump(file->bytes(), file->path()) : file.status();
    if (!dump.ok()) {
      first_error.Update(dump.status());
      notes->push_back(absl::StrCat("left out: ", dump.status().message()));
      continue;
    }
    const auto [other, is_new] = path_of.insert({dump->rank, dump->path});
    if (!is_new) {
      return InvalidArgument(Printable(other->second), " and ", Printable(dump->path),
                             " are both of rank ", dump->rank, ", by their names");
    }
    dump->file = i;
    dumps.push_back(*std::move(dump));
  }
  if (dumps.empty()) return first_error;
  return dumps;
}

// Of long dumps the head ends within the entries.
bool FlightRecorderSource::Detect(const FileHead& head) const {
  return IsPickle(head.bytes()) ||
         (head.HasKey("pg_config") && (head.HasKey("pg_status") || head.HasKey("entries"))) ||
         (head.HasKey("entries") && absl::StrContains(head.bytes(), "\"collective_seq_id\""));
}

absl::StatusOr<std::vector<std::string>> FlightRecorderSource::Convert(
    size_t files, OpenFunction open, const ConversionOptions& options, WriteFunction write) const {
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(const std::vector<FlightDump> dumps, ReadFlightDumps(files, open, &notes));
  // Of the job: a rank's dump has only the groups that it has used.
  int64_t world_size = 0;
  std::set<int64_t> overwritten;
  for (const FlightDump& dump : dumps) {
    if (dump.is_overwritten) overwritten.insert(dump.rank);
    for (const auto& [key, group] : dump.groups) {
      world_size = std::max(world_size, *absl::c_max_element(group.ranks) + 1);
    }
  }
  bool has_any = false;
  FlightGaps gaps;
  for (const FlightDump& dump : dumps) {
    CollectiveLog log = LogOfDump(dump, overwritten, options.durations_suffice, &gaps);
    log.world_size = world_size;
    if (log.collectives.empty()) continue;
    has_any = true;
    RETURN_IF_ERROR(write(dump.file, CollectiveLogToKineto(log), ""));
  }
  for (const auto& [why, calls] : gaps) {
    const auto& [count, ranks] = calls;
    notes.push_back(absl::StrCat(count, " calls of rank(s) ",
                                 RangesText({ranks.begin(), ranks.end()}), " ", why));
  }
  if (!has_any) {
    return InvalidArgument(Printable(dumps[0].path), ": ",
                           gaps.empty() ? "no calls" : notes.back());
  }
  notes.push_back(
      "flight recorder dumps say when calls were enqueued and when their ends were seen, up to 100 "
      "ms late: clocks rest on that, and so they are drawn. Transfers and waits rest on how long "
      "calls took, where that is recorded, else waits on when they were enqueued");
  return notes;
}

}  // namespace meridian
