#include "astra_bridge/cache/timing_cache.h"

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/unfinished_files.h"

namespace meridian {
namespace {

std::string WithChecksum(absl::string_view key, double ns) {
  const absl::string_view time(reinterpret_cast<const char*>(&ns), sizeof(ns));
  const std::string content = absl::StrCat(time, key);
  return absl::StrCat(HashDigits(HashOfText(content)), content);
}

// Returns the time in a file; nullopt when it is not what WithChecksum makes. The key is compared,
// since another may have the same hash, and so is what the number is: whoever can write the file can
// write a checksum, too.
std::optional<double> TimeIn(absl::string_view file, absl::string_view key) {
  double ns = 0;
  const size_t checksum_bytes = HashDigits(0).size();
  if (file.size() != checksum_bytes + sizeof(ns) + key.size()) return std::nullopt;
  std::memcpy(&ns, file.data() + checksum_bytes, sizeof(ns));
  if (!std::isfinite(ns) || ns < 0 || file != WithChecksum(key, ns)) return std::nullopt;
  return ns;
}

}  // namespace

std::string TimingCache::WholeKey(absl::string_view key) const {
  return absl::StrCat("program ", program_, "\n", key);
}

std::string TimingCache::PathOf(absl::string_view whole_key) const {
  return absl::StrCat(folder_, "/", HashDigits(HashOfText(whole_key)));
}

std::optional<double> TimingCache::Find(absl::string_view key) {
  const std::string whole = WholeKey(key);
  const absl::StatusOr<std::unique_ptr<MappedRegion>> file = file_system_.Map(PathOf(whole));
  if (!file.ok()) return std::nullopt;
  const std::optional<double> ns = TimeIn((*file)->bytes(), whole);
  if (ns.has_value()) ++hits_;
  return ns;
}

absl::Status TimingCache::Store(absl::string_view key, double ns) const {
  const std::string whole = WholeKey(key);
  const std::string path = PathOf(whole);
  const UnfinishedFile unfinished(absl::StrCat(path, ".", getpid()));
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                   file_system_.CreateFile(unfinished.path()));
  absl::Status status = file->Append(WithChecksum(whole, ns));
  status.Update(file->Close());
  if (status.ok()) status = file_system_.Rename(unfinished.path(), path);
  if (!status.ok()) file_system_.Delete(unfinished.path()).IgnoreError();
  return status;
}

}  // namespace meridian
