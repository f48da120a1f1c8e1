#include "xla_profiler/kineto/kineto_collectives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/collectives/collective_collector.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/dependencies/runtime_calls.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/hlo/replica_groups.h"
#include "xla_profiler/kineto/kineto_steps.h"

namespace meridian {
namespace {

// Returns the kind of a collective by the name that PyTorch's process groups record.
std::optional<CollectiveKind> KindOfName(absl::string_view collective) {
  using Kind = CollectiveKind;
  static const auto& kinds = *new absl::flat_hash_map<absl::string_view, Kind>{
      {"allreduce", Kind::kAllReduce},
      {"allreduce_coalesced", Kind::kAllReduce},
      {"all_gather", Kind::kAllGather},
      {"_allgather_base", Kind::kAllGather},
      {"allgather_into_tensor_coalesced", Kind::kAllGather},
      {"reduce_scatter", Kind::kReduceScatter},
      {"_reduce_scatter_base", Kind::kReduceScatter},
      {"reduce_scatter_tensor_coalesced", Kind::kReduceScatter},
      {"all_to_all", Kind::kAllToAll},
      {"all_to_allv", Kind::kRaggedAllToAll},
      {"broadcast", Kind::kCollectiveBroadcast},
      {"_broadcast_oop", Kind::kCollectiveBroadcast},
      {"reduce", Kind::kCollectiveReduce},
      {"_reduce_oop", Kind::kCollectiveReduce},
      {"gather", Kind::kCollectiveGather},
      {"scatter", Kind::kCollectiveScatter},
      {"barrier", Kind::kBarrier},
      {"send", Kind::kSend},
      {"recv", Kind::kRecv},
  };
  const auto it = kinds.find(collective);
  return it == kinds.end() ? std::nullopt : std::optional<Kind>(it->second);
}

// Returns the size of an element by the name of PyTorch's scalar type.
std::optional<int64_t> BytesOfType(absl::string_view type) {
  static const auto& sizes = *new absl::flat_hash_map<absl::string_view, int64_t>{
      {"Bool", 1},
      {"Byte", 1},
      {"Char", 1},
      {"Float8_e4m3fn", 1},
      {"Float8_e4m3fnuz", 1},
      {"Float8_e5m2", 1},
      {"Float8_e5m2fnuz", 1},
      {"Float8_e8m0fnu", 1},
      {"Short", 2},
      {"UInt16", 2},
      {"Half", 2},
      {"BFloat16", 2},
      {"Int", 4},
      {"UInt32", 4},
      {"Float", 4},
      {"ComplexHalf", 4},
      {"Long", 8},
      {"UInt64", 8},
      {"Double", 8},
      {"ComplexFloat", 8},
      {"ComplexDouble", 16},
  };
  const auto it = sizes.find(type);
  return it == sizes.end() ? std::nullopt : std::optional<int64_t>(it->second);
}

// Returns nullopt when count or type are not known or the product does not fit.
std::optional<int64_t> MessageBytes(std::optional<int64_t> elements, absl::string_view type) {
  const std::optional<int64_t> size = BytesOfType(type);
  if (!elements.has_value() || !size.has_value() || *elements < 0 ||
      *elements > std::numeric_limits<int64_t>::max() / *size) {
    return std::nullopt;
  }
  return *elements * *size;
}

// Returns an empty text when there is none.
std::string TextOf(const JsonValue& args, absl::string_view key) {
  return args.Find(key).AsString().value_or("");
}

// "[0, 1, 2, 3]", or cut short: "[0, 1, 2, ...]", "[0, 1, ..., 7]".
struct RankList {
  std::vector<int64_t> head;
  bool is_cut = false;
  // The ranks listed behind the dots.
  std::vector<int64_t> tail;
};

// Reads a list in a string or an array. Nullopt when it is none, or empty.
std::optional<RankList> ReadRankList(const JsonValue& value) {
  const std::string text = value.AsString().value_or(std::string(value.text()));
  absl::string_view inside = text;
  if (!absl::ConsumePrefix(&inside, "[") || !absl::ConsumeSuffix(&inside, "]")) return std::nullopt;
  RankList list;
  for (absl::string_view element : absl::StrSplit(inside, ',')) {
    element = absl::StripAsciiWhitespace(element);
    int32_t rank = 0;
    if (element == "..." && !list.is_cut) {
      list.is_cut = true;
    } else if (absl::SimpleAtoi(element, &rank) && rank >= 0) {
      (list.is_cut ? list.tail : list.head).push_back(rank);
    } else {
      return std::nullopt;
    }
  }
  return list;
}

// Continues the head of a list that was cut short to the group's size. Nullopt when that is no
// arithmetic sequence, or does not end in the list's tail.
std::optional<std::vector<int64_t>> Continue(const RankList& list, int64_t group_size) {
  const int64_t listed = static_cast<int64_t>(list.head.size() + list.tail.size());
  if (list.head.size() < 2 || group_size < listed || group_size > kMaxGroupIds) return std::nullopt;
  const int64_t stride = list.head[1] - list.head[0];
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < group_size; ++i) ranks.push_back(list.head[0] + i * stride);
  if (stride == 0 || ranks.back() < 0 ||
      !std::equal(list.head.begin(), list.head.end(), ranks.begin()) ||
      !std::equal(list.tail.rbegin(), list.tail.rend(), ranks.rbegin())) {
    return std::nullopt;
  }
  return ranks;
}

class ProcessGroups {
 public:
  explicit ProcessGroups(const JsonValue& distributed_info) {
    JsonCutter cutter(distributed_info.Find("pg_config").text());
    cutter.Enter('[');
    while (cutter.NextElement()) {
      const JsonValue group(cutter.CutValue());
      std::optional<RankList> ranks = ReadRankList(group.Find("ranks"));
      if (!ranks.has_value() || ranks->is_cut) continue;
      header_ranks_[TextOf(group, "pg_name")] = std::move(ranks->head);
    }
  }

