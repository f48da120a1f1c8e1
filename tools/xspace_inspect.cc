// xspace_inspect: what is in a profile.
#include <string>

#include "absl/flags/flag.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/inspect/xspace_inspector.h"
#include "xla_profiler/inspect/xspace_report.pb.h"
#include "xla_profiler/xplane/xspace_reader.h"

ABSL_FLAG(std::string, trace, "", "The profile: one *.xplane.pb file, plain or gzip.");

namespace meridian {
namespace {

absl::StatusOr<int> Inspect() {
  ASSIGN_OR_RETURN(const std::string trace, RequiredPath(FLAGS_trace, "file", "node0.xplane.pb"));
  XSpaceReaderOptions options;
  options.input = UserInputOptions();
  ASSIGN_OR_RETURN(const XSpaceReader reader,
                   XSpaceReader::Open(FileSystem::Posix(), trace, options));
  ASSIGN_OR_RETURN(const XSpaceReport report,
                   InspectXSpace(reader, {ShowProgress("reading", reader.source().bytes.size())}));
  return PrintReport(report, FormatReport);
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
