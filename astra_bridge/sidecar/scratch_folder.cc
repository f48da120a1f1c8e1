#include "astra_bridge/sidecar/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "xla_profiler/util/status_util.h"

namespace meridian {

absl::StatusOr<ScratchFolder> ScratchFolder::Create(const std::string& parent) {
  std::string path = absl::StrCat(parent, "/meridian-astra-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return ErrnoToStatus(errno, parent);
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace meridian
