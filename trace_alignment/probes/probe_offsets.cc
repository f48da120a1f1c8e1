#include "trace_alignment/probes/probe_offsets.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trace_alignment/probes/probe_solver.h"
#include "trace_alignment/probes/probe_windows.h"
#include "trace_alignment/probes/two_way_probes.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/jsonl_row.h"

namespace meridian {

absl::StatusOr<ProbeOffsets> LoadProbeOffsets(FileSystem& file_system,
                                              const std::vector<std::string>& files,
                                              int64_t reference_node, double max_drift_ppm) {
  std::vector<TwoWayProbe> two_way;
  std::vector<ProbeWindowEdge> windows;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const InputFile input, InputFile::Open(file_system, file));
    // Daemons are ended with their job, and disks fill up.
    const absl::string_view contents = WithoutTornLine(input.bytes());
    // Raw two-way probes have four times.
    if (absl::StrContains(contents, "\"t1\"")) {
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
    return InvalidArgument(
        absl::StrJoin(files, ", "), ": no usable probe",
        notes.empty() ? "" : absl::StrCat(" (", absl::StrJoin(notes, "; "), ")"));
  }
  ASSIGN_OR_RETURN(std::vector<OffsetSample> samples,
                   Annotate(SolveProbes(edges, reference_node), absl::StrJoin(files, ", ")));
  // Fitted windows do not show a link's asymmetry; only raw probes bound the error.
  if (!windows.empty()) {
    for (OffsetSample& sample : samples) sample.uncertainty_ns.reset();
  }
  return ProbeOffsets{OffsetSamples("probes", reference_node, samples), std::move(notes)};
}

}  // namespace meridian
