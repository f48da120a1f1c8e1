// Any bytes as the file of a cache of timings: it is used or refused, and whatever was in it, times
// that are stored are found again.
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/cache/timing_cache.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  static const TemporaryDirectory* const directory = new TemporaryDirectory();
  const std::string path = directory->path() + "/cache";
  for (const char* suffix : {"", "-wal", "-shm", "-journal", ".lock", ".damaged"}) {
    unlink(absl::StrCat(path, suffix).c_str());
  }
  std::ofstream(path, std::ios::binary) << bytes;
  for (const CacheMode mode : {CacheMode::kReadOnly, CacheMode::kReadWrite}) {
    const absl::StatusOr<std::unique_ptr<TimingCache>> cache = TimingCache::Open(path, mode);
    if (!cache.ok()) continue;
    // The key of the corpus's row.
    (*cache)->Find("edges", 2);
    if (mode == CacheMode::kReadOnly) continue;
    (*cache)->Store("more edges", {1.5, 2.5});
    if ((*cache)->stats().stored != 1) continue;
    if ((*cache)->Find("more edges", 2) != std::vector<double>{1.5, 2.5}) {
      return absl::InternalError("what was stored was not found");
    }
  }
  return absl::OkStatus();
}
