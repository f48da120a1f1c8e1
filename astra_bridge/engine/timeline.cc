#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/simulation_report.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

// Threads of a rank come in bands: those of band b have numbers from b * kThreadsPerBand on.
constexpr std::array<absl::string_view, 4> kBands = {"compute", "communication", "receive", "host"};
constexpr int64_t kThreadsPerBand = 1'000'000;

size_t BandOf(const WorkloadNode& node) {
  if (node.on_host) return 3;
  if (node.type == WorkloadNodeType::kCompute) return 0;
  return node.type == WorkloadNodeType::kReceive ? 2 : 1;
}

std::string NameOf(const WorkloadNode& node) {
  if (!node.name.empty()) return node.name;
  switch (node.type) {
    case WorkloadNodeType::kCompute:
      return "compute";
    case WorkloadNodeType::kCollective:
      return std::string(CollectiveKindName(node.op));
    case WorkloadNodeType::kSend:
      return absl::StrCat("send to ", node.peer);
    case WorkloadNodeType::kMemory:
      return "remote memory";
    case WorkloadNodeType::kReceive:
      break;
  }
  return absl::StrCat("receive from ", node.peer);
}

absl::Status WriteRank(int32_t rank, const RankWorkload& workload, absl::Span<const NodeTime> times,
                       TraceJsonWriter* writer) {
  RETURN_IF_ERROR(writer->WriteProcess(rank, absl::StrCat("rank ", rank), rank));
  std::vector<size_t> order(times.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return times[a].issue_ns < times[b].issue_ns; });
  // When each thread is free again, in ns, indexed by band, then by thread of the band.
  std::array<std::vector<int64_t>, kBands.size()> free_from;
  for (const size_t position : order) {
    const WorkloadNode& node = workload.nodes()[position];
    const NodeTime& time = times[position];
    const size_t band = BandOf(node);
    // The first thread of the band that is free, a new one if none is.
    std::vector<int64_t>& threads = free_from[band];
    const auto free = std::find_if(threads.begin(), threads.end(),
                                   [&](int64_t from_ns) { return from_ns <= time.issue_ns; });
    const int64_t thread = static_cast<int64_t>(band) * kThreadsPerBand + (free - threads.begin());
    if (free == threads.end()) {
      threads.push_back(time.finish_ns);
      RETURN_IF_ERROR(writer->WriteThread(rank, thread, kBands[band], thread));
    } else {
      *free = time.finish_ns;
    }
    const std::string name = NameOf(node);
    TraceJsonArgs args;
    args.AddUint64("id", node.id);
    if (node.type != WorkloadNodeType::kCompute) {
      args.AddInt64("bytes", std::max(node.bytes, node.tensor_bytes));
    }
    if (node.type == WorkloadNodeType::kCollective) args.AddInt64("group", node.group);
    TraceJsonFields fields;
    fields.pid = rank;
    fields.tid = thread;
    fields.name = name;
    fields.category = kBands[band];
    fields.ts_ps = time.issue_ns * kPsPerNs;
    fields.args = &args;
    RETURN_IF_ERROR(writer->WriteComplete(fields, (time.finish_ns - time.issue_ns) * kPsPerNs));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteTimeline(const Workload& workload, const SimulationResult& result,
                           ByteSink* sink) {
  TraceJsonWriter writer(sink);
  absl::Span<const NodeTime> times = result.nodes;
  for (size_t rank = 0; rank < workload.ranks.size(); ++rank) {
    const size_t nodes = workload.ranks[rank].nodes().size();
    RETURN_IF_ERROR(WriteRank(static_cast<int32_t>(rank), workload.ranks[rank],
                              times.subspan(0, nodes), &writer));
    times.remove_prefix(nodes);
  }
  return writer.Finish();
}

}  // namespace meridian
