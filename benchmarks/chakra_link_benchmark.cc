// What chakra_link costs, and that it grows as its input does: a made-up training run, repeated
// 1, 2, 4, 8 and 16 times, in both flavours. Each is converted in a process of its own, whose CPU
// time (user and system) and peak of resident memory (mapped files included) are held against what
// chakra 1.0.0 took in its recorded runs for linking and converting:
//
//   CPU      the least for an operation (of host or device) of all inputs: synth_resnet_x2, 15.22 s
//            for 36,098
//   memory   synth_resnet_x1 to x8, of both steps the larger: 221 MB for 18,050 operations to
//            1,101 MB for 144,386, which is 95 MB and 6.97 kB for each
//
// Given --host_trace and --device_trace, the cost of converting them, held against what chakra took
// for the same files where that is given, too.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/ratio_benchmark.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/pytorch/pytorch_workload.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "chakra_export/run/workload_report.pb.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_host_trace("host_trace", "",
                                   "An execution trace to convert instead of made-up ones.");
Flag<std::string> FLAGS_device_trace("device_trace", "", "Its profile.");
Flag<double> FLAGS_chakra_seconds("chakra_seconds", 0,
                                  "CPU seconds that chakra took for the given traces.");
Flag<double> FLAGS_chakra_megabytes("chakra_megabytes", 0, "And its peak of resident memory.");
Flag<int> FLAGS_layers("layers", 4000, "Operators of the made-up run, before it is repeated.");
Flag<int> FLAGS_rounds("rounds", 3, "How often each is converted; the least counts.");

// chakra 1.0.0's, and what is to be reached.
constexpr double kCpuReach = 1.0 / 30;
constexpr double kMemoryReach = 1.0 / 4;
double ChakraSeconds(double operations) {
  const double given = FLAGS_chakra_seconds.value();
  return given > 0 ? given : 15.22 / 36098 * operations;
}
double ChakraMegabytes(double operations) {
  const double given = FLAGS_chakra_megabytes.value();
  return given > 0 ? given : 95 + 6.97e-3 * operations;
}
// How much more an operation of the largest input may cost than one of the smallest.
constexpr double kMaxGrowth = 1.5;

struct TraceFiles {
  std::string host;
  std::string device;
};

// Operators that call another, which launches a kernel; an all-reduce on a stream of its own every
// hundred operators, a wait for the device every thousand.
TraceFiles WriteRun(const TemporaryDirectory& directory, int ops) {
  HostTraceText host;
  KinetoText device(0, 2);
  uint64_t id = 2;
  int64_t ts = 0;
  int64_t free_ts = 0;
  for (int i = 0; i < ops; ++i, ts += 30) {
    const bool reduces = i % 100 == 99;
    const std::string input = absl::StrCat("[", TensorJson(100 + i, 65536), ", 1.0]");
    const std::string output = absl::StrCat("[", TensorJson(101 + i, 65536), "]");
    const uint64_t outer = id++;
    const uint64_t inner = id++;
    const char* name = reduces ? "nccl:all_reduce" : "aten::addmm";
    host.Op(inner, outer, name, 1, input, output).Op(outer, 1, "aten::linear", 1, input, output);
    device.Op("aten::linear", 1, ts, 25, outer).Op(name, 1, ts + 5, 15, inner);
    device.Call("cudaLaunchKernel", 1, ts + 10, 5, outer);
    free_ts = std::max(free_ts, ts + 16);
    if (reduces) {
      device.Collective("allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)",
                        16, free_ts, 20, outer, 65536);
    } else {
      device.Kernel("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>", 7, free_ts,
                    20, outer);
    }
    free_ts += 20;
    if (i % 1000 == 999) {
      ts = std::max(ts + 30, free_ts - 10);
      device.Call("cudaDeviceSynchronize", 1, ts, 20, id++);
    }
  }
  return {directory.Write("host.json", host.Text()), directory.Write("device.json", device.Text())};
}

struct Cost {
  double megabytes = 0;
  double operations = 0;
  double cpu_seconds = 0;
  double peak_megabytes = 0;
};

// Runs it in a child and returns what it cost; the child's result comes back through a pipe.
absl::StatusOr<Cost> RunInChild(const std::function<absl::StatusOr<double>()>& run) {
  int ends[2];
  if (pipe(ends) != 0) return ErrnoToStatus(errno, "pipe");
  const pid_t child = fork();
  if (child < 0) return ErrnoToStatus(errno, "fork");
  if (child == 0) {
    const absl::StatusOr<double> operations = run();
    if (!operations.ok()) std::fprintf(stderr, "%s\n", operations.status().ToString().c_str());
    const double result = operations.value_or(-1);
    const bool told = write(ends[1], &result, sizeof(result)) == sizeof(result);
    _exit(told && operations.ok() ? 0 : 1);
  }
  close(ends[1]);
  Cost cost;
  const bool told =
      read(ends[0], &cost.operations, sizeof(cost.operations)) == sizeof(cost.operations);
  close(ends[0]);
  rusage usage{};
  int status = 0;
  if (wait4(child, &status, 0, &usage) != child) return ErrnoToStatus(errno, "wait");
  if (!told || status != 0) return absl::InternalError("the conversion failed");
  cost.cpu_seconds = CpuSeconds(usage);
  cost.peak_megabytes = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
  return cost;
}

