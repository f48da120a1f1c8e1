#include "chakra_export/pytorch/operator_nodes.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/pytorch/pytorch_nodes.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// The attribute of execution traces that calls of the dispatcher have.
constexpr absl::string_view kSchemaAttribute = "op_schema";

class RankOperators {
 public:
  RankOperators(const OperatorInput& input, uint32_t position, EtFlavor flavor,
                ProcessGroupList* groups, OperatorNodes* result)
      : host_(*input.host),
        timeline_(*input.timeline),
        communication_(*input.communication),
        position_(position),
        flavor_(flavor),
        groups_(*groups),
        result_(*result),
        outermost_(host_.ops().size(), kNoHostOp),
        costs_(host_.ops().size()) {}

  absl::Status Add() {
    FindOutermost();
    FindCommunication();
    FindCosts();
    for (HostOpIndex op = 0; op < outermost_.size(); ++op) {
      if (outermost_[op] == op) AddOperator(op);
      if (result_.graph.edges.size() > ExecutionGraph::kMaxDependencies) {
        return absl::OutOfRangeError("the traces hold more than 2^32 edges; convert fewer ranks");
      }
    }
    return absl::OkStatus();
  }

 private:
  bool HasSchema(HostOpIndex op) const {
    bool has_schema = false;
    host_.Details(op).ForEachAttribute([&](absl::string_view name, JsonValue value) {
      has_schema |= name == kSchemaAttribute && !value.AsString().value_or("").empty();
    });
    return has_schema;
  }

  // Callers stand before what they call.
  void FindOutermost() {
    for (HostOpIndex op = 0; op < outermost_.size(); ++op) {
      const HostOpIndex parent = host_.ops()[op].parent;
      if (parent != kNoHostOp && outermost_[parent] != kNoHostOp) {
        outermost_[op] = outermost_[parent];
      } else if (!host_.IsStructural(op) && HasSchema(op)) {
        outermost_[op] = op;
      }
    }
  }

  void FindCommunication() {
    // In the order of the kernels.
    std::map<TimelineIndex, const std::vector<NodeCommunication>*> kernels;
    for (const auto& [kernel, parts] : communication_.nodes) kernels[kernel] = &parts;
    for (const auto& [kernel, parts] : kernels) {
      const HostOpIndex op = timeline_.nodes[kernel].launching_op;
      if (op == kNoHostOp) {
        ++result_.lost;
        continue;
      }
      // A call without a schema around it, as those that PyTorch's own C++ makes.
      if (outermost_[op] == kNoHostOp) outermost_[op] = op;
      for (const NodeCommunication& part : *parts) {
        if (RunsIn(flavor_, part)) communicated_[outermost_[op]].push_back(&part);
      }
    }
  }

  // An operator computes what is known of it, or what the operators do that it calls.
  void FindCosts() {
    std::vector<int64_t> called(costs_.size(), 0);
    for (HostOpIndex op = static_cast<HostOpIndex>(costs_.size()); op-- > 0;) {
      if (outermost_[op] == kNoHostOp) continue;
      costs_[op] = CostOfOperator(host_.name(op), host_.Details(op));
      const int64_t operations = std::max(costs_[op].operations.value_or(0), called[op]);
      costs_[op].operations = operations;
      const HostOpIndex parent = host_.ops()[op].parent;
      constexpr int64_t kMost = int64_t{1} << 62;
      if (parent != kNoHostOp) called[parent] += std::min(operations, kMost - called[parent]);
    }
  }

  void AddOperator(HostOpIndex op) {
    RunNode node;
    node.name = host_.name(op);
    node.resource = {communication_.rank, ResourceKind::kCompute, 0};
    node.start_ns = node.end_ns = kNoTimeNs;
    const NodeIndex first = static_cast<NodeIndex>(result_.graph.nodes.size());
    const auto communicated = communicated_.find(op);
    if (communicated == communicated_.end()) {
      Push(node, op);
    } else {
      node.resource.kind = ResourceKind::kCommunication;
      for (const NodeCommunication* part : communicated->second) {
        RunNode communicating = node;
        SetCommunication(*part, flavor_, &groups_, &communicating);
        Push(communicating, op);
      }
    }
    AddEdges(op, first);
  }

  void Push(const RunNode& node, HostOpIndex op) {
    result_.graph.nodes.push_back(node);
    result_.origins.push_back({position_, op, costs_[op]});
  }

  // What was done to a storage: the nodes that wrote it last, and those that have read it since.
  struct History {
    std::vector<NodeIndex> writers;
    std::vector<NodeIndex> readers;
  };

  // Lets the operator's nodes wait for whoever wrote what it reads, and for who used what it writes.
  void AddEdges(HostOpIndex op, NodeIndex first) {
    const NodeIndex end = static_cast<NodeIndex>(result_.graph.nodes.size());
    const HostOpDetails details = host_.Details(op);
    std::set<uint64_t> reads, writes;
    for (const HostTensor& tensor : TensorsIn(details.inputs.values)) {
      reads.insert(tensor.storage_id);
    }
    for (const HostTensor& tensor : TensorsIn(details.outputs.values)) {
      writes.insert(tensor.storage_id);
    }
    // In-place operators and collectives write where they read.
    if (absl::EndsWith(host_.name(op), "_") || communicated_.contains(op)) {
      writes.insert(reads.begin(), reads.end());
    }
    std::set<NodeIndex> sources;
    for (const uint64_t storage : reads) {
      History& history = histories_[storage];
      sources.insert(history.writers.begin(), history.writers.end());
    }
    for (const uint64_t storage : writes) {
      History& history = histories_[storage];
      sources.insert(history.writers.begin(), history.writers.end());
      sources.insert(history.readers.begin(), history.readers.end());
    }
    for (NodeIndex node = first; node < end; ++node) {
      for (const NodeIndex source : sources) {
        result_.graph.edges.push_back({node, source, EdgeKind::kData});
      }
      for (const uint64_t storage : reads) histories_[storage].readers.push_back(node);
    }
    for (const uint64_t storage : writes) {
      History& history = histories_[storage];
      history.readers.clear();
      history.writers.clear();
      for (NodeIndex node = first; node < end; ++node) history.writers.push_back(node);
    }
  }

  const HostTrace& host_;
  const RankTimeline& timeline_;
  const RankCommunication& communication_;
  const uint32_t position_;
  const EtFlavor flavor_;
  ProcessGroupList& groups_;
  OperatorNodes& result_;
  // By operator: the outermost operator that it is part of.
  std::vector<HostOpIndex> outermost_;
  std::vector<OpCost> costs_;
  // By outermost operator.
  absl::flat_hash_map<HostOpIndex, std::vector<const NodeCommunication*>> communicated_;
  absl::flat_hash_map<uint64_t, History> histories_;
};

}  // namespace

absl::StatusOr<OperatorNodes> MakeOperatorNodes(absl::Span<const OperatorInput> inputs,
                                                EtFlavor flavor, int64_t world_size) {
  OperatorNodes result;
  result.graph.rank_count = world_size;
  ProcessGroupList groups(world_size);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(RankOperators(inputs[i], i, flavor, &groups, &result).Add());
  }
  result.graph.groups = groups.groups();
  return result;
}

}  // namespace meridian
