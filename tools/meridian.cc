// meridian: all commands in one program.
#include "tools/build_commit.h"
#include "tools/command.h"
#include "tools/commands.h"

namespace meridian {
namespace {

Command Program() {
  return {
      "meridian",
      "Profiles of a job's hosts on one clock: who waits for whom, what a step waits for, "
      "network or compute, and a network simulation to trust.",
      {"meridian combine --run_dir=logs/ --output_dir=out/", "meridian help critical_path"},
      {},
      nullptr,
      {CombineCommand(), CompareCommand(), ValidateCollectivesCommand(), XprofTraceAlignCommand(),
       XspaceInspectCommand(), TraceColumnsCommand(), CriticalPathCommand(), ForecastCommand(),
       ChakraExportCommand(), ChakraLinkCommand(), ChakraGenerateCommand(), ChakraInspectCommand(),
       AstraSimulateCommand(), AstraPredictCommand(), AstraCalibrateCommand(),
       AstraValidateCommand(), WorkloadModelCommand()}};
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(meridian::Program(), argc, argv, meridian::kBuildCommit);
}
