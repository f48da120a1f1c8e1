#ifndef ASTRA_BRIDGE_SIDECAR_SCRATCH_FOLDER_H_
#define ASTRA_BRIDGE_SIDECAR_SCRATCH_FOLDER_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace meridian {

// A fresh folder that is removed with all that is in it.
class ScratchFolder {
 public:
  // Makes one in a folder that exists.
  static absl::StatusOr<ScratchFolder> Create(const std::string& parent);

  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_SCRATCH_FOLDER_H_