absl::StatusOr<Cost> Measure(const TraceFiles& files, EtFlavor flavor) {
  const TemporaryDirectory output;
  Cost cost;
  for (const std::string& path : {files.host, files.device}) {
    ASSIGN_OR_RETURN(const auto region, FileSystem::Posix().Map(path));
    cost.megabytes += static_cast<double>(region->bytes().size()) / 1e6;
  }
  cost.cpu_seconds = 1e9;
  for (int round = 0; round < FLAGS_rounds.value(); ++round) {
    ASSIGN_OR_RETURN(const Cost once, RunInChild([&]() -> absl::StatusOr<double> {
                       PytorchWorkloadOptions options;
                       options.flavor = flavor;
                       ASSIGN_OR_RETURN(
                           const ChakraWorkloadReport report,
                           ConvertPytorchWorkload(FileSystem::Posix(), {files.host}, {files.device},
                                                  output.PathOf("w"), options));
                       return static_cast<double>(report.ranks(0).nodes());
                     }));
    cost.operations = once.operations;
    cost.cpu_seconds = std::min(cost.cpu_seconds, once.cpu_seconds);
    cost.peak_megabytes = std::max(cost.peak_megabytes, once.peak_megabytes);
  }
  return cost;
}

double SecondsPerOperation(const Cost& cost) { return cost.cpu_seconds / cost.operations; }

void AddRow(const std::string& name, EtFlavor flavor, const Cost& cost, TextTable* table) {
  table->AddRow(
      {name, flavor == EtFlavor::kFull ? "full" : "simulation",
       absl::StrFormat("%.1f", cost.megabytes),
       WithThousands(static_cast<int64_t>(cost.operations)),
       absl::StrFormat("%.3f", cost.cpu_seconds),
       absl::StrFormat("%.1f", SecondsPerOperation(cost) * 1e6),
       absl::StrFormat("1/%.0f", ChakraSeconds(cost.operations) / cost.cpu_seconds),
       absl::StrFormat("%.0f", cost.peak_megabytes),
       absl::StrFormat("1/%.1f", ChakraMegabytes(cost.operations) / cost.peak_megabytes)});
}

bool IsReached(const Cost& cost) {
  return cost.cpu_seconds <= kCpuReach * ChakraSeconds(cost.operations) &&
         cost.peak_megabytes <= kMemoryReach * ChakraMegabytes(cost.operations);
}

absl::StatusOr<int> Run() {
  TextTable table({"input", "flavor", ">MB", ">operations", ">CPU s", ">us each", ">of chakra",
                   ">peak MB", ">of chakra"});
  bool reached = true;
  for (const EtFlavor flavor : {EtFlavor::kSimulation, EtFlavor::kFull}) {
    if (!FLAGS_host_trace.value().empty()) {
      ASSIGN_OR_RETURN(const Cost cost, Measure({UserPath(FLAGS_host_trace.value()),
                                                 UserPath(FLAGS_device_trace.value())},
                                                flavor));
      AddRow("given", flavor, cost, &table);
      reached &= IsReached(cost);
      continue;
    }
    double first_seconds = 0;
    for (const int times : {1, 2, 4, 8, 16}) {
      const TemporaryDirectory directory;
      const TraceFiles files = WriteRun(directory, times * FLAGS_layers.value());
      ASSIGN_OR_RETURN(const Cost cost, Measure(files, flavor));
      AddRow(absl::StrCat("x", times), flavor, cost, &table);
      if (times == 1) first_seconds = SecondsPerOperation(cost);
      reached &= SecondsPerOperation(cost) <= kMaxGrowth * first_seconds;
      reached &= IsReached(cost);
    }
  }
  std::printf("%s%s\n", table.ToString().c_str(), reached ? "reached" : "NOT REACHED");
  return reached ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"chakra_link_benchmark",
       "Measures chakra_link on made-up runs of growing size, or on a given one.",
       {"chakra_link_benchmark",
        "chakra_link_benchmark --host_trace=et_0.json --device_trace=kineto_0.json "
        "--chakra_seconds=1.89 --chakra_megabytes=104"},
       {&meridian::FLAGS_host_trace, &meridian::FLAGS_device_trace, &meridian::FLAGS_chakra_seconds,
        &meridian::FLAGS_chakra_megabytes, &meridian::FLAGS_layers, &meridian::FLAGS_rounds},
       meridian::Run},
      argc, argv);
}
