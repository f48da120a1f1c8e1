// SPDX-License-Identifier: Apache-2.0
// Scripts for scripted_program.cc, and the program as tests run it.
#ifndef ASTRA_BRIDGE_SIDECAR_TESTING_SCRIPT_H_
#define ASTRA_BRIDGE_SIDECAR_TESTING_SCRIPT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {

// Returns the program's absolute path; the test names it in `data`.
std::string ScriptedProgram();

// Makes this the script of programs started from now on.
void UseScript(const TemporaryDirectory& directory, const std::string& script);

// Returns how often the script was run.
int ScriptRuns(const TemporaryDirectory& directory);

// Returns the commands that print AstraSim's lines for ranks that finish at these times.
std::string FinishScript(const std::vector<int64_t>& finish_ns);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_TESTING_SCRIPT_H_
