// chakra_link: PyTorch execution traces and profiles made Chakra traces.
#include <string>
#include <vector>

#include "chakra_export/et/et_files.h"
#include "chakra_export/pytorch/pytorch_workload.h"
#include "chakra_export/run/run_workload.h"
#include "chakra_export/run/workload_report.pb.h"
#include "pipeline/job_traces.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_host_traces("host_traces", "",
                                    "Execution traces of PyTorch, one per rank: a comma list of "
                                    "files, folders or globs, JSON or gzip. Default: none; they "
                                    "add tensors and operators.");
Flag<std::string> FLAGS_device_traces(
    "device_traces", "",
    "Profiles (Kineto traces), one per rank; with --host_traces in the same order.");
Flag<std::string> FLAGS_output("output", "", "PREFIX of the new traces, PREFIX.<rank>.et.");
Flag<std::string> FLAGS_flavor(
    "flavor", "simulation",
    "simulation: device work alone, as ASTRA-sim runs it; full: the host's operators, too.");
Flag<std::string> FLAGS_intent(
    "intent", "profiled",
    "profiled: what ran, with its times; pre_transformed: the operators and collectives of the "
    "execution traces, before they became kernels, without times.");
Flag<std::string> FLAGS_linked_json(
    "linked_json", "", "Also writes the joined host and device traces, to <this>.<rank>.json.");
Flag<bool> FLAGS_allow_violations("allow_violations", false,
                                  "Convert traces whose clocks contradict each other, too.");

absl::StatusOr<int> Link() {
  RETURN_IF_ERROR(UseCollectiveKernels());
  PytorchWorkloadOptions options;
  options.input = UserInputOptions();
  ASSIGN_OR_RETURN(options.flavor,
                   NamedValue<EtFlavor>(FLAGS_flavor, {{"simulation", EtFlavor::kSimulation},
                                                       {"full", EtFlavor::kFull}}));
  ASSIGN_OR_RETURN(
      options.pre_transformed,
      NamedValue<bool>(FLAGS_intent, {{"profiled", false}, {"pre_transformed", true}}));
  options.allow_violations = FLAGS_allow_violations.value();
  options.linked_json_prefix = UserPath(FLAGS_linked_json);
  ASSIGN_OR_RETURN(const std::string output,
                   RequiredPath(FLAGS_output, "prefix", "run/w for run/w.0.et"));
  std::vector<std::string> host_traces, device_traces;
  if (FLAGS_run_dir.given()) {
    if (FLAGS_host_traces.given() || FLAGS_device_traces.given()) {
      return InvalidArgument(
          "give either --run_dir or --host_traces and --device_traces: both name the traces");
    }
    ASSIGN_OR_RETURN(JobTraces traces, FindJobTraces(FileSystem::Posix(), UserPath(FLAGS_run_dir)));
    if (traces.device_traces.empty()) {
      return InvalidArgument("--run_dir=", FLAGS_run_dir.value(),
                             " holds no Kineto trace; expected one for every rank");
    }
    host_traces = std::move(traces.host_traces);
    device_traces = std::move(traces.device_traces);
  } else {
    if (FLAGS_host_traces.given()) {
      ASSIGN_OR_RETURN(host_traces,
                       UserFiles(FLAGS_host_traces, {".json", ".json.gz"}, "'rank*.json.gz'"));
    }
    ASSIGN_OR_RETURN(device_traces,
                     UserFiles(FLAGS_device_traces, {".json", ".json.gz"}, "'rank*.json.gz'"));
    for (const std::string& path : device_traces) {
      RETURN_IF_ERROR(CheckIsTraceJson(path, "combine makes Chakra traces of others"));
    }
  }
  std::vector<std::string> inputs = host_traces;
  inputs.insert(inputs.end(), device_traces.begin(), device_traces.end());
  RETURN_IF_ERROR(
      CheckOutputPrefix("--output", output, {".et", ".et.gz", ".comm_groups.json"}, inputs));
  if (FLAGS_linked_json.given()) {
    RETURN_IF_ERROR(
        CheckOutputPrefix("--linked_json", options.linked_json_prefix, {".json"}, inputs));
  }
  ASSIGN_OR_RETURN(
      const ChakraWorkloadReport report,
      ConvertPytorchWorkload(FileSystem::Posix(), host_traces, device_traces, output,
                             WithProgress(options, "converting", device_traces.size())));
  RETURN_IF_ERROR(PrintReport(report, FormatWorkloadReport).status());
  PrintWarnings(report.warnings());
  return kExitDone;
}

}  // namespace

Command ChakraLinkCommand() {
  return {"chakra_link",
          "Makes Chakra traces of PyTorch runs: joins each rank's execution trace, if there is "
          "one, with its profile, finds what every kernel waited for, and matches communication "
          "across ranks.",
          {"chakra_link --run_dir=run/ --output=w",
           "chakra_link --device_traces='kineto_*.json.gz' --output=w",
           "chakra_link --host_traces='et_*.json.gz' --device_traces='kineto_*.json.gz' --output=w",
           "chakra_link --host_traces=et_0.json --device_traces=kineto_0.json --output=w "
           "--flavor=full --linked_json=w"},
          {&FLAGS_host_traces, &FLAGS_device_traces, &FLAGS_run_dir, &FLAGS_output, &FLAGS_flavor,
           &FLAGS_intent, &FLAGS_linked_json, &FLAGS_allow_violations, &FLAGS_collective_kernels},
          Link};
}

}  // namespace meridian
