// SPDX-License-Identifier: Apache-2.0
// A whole input file as one range of memory, whatever its size: plain files are mapped; gzip files
// (told by content, not by name) are inflated once into an unlinked temporary file, which is
// mapped.
#ifndef XLA_PROFILER_BASE_FILES_INPUT_FILE_H_
#define XLA_PROFILER_BASE_FILES_INPUT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct InputFileOptions {
  // The folder in which gzip files are inflated.
  std::string temporary_directory = "/tmp";

  // A gzip file that inflates beyond both limits is refused as a decompression bomb. Real profiles
  // shrink 3 to 60 times.
  uint64_t max_inflated_bytes = uint64_t{256} << 20;
  uint64_t max_inflation_ratio = 200;
};

class InputFile {
 public:
  // Errors name the path; for gzip data they also give the offset in the compressed file and the
  // reason ("node0.pb.gz: offset 1043: invalid stored block lengths"). Several concatenated gzip
  // members are one file. An empty file opens as empty bytes.
  static absl::StatusOr<InputFile> Open(FileSystem& file_system, const std::string& path,
                                        const InputFileOptions& options = {});

  // Bytes that the caller keeps alive, as if they stood in a file of that path.
  static InputFile OfBytes(absl::string_view bytes, std::string path);

  InputFile(InputFile&&) = default;
  InputFile& operator=(InputFile&&) = default;

  // Valid while this object lives.
  absl::string_view bytes() const { return region_->bytes(); }

  const std::string& path() const { return path_; }

  // Returns the number of bytes on disk, before inflating.
  uint64_t file_size() const { return file_size_; }
  bool was_compressed() const { return was_compressed_; }

 private:
  InputFile() = default;

  std::string path_;
  uint64_t file_size_ = 0;
  bool was_compressed_ = false;
  std::unique_ptr<MappedRegion> region_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_INPUT_FILE_H_
