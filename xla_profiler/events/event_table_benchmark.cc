// Loads a trace like those of PyTorch's profiler, written for the purpose, and prints what it
// costs:
//
//   ./bazelw run //xla_profiler/events:event_table_benchmark -- 1000000
//
// The number is that of the table's events; the file has half as many flow events beside them.
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {
namespace {

constexpr char kCpuOp[] = R"json(  {
    "ph": "X", "cat": "cpu_op", "name": "aten::operator_%d", "pid": 6069, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,"Record function id": 0, "Concrete Inputs": ["", "1", ""], "Input type": ["float", "Scalar", "float"], "Input Strides": [[1024, 1], [], [1]], "Input Dims": [[512, 1024], [], [1024]], "Ev Idx": %d
    }
  },
)json";

constexpr char kLaunch[] = R"json(  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 6069, "tid": 6069,
    "ts": %s, "dur": %s,
    "args": {
            "External id": %d, "cbid": 211, "correlation": %d
    }
  },
  {
    "ph": "s", "id": %d, "pid": 6069, "tid": 6069, "ts": %s,
    "cat": "ac2g", "name": "ac2g"
  },
)json";

constexpr char kKernel[] = R"json(  {
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::Functor%d<float>, std::array<char*, 1ul> >(int, at::native::Functor%d<float>, std::array<char*, 1ul>)", "pid": 0, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
            "External id": %d, "queued": 0, "device": 0, "context": 1,      "stream": %d, "correlation": %d,      "registers per thread": 32,      "shared memory": 2064,      "blocks per SM": 0.969697,      "warps per SM": 15.515152,      "grid": [1, 128, 1],      "block": [512, 1, 1],      "est. achieved occupancy %%": 24
    }
  },
  {
    "ph": "f", "id": %d, "pid": 0, "tid": %d, "ts": %s,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  },
)json";

// Kineto writes so many digits.
std::string Micros(int64_t ns) { return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000); }

void AppendCpuOp(int64_t i, int64_t start_ns, std::string* out) {
  absl::StrAppendFormat(out, kCpuOp, i % 200, 6069 + i % 2, Micros(start_ns), Micros(7354), i, i);
}

void AppendLaunch(int64_t i, int64_t start_ns, std::string* out) {
  absl::StrAppendFormat(out, kLaunch, Micros(start_ns), Micros(4871), i, i, i, Micros(start_ns));
}

void AppendKernel(int64_t i, int64_t start_ns, std::string* out) {
  const int64_t stream = 7 + i % 3 * 4;
  absl::StrAppendFormat(out, kKernel, i % 100, i % 100, stream, Micros(start_ns), Micros(2175), i,
                        stream, i, i, stream, Micros(start_ns));
}

absl::Status WriteTrace(int64_t events, WritableFile& file) {
  RETURN_IF_ERROR(
      file.Append("{\n  \"schemaVersion\": 1,\n"
                  "  \"baseTimeNanoseconds\": 1790857026000000000,\n"
                  "  \"traceEvents\": [\n"));
  std::string text;
  // Of every four events two are operators, one a launch and one its kernel.
  for (int64_t i = 0; i < events / 4; ++i) {
    const int64_t start_ns = 3844757818350492 + i * 10007;
    AppendCpuOp(2 * i, start_ns, &text);
    AppendCpuOp(2 * i + 1, start_ns + 501, &text);
    AppendLaunch(i, start_ns + 1003, &text);
    AppendKernel(i, start_ns + 7919, &text);
    if (text.size() < 1 << 20) continue;
    RETURN_IF_ERROR(file.Append(text));
    text.clear();
  }
  return file.Append(absl::StrCat(text, "  {}\n  ],\n  \"traceName\": \"benchmark.json\"\n}\n"));
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Memory of our own, without mapped files.
int64_t RssAnonBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kilobytes = 0;
  while (status >> word) {
    if (word == "RssAnon:") status >> kilobytes;
  }
  return kilobytes << 10;
}

absl::Status Run(int64_t events) {
  FileSystem& file_system = FileSystem::Posix();
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system.CreateTemporary("/tmp"));
  RETURN_IF_ERROR(WriteTrace(events, *file));
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> text, file_system.MapTemporary(*file));

  const double cpu_before = CpuSeconds();
  const int64_t memory_before = RssAnonBytes();
  ASSIGN_OR_RETURN(const TraceJsonTable loaded, LoadTraceJson(text->bytes(), "benchmark"));
  const double cpu_seconds = CpuSeconds() - cpu_before;
  const int64_t memory_bytes = RssAnonBytes() - memory_before;
  absl::PrintF("%d rows, %d problems from %.0f MB: %.2f CPU s, RssAnon +%.0f MB\n",
               loaded.table.size(), loaded.problems.total(), text->bytes().size() * 1e-6,
               cpu_seconds, memory_bytes * 1e-6);
  return absl::OkStatus();
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  int64_t events = 1000000;
  if (argc > 1 && !absl::SimpleAtoi(argv[1], &events)) {
    std::fprintf(stderr, "usage: event_table_benchmark [number of events]\n");
    return 2;
  }
  const absl::Status status = meridian::Run(events);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 3;
}