  // Returns the ranks of the group that a kernel names; nullopt when they cannot be told.
  std::optional<std::vector<int64_t>> RanksOf(const JsonValue& args) const {
    const std::optional<int64_t> size = args.Find("Group size").AsInt64();
    std::optional<std::vector<int64_t>> ranks = ListedRanks(args, size);
    if (ranks.has_value() && size.has_value() && static_cast<int64_t>(ranks->size()) != *size) {
      return std::nullopt;
    }
    return ranks;
  }

 private:
  std::optional<std::vector<int64_t>> ListedRanks(const JsonValue& args,
                                                  std::optional<int64_t> size) const {
    const std::optional<RankList> list = ReadRankList(args.Find("Process Group Ranks"));
    if (list.has_value() && !list->is_cut) return list->head;
    const auto it = header_ranks_.find(TextOf(args, "Process Group Name"));
    if (it != header_ranks_.end()) return it->second;
    if (!list.has_value() || !size.has_value()) return std::nullopt;
    return Continue(*list, *size);
  }

  // The header's complete lists, by name of the group.
  absl::flat_hash_map<std::string, std::vector<int64_t>> header_ranks_;
};

// What PyTorch recorded about a call, or about the calls of a batch that do the same.
struct CollectiveCall {
  std::string name;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // The arguments of the call, of several those of the first.
  JsonValue args;
  // Elements put in and given out, of several calls in sum; nullopt when they are not told.
  std::optional<int64_t> in_elements;
  std::optional<int64_t> out_elements;
};

// Which calls a batch consists of, and where it launches its kernels.
class CoalescedBatches {
 public:
  explicit CoalescedBatches(const EventTable& table) : table_(table) {
    for (EventRow row = 0; row < table.size(); ++row) {
      const EventCategory category = table.category(row);
      if (category == EventCategory::kAnnotation && table.name(row) == "nccl:coalesced") {
        if (table.track(table.track_id(row)).kind == TrackKind::kHost) {
          threads_[table.track_id(row)].batches.push_back(row);
        }
      } else if (category == EventCategory::kCpuOp && table.name(row) == "record_param_comms") {
        threads_[table.track_id(row)].calls.push_back(row);
      }
    }
    const auto by_start = [&](EventRow a, EventRow b) {
      return table.start_ps(a) < table.start_ps(b);
    };
    for (auto& [track, thread] : threads_) {
      std::sort(thread.batches.begin(), thread.batches.end(), by_start);
      std::sort(thread.calls.begin(), thread.calls.end(), by_start);
    }
  }

