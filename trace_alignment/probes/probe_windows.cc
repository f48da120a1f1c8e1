#include "trace_alignment/probes/probe_windows.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/jsonl_row.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

constexpr absl::string_view kExample =
    R"({"window_start_ns":1000,"window_end_ns":2000,"round_id":3,"node_id":0,)"
    R"("edges":[{"dst":1,"alpha":0.0000001,"beta":-123456,"pairs":40,"lost":2}]})";

class ProbeWindowsReader {
 public:
  explicit ProbeWindowsReader(const std::string& name) : name_(name) {}

  absl::Status ReadRow(const JsonlRow& row) {
    ASSIGN_OR_RETURN(const bool is_header, row.Bool("meta", false));
    // The header says when the profiler began, which windows need not know.
    return is_header ? absl::OkStatus() : ReadWindow(row);
  }

  std::vector<ProbeWindowEdge> Take() { return std::move(edges_); }

 private:
  absl::Status ReadWindow(const JsonlRow& row) {
    ProbeWindowEdge window;
    ASSIGN_OR_RETURN(window.src, row.Int64("node_id"));
    ASSIGN_OR_RETURN(window.round_id, row.Int64("round_id"));
    ASSIGN_OR_RETURN(window.window_start_ns, row.Int64("window_start_ns"));
    ASSIGN_OR_RETURN(window.window_end_ns, row.Int64("window_end_ns"));
    if (window.window_end_ns < window.window_start_ns) {
      return row.Error("window_end_ns is before window_start_ns");
    }
    JsonCutter edges(row.Find("edges").text());
    edges.Enter('[');
    while (edges.NextElement()) {
      ASSIGN_OR_RETURN(const ProbeWindowEdge edge, ReadEdge(row.Nested(edges.CutValue()), window));
      RETURN_IF_ERROR(Add(edge, row));
    }
    return edges.status().ok() ? absl::OkStatus() : row.Error("edges is no array");
  }

  static absl::StatusOr<ProbeWindowEdge> ReadEdge(const JsonlRow& row,
                                                  const ProbeWindowEdge& window) {
    ProbeWindowEdge edge = window;
    ASSIGN_OR_RETURN(edge.dst, row.Int64("dst"));
    if (edge.dst == edge.src) return row.Error("dst is the node itself");
    ASSIGN_OR_RETURN(edge.alpha, row.FiniteDouble("alpha"));
    ASSIGN_OR_RETURN(edge.beta_ps, row.NanosAsPicos("beta"));
    ASSIGN_OR_RETURN(edge.pairs, row.Int64("pairs"));
    ASSIGN_OR_RETURN(edge.lost, row.Int64("lost"));
    if (edge.pairs < 0 || edge.lost < 0) return row.Error("pairs or lost is negative");
    return edge;
  }

  absl::Status Add(const ProbeWindowEdge& edge, const JsonlRow& row) {
    const auto [known, inserted] =
        known_.try_emplace({edge.src, edge.dst, edge.round_id}, edges_.size(), row.line());
    if (inserted) {
      edges_.push_back(edge);
      return absl::OkStatus();
    }
    const auto [index, line] = known->second;
    const auto values = [](const ProbeWindowEdge& e) {
      return std::tie(e.window_start_ns, e.window_end_ns, e.alpha, e.beta_ps, e.pairs, e.lost);
    };
    if (values(edges_[index]) != values(edge)) {
      return InvalidArgument(name_, ":", row.line(), ": contradicts line ", line,
                             ": both are for dst ", edge.dst, " in round ", edge.round_id,
                             ", with different values");
    }
    return absl::OkStatus();
  }

  const std::string& name_;
  std::vector<ProbeWindowEdge> edges_;
  // Position in edges_ and line in the file, by (src, dst, round).
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t>, std::pair<size_t, int64_t>> known_;
};

// Which windows are good enough: enough pairs, and few lost for each.
constexpr int64_t kMinPairs = 12;
constexpr double kMaxLossRatio = 0.6;

// What clocks may drift apart within a window (11 days), and be apart (92 days): sums fit int64.
constexpr double kMaxDriftedPs = 1e18;
constexpr double kMaxOffsetPs = 8e18;

bool IsGood(const ProbeWindowEdge& window) {
  const bool fitted = window.alpha != 0 || window.beta_ps != 0;
  return fitted && std::abs(window.alpha) < 1 && window.pairs >= kMinPairs &&
         static_cast<double>(window.lost) <= kMaxLossRatio * static_cast<double>(window.pairs);
}

}  // namespace

absl::StatusOr<std::vector<ProbeWindowEdge>> ParseProbeWindows(absl::string_view contents,
                                                               const std::string& name) {
  ProbeWindowsReader reader(name);
  RETURN_IF_ERROR(ForEachJsonlRow(contents, name, kExample,
                                  [&](const JsonlRow& row) { return reader.ReadRow(row); }));
  return reader.Take();
}

WindowEstimates EstimatesFromWindows(const std::vector<ProbeWindowEdge>& windows) {
  WindowEstimates estimates;
  for (const ProbeWindowEdge& window : windows) {
    const absl::int128 half_ns = (absl::int128(window.window_end_ns) - window.window_start_ns) / 2;
    const double drifted_ps = window.alpha * static_cast<double>(half_ns) * kPsPerNs;
    if (!IsGood(window) || std::abs(drifted_ps) > kMaxDriftedPs ||
        std::abs(static_cast<double>(window.beta_ps)) > kMaxOffsetPs) {
      ++estimates.rejected;
      continue;
    }
    ProbeEdge edge;
    edge.src = window.src;
    edge.dst = window.dst;
    edge.round_id = window.round_id;
    edge.midpoint_src_ns = static_cast<int64_t>(window.window_start_ns + half_ns);
    edge.rate = window.alpha;
    edge.offset_ps = window.beta_ps + std::llround(drifted_ps);
    const double pairs = static_cast<double>(window.pairs);
    edge.weight = pairs * pairs / (pairs + static_cast<double>(window.lost));
    estimates.edges.push_back(edge);
  }
  return estimates;
}

}  // namespace meridian
