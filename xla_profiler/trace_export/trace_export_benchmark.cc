// Exports a profile in every format and prints what it costs:
//
//   ./bazelw run //xla_profiler/trace_export:trace_export_benchmark -- [FILE]
//
// Without a file: about 1M events of a made-up GPU, five stats each. The CPU time is the least of
// three rounds.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/testing/synthetic_space.h"
#include "xla_profiler/trace_export/trace_export.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

constexpr int kRounds = 3;
constexpr double kMillion = 1e6;

double CpuSeconds() {
  rusage usage;
  MERIDIAN_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec / kMillion; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

absl::StatusOr<ExportStats> ExportGzip(const XSpaceReader& reader, const ExportOptions& options,
                                       ByteSink& out) {
  GzipSink gzip(&out);
  ASSIGN_OR_RETURN(const ExportStats stats, ExportTraceJson(reader, options, gzip));
  RETURN_IF_ERROR(gzip.Finish());
  return stats;
}

template <typename Export>
void Measure(const char* name, const XSpaceReader& reader, Export run) {
  double least = std::numeric_limits<double>::infinity();
  ExportStats stats;
  uint64_t bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    DiscardingSink sink;
    const double before = CpuSeconds();
    absl::StatusOr<ExportStats> result = run(reader, ExportOptions(), sink);
    least = std::min(least, CpuSeconds() - before);
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
      std::exit(3);
    }
    stats = *result;
    bytes = sink.bytes_appended();
  }
  absl::PrintF("%-14s %8d slices  %6.2f CPU s  %6.3f CPU s per 1M  %6.1f bytes a slice\n", name,
               stats.slices, least, least / (stats.slices / kMillion),
               static_cast<double>(bytes) / stats.slices);
}

absl::StatusOr<XSpaceReader> OpenProfile(int argc, char** argv, std::string* bytes) {
  if (argc > 1) return XSpaceReader::Open(FileSystem::Posix(), argv[1]);
  SyntheticSpaceOptions options;
  options.min_bytes = uint64_t{56} << 20;
  *bytes = SyntheticXSpace(options);
  return XSpaceReader::FromBytes(*bytes, "synthetic");
}

int Main(int argc, char** argv) {
  std::string bytes;
  const absl::StatusOr<XSpaceReader> reader = OpenProfile(argc, argv, &bytes);
  if (!reader.ok()) {
    std::fprintf(stderr, "%s\n", reader.status().ToString().c_str());
    return 2;
  }
  Measure("Perfetto", *reader, ExportPerfetto);
  Measure("trace JSON", *reader, ExportTraceJson);
  Measure("trace JSON.gz", *reader, ExportGzip);
  rusage usage;
  MERIDIAN_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  absl::PrintF("peak memory %d MB, of which the profile %d MB\n", usage.ru_maxrss >> 10,
               reader->source().bytes.size() >> 20);
  return 0;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) { return meridian::Main(argc, argv); }
