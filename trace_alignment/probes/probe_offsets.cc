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

enum class ProbeFileKind { kTwoWay, kWindows, kSnapshotPairs };

// Raw two-way probes have four times. Whoever probes may also leave how the host's own clocks run.
absl::StatusOr<ProbeFileKind> TellKind(absl::string_view contents, const std::string& file) {
  std::optional<ProbeFileKind> kind;
  RETURN_IF_ERROR(ForEachJsonlRow(contents, file,
                                  R"({"src":0,"dst":1,"t1":1,"t2":2,"t3":3,"t4":4})",
                                  [&](const JsonlRow& row) -> absl::Status {
                                    if (kind.has_value() || row.Has("meta"))
                                      return absl::OkStatus();
                                    kind = row.Has("t1")       ? ProbeFileKind::kTwoWay
                                           : row.Has("sys_ns") ? ProbeFileKind::kSnapshotPairs
                                                               : ProbeFileKind::kWindows;
                                    return absl::OkStatus();
                                  }));
  return kind.value_or(ProbeFileKind::kWindows);
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
    ASSIGN_OR_RETURN(const ProbeFileKind kind, TellKind(contents, file));
    if (kind == ProbeFileKind::kSnapshotPairs) continue;
    if (kind == ProbeFileKind::kTwoWay) {
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
