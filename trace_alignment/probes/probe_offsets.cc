#include "trace_alignment/probes/probe_offsets.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trace_alignment/probes/probe_solver.h"
#include "trace_alignment/probes/probe_windows.h"
#include "trace_alignment/probes/two_way_probes.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/jsonl_row.h"

namespace meridian {
namespace {

// Returns whether the first line that is no header has the four times of a two-way probe.
absl::StatusOr<bool> HoldsTwoWayProbes(absl::string_view contents, const std::string& file) {
  std::optional<bool> holds;
  RETURN_IF_ERROR(ForEachJsonlRow(
      contents, file, R"({"src":0,"dst":1,"t1":1,"t2":2,"t3":3,"t4":4})", [&](const JsonlRow& row) {
        if (!row.Has("meta") && !holds.has_value()) {
          holds = row.Has("t1");
        }
        return absl::OkStatus();
      }));
  return holds.value_or(false);
}

}  // namespace

absl::StatusOr<ProbeOffsets> LoadProbeOffsets(FileSystem& file_system,
                                              const std::vector<std::string>& files,
                                              int64_t reference_node, double max_drift_ppm) {
  std::vector<TwoWayProbe> two_way;
  std::vector<ProbeWindowEdge> windows;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const InputFile input, InputFile::Open(file_system, file));
    // Daemons are ended with their job, and disks fill up.
    const absl::string_view contents = WithoutTornLine(input.bytes());
    ASSIGN_OR_RETURN(const bool is_two_way, HoldsTwoWayProbes(contents, file));
    if (is_two_way) {
      ASSIGN_OR_RETURN(const std::vector<TwoWayProbe> probes, ParseTwoWayProbes(contents, file));
      two_way.insert(two_way.end(), probes.begin(), probes.end());
    } else {
      ASSIGN_OR_RETURN(const std::vector<ProbeWindowEdge> edges, ParseProbeWindows(contents, file));
      windows.insert(windows.end(), edges.begin(), edges.end());
    }
  }
  std::vector<std::string> notes;
  WindowEstimates from_windows = EstimatesFromWindows(windows);
  std::vector<ProbeEdge> edges = std::move(from_windows.edges);
  if (from_windows.rejected > 0) {
    notes.push_back(absl::StrCat(from_windows.rejected,
                                 " probe windows are not used: too few pairs, too many lost, or no "
                                 "fit"));
  }
  TwoWayOptions options;
  options.max_drift_ppm = max_drift_ppm;
  const TwoWayEstimates from_two_way = EstimateEdges(two_way, options);
  edges.insert(edges.end(), from_two_way.edges.begin(), from_two_way.edges.end());
  notes.insert(notes.end(), from_two_way.notes.begin(), from_two_way.notes.end());
  if (edges.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(files, ", "), ": no usable probe",
                     notes.empty() ? "" : absl::StrCat(" (", absl::StrJoin(notes, "; "), ")")));
  }
  absl::StatusOr<ProbeSolution> solved = SolveProbes(edges, reference_node);
  if (!solved.ok()) return Annotate(solved.status(), absl::StrJoin(files, ", "));
  ProbeSolution solution = *std::move(solved);
  // Fitted windows do not show a link's asymmetry; only raw probes bound the error.
  if (!windows.empty()) {
    for (OffsetSample& sample : solution.samples) sample.uncertainty_ns.reset();
  }
  for (const auto& [node, rounds] : solution.unreachable_rounds) {
    notes.push_back(absl::StrCat("node ", node, " is not connected to node ", reference_node,
                                 " by probes in ", rounds, " round(s)"));
  }
  return ProbeOffsets{OffsetSamples("probes", reference_node, solution.samples), std::move(notes)};
}

}  // namespace meridian
