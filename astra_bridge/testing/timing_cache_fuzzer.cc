// Any bytes as a file of a cache of timings: it is used or not, and whatever was in it, a time that
// is stored is found again.
#include <string>

#include "absl/status/status.h"
#include "astra_bridge/cache/timing_cache.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  static const TemporaryDirectory* const directory = new TemporaryDirectory();
  TimingCache cache(FileSystem::Posix(), directory->path(), "");
  RETURN_IF_ERROR(cache.Store("edge", 1.5));
  directory->Write(directory->List()[0], bytes);
  // The key of the corpus's file.
  cache.Find("edge");
  RETURN_IF_ERROR(cache.Store("edge", 1.5));
  if (cache.Find("edge") != 1.5) {
    return absl::InternalError("what was stored was not found");
  }
  return absl::OkStatus();
}
