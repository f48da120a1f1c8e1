#include "chakra_export/pytorch/tensor_dependencies.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"

namespace meridian {
namespace {

// An operator that only passes tensors on is called by one that has them; further up, tensors are
// others.
constexpr int kMaxCallersAsked = 3;

// Collectives write where they read, whatever their list of outputs says.
bool IsCommunicationOp(absl::string_view name) {
  return name == "record_param_comms" || absl::StartsWith(name, "nccl:") ||
         absl::StartsWith(name, "c10d::");
}

// Storages on the device in the order of their ids.
struct Accesses {
  std::set<uint64_t> reads;
  std::set<uint64_t> writes;

  bool empty() const { return reads.empty() && writes.empty(); }
};

std::set<uint64_t> StoragesIn(JsonValue values) {
  std::set<uint64_t> storages;
  for (const HostTensor& tensor : TensorsIn(values)) {
    if (tensor.on_device) storages.insert(tensor.storage_id);
  }
  return storages;
}

Accesses AccessesOf(const HostTrace& host, HostOpIndex op) {
  const HostOpDetails details = host.Details(op);
  Accesses accesses{StoragesIn(details.inputs.values), StoragesIn(details.outputs.values)};
  if (IsCommunicationOp(host.name(op))) {
    accesses.writes.insert(accesses.reads.begin(), accesses.reads.end());
  }
  return accesses;
}

// Finds the nearest of the operator and its callers that has tensors on the device, and what it
// does to them; kNoHostOp when none has.
HostOpIndex FindAccesses(const HostTrace& host, HostOpIndex op, Accesses* accesses) {
  for (int i = 0; i <= kMaxCallersAsked && op != kNoHostOp; ++i, op = host.ops()[op].parent) {
    *accesses = AccessesOf(host, op);
    if (!accesses->empty()) return op;
  }
  return kNoHostOp;
}

// What was done to a storage.
struct History {
  // The node that wrote it last.
  TimelineIndex writer = kNoTimelineNode;
  // The nodes that have read it since, the last of each stream.
  std::vector<TimelineIndex> readers;
};

class Finder {
 public:
  Finder(const HostTrace& host, RankTimeline* timeline) : host_(host), timeline_(*timeline) {}

  void Run() {
    // Operators often launch several kernels.
    HostOpIndex launching_op = kNoHostOp, op = kNoHostOp;
    Accesses accesses;
    for (const TimelineIndex node : InLaunchOrder()) {
      if (timeline_.nodes[node].launching_op != launching_op) {
        launching_op = timeline_.nodes[node].launching_op;
        op = FindAccesses(host_, launching_op, &accesses);
      }
      timeline_.nodes[node].tensor_op = op;
      if (op == kNoHostOp) continue;
      for (const uint64_t storage : accesses.reads) Read(node, &histories_[storage]);
      for (const uint64_t storage : accesses.writes) Write(node, &histories_[storage]);
    }
  }

 private:
  std::vector<TimelineIndex> InLaunchOrder() const {
    std::vector<TimelineIndex> order;
    for (TimelineIndex i = 0; i < timeline_.nodes.size(); ++i) {
      if (timeline_.nodes[i].launching_op != kNoHostOp) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [this](TimelineIndex a, TimelineIndex b) {
      return timeline_.nodes[a].launched_ps < timeline_.nodes[b].launched_ps;
    });
    return order;
  }

  void Read(TimelineIndex node, History* history) {
    AddEdge(node, history->writer);
    for (TimelineIndex& reader : history->readers) {
      if (timeline_.nodes[reader].track != timeline_.nodes[node].track) continue;
      reader = node;
      return;
    }
    history->readers.push_back(node);
  }

  void Write(TimelineIndex node, History* history) {
    AddEdge(node, history->writer);
    for (const TimelineIndex reader : history->readers) AddEdge(node, reader);
    history->readers.clear();
    history->writer = node;
  }

  void AddEdge(TimelineIndex node, TimelineIndex source) {
    if (source == kNoTimelineNode || source == node) return;
    if (timeline_.nodes[source].end_ps() > timeline_.nodes[node].start_ps) {
      ++timeline_.edges_against_time;
      return;
    }
    timeline_.AddEdge(node, source, EdgeKind::kData);
  }

  const HostTrace& host_;
  RankTimeline& timeline_;
  absl::flat_hash_map<uint64_t, History> histories_;
};

}  // namespace

HostOpIndex NearestOpWithTensors(const HostTrace& host, HostOpIndex op) {
  Accesses accesses;
  return FindAccesses(host, op, &accesses);
}

void AddTensorDependencies(const HostTrace& host, RankTimeline* timeline) {
  Finder(host, timeline).Run();
}

}  // namespace meridian
