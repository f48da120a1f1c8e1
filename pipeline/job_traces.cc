#include "pipeline/job_traces.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/pytorch_workload.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/number_range.h"
#include "xla_profiler/sources/trace_sources.h"

namespace meridian {

std::vector<std::string> JobTraces::All() const {
  std::vector<std::string> all = xspaces;
  all.insert(all.end(), host_traces.begin(), host_traces.end());
  all.insert(all.end(), device_traces.begin(), device_traces.end());
  return all;
}

JobTraces SortTraces(FileSystem& file_system, const std::vector<std::string>& paths) {
  JobTraces traces;
  for (const std::string& path : paths) {
    const absl::StatusOr<DetectedFile> file = DetectFile(file_system, path);
    if (!file.ok()) continue;
    if (file->other == OtherFile::kPytorchEt) traces.host_traces.push_back(path);
    if (file->source == nullptr) continue;
    const bool is_xspace = file->source->form() == TraceForm::kXSpace;
    (is_xspace ? traces.xspaces : traces.device_traces).push_back(path);
  }
  return traces;
}

absl::StatusOr<JobTraces> FindJobTraces(FileSystem& file_system, const std::string& run_dir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, FindRunFolders(file_system, run_dir));
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(std::vector<std::string> names, file_system.List(folder));
    absl::c_sort(names, NaturalLess);
    for (const std::string& name : names) paths.push_back(absl::StrCat(folder, "/", name));
  }
  return SortTraces(file_system, paths);
}

namespace {

// Chooses the steps that have at most so much work of a rank, if the run has more: those around the
// middle of the steps in which all devices worked. None where there are no such steps.
void ChooseSteps(const ProfiledRun& run, const JobExportOptions& options,
                 XSpaceExportOptions* exported) {
  const bool is_long = absl::c_any_of(run.profiles, [&](const auto& profile) {
    return absl::c_any_of(profile->devices, [&](const WorkingDevice& device) {
      return device.work.size() > options.most_work;
    });
  });
  if (!is_long) return;
  size_t devices = 0;
  // By step: on how many devices there is work, and how much on the one that has most.
  std::map<int64_t, std::pair<size_t, size_t>> steps;
  for (const auto& profile : run.profiles) {
    for (const WorkingDevice& device : profile->devices) {
      ++devices;
      std::map<int64_t, size_t> work;
      for (const DeviceWork& piece : device.work.view()) {
        if (piece.step.has_value()) ++work[*piece.step];
      }
      device.work.Forget();
      for (const auto& [step, pieces] : work) {
        auto& [on_devices, most] = steps[step];
        ++on_devices;
        most = std::max(most, pieces);
      }
    }
  }
  std::vector<std::pair<int64_t, size_t>> whole;
  for (const auto& [step, found] : steps) {
    if (found.first == devices) whole.emplace_back(step, found.second);
  }
  if (whole.empty()) return;
  size_t first = whole.size() / 2, last = first, work = whole[first].second;
  for (bool grows = true; grows;) {
    grows = false;
    if (first > 0 && work + whole[first - 1].second <= options.most_work) {
      work += whole[--first].second;
      grows = true;
    }
    if (last + 1 < whole.size() && work + whole[last + 1].second <= options.most_work) {
      work += whole[++last].second;
      grows = true;
    }
  }
  exported->steps = NumberRange{whole[first].first, whole[last].first};
  if (options.notes == nullptr) return;
  options.notes->push_back(absl::StrCat(
      "Chakra traces hold the steps ", exported->steps->first, " to ", exported->steps->last, ", ",
      last - first + 1, " of ", steps.size(), ": simulators hold all they read in memory ",
      "(chakra_export on the aligned profiles writes all)"));
}

}  // namespace

absl::Status ExportJob(FileSystem& file_system, const JobTraces& traces, const std::string& prefix,
                       const JobExportOptions& options) {
  if (!traces.xspaces.empty() && !traces.device_traces.empty()) {
    return InvalidArgument("there are XSpaces (", traces.xspaces[0], ") and Kineto traces (",
                           traces.device_traces[0], "): they are of two jobs");
  }
  if (!traces.xspaces.empty()) {
    XSpaceExportOptions exported;
    exported.reader.input = options.input;
    exported.progress = options.progress;
    if (options.profiled != nullptr) exported.collectives = &options.profiled->collectives;
    ASSIGN_OR_RETURN(ProfiledRun run, ReadProfiledRun(file_system, traces.xspaces, exported));
    ChooseSteps(run, options, &exported);
    const absl::Status status = ExportXSpaces(file_system, run, prefix, exported).status();
    if (options.profiled != nullptr) *options.profiled = std::move(run);
    return status;
  }
  PytorchWorkloadOptions linked;
  linked.input = options.input;
  linked.progress = options.progress;
  return ConvertPytorchWorkload(file_system, traces.host_traces, traces.device_traces, prefix,
                                linked)
      .status();
}

}  // namespace meridian
