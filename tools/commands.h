// SPDX-License-Identifier: Apache-2.0
// All commands, each defined in the source of its name.
#ifndef TOOLS_COMMANDS_H_
#define TOOLS_COMMANDS_H_

#include "xla_profiler/base/command_line/command_line.h"

namespace meridian {

Command AstraCalibrateCommand();
Command AstraPredictCommand();
Command AstraSimulateCommand();
Command AstraValidateCommand();
Command ChakraExportCommand();
Command ChakraGenerateCommand();
Command ChakraInspectCommand();
Command ChakraLinkCommand();
Command CombineCommand();
Command CompareCommand();
Command CriticalPathCommand();
Command ForecastCommand();
Command TraceColumnsCommand();
Command ValidateCollectivesCommand();
Command WorkloadModelCommand();
Command XprofTraceAlignCommand();
Command XspaceInspectCommand();

}  // namespace meridian

#endif  // TOOLS_COMMANDS_H_