  // Returns the batch in which the host's row lies, the last to begin; nullopt when it lies in
  // none.
  std::optional<EventRow> BatchOf(EventRow launch) const {
    const auto it = threads_.find(table_.track_id(launch));
    if (it == threads_.end()) return std::nullopt;
    const std::vector<EventRow>& batches = it->second.batches;
    const auto next = UpperBound(batches, table_.start_ps(launch));
    if (next == batches.begin() || table_.end_ps(*(next - 1)) < table_.start_ps(launch)) {
      return std::nullopt;
    }
    return *(next - 1);
  }

  // Returns the thread's calls since the batch before that one.
  absl::Span<const EventRow> CallsOf(EventRow batch) const {
    const Thread& thread = threads_.at(table_.track_id(batch));
    const auto first_batch = std::lower_bound(
        thread.batches.begin(), thread.batches.end(), table_.start_ps(batch),
        [&](EventRow row, int64_t time_ps) { return table_.start_ps(row) < time_ps; });
    int64_t since_ps = std::numeric_limits<int64_t>::min();
    if (first_batch != thread.batches.begin()) {
      since_ps = std::min(table_.end_ps(*(first_batch - 1)), table_.start_ps(batch));
    }
    const auto first = UpperBound(thread.calls, since_ps);
    const auto last = UpperBound(thread.calls, table_.end_ps(batch));
    return absl::MakeConstSpan(thread.calls)
        .subspan(first - thread.calls.begin(), std::max<std::ptrdiff_t>(0, last - first));
  }

 private:
  // Returns the first of the rows that starts after that time.
  std::vector<EventRow>::const_iterator UpperBound(const std::vector<EventRow>& rows,
                                                   int64_t time_ps) const {
    return std::upper_bound(rows.begin(), rows.end(), time_ps, [&](int64_t time, EventRow row) {
      return time < table_.start_ps(row);
    });
  }

  // Rows of one thread in order of their starts.
  struct Thread {
    std::vector<EventRow> batches;
    std::vector<EventRow> calls;
  };

  const EventTable& table_;
  absl::flat_hash_map<TrackId, Thread> threads_;
};

std::vector<EventRow> CommunicationKernels(const EventTable& table) {
  std::vector<EventRow> kernels;
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) == EventCategory::kKernel && IsCommunicationKernel(table.name(row))) {
      kernels.push_back(row);
    }
  }
  return kernels;
}

// The process group: "0 (default_pg)".
std::string ModuleOf(const JsonValue& args) {
  const std::string name = TextOf(args, "Process Group Name");
  const std::string description = TextOf(args, "Process Group Description");
  return description.empty() ? name : absl::StrCat(name, " (", description, ")");
}

std::string InstructionOf(const CollectiveOp& op, const CollectiveCall& call) {
  const std::string type = TextOf(call.args, "dtype");
  if (op.kind == CollectiveKind::kRaggedAllToAll) return absl::StrCat(call.name, " ", type);
  const auto text = [&](std::optional<int64_t> elements, absl::string_view key) {
    return elements.has_value() ? absl::StrCat(*elements) : std::string(call.args.Find(key).text());
  };
  if (!op.pairs.empty()) {
    return absl::StrCat("transfer ", op.pairs[0].source, "->", op.pairs[0].target, " ", type, " ",
                        text(call.in_elements, "In msg nelems"));
  }
  return absl::StrCat(call.name, " ", type, " ", text(call.in_elements, "In msg nelems"), "->",
                      text(call.out_elements, "Out msg nelems"));
}

std::optional<int64_t> RunIdOf(CollectiveKind kind, const JsonValue& args,
                               std::optional<int64_t> step) {
  // A collective's own number, the same on all of its ranks, which newer versions of PyTorch give.
  const absl::string_view comms_id = args.Find("Comms Id").text();
  if (!HasPairs(kind) && !comms_id.empty() && comms_id != "0" && comms_id != "\"0\"") {
    ContentHash hash;
    hash.AddText("Comms Id");
    hash.AddText(comms_id);
    return static_cast<int64_t>(absl::Uint128Low64(hash.value()));
  }
  const std::optional<int64_t> sequence = args.Find("Seq").AsInt64();
  const std::optional<int64_t> number = HasPairs(kind) ? step : sequence;
  if (!sequence.has_value() || !number.has_value()) return std::nullopt;
  ContentHash hash;
  hash.AddText(TextOf(args, "Process Group Name"));
  hash.AddNumber(HasPairs(kind));
  hash.AddNumber(static_cast<uint64_t>(*number));
  return static_cast<int64_t>(absl::Uint128Low64(hash.value()));
}

