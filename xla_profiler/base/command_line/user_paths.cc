#include "xla_profiler/base/command_line/user_paths.h"

#include <cstdlib>

#include "xla_profiler/base/files/input_paths.h"

namespace meridian {

std::string EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UserDirectory() { return EnvironmentVariable("BUILD_WORKING_DIRECTORY"); }

std::string UserPath(const std::string& path) { return ResolvePath(path, UserDirectory()); }

InputFileOptions UserInputOptions() {
  InputFileOptions options;
  const std::string directory = EnvironmentVariable("TMPDIR");
  if (!directory.empty()) options.temporary_directory = directory;
  return options;
}

}  // namespace meridian
