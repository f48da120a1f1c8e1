#include "xla_profiler/kineto/kineto_collectives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/collectives/collective_collector.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/dependencies/runtime_calls.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/hlo/replica_groups.h"
#include "xla_profiler/kineto/communication_calls.h"
#include "xla_profiler/kineto/kineto_steps.h"
#include "xla_profiler/kineto/process_groups.h"

namespace meridian {
namespace {

// Returns an empty text when there is none.
std::string TextOf(const JsonValue& args, absl::string_view key) {
  return args.Find(key).AsString().value_or("");
}

// Returns the symbol without its parameters.
std::string ShortKernelName(absl::string_view symbol) {
  constexpr size_t kMaxName = 200;
  return std::string(symbol.substr(0, std::min(symbol.find('('), kMaxName)));
}

// What PyTorch recorded about a call, or about the calls of a batch that do the same.
struct CollectiveCall {
  std::string name;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // The arguments of the call, of several those of the first; none when it is not described.
  JsonValue args;
  std::string type;
  // Elements put in and given out, of several calls in sum; nullopt when they are not told.
  std::optional<int64_t> in_elements;
  std::optional<int64_t> out_elements;
  // Kernels of calls of equal numbers are one execution; nullopt: one by itself.
  std::optional<uint64_t> execution;
  // Set when it is not described: who is taken to take part.
  const AssumedGroup* group = nullptr;
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

std::string ModuleOf(const JsonValue& args) {
  return ProcessGroupName(TextOf(args, "Process Group Name"),
                          TextOf(args, "Process Group Description"));
}

std::string InstructionOf(const CollectiveOp& op, const CollectiveCall& call) {
  const std::string& type = call.type;
  if (call.group != nullptr && !call.in_elements.has_value()) return call.name;
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
  const absl::string_view comms_id = args.Find(HasPairs(kind) ? kMessageIdKey : "Comms Id").text();
  if (!comms_id.empty() && comms_id != "0" && comms_id != "\"0\"") {
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
    std::vector<EventRow> undescribed;
    for (EventRow kernel : kernels_) {
      if (!ReadKernel(kernel)) undescribed.push_back(kernel);
    }
    ReadUndescribed(undescribed);
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

  // Returns false when neither its own arguments nor those of a call describe the kernel.
  bool ReadKernel(EventRow row) {
    JsonValue args = ReadTraceJsonArgs(text_, table_, row);
    const std::vector<CollectiveCall> calls =
        args.Find("Collective name").exists() ? std::vector<CollectiveCall>() : ReadBatch(row);
    for (const CollectiveCall& call : calls) AddPiece(row, call);
    if (!calls.empty()) return true;
    if (TextOf(args, "Collective name").empty()) args = ArgsOfCallAround(row);
    if (TextOf(args, "Collective name").empty()) return false;
    if (const std::optional<CollectiveCall> call = ReadCall(args, table_.name(row))) {
      AddPiece(row, *call);
    }
    return true;
  }

  // Returns the arguments of the call that launched the kernel; a value that does not exist when it
  // is not known.
  JsonValue ArgsOfCallAround(EventRow kernel) {
    const std::optional<EventRow> launch = calls_.Find(table_.correlation(kernel));
    if (!launch.has_value()) return JsonValue();
    for (const EventRow row : HostCalls().Around(*launch)) {
      if (table_.name(row) == "record_param_comms") return ReadTraceJsonArgs(text_, table_, row);
    }
    return JsonValue();
  }

  // Kernels without arguments: what the host's operators and annotations around the launch tell,
  // else the kernel's name and, in a replayed graph, its place.
  void ReadUndescribed(const std::vector<EventRow>& kernels) {
    const bool has_launches = std::any_of(kernels_.begin(), kernels_.end(), [&](EventRow row) {
      return calls_.Find(table_.correlation(row)).has_value();
    });
    const std::map<EventRow, std::string> places = PlacesInGraphs(kernels);
    for (const EventRow row : kernels) {
      const std::string name(table_.name(row));
      const std::optional<EventRow> launch = calls_.Find(table_.correlation(row));
      // How many were launched before the profiler was active differs from rank to rank.
      if (!launch.has_value() && has_launches) {
        collector_.AddUnresolved("communication kernel that no collective call describes", name);
        continue;
      }
      const auto place = places.find(row);
      CollectiveCall call = launch.has_value() ? ReadCallAround(*launch, name) : CollectiveCall();
      if (call.name.empty()) {
        call.kind = KindOfKernel(name, /*has_groups=*/false).value_or(CollectiveKind::kUnknown);
        if (HasPairs(call.kind)) call.kind = CollectiveKind::kUnknown;
        call.name = ShortKernelName(name);
        if (place != places.end()) absl::StrAppend(&call.name, ", ", place->second);
      }
      call.group = GroupFor(call.kind);
      if (call.group == nullptr) {
        collector_.AddUnresolved(
            "communication kernel without arguments that may be of several process groups", name);
        continue;
      }
      SetOutElements(&call);
      AddPiece(row, call);
    }
  }

  // Returns "2 of 3 in a graph" for each kernel that the replay of a graph launched: by the ids of
  // the graph's nodes, which are those of its capture's order, else by start.
  std::map<EventRow, std::string> PlacesInGraphs(const std::vector<EventRow>& kernels) const {
    std::map<uint64_t, std::vector<std::tuple<uint64_t, int64_t, EventRow>>> replays;
    for (const EventRow row : kernels) {
      const std::optional<EventRow> launch = calls_.Find(table_.correlation(row));
      if (!launch.has_value() || !absl::StrContains(table_.name(*launch), "GraphLaunch")) continue;
      const JsonValue node = ReadTraceJsonArgs(text_, table_, row).Find("graph node id");
      replays[*table_.correlation(row)].push_back(
          {node.AsUint64().value_or(0), table_.start_ps(row), row});
    }
    std::map<EventRow, std::string> places;
    for (auto& [correlation, replayed] : replays) {
      std::sort(replayed.begin(), replayed.end());
      for (size_t i = 0; i < replayed.size(); ++i) {
        places[std::get<EventRow>(replayed[i])] =
            absl::StrCat(i + 1, " of ", replayed.size(), " in a graph");
      }
    }
    return places;
  }

  // Returns what operators and annotations around a launch tell; without a name when nothing.
  CollectiveCall ReadCallAround(EventRow launch, absl::string_view kernel) {
    CollectiveCall call;
    for (const EventRow row : HostCalls().Around(launch)) {
      const absl::string_view name = table_.name(row);
      const std::optional<CollectiveKind> kind = KindOfCall(name);
      if (!kind.has_value() || !MayDo(kernel, *kind)) continue;
      const JsonValue args = ReadTraceJsonArgs(text_, table_, row);
      if (call.name.empty()) {
        call.name = std::string(name);
        call.kind = *kind;
        call.in_elements = InputElements(args, /*of_first=*/false);
        call.execution = row;
        JsonCutter types(args.Find("Input type").text());
        types.Enter('[');
        if (types.NextElement()) call.type = JsonValue(types.CutValue()).AsString().value_or("");
      } else if (absl::EndsWith(name, "base_")) {
        // Their first tensor is the output.
        call.out_elements = InputElements(args, /*of_first=*/true);
      }
    }
    return call;
  }

  // Tells what comes out of a call that is not described by what goes in.
  void SetOutElements(CollectiveCall* call) const {
    if (!call->in_elements.has_value()) return;
    if (call->out_elements.has_value()) {
      if (call->kind == CollectiveKind::kAllToAll && *call->in_elements != *call->out_elements) {
        call->kind = CollectiveKind::kRaggedAllToAll;
      }
      return;
    }
    const int64_t ranks = call->group->ranks.empty()
                              ? info_.Find("world_size").AsInt64().value_or(0)
                              : static_cast<int64_t>(call->group->ranks.ids().size());
    int64_t out = *call->in_elements;
    if (call->kind == CollectiveKind::kAllGather) {
      if (ranks <= 0 || __builtin_mul_overflow(out, ranks, &out)) return;
    } else if (call->kind == CollectiveKind::kReduceScatter) {
      if (ranks <= 0) return;
      out /= ranks;
    }
    call->out_elements = out;
  }

  // Returns the group that an undescribed collective must be of: the only one, or the only one that
  // described ones of its kind are of. Null when there is none.
  const AssumedGroup* GroupFor(CollectiveKind kind) {
    const auto [known, is_new] = group_of_kind_.try_emplace(kind, nullptr);
    const AssumedGroup*& only = known->second;
    if (!is_new) return only;
    if (assumed_groups_.empty()) {
      assumed_groups_ = groups_.GroupsOf(collector_.device(device_).global_id);
    }
    if (assumed_groups_.size() == 1) return only = &assumed_groups_[0];
    for (const AssumedGroup& group : assumed_groups_) {
      const bool is_used = std::any_of(out_.ops.begin(), out_.ops.end(), [&](const auto& op) {
        return op.kind == kind && !op.by_order && op.groups == group.ranks;
      });
      if (is_used && only != nullptr) return only = nullptr;
      if (is_used) only = &group;
    }
    return only;
  }

  void AddPiece(EventRow row, const CollectiveCall& call) {
    CollectivePiece piece;
    piece.op = OpOf(call);
    piece.local_device = device_;
    piece.step = StepOf(row);
    piece.run_id = RunIdOf(call.kind, call.args, piece.step);
    piece.execution = call.execution;
    piece.start_ps = table_.start_ps(row);
    piece.end_ps = table_.end_ps(row);
    if (const std::optional<int64_t> ran_ns = call.args.Find(kRanKey).AsInt64()) {
      const int64_t most_ns = (piece.end_ps - piece.start_ps) / kPsPerNs;
      piece.ran_ps = std::clamp<int64_t>(*ran_ns, 0, std::max<int64_t>(most_ns, 0)) * kPsPerNs;
    }
    (void)absl::SimpleAtoi(table_.track(table_.track_id(row)).thread, &piece.line_id);
    piece.correlation_id = table_.correlation(row).value_or(0);
    collector_.AddPiece(piece);
  }

  // Returns what a kernel's or a call's arguments say. Nullopt, and counts it, when the kind of the
  // collective is not known.
  std::optional<CollectiveCall> ReadCall(const JsonValue& args, absl::string_view kernel) {
    CollectiveCall call;
    call.name = TextOf(args, "Collective name");
    std::optional<CollectiveKind> kind = KindOfCall(call.name);
    if (!kind.has_value()) kind = KindOfKernel(kernel, /*has_groups=*/false);
    if (!kind.has_value()) {
      collector_.AddUnresolved("collective of unknown kind", absl::StrCat(call.name, ": ", kernel));
      return std::nullopt;
    }
    call.kind = *kind;
    call.args = args;
    call.type = TextOf(args, "dtype");
    call.execution = args.Find("External id").AsUint64();
    call.in_elements = args.Find("In msg nelems").AsInt64();
    call.out_elements = args.Find("Out msg nelems").AsInt64();
    return call;
  }

  // Returns the calls of the batch that launched a kernel, those that do the same as one. Empty
  // when no batch did.
  std::vector<CollectiveCall> ReadBatch(EventRow kernel) {
    const std::optional<EventRow> launch = calls_.Find(table_.correlation(kernel));
    if (!launch.has_value()) return {};
    const CommunicationCalls& host_calls = HostCalls();
    const std::optional<EventRow> batch = host_calls.BatchOf(*launch);
    if (!batch.has_value()) return {};
    const auto [it, is_new] = calls_of_batch_.try_emplace(*batch);
    if (is_new) it->second = ReadCalls(host_calls.CallsOf(*batch), table_.name(kernel));
    // Kernels whose records are lost leave calls behind that others must not take.
    std::vector<CollectiveCall> calls;
    for (const CollectiveCall& call : it->second) {
      if (MayDo(table_.name(kernel), call.kind)) calls.push_back(call);
    }
    return calls;
  }

  const CommunicationCalls& HostCalls() {
    if (!host_calls_.has_value()) {
      host_calls_.emplace(table_);
      for (EventRow row : kernels_) {
        const JsonValue args = ReadTraceJsonArgs(text_, table_, row);
        const std::optional<uint64_t> call = args.Find("External id").AsUint64();
        if (call.has_value() && args.Find("Collective name").exists()) has_kernel_.insert(*call);
      }
    }
    return *host_calls_;
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
      if (!KindOfCall(name).has_value() || (id.has_value() && has_kernel_.contains(*id))) continue;
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
    const std::optional<int64_t> in = MessageBytes(call.in_elements, call.type);
    const std::optional<int64_t> out = MessageBytes(call.out_elements, call.type);
    CollectiveOp op;
    op.kind = call.kind;
    op.operand_bytes = in.value_or(0);
    op.output_bytes = out.value_or(0);
    op.pairs = PairsOf(call.kind, call.args);
    op.by_order = call.group != nullptr;
    op.module = op.by_order ? call.group->name : ModuleOf(call.args);
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
    } else if (op.by_order) {
      op.groups = call.group->ranks;
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
  // Made when a kernel is not described: the host's calls, and the ids of those that have a kernel
  // of their own.
  std::optional<CommunicationCalls> host_calls_;
  absl::flat_hash_set<uint64_t> has_kernel_;
  absl::flat_hash_map<EventRow, std::vector<CollectiveCall>> calls_of_batch_;
  std::vector<AssumedGroup> assumed_groups_;
  // What GroupFor found, by kind.
  std::map<CollectiveKind, const AssumedGroup*> group_of_kind_;
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
                         ": is what combine made of ranks' traces; give the ranks' own, as combine "
                         "writes them with --output_dir");
}

absl::StatusOr<ProfileCollectives> ReadKinetoCollectives(const InputFile& file) {
  ASSIGN_OR_RETURN(const TraceJsonTable trace, LoadTraceJson(file.bytes(), file.path()));
  RETURN_IF_ERROR(CheckOneRank(trace, file.path()));
  return ReadKinetoCollectives(trace, file.bytes(), file.path());
}

}  // namespace meridian
