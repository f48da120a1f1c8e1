// SPDX-License-Identifier: Apache-2.0
// The run that comes with the commands.
#ifndef TOOLS_PIPELINE_BUNDLED_EXAMPLE_H_
#define TOOLS_PIPELINE_BUNDLED_EXAMPLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Returns the folder of a run of four nodes whose clocks are off by known amounts. It lies beside
// the program as Bazel runs it, or in ../share/meridian as it is installed. `program` is argv[0],
// which need not tell where the program is.
absl::StatusOr<std::string> FindBundledExample(FileSystem& file_system, const std::string& program);

}  // namespace meridian

#endif  // TOOLS_PIPELINE_BUNDLED_EXAMPLE_H_
