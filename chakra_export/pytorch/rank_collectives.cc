#include "chakra_export/pytorch/rank_collectives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/tensor_dependencies.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/kineto/kineto_collectives.h"

namespace meridian {
namespace {

constexpr absl::string_view kRecordParamComms = "record_param_comms";

// What PyTorch records with a collective: [tensors, sequence, process group, peer, name, ...].
struct CommArguments {
  std::string group;
  std::optional<int64_t> peer;
  std::string name;
};

CommArguments ArgumentsOf(const HostOpDetails& details) {
  std::vector<JsonValue> values;
  JsonCutter cutter(details.input_values.text());
  cutter.Enter('[');
  while (values.size() < 5 && cutter.NextElement()) values.emplace_back(cutter.CutValue());
  CommArguments arguments;
  if (values.size() == 5) {
    JsonValue group = values[2];
    if (absl::StartsWith(group.text(), "[")) {
      JsonCutter pair(group.text());
      pair.Enter('[');
      group = pair.NextElement() ? JsonValue(pair.CutValue()) : JsonValue();
    }
    arguments.group = group.AsString().value_or("");
    arguments.peer = values[3].AsInt64();
    arguments.name = values[4].AsString().value_or("");
  }
  const std::optional<std::string> group = details.Attribute("pg_name").AsString();
  if (group.has_value()) arguments.group = *group;
  const std::optional<std::string> name = details.Attribute("collective_name").AsString();
  if (name.has_value()) arguments.name = *name;
  return arguments;
}

class Reader {
 public:
  Reader(const TraceJsonTable& trace, const HostTrace& host, const RankTimeline& timeline,
         int64_t world_size, RankCollectives* out)
      : table_(trace.table), host_(host), timeline_(timeline), out_(*out) {
    ReadGroups();
    world_size_ =
        trace.header.Find("distributedInfo").Find("world_size").AsInt64().value_or(world_size);
  }

  void Run() {
    FindNodes();
    for (TimelineIndex node = 0; node < timeline_.nodes.size(); ++node) {
      const TimelineNode& work = timeline_.nodes[node];
      if (work.on_host || described_.contains(node) ||
          !IsCommunicationKernel(table_.name(work.row))) {
        continue;
      }
      if (!AddFromHost(node)) out_.undescribed.push_back(node);
    }
    SortEvents();
  }

 private:
  void ReadGroups() {
    JsonCutter cutter(host_.process_groups());
    cutter.Enter('[');
    while (cutter.NextElement()) {
      const JsonValue group(cutter.CutValue());
      const std::optional<std::string> name = group.Find("pg_name").AsString();
      const std::optional<std::vector<int64_t>> ranks = group.Find("ranks").AsInt64Array();
      if (name.has_value() && ranks.has_value()) ranks_of_group_[*name] = *ranks;
    }
  }

  // Events tell the start and the correlation of their first kernel.
  void FindNodes() {
    absl::flat_hash_map<std::pair<int64_t, uint64_t>, TimelineIndex> kernels;
    for (TimelineIndex node = 0; node < timeline_.nodes.size(); ++node) {
      const TimelineNode& work = timeline_.nodes[node];
      if (work.on_host || !IsCommunicationKernel(table_.name(work.row))) continue;
      kernels[{work.start_ps, table_.correlation(work.row).value_or(0)}] = node;
    }
    for (const CollectiveEvent& event : out_.profile.events) {
      const auto it = kernels.find({event.start_ps, event.correlation_id});
      out_.nodes.push_back(it == kernels.end() ? kNoTimelineNode : it->second);
      if (it != kernels.end()) described_.insert(it->second);
    }
  }

  // Returns false when the host trace does not describe it either.
  bool AddFromHost(TimelineIndex node) {
    const TimelineNode& work = timeline_.nodes[node];
    if (work.launching_op == kNoHostOp) return false;
    const absl::string_view kernel = table_.name(work.row);
    HostOpIndex op = work.launching_op;
    for (HostOpIndex at = op; at != kNoHostOp; at = host_.ops()[at].parent) {
      if (host_.name(at) != kRecordParamComms) continue;
      op = at;
      break;
    }
    const HostOpIndex with_tensors = NearestOpWithTensors(host_, op);
    const CommArguments arguments = ArgumentsOf(host_.Details(op));
    const std::optional<CollectiveKind> kind = KindOf(kernel, op, arguments);
    if (!kind.has_value() || with_tensors == kNoHostOp) return false;
    CollectiveOp collective;
    collective.kind = *kind;
    collective.module = arguments.group;
    for (const HostTensor& tensor : TensorsIn(host_.Details(with_tensors).input_values)) {
      if (tensor.on_device) collective.operand_bytes += tensor.bytes;
    }
    collective.output_bytes = collective.operand_bytes;
    SetParticipants(arguments, &collective);
    AddEvent(node, std::move(collective));
    return true;
  }