class KinetoReader {
 public:
  KinetoReader(const TraceJsonTable& trace, absl::string_view text, ProfileCollectives* out)
      : table_(trace.table),
        text_(text),
        info_(trace.header.Find("distributedInfo")),
        groups_(info_),
        kernels_(CommunicationKernels(table_)),
        calls_(table_),
        steps_(table_),
        out_(*out),
        collector_(no_programs_, out) {}

  void Run() {
    AddDevice();
    for (EventRow kernel : kernels_) ReadKernel(kernel);
    collector_.Finish();
    ListAssignedDevices();
  }

 private:
  void AddDevice() {
    out_.stated_ranks = info_.Find("world_size").AsInt64();
    LocalDevice device;
    device.name = "GPU";
    if (!kernels_.empty()) {
      absl::StrAppend(&device.name, " ", table_.track(table_.track_id(kernels_[0])).process);
    }
    const std::optional<int64_t> rank = info_.Find("rank").AsInt64();
    if (rank.has_value() && *rank >= 0) device.global_id = *rank;
    device_ = collector_.AddDevice(std::move(device));
  }

  void ReadKernel(EventRow row) {
    const JsonValue args = ReadTraceJsonArgs(text_, table_, row);
    if (!TextOf(args, "Collective name").empty()) {
      if (const std::optional<CollectiveCall> call = ReadCall(args, table_.name(row))) {
        AddPiece(row, *call);
      }
      return;
    }
    const std::vector<CollectiveCall> calls = ReadBatch(row);
    for (const CollectiveCall& call : calls) AddPiece(row, call);
    if (calls.empty()) {
      collector_.AddUnresolved("communication kernel that no collective call describes",
                               std::string(table_.name(row)));
    }
  }

  void AddPiece(EventRow row, const CollectiveCall& call) {
    CollectivePiece piece;
    piece.op = OpOf(call);
    piece.local_device = device_;
    piece.step = StepOf(row);
    piece.run_id = RunIdOf(call.kind, call.args, piece.step);
    piece.execution = call.args.Find("External id").AsUint64();
    piece.start_ps = table_.start_ps(row);
    piece.end_ps = table_.end_ps(row);
    (void)absl::SimpleAtoi(table_.track(table_.track_id(row)).thread, &piece.line_id);
    piece.correlation_id = table_.correlation(row).value_or(0);
    piece.protocol = collector_.ProtocolOf(table_.name(row));
    collector_.AddPiece(piece);
  }

  // Returns what a kernel's or a call's arguments say. Nullopt, and counts it, when the kind of the
  // collective is not known.
  std::optional<CollectiveCall> ReadCall(const JsonValue& args, absl::string_view kernel) {
    CollectiveCall call;
    call.name = TextOf(args, "Collective name");
    std::optional<CollectiveKind> kind = KindOfName(call.name);
    if (!kind.has_value()) kind = KindOfKernel(kernel, /*has_groups=*/false);
    if (!kind.has_value()) {
      collector_.AddUnresolved("collective of unknown kind", absl::StrCat(call.name, ": ", kernel));
      return std::nullopt;
    }
    call.kind = *kind;
    call.args = args;
    call.in_elements = args.Find("In msg nelems").AsInt64();
    call.out_elements = args.Find("Out msg nelems").AsInt64();
    return call;
  }

