// meridian: all commands in one program.
#include <string>

#include "absl/status/statusor.h"
#include "tools/build_commit.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/completion.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

Command WithoutCompletion() {
  return {"meridian",
          "Profiles of a job's hosts on one clock: who waits for whom, what a step waits for, "
          "network or compute, and a network simulation to trust.",
          {"meridian combine --run_dir=logs/ --output_dir=out/", "meridian help critical_path"},
          {},
          nullptr,
          {CombineCommand(), ValidateCollectivesCommand(), XprofTraceAlignCommand(),
           XspaceInspectCommand(), TraceColumnsCommand(), CriticalPathCommand(),
           ChakraExportCommand(), ChakraLinkCommand(), ChakraGenerateCommand(),
           ChakraInspectCommand(), AstraSimulateCommand(), AstraPredictCommand(),
           AstraCalibrateCommand(), AstraValidateCommand(), WorkloadModelCommand()}};
}

Command Program();

absl::StatusOr<int> PrintScript(std::string (*script)(const Command&)) {
  RETURN_IF_ERROR(Print(script(Program())));
  return kExitDone;
}

Command Program() {
  Command program = WithoutCompletion();
  program.commands.push_back({"completion",
                              "Prints a script that completes commands and flags in a shell.",
                              {},
                              {},
                              nullptr,
                              {{"bash",
                                "For bash.",
                                {"bash > ~/.local/share/bash-completion/completions/meridian"},
                                {},
                                [] { return PrintScript(BashCompletion); }},
                               {"zsh",
                                "For zsh: a file _meridian in a folder of $fpath.",
                                {"zsh > ~/.zsh/completions/_meridian"},
                                {},
                                [] { return PrintScript(ZshCompletion); }}}});
  return program;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(meridian::Program(), argc, argv, meridian::kBuildCommit);
}