  std::optional<CollectiveKind> KindOf(absl::string_view kernel, HostOpIndex op,
                                       const CommArguments& arguments) const {
    std::string name = arguments.name;
    for (HostOpIndex at = op; name.empty() && at != kNoHostOp; at = host_.ops()[at].parent) {
      if (absl::StartsWith(host_.name(at), "nccl:")) name = std::string(host_.name(at).substr(5));
    }
    const absl::string_view first_word = absl::string_view(name).substr(0, name.find(' '));
    if (first_word == "send") return CollectiveKind::kSend;
    if (first_word == "recv") return CollectiveKind::kRecv;
    return KindOfKernel(kernel, /*has_groups=*/true);
  }

  void SetParticipants(const CommArguments& arguments, CollectiveOp* op) {
    std::vector<int64_t> ranks;
    const auto group = ranks_of_group_.find(arguments.group);
    if (group != ranks_of_group_.end()) ranks = group->second;
    if (ranks.empty()) {
      for (int64_t rank = 0; rank < std::min(world_size_, kMaxGroupIds); ++rank) {
        ranks.push_back(rank);
      }
    }
    if (!HasPairs(op->kind)) {
      op->instruction =
          absl::StrCat(CollectiveKindName(op->kind), " ", op->operand_bytes, " bytes");
      if (!ranks.empty()) op->groups.Add(ranks);
      return;
    }
    const int64_t self = out_.profile.devices[0].global_id;
    if (self != kUnknownId && arguments.peer.has_value() && *arguments.peer >= 0 &&
        *arguments.peer < static_cast<int64_t>(ranks.size())) {
      const int64_t peer = ranks[static_cast<size_t>(*arguments.peer)];
      op->pairs = {op->kind == CollectiveKind::kSend ? SourceTargetPair{self, peer}
                                                     : SourceTargetPair{peer, self}};
      op->instruction = absl::StrCat("transfer ", op->pairs[0].source, "->", op->pairs[0].target,
                                     " ", op->operand_bytes, " bytes");
    }
  }

  void AddEvent(TimelineIndex node, CollectiveOp op) {
    const TimelineNode& work = timeline_.nodes[node];
    const auto [it, is_new] = ops_.try_emplace(std::make_tuple(op.kind, op.module, op.instruction),
                                               static_cast<uint32_t>(out_.profile.ops.size()));
    CollectiveEvent event;
    event.op = it->second;
    event.device = out_.profile.devices[0].global_id;
    if (is_new) out_.profile.ops.push_back(std::move(op));
    if (!out_.profile.ops[event.op].groups.empty()) event.group = 0;
    event.start_ps = work.start_ps;
    event.end_ps = work.end_ps();
    event.correlation_id = table_.correlation(work.row).value_or(0);
    event.kernels = 1;
    out_.profile.events.push_back(event);
    out_.nodes.push_back(node);
  }

  void SortEvents() {
    std::vector<size_t> order(out_.nodes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return out_.profile.events[a].start_ps < out_.profile.events[b].start_ps;
    });
    std::vector<CollectiveEvent> events;
    std::vector<TimelineIndex> nodes;
    for (const size_t i : order) {
      events.push_back(out_.profile.events[i]);
      nodes.push_back(out_.nodes[i]);
    }
    out_.profile.events = std::move(events);
    out_.nodes = std::move(nodes);
  }

  const EventTable& table_;
  const HostTrace& host_;
  const RankTimeline& timeline_;
  RankCollectives& out_;
  std::map<std::string, std::vector<int64_t>> ranks_of_group_;
  int64_t world_size_ = 0;
  absl::flat_hash_set<TimelineIndex> described_;
  std::map<std::tuple<CollectiveKind, std::string, std::string>, uint32_t> ops_;
};

}  // namespace

RankCollectives ReadRankCollectives(const TraceJsonTable& trace, absl::string_view text,
                                    absl::string_view name, const HostTrace& host,
                                    const RankTimeline& timeline, int64_t world_size) {
  RankCollectives result;
  result.profile = ReadKinetoCollectives(trace, text, name);
  Reader(trace, host, timeline, world_size, &result).Run();
  return result;
}

}  // namespace meridian
