// SPDX-License-Identifier: Apache-2.0
// Scripts that let a shell complete the names of commands and flags.
#ifndef TOOLS_COMPLETION_H_
#define TOOLS_COMPLETION_H_

#include <string>

#include "xla_profiler/base/command_line/command_line.h"

namespace meridian {

// Returns the script for bash: to be sourced, or kept where bash-completion looks for it. Values of
// flags are completed as files.
std::string BashCompletion(const Command& program);

// The same for zsh: a file _NAME in a folder of $fpath, or to be sourced after compinit.
std::string ZshCompletion(const Command& program);

}  // namespace meridian

#endif  // TOOLS_COMPLETION_H_
