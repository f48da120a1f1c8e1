#include "pipeline/stage_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {
namespace {

// Goes up whenever stages make something else of the same inputs.
constexpr absl::string_view kMadeBy = "meridian chain 3";

}  // namespace

absl::StatusOr<std::unique_ptr<StageFolder>> StageFolder::Open(FileSystem& file_system,
                                                               const std::string& folder,
                                                               bool force) {
  const EndingSignalsHeldBack held_back;
  std::unique_ptr<StageFolder> made(new StageFolder(file_system, folder, force));
  made->is_new_ = !file_system.Kind(folder).ok();
  RETURN_IF_ERROR(file_system.CreateDirectories(made->PathOf("stages")));
  const std::string path = made->LockPath();
  int lock = -1;
  do {
    lock = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  } while (lock < 0 && errno == EINTR);
  if (lock < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write into ", folder));
  const bool is_locked = flock(lock, LOCK_EX | LOCK_NB) == 0;
  // Whoever held it before may have removed the file meanwhile.
  struct stat held = {}, named = {};
  const bool is_there =
      fstat(lock, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino;
  if (!is_locked || !is_there) {
    close(lock);
    return absl::UnavailableError(absl::StrCat("another combine is writing into ", folder));
  }
  made->lock_ = lock;
  made->unfinished_ = std::make_unique<const UnfinishedFile>(path);
  return made;
}

StageFolder::~StageFolder() {
  if (lock_ < 0) return;
  const EndingSignalsHeldBack held_back;
  // Before the next command may take a lock of this name.
  unfinished_.reset();
  unlink(LockPath().c_str());
  close(lock_);
  // Both fail when there is something in them.
  rmdir(PathOf("stages").c_str());
  if (is_new_) rmdir(folder_.c_str());
}

absl::StatusOr<std::string> StageFolder::KeyOf(absl::string_view stage, absl::string_view options,
                                               const std::vector<std::string>& inputs) {
  ContentHash hash;
  hash.AddText(kMadeBy);
  hash.AddText(stage);
  hash.AddText(options);
  for (const std::string& path : inputs) {
    std::string& known = hashes_[path];
    if (known.empty() && !path.empty()) {
      ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> region, file_system_.Map(path));
      known = HashDigits(HashOfText(region->bytes()));
    }
    // Names are in reports.
    hash.AddText(path);
    hash.AddText(known);
  }
  return HashDigits(hash.value());
}

std::optional<StageRecord> StageFolder::Read(const std::string& stage) const {
  const absl::StatusOr<std::unique_ptr<MappedRegion>> region = file_system_.Map(RecordPath(stage));
  if (!region.ok()) return std::nullopt;
  StageRecord record;
  if (!ReportFromJson((*region)->bytes(), &record).ok()) return std::nullopt;
  return record;
}

void StageFolder::RemoveStale(const std::string& stage, const std::string& key) const {
  const std::optional<StageRecord> record = Read(stage);
  if (!record.has_value() || record->key() == key) return;
  for (const ReportedFile& output : record->outputs()) {
    // A record that somebody else wrote must not remove other files.
    const bool is_ours =
        absl::StartsWith(output.path(), PathOf("")) && !absl::StrContains(output.path(), "/../");
    if (is_ours) (void)file_system_.Delete(output.path());
  }
  (void)file_system_.Delete(RecordPath(stage));
}

std::optional<StageRecord> StageFolder::Find(const std::string& stage,
                                             const std::string& key) const {
  if (force_) return std::nullopt;
  std::optional<StageRecord> record = Read(stage);
  if (!record.has_value() || record->key() != key) return std::nullopt;
  for (const ReportedFile& output : record->outputs()) {
    const absl::StatusOr<std::unique_ptr<MappedRegion>> file = file_system_.Map(output.path());
    if (!file.ok() || static_cast<int64_t>((*file)->bytes().size()) != output.bytes()) {
      return std::nullopt;
    }
  }
  return record;
}

absl::Status StageFolder::Store(const std::string& stage, StageRecord record) const {
  for (ReportedFile& output : *record.mutable_outputs()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> file, file_system_.Map(output.path()));
    output.set_bytes(static_cast<int64_t>(file->bytes().size()));
  }
  return WriteOutput(file_system_, RecordPath(stage), ReportToJson(record));
}

}  // namespace meridian
