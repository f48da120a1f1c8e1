// Any bytes as each of the files of clock readings, and what is made of those that are accepted.
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/clocks/clock_log.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "trace_alignment/probes/probe_solver.h"
#include "trace_alignment/probes/probe_windows.h"
#include "trace_alignment/probes/two_way_probes.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const RunClock run(int64_t{1700000000000000000});
  const absl::StatusOr<SnapshotPairs> pairs = ParseSnapshotPairs(bytes, "fuzz.jsonl");
  if (pairs.ok()) TracerToHostMap(*pairs, run).IgnoreError();
  const absl::StatusOr<OffsetSamples> offsets =
      OffsetSamples::Parse(bytes, "fuzz.jsonl", std::nullopt);
  if (offsets.ok()) {
    for (const int64_t node : offsets->NodeIds()) {
      offsets->OffsetMap(node, run, OffsetSamples::Slope::kInterpolate).IgnoreError();
    }
    if (!offsets->NodeIds().empty()) {
      const int64_t node = offsets->NodeIds().back();
      offsets->WithLastHeld({node}, OffsetSamples::Slope::kDriftPpm, 100)
          .OffsetMap(node, run, OffsetSamples::Slope::kDriftPpm)
          .IgnoreError();
    }
  }
  const absl::StatusOr<std::vector<TwoWayProbe>> probes = ParseTwoWayProbes(bytes, "fuzz.jsonl");
  if (probes.ok()) SolveProbes(EstimateEdges(*probes).edges, 0).IgnoreError();
  const absl::StatusOr<std::vector<ProbeWindowEdge>> windows =
      ParseProbeWindows(bytes, "probe_windows_node0.jsonl");
  if (windows.ok()) SolveProbes(EstimatesFromWindows(*windows).edges, 0).IgnoreError();
  ClockWithinNs(bytes, "tracking.log", run.base_ns(), run.base_ns()).IgnoreError();
  return absl::OkStatus();
}
