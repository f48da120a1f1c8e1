#include "trace_alignment/testing/recorded_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {

std::map<std::string, std::vector<std::string>> RecordedFiles() {
  std::vector<std::string> roots = {"examples"};
  const std::optional<std::string> shared = SharedDataDirectory();
  if (shared.has_value()) roots.push_back(*shared + "/traces");
  std::map<std::string, std::vector<std::string>> runs;
  for (const std::string& root : roots) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             root, std::filesystem::directory_options::follow_directory_symlink)) {
      const std::string name = entry.path().filename();
      const std::string run =
          std::filesystem::relative(entry.path().parent_path(), std::filesystem::path(root));
      if (absl::StrContains(run, "_skewed") ||
          !(absl::StrContains(name, ".xplane.pb") || absl::StartsWith(name, "kineto_"))) {
        continue;
      }
      runs[absl::StrCat(run, root == "examples" ? "" : " (shared)")].push_back(entry.path());
    }
  }
  for (auto& [run, files] : runs) std::sort(files.begin(), files.end());
  return runs;
}

}  // namespace meridian