  // Returns the calls of the batch that launched a kernel, those that do the same as one. Empty
  // when no batch did.
  std::vector<CollectiveCall> ReadBatch(EventRow kernel) {
    const std::optional<EventRow> launch = calls_.Find(table_.correlation(kernel));
    if (!launch.has_value()) return {};
    if (!batches_.has_value()) {
      batches_.emplace(table_);
      for (EventRow row : kernels_) {
        const JsonValue args = ReadTraceJsonArgs(text_, table_, row);
        const std::optional<uint64_t> call = args.Find("External id").AsUint64();
        if (call.has_value() && args.Find("Collective name").exists()) has_kernel_.insert(*call);
      }
    }
    const std::optional<EventRow> batch = batches_->BatchOf(*launch);
    if (!batch.has_value()) return {};
    const auto [it, is_new] = calls_of_batch_.try_emplace(*batch);
    if (is_new) it->second = ReadCalls(batches_->CallsOf(*batch), table_.name(kernel));
    // Kernels whose records are lost leave calls behind that others must not take.
    std::vector<CollectiveCall> calls;
    for (const CollectiveCall& call : it->second) {
      if (MayDo(table_.name(kernel), call.kind)) calls.push_back(call);
    }
    return calls;
  }

  // Returns whether a kernel may do what a call asks for. Broadcasts and reductions are also parts
  // of other collectives.
  static bool MayDo(absl::string_view kernel, CollectiveKind kind) {
    const std::optional<CollectiveKind> done = KindOfKernel(kernel, /*has_groups=*/false);
    const auto has_own_kernel = [](CollectiveKind k) {
      return k == CollectiveKind::kAllReduce || k == CollectiveKind::kAllGather ||
             k == CollectiveKind::kReduceScatter;
    };
    if (!done.has_value()) return true;
    if (has_own_kernel(*done)) return *done == kind;
    const bool moves_messages = HasPairs(*done) || *done == CollectiveKind::kAllToAll;
    return !moves_messages || !has_own_kernel(kind);
  }

  std::vector<CollectiveCall> ReadCalls(absl::Span<const EventRow> rows, absl::string_view kernel) {
    // Calls by kind, process group, type and peer.
    std::map<std::tuple<CollectiveKind, std::string, std::string, std::string>, CollectiveCall>
        merged;
    for (EventRow row : rows) {
      const JsonValue args = ReadTraceJsonArgs(text_, table_, row);
      const std::string name = TextOf(args, "Collective name");
      const std::optional<uint64_t> id = args.Find("External id").AsUint64();
      if (!KindOfName(name).has_value() || (id.has_value() && has_kernel_.contains(*id))) continue;
      const CollectiveCall call = *ReadCall(args, kernel);
      const std::string peer(
          args.Find(call.kind == CollectiveKind::kSend ? "Dst Rank" : "Src Rank").text());
      const auto [it, is_new] = merged.try_emplace(
          std::make_tuple(call.kind, ModuleOf(args), TextOf(args, "dtype"), peer), call);
      if (is_new) continue;
      it->second.in_elements = Sum(it->second.in_elements, call.in_elements);
      it->second.out_elements = Sum(it->second.out_elements, call.out_elements);
    }
    std::vector<CollectiveCall> calls;
    for (auto& [key, call] : merged) calls.push_back(std::move(call));
    return calls;
  }

  static std::optional<int64_t> Sum(std::optional<int64_t> a, std::optional<int64_t> b) {
    int64_t sum = 0;
    if (!a.has_value() || !b.has_value() || __builtin_add_overflow(*a, *b, &sum)) {
      return std::nullopt;
    }
    return sum;
  }

  // Returns the op, adding it when it is new. What could not be told is counted once.
  uint32_t OpOf(const CollectiveCall& call) {
    const std::string type = TextOf(call.args, "dtype");
    const std::optional<int64_t> in = MessageBytes(call.in_elements, type);
    const std::optional<int64_t> out = MessageBytes(call.out_elements, type);
    CollectiveOp op;
    op.kind = call.kind;
    op.operand_bytes = in.value_or(0);
    op.output_bytes = out.value_or(0);
    op.pairs = PairsOf(call.kind, call.args);
    op.module = ModuleOf(call.args);
    op.instruction = InstructionOf(op, call);
    const auto [it, inserted] = ops_.try_emplace(
        OpKey(op.kind, op.module, op.instruction, op.operand_bytes, op.output_bytes));
    if (!inserted) return it->second;

    const std::string example = absl::StrCat(op.module, ": ", op.instruction);
    if (!in.has_value() || !out.has_value()) {
      collector_.AddUnresolved("bytes of a collective cannot be told", example);
    }
    if (HasPairs(op.kind)) {
      if (op.pairs.empty()) collector_.AddUnresolved("peer of a transfer cannot be told", example);
    } else if (const auto ranks = groups_.RanksOf(call.args); ranks.has_value()) {
      op.groups.Add(*ranks);
    } else {
      collector_.AddUnresolved("ranks of a process group cannot be told", example);
    }
    return it->second = collector_.AddOp(std::move(op));
  }

