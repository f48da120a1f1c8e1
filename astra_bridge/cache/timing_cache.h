// SPDX-License-Identifier: Apache-2.0
// Simulated times that were computed before, in a folder that any number of processes may use at
// once: a file for each key.
//
//   key    engine, version, contents of network and system files, the edge    text, compared whole
//   file   hash of what follows, the time in nanoseconds, the key             named by the key's hash
//
// Files are written beside their place and renamed. A cache only saves time: whatever happens to
// the files, the work goes on without them, and warnings() tells.
#ifndef ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_
#define ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct TimingCacheStats {
  int64_t hits = 0;
  int64_t misses = 0;
};

// Safe to use from several threads at once.
class TimingCache {
 public:
  // The folder exists. The file system must outlive this object.
  TimingCache(FileSystem& file_system, std::string folder)
      : file_system_(file_system), folder_(std::move(folder)) {}

  // Returns the time stored under the key; nullopt when there is none.
  std::optional<double> Find(absl::string_view key);

  // Remembers the time, in place of another that was stored under the key.
  void Store(absl::string_view key, double ns);

  TimingCacheStats stats() const;

  // Returns what went wrong, each thing once with an example.
  std::vector<std::string> warnings() const;

 private:
  std::string PathOf(absl::string_view key) const;
  absl::Status Write(const std::string& path, absl::string_view contents);
  void Warn(const std::string& what, absl::string_view example);

  FileSystem& file_system_;
  const std::string folder_;
  mutable absl::Mutex mutex_;
  TimingCacheStats stats_ ABSL_GUARDED_BY(mutex_);
  // What went wrong, with the first example of each.
  std::map<std::string, std::string> warnings_ ABSL_GUARDED_BY(mutex_);
  // How many files were begun, so that no two have the same name while they are written.
  int64_t files_begun_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_
