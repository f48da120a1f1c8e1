// SPDX-License-Identifier: Apache-2.0
// Simulated times that were computed before, in a SQLite file that any number of processes may use
// at once.
//
//   key   engine, version, contents of network and system files, the edges     text, compared whole
//   ns    the times, one per edge
//
// A cache only saves time: whatever happens to the file, the work goes on without it, and
// warnings() tells. Rows carry a checksum; a file that is damaged as a whole is moved aside to
// "<file>.damaged" and begun anew.
#ifndef ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_
#define ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace meridian {

enum class CacheMode { kOff, kReadOnly, kReadWrite };

// Returns the mode called "off", "readonly" or "readwrite"; nullopt for any other text.
std::optional<CacheMode> CacheModeFromName(absl::string_view name);

struct TimingCacheStats {
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t stored = 0;
  // Rows that do not match their checksum or hold what is no time; they count as misses.
  int64_t damaged_rows = 0;
  // How often the file was begun anew.
  int64_t rebuilds = 0;
};

// Safe to use from several threads at once.
class TimingCache {
 public:
  // The mode is not kOff. Read-write makes the file, but no folders; read-only makes nothing, and
  // without a file every lookup is a miss. A database that is somebody else's is
  // FailedPrecondition and not touched.
  static absl::StatusOr<std::unique_ptr<TimingCache>> Open(const std::string& path, CacheMode mode);
  ~TimingCache();

  // Returns the `count` times stored under the key; nullopt when there are none, or not so many.
  std::optional<std::vector<double>> Find(absl::string_view key, size_t count);

  // Remembers the times, in place of others that were stored under the key; without effect when
  // read-only.
  void Store(absl::string_view key, absl::Span<const double> ns);

  TimingCacheStats stats() const;

  // Returns what went wrong, each thing once.
  std::vector<std::string> warnings() const;

 private:
  struct Connection;

  TimingCache(std::string path, CacheMode mode);

  // How much of the file is read to find damage when it is opened.
  enum class Check { kHeader, kAllPages };

  absl::Status ConnectReadOnly() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Holds a lock against others who open the file, and begins a damaged one anew.
  absl::Status ConnectReadWrite(Check check) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MoveAside() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<std::optional<std::vector<double>>> Read(absl::string_view key, size_t count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(absl::string_view key, absl::string_view bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Takes note of a failed statement, and connects anew where that can help. Returns whether to try
  // once more.
  bool Recover(const absl::Status& failure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Warn(const std::string& warning) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const CacheMode mode_;
  mutable absl::Mutex mutex_;
  // Null when there is no file to read, or none that could be opened.
  std::unique_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);
  TimingCacheStats stats_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CACHE_TIMING_CACHE_H_
