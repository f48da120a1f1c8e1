// xspace_inspect: what is in a profile.
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "tools/command.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/inspect/xspace_inspector.h"
#include "xla_profiler/inspect/xspace_report.pb.h"
#include "xla_profiler/xplane/xspace_reader.h"

ABSL_FLAG(std::string, trace, "", "The profile: one *.xplane.pb file, plain or gzip.");

namespace meridian {
namespace {

// The bar is gone before anything is printed.
absl::StatusOr<XSpaceReport> InspectWithProgress(const XSpaceReader& reader) {
  ProgressBar progress("reading", reader.source().bytes.size());
  InspectOptions options;
  options.progress = [&](uint64_t offset) { progress.Update(offset); };
  return InspectXSpace(reader, options);
}

absl::StatusOr<int> Inspect() {
  const std::string trace = absl::GetFlag(FLAGS_trace);
  if (trace.empty()) {
    return absl::InvalidArgumentError(
        "--trace names no file; expected e.g. --trace=node0.xplane.pb");
  }
  XSpaceReaderOptions options;
  options.input = UserInputOptions();
  ASSIGN_OR_RETURN(const XSpaceReader reader,
                   XSpaceReader::Open(FileSystem::Posix(), UserPath(trace), options));
  ASSIGN_OR_RETURN(const XSpaceReport report, InspectWithProgress(reader));
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : FormatReport(report)));
  return kExitDone;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"xspace_inspect",
       "Shows what is in an XLA profile: planes, lines, events, clocks, collectives. Every event "
       "is "
       "decoded, so a damaged file is found out.",
       {"xspace_inspect --trace=node0.xplane.pb", "xspace_inspect --trace=node0.xplane.pb --json"},
       {"trace"}},
      argc, argv, meridian::Inspect);
}
