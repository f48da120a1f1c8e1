// What the critical path of a million events costs, from the compressed file to the report:
//
//   ./bazelw run //benchmarks:critical_path_benchmark -- --events=1000000
//
// The trace is written for the purpose, as PyTorch's profiler formats its own: of eight events four
// are operators, three calls and one a kernel, with two flow events beside them. Exits with 1 when
// it takes more than 2 CPU seconds or 500 MB per million events.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/ratio_benchmark.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/job/trace_analysis.h"
#include "critical_path/report/path_report.h"
#include "critical_path/report/path_report.pb.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<int64_t> FLAGS_events("events", 1000000, "How many complete events the largest trace has.");
Flag<int> FLAGS_rounds("rounds", 3, "How often each trace is analyzed; the least CPU time counts.");

constexpr double kReachSeconds = 2.0;
constexpr int64_t kReachBytes = int64_t{500} << 20;

constexpr char kOp[] = R"json(  {
    "ph": "X", "cat": "cpu_op", "name": "%s", "pid": 6069, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,"Sequence number": %d, "Fwd thread id": 0, "Ev Idx": %d
    }
  },
)json";

constexpr char kCall[] = R"json(  {
    "ph": "X", "cat": "cuda_runtime", "name": "%s", "pid": 6069, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d, "cbid": 211, "correlation": %d
    }
  },
)json";

constexpr char kKernel[] = R"json(  {
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::Functor%d<float>, at::detail::Array<char*, 2> >(int, at::native::Functor%d<float>, at::detail::Array<char*, 2>)", "pid": 0, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d, "queued": 0, "device": 0, "context": 1,      "stream": %d, "correlation": %d,      "registers per thread": 30,      "shared memory": 0,      "blocks per SM": 5.300000,      "warps per SM": 21.200001,      "grid": [4, 106, 1],      "block": [128, 1, 1],      "est. achieved occupancy %%": 33
    }
  },
)json";

constexpr char kFlow[] = R"json(  {
    "ph": "%s", "id": %d, "pid": %d, "tid": %d, "ts": %s,
    "cat": "ac2g", "name": "ac2g"%s
  },
)json";

constexpr char kSync[] = R"json(  {
    "ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "cuda_sync_kind": "Stream Sync", "stream": %d, "correlation": %d, "device": 0, "context": 1
    }
  },
)json";

constexpr int64_t kStepUnits = 10000;
constexpr int64_t kEventsPerUnit = 8;

std::string Micros(int64_t ns) { return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000); }

// Four operators within each other, of which one asks two things and launches a kernel.
void AppendUnit(int64_t i, std::string* out) {
  constexpr int64_t kEpochNs = 1712195495519836506;
  const int64_t at = kEpochNs + i * 20011;
  // Backward takes its turn after forward.
  const int64_t thread = i / (kStepUnits / 2) % 2 == 0 ? 6069 : 6262;
  const int64_t stream = 7 + i % 3 * 4;
  const char* const kNames[] = {"aten::linear", "aten::addmm", "aten::t", "aten::as_strided"};
  for (int64_t k = 0; k < 4; ++k) {
    absl::StrAppendFormat(out, kOp, kNames[k], thread, Micros(at + 600 * k),
                          Micros(18000 - 1300 * k), 4 * i + k, i, 4 * i + k);
  }
  absl::StrAppendFormat(out, kCall, "cudaStreamIsCapturing", thread, Micros(at + 3001), Micros(470),
                        i, 3 * i + 1);
  absl::StrAppendFormat(out, kCall, "cudaLaunchKernel", thread, Micros(at + 4003), Micros(4871), i,
                        3 * i + 2);
  absl::StrAppendFormat(out, kFlow, "s", 3 * i + 2, 6069, thread, Micros(at + 4003), "");
  const int64_t start = at + 12003;
  absl::StrAppendFormat(out, kKernel, i % 100, i % 100, stream, Micros(start), Micros(19175), i,
                        stream, 3 * i + 2);
  absl::StrAppendFormat(out, kFlow, "f", 3 * i + 2, 0, stream, Micros(start), ", \"bp\": \"e\"");
  if (i % 1000 == 999) {
    // Waits until the kernel is done.
    absl::StrAppendFormat(out, kCall, "cudaStreamSynchronize", thread, Micros(at + 9009),
                          Micros(23000), i, 3 * i + 3);
    absl::StrAppendFormat(out, kSync, stream, Micros(at + 9009), Micros(22300), stream, 3 * i + 3);
  } else {
    absl::StrAppendFormat(out, kCall, "cudaEventRecord", thread, Micros(at + 9009), Micros(812), i,
                          3 * i + 3);
  }
}

