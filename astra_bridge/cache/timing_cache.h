// SPDX-License-Identifier: Apache-2.0
// Simulated times that were computed before, in a folder that any number of processes may use at
// once: a file for each key.
//
//   key    program, congestion, contents of network and system files, the edge    text, compared whole
//   file   hash of what follows, the time in nanoseconds, the key                 named by the key's hash
//
// Files are written beside their place and renamed. One that cannot be read, or is damaged, is as good as
// none.
#ifndef ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_
#define ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class TimingCache {
 public:
  // The folder exists. `program` stands for the content of the program that simulates: what another
  // one stored, which may have had a bug, is not found. The file system must outlive this object.
  TimingCache(FileSystem& file_system, std::string folder, std::string program)
      : file_system_(file_system), folder_(std::move(folder)), program_(std::move(program)) {}

  // Returns the time stored under the key; nullopt when there is none.
  std::optional<double> Find(absl::string_view key);

  // Remembers the time, in place of another that was stored under the key.
  absl::Status Store(absl::string_view key, double ns) const;

  // How often there was a time.
  int64_t hits() const { return hits_; }

 private:
  // Returns the key with the program.
  std::string WholeKey(absl::string_view key) const;
  std::string PathOf(absl::string_view whole_key) const;

  FileSystem& file_system_;
  const std::string folder_;
  const std::string program_;
  int64_t hits_ = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_
