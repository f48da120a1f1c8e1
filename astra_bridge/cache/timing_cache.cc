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

std::string TimingCache::PathOf(absl::string_view key) const {
  return absl::StrCat(folder_, "/", HashDigits(HashOfText(key)));
}

std::optional<double> TimingCache::Find(absl::string_view key) {
  const absl::StatusOr<std::unique_ptr<MappedRegion>> file = file_system_.Map(PathOf(key));
  std::optional<double> ns;
  if (file.ok()) {
    ns = TimeIn((*file)->bytes(), key);
    if (!ns.has_value()) Warn("the cache has damaged files, which are not used", PathOf(key));
  } else if (!absl::IsNotFound(file.status())) {
    Warn("the cache cannot be read", file.status().message());
  }
  absl::MutexLock lock(&mutex_);
  ++(ns.has_value() ? stats_.hits : stats_.misses);
  return ns;
}

void TimingCache::Store(absl::string_view key, double ns) {
  const absl::Status status = Write(PathOf(key), WithChecksum(key, ns));
  if (!status.ok()) Warn("the cache cannot be written", status.message());
}

absl::Status TimingCache::Write(const std::string& path, absl::string_view contents) {
  int64_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    number = files_begun_++;
  }
  const UnfinishedFile unfinished(absl::StrCat(path, ".", getpid(), ".", number));
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                   file_system_.CreateFile(unfinished.path()));
  absl::Status status = file->Append(contents);
  status.Update(file->Close());
  if (status.ok()) status = file_system_.Rename(unfinished.path(), path);
  if (!status.ok()) file_system_.Delete(unfinished.path()).IgnoreError();
  return status;
}

TimingCacheStats TimingCache::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

std::vector<std::string> TimingCache::warnings() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> lines;
  for (const auto& [what, example] : warnings_) {
    lines.push_back(absl::StrCat(what, ", e.g. ", example));
  }
  return lines;
}

void TimingCache::Warn(const std::string& what, absl::string_view example) {
  absl::MutexLock lock(&mutex_);
  warnings_.try_emplace(what, example);
}

}  // namespace meridian
