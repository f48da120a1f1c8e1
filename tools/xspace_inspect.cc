// xspace_inspect: what is in a profile.
#include <string>

#include "tools/command.h"
#include "tools/commands.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/inspect/xspace_inspector.h"
#include "xla_profiler/inspect/xspace_report.pb.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_trace("trace", "", "The profile: one *.xplane.pb file, plain or gzip.");

absl::StatusOr<int> Inspect() {
  ASSIGN_OR_RETURN(const std::string trace, RequiredPath(FLAGS_trace, "file", "node0.xplane.pb"));
  XSpaceReaderOptions options;
  options.input = UserInputOptions();
  ASSIGN_OR_RETURN(const XSpaceReader reader,
                   XSpaceReader::Open(FileSystem::Posix(), trace, options));
  ASSIGN_OR_RETURN(const XSpaceReport report,
                   InspectXSpace(reader, ShowProgress("reading", reader.source().bytes.size())));
  return PrintReport(report, FormatReport);
}

}  // namespace

Command XspaceInspectCommand() {
  return {
      "xspace_inspect",
      "Shows what is in an XLA profile: planes, lines, events, clocks, collectives. Every event is "
      "decoded, so a damaged file is found out.",
      {"xspace_inspect --trace=node0.xplane.pb", "xspace_inspect --trace=node0.xplane.pb --json"},
      {&FLAGS_trace},
      Inspect};
}

}  // namespace meridian
