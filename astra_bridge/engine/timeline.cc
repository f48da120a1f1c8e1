#include "astra_bridge/engine/timeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

// Threads of a rank come in bands: those of band b have numbers from b * kThreadsPerBand on.
constexpr std::array<absl::string_view, 4> kBands = {"compute", "communication", "receive", "host"};
constexpr int64_t kThreadsPerBand = 1'000'000;

size_t BandOf(const WorkloadNode& node) {
  switch (node.type) {
    case WorkloadNodeType::kCompute:
      return node.on_host ? 3 : 0;
    case WorkloadNodeType::kCollective:
    case WorkloadNodeType::kSend:
      return 1;
    case WorkloadNodeType::kReceive:
      break;
  }
  return 2;
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
    case WorkloadNodeType::kReceive:
      break;
  }
  return absl::StrCat("receive from ", node.peer);
}

class RankTimeline {
 public:
  RankTimeline(int32_t rank, const RankWorkload& workload, absl::Span<const NodeTime> times,
               TraceJsonWriter* writer)
      : rank_(rank), workload_(workload), times_(times), writer_(writer) {}

  absl::Status Write() {
    RETURN_IF_ERROR(writer_->WriteProcess(rank_, absl::StrCat("rank ", rank_), rank_));
    std::vector<size_t> order(times_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return times_[a].issue_ns < times_[b].issue_ns; });
    for (const size_t node : order) RETURN_IF_ERROR(WriteNode(node));
    return absl::OkStatus();
  }

 private:
  absl::Status WriteNode(size_t position) {
    const WorkloadNode& node = workload_.nodes()[position];
    const NodeTime& time = times_[position];
    ASSIGN_OR_RETURN(const int64_t thread, ThreadFor(BandOf(node), time));
    const std::string name = NameOf(node);
    TraceJsonArgs args;
    args.AddUint64("id", node.id);
    if (node.type != WorkloadNodeType::kCompute) args.AddInt64("bytes", node.bytes);
    if (node.type == WorkloadNodeType::kCollective) args.AddInt64("group", node.group);
    TraceJsonFields fields;
    fields.pid = rank_;
    fields.tid = thread;
    fields.name = name;
    fields.category = kBands[BandOf(node)];
    fields.ts_ps = time.issue_ns * kPsPerNs;
    fields.args = &args;
    return writer_->WriteComplete(fields, (time.finish_ns - time.issue_ns) * kPsPerNs);
  }

  // Returns the first thread of the band that is free, a new one if none is.
  absl::StatusOr<int64_t> ThreadFor(size_t band, const NodeTime& time) {
    std::vector<int64_t>& free_from = free_from_[band];
    const auto free = std::find_if(free_from.begin(), free_from.end(),
                                   [&](int64_t from_ns) { return from_ns <= time.issue_ns; });
    const int64_t index = free - free_from.begin();
    const int64_t thread = static_cast<int64_t>(band) * kThreadsPerBand + index;
    if (free == free_from.end()) {
      free_from.push_back(time.finish_ns);
      RETURN_IF_ERROR(writer_->WriteThread(rank_, thread, kBands[band], thread));
    } else {
      *free = time.finish_ns;
    }
    return thread;
  }

  const int32_t rank_;
  const RankWorkload& workload_;
  const absl::Span<const NodeTime> times_;
  TraceJsonWriter* const writer_;
  // When each thread is free again, in ns, indexed by band, then by thread of the band.
  std::array<std::vector<int64_t>, kBands.size()> free_from_;
};

}  // namespace

absl::Status WriteTimeline(const Workload& workload, const SimulationResult& result,
                           ByteSink* sink) {
  TraceJsonWriter writer(sink);
  absl::Span<const NodeTime> times = result.nodes;
  for (size_t rank = 0; rank < workload.ranks.size(); ++rank) {
    const size_t nodes = workload.ranks[rank].nodes().size();
    RETURN_IF_ERROR(RankTimeline(static_cast<int32_t>(rank), workload.ranks[rank],
                                 times.subspan(0, nodes), &writer)
                        .Write());
    times.remove_prefix(nodes);
  }
  return writer.Finish();
}

}  // namespace meridian