  // Empty for collectives without pairs, and when an end is not known.
  std::vector<SourceTargetPair> PairsOf(CollectiveKind kind, const JsonValue& args) {
    const bool sends = kind == CollectiveKind::kSend;
    if (!sends && kind != CollectiveKind::kRecv) return {};
    const int64_t rank = collector_.device(device_).global_id;
    const std::optional<int64_t> peer = args.Find(sends ? "Dst Rank" : "Src Rank").AsInt64();
    if (rank == kUnknownId || !peer.has_value() || *peer < 0) return {};
    return {sends ? SourceTargetPair{rank, *peer} : SourceTargetPair{*peer, rank}};
  }

  std::optional<int64_t> StepOf(EventRow row) {
    const std::optional<EventRow> launch = calls_.Find(table_.correlation(row));
    if (launch.has_value()) return steps_.At(table_.start_ps(*launch));
    collector_.AddUnresolved("launch of a collective is not in the profile",
                             std::string(table_.name(row)));
    return std::nullopt;
  }

  void ListAssignedDevices() {
    std::set<int64_t> ranks;
    const int64_t world_size = info_.Find("world_size").AsInt64().value_or(0);
    for (int64_t rank = 0; rank < std::min(world_size, kMaxGroupIds); ++rank) ranks.insert(rank);
    for (const CollectiveOp& op : out_.ops) {
      ranks.insert(op.groups.ids().begin(), op.groups.ids().end());
      for (const SourceTargetPair& pair : op.pairs) ranks.insert({pair.source, pair.target});
    }
    out_.assigned_devices.assign(ranks.begin(), ranks.end());
  }

  // Kind, module, instruction, operand bytes and output bytes: ops that differ in bytes only are
  // ragged exchanges.
  using OpKey = std::tuple<CollectiveKind, std::string, std::string, int64_t, int64_t>;

  const EventTable& table_;
  const absl::string_view text_;
  const JsonValue info_;
  const ProcessGroups groups_;
  const std::vector<EventRow> kernels_;
  const CallIndex calls_;
  const KinetoSteps steps_;
  // Made when a kernel is not described: the batches, and the ids of the calls that have a kernel
  // of their own.
  std::optional<CoalescedBatches> batches_;
  absl::flat_hash_set<uint64_t> has_kernel_;
  absl::flat_hash_map<EventRow, std::vector<CollectiveCall>> calls_of_batch_;
  const HloModuleIndex no_programs_;
  ProfileCollectives& out_;
  CollectiveCollector collector_;
  uint32_t device_ = 0;
  absl::flat_hash_map<OpKey, uint32_t> ops_;
};

}  // namespace

ProfileCollectives ReadKinetoCollectives(const TraceJsonTable& trace, absl::string_view text,
                                         absl::string_view name) {
  ProfileCollectives result;
  result.trace = std::string(name);
  result.base_ns = trace.table.base_ns();
  KinetoReader(trace, text, &result).Run();
  return result;
}

absl::Status CheckOneRank(const TraceJsonTable& trace, absl::string_view name) {
  if (!trace.header.Find(kCombinedRanksKey).exists()) return absl::OkStatus();
  return InvalidArgument(name,
                         ": is combined of several ranks' traces; give the ranks' own, as combine "
                         "writes them with --output_dir");
}

absl::StatusOr<ProfileCollectives> ReadKinetoCollectives(const InputFile& file) {
  ASSIGN_OR_RETURN(const TraceJsonTable trace, LoadTraceJson(file.bytes(), file.path()));
  RETURN_IF_ERROR(CheckOneRank(trace, file.path()));
  return ReadKinetoCollectives(trace, file.bytes(), file.path());
}

}  // namespace meridian
