#include "xla_profiler/testing/shared_data.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace meridian {
namespace {

namespace fs = std::filesystem;

// A file of the checkout that every test depending on this library has among its runfiles; there it
// is a link to the checkout itself.
constexpr char kMarker[] = "xla_profiler/testing/checkout_marker.txt";

}  // namespace

std::optional<std::string> SharedDataDirectory() {
  std::error_code error;
  const fs::path marker = fs::canonical(kMarker, error);
  if (error) return std::nullopt;
  const fs::path checkout = marker.parent_path().parent_path().parent_path();
  const fs::path shared = checkout.parent_path() / "shared";
  if (!fs::is_directory(shared / "traces", error)) return std::nullopt;
  return shared.string();
}

std::vector<std::string> SharedXSpaceFiles() {
  std::vector<std::string> files;
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) return files;
  for (const char* folder : {"traces", "samples/xplane"}) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(fs::path(*shared) / folder, error), end;
         !error && it != end; it.increment(error)) {
      const std::string path = it->path().string();
      if (path.find(".xplane.pb") != std::string::npos) files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace meridian
