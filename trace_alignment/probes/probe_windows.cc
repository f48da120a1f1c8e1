#include "trace_alignment/probes/probe_windows.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/jsonl_row.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

constexpr absl::string_view kExample =
    R"({"window_start_ns":1000,"window_end_ns":2000,"round_id":3,"node_id":0,)"
    R"("edges":[{"dst":1,"alpha":0.0000001,"beta":-123456,"pairs":40,"lost":2}]})";

// Reads what all edges of a row share.
absl::StatusOr<ProbeWindowEdge> ReadWindow(const JsonlRow& row) {
  ProbeWindowEdge window;
  ASSIGN_OR_RETURN(window.src, row.Int64("node_id"));
  ASSIGN_OR_RETURN(window.round_id, row.Int64("round_id"));
  ASSIGN_OR_RETURN(window.window_start_ns, row.Int64("window_start_ns"));
  ASSIGN_OR_RETURN(window.window_end_ns, row.Int64("window_end_ns"));
  if (window.window_end_ns >= window.window_start_ns) return window;
  return row.Error("window_end_ns is before window_start_ns");
}

absl::StatusOr<ProbeWindowEdge> ReadEdge(const JsonlRow& row, const ProbeWindowEdge& window) {
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

auto ValuesOf(const ProbeWindowEdge& edge) {
  return std::tie(edge.window_start_ns, edge.window_end_ns, edge.alpha, edge.beta_ps, edge.pairs,
                  edge.lost);
}

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
  std::vector<ProbeWindowEdge> edges;
  // Position in `edges` and line in the file, by (src, dst, round).
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t>, std::pair<size_t, int64_t>> known;
  RETURN_IF_ERROR(
      ForEachJsonlRow(contents, name, kExample, [&](const JsonlRow& row) -> absl::Status {
        ASSIGN_OR_RETURN(const bool is_header, row.Bool("meta", false));
        // The header says when the profiler began, which windows need not know.
        if (is_header) return absl::OkStatus();
        ASSIGN_OR_RETURN(const ProbeWindowEdge window, ReadWindow(row));
        JsonCutter cutter(row.Find("edges").text());
        cutter.Enter('[');
        while (cutter.NextElement()) {
          ASSIGN_OR_RETURN(const ProbeWindowEdge edge,
                           ReadEdge(row.Nested(cutter.CutValue()), window));
          const auto [first, inserted] =
              known.try_emplace({edge.src, edge.dst, edge.round_id}, edges.size(), row.line());
          if (inserted) {
            edges.push_back(edge);
          } else if (ValuesOf(edges[first->second.first]) != ValuesOf(edge)) {
            return row.Error(absl::StrCat("contradicts line ", first->second.second,
                                          ": both are for dst ", edge.dst, " in round ",
                                          edge.round_id, ", with different values"));
          }
        }
        return cutter.status().ok() ? absl::OkStatus() : row.Error("edges is no array");
      }));
  return edges;
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
