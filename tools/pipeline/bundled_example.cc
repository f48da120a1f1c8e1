#include "tools/pipeline/bundled_example.h"

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace meridian {

absl::StatusOr<std::string> FindBundledExample(FileSystem& file_system,
                                               const std::string& program) {
  const std::string example = "examples/jax_tp_cuda4_skewed";
  std::error_code error;
  const std::string folder =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
  const std::string candidates[] = {
      // Bazel calls the workspace by its name, or _main.
      absl::StrCat(program, ".runfiles/meridian/", example),
      absl::StrCat(program, ".runfiles/_main/", example),
      absl::StrCat(folder, "/../share/meridian/", example),
      // `bazel run` starts programs among their files.
      example,
  };
  for (const std::string& candidate : candidates) {
    const absl::StatusOr<FileKind> kind = file_system.Kind(candidate);
    if (kind.ok() && *kind == FileKind::kDirectory) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("the bundled example, ", example,
                                          ", is not beside the program; give --traces or "
                                          "--run_dir, see --help"));
}

}  // namespace meridian
