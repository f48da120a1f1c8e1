// SPDX-License-Identifier: Apache-2.0
// The beginning of a file, by which its kind is told, never by its name.
#ifndef XLA_PROFILER_SOURCES_FILE_HEAD_H_
#define XLA_PROFILER_SOURCES_FILE_HEAD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class FileHead {
 public:
  // Reads the first 256 KiB, inflated where the file is gzip that can be. Errors name the path.
  static absl::StatusOr<FileHead> Read(FileSystem& file_system, const std::string& path);

  explicit FileHead(std::string bytes);

  absl::string_view bytes() const { return bytes_; }

  // The bytes without a byte order mark and leading white space.
  absl::string_view text() const;

  // Where the text begins with a JSON object: its keys in their order, up to and with
  // "traceEvents", whose value is long. Empty for everything else.
  const std::vector<std::string>& keys() const { return keys_; }
  bool HasKey(absl::string_view key) const;

 private:
  std::string bytes_;
  std::vector<std::string> keys_;
};

// Returns the keys of the JSON object that the text begins with, as FileHead::keys() does.
std::vector<std::string> KeysOfJson(absl::string_view text);

}  // namespace meridian

#endif  // XLA_PROFILER_SOURCES_FILE_HEAD_H_
