// SPDX-License-Identifier: Apache-2.0
// Files for tests.
#ifndef XLA_PROFILER_BASE_TESTING_TEMPORARY_DIRECTORY_H_
#define XLA_PROFILER_BASE_TESTING_TEMPORARY_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace meridian {

// A fresh directory for one test, removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Returns the path of a file in the directory, which need not exist.
  std::string PathOf(absl::string_view name) const;

  // Writes a file, making missing folders, and returns its path.
  std::string Write(absl::string_view name, absl::string_view contents) const;

  // Returns the contents of a file.
  std::string Read(absl::string_view name) const;

  // Returns the names in the directory, hidden ones too, sorted.
  std::vector<std::string> List() const;

 private:
  std::string path_;
};

// Returns the text as one gzip member.
std::string GzipText(absl::string_view text);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TESTING_TEMPORARY_DIRECTORY_H_
