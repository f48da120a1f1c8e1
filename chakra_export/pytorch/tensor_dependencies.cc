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
    for (const TimelineIndex node : InLaunchOrder()) {
      const HostOpIndex op = NearestOpWithTensors(host_, timeline_.nodes[node].launching_op);
      if (op == kNoHostOp) continue;
      if (op != recent_op_) {
        recent_ = AccessesOf(host_, op);
        recent_op_ = op;
      }
      for (const uint64_t storage : recent_.reads) Read(node, &histories_[storage]);
      for (const uint64_t storage : recent_.writes) Write(node, &histories_[storage]);
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
  // The operator asked for last and its accesses: operators often launch several kernels.
  HostOpIndex recent_op_ = kNoHostOp;
  Accesses recent_;
};

bool HasDeviceTensors(const HostTrace& host, HostOpIndex op) {
  const HostOpDetails details = host.Details(op);
  return !StoragesIn(details.inputs.values).empty() || !StoragesIn(details.outputs.values).empty();
}

}  // namespace

HostOpIndex NearestOpWithTensors(const HostTrace& host, HostOpIndex op) {
  for (int i = 0; i <= kMaxCallersAsked && op != kNoHostOp; ++i, op = host.ops()[op].parent) {
    if (HasDeviceTensors(host, op)) return op;
  }
  return kNoHostOp;
}

void AddTensorDependencies(const HostTrace& host, RankTimeline* timeline) {
  Finder(host, timeline).Run();
}

}  // namespace meridian