absl::Status WriteTrace(int64_t events, ByteSink* sink) {
  RETURN_IF_ERROR(sink->Append("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n"));
  std::string text;
  for (int64_t i = 0; i < events / kEventsPerUnit; ++i) {
    AppendUnit(i, &text);
    if (text.size() < size_t{1} << 20) continue;
    RETURN_IF_ERROR(sink->Append(text));
    text.clear();
  }
  return sink->Append(absl::StrCat(text, "  {}\n  ],\n  \"traceName\": \"benchmark.json\"\n}\n"));
}

absl::Status WriteTraceFile(int64_t events, const std::string& path) {
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(
      outputs.Write("trace", path, [&](ByteSink& sink) { return WriteTrace(events, &sink); }));
  return outputs.Commit();
}

// The most memory, mapped files aside, that the process has while this lives.
class PeakMemory {
 public:
  PeakMemory() : before_(AnonymousBytes()), thread_([this] { Watch(); }) {}
  ~PeakMemory() { Stop(); }

  int64_t Stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
    return peak_ - before_;
  }

 private:
  void Watch() {
    while (!done_) {
      peak_ = std::max(peak_.load(), AnonymousBytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const int64_t before_;
  std::atomic<int64_t> peak_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

struct Cost {
  double open_s = 0;
  double total_s = 1e30;
  int64_t peak_bytes = 0;
  uint64_t json_bytes = 0;
  uint64_t file_bytes = 0;
};

absl::Status AnalyzeOnce(const std::string& path, bool hta_compatible, Cost* cost) {
  PeakMemory memory;
  const double begin_s = CpuSeconds();
  ASSIGN_OR_RETURN(const InputFile file,
                   InputFile::Open(FileSystem::Posix(), path, UserInputOptions()));
  const double opened_s = CpuSeconds();
  TraceAnalysisOptions options;
  options.hta_compatible = hta_compatible;
  ASSIGN_OR_RETURN(const TraceAnalysis analysis, AnalyzeTraceJson(file.bytes(), path, options));
  ASSIGN_OR_RETURN(const CriticalPath critical, FindLongestPath(analysis.graph));
  const PathReport report = ReportPath(analysis.source, analysis.graph, critical);
  if (report.nodes() == 0) return absl::InternalError("the report is empty");
  const double total_s = CpuSeconds() - begin_s;
  cost->peak_bytes = std::max(cost->peak_bytes, memory.Stop());
  cost->json_bytes = file.bytes().size();
  cost->file_bytes = file.file_size();
  if (total_s >= cost->total_s) return absl::OkStatus();
  cost->total_s = total_s;
  cost->open_s = opened_s - begin_s;
  return absl::OkStatus();
}

absl::StatusOr<int> Measure() {
  const int64_t events = FLAGS_events.value();
  if (events < 4 * kEventsPerUnit) return absl::InvalidArgumentError("--events: 32 or more");
  TextTable table(
      {"graph", ">events", ">JSON MB", ">gzip MB", ">CPU s", ">inflating", ">us/event", ">MB", ""});
  bool all_reached = true;
  const std::string path =
      absl::StrCat(UserInputOptions().temporary_directory, "/critical_path_benchmark.json.gz");
  for (int64_t count : {events / 4, events}) {
    RETURN_IF_ERROR(WriteTraceFile(count, path));
    for (bool hta_compatible : {false, true}) {
      Cost cost;
      for (int round = 0; round < std::max(1, FLAGS_rounds.value()); ++round) {
        RETURN_IF_ERROR(AnalyzeOnce(path, hta_compatible, &cost));
      }
      const double millions = static_cast<double>(count) / 1e6;
      const bool reached = cost.total_s <= kReachSeconds * millions &&
                           static_cast<double>(cost.peak_bytes) <= kReachBytes * millions;
      all_reached = all_reached && reached;
      table.AddRow({hta_compatible ? "HTA's" : "ours", WithThousands(count),
                    absl::StrFormat("%.0f", static_cast<double>(cost.json_bytes) / 1e6),
                    absl::StrFormat("%.1f", static_cast<double>(cost.file_bytes) / 1e6),
                    absl::StrFormat("%.2f", cost.total_s), absl::StrFormat("%.2f", cost.open_s),
                    absl::StrFormat("%.2f", cost.total_s / millions),
                    absl::StrFormat("%.0f", static_cast<double>(cost.peak_bytes) / 1e6),
                    reached ? "" : "MISSED"});
    }
  }
  RETURN_IF_ERROR(FileSystem::Posix().Delete(path));
  RETURN_IF_ERROR(Print(table.ToString()));
  return all_reached ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand({"critical_path_benchmark",
                               "Measures the critical path of a generated trace.",
                               {"critical_path_benchmark --events=1000000"},
                               {&meridian::FLAGS_events, &meridian::FLAGS_rounds},
                               meridian::Measure},
                              argc, argv);
}
