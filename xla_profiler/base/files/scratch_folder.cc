#include "xla_profiler/base/files/scratch_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

absl::StatusOr<ScratchFolder> ScratchFolder::Create(const std::string& parent,
                                                    absl::string_view purpose) {
  // Not mkdtemp: the name must be registered before there is a folder.
  absl::BitGen random;
  std::string path = absl::StrCat(parent, "/meridian-", purpose, "-",
                                  absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16));
  auto registration = std::make_unique<const UnfinishedFile>(absl::StrCat(path, "/"));
  if (mkdir(path.c_str(), 0700) != 0) return ErrnoToStatus(errno, parent);
  return ScratchFolder(std::move(path), std::move(registration));
}

ScratchFolder::~ScratchFolder() {
  if (registration_ == nullptr) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace meridian
