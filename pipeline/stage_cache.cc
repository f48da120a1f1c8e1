#include "pipeline/stage_cache.h"

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
constexpr absl::string_view kMadeBy = "meridian chain 2";

}  // namespace

std::string StageCache::PathOf(const std::string& stage) const {
  return absl::StrCat(folder_, "/", stage, ".json");
}

absl::StatusOr<std::string> StageCache::KeyOf(absl::string_view stage, absl::string_view options,
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

std::optional<StageRecord> StageCache::Read(const std::string& stage) const {
  const absl::StatusOr<std::unique_ptr<MappedRegion>> region = file_system_.Map(PathOf(stage));
  if (!region.ok()) return std::nullopt;
  StageRecord record;
  if (!ReportFromJson((*region)->bytes(), &record).ok()) return std::nullopt;
  return record;
}

void StageCache::RemoveStale(const std::string& stage, const std::string& key) const {
  const std::optional<StageRecord> record = Read(stage);
  if (!record.has_value() || record->key() == key) return;
  const std::string beside = folder_.substr(0, folder_.rfind('/') + 1);
  for (const ReportedFile& output : record->outputs()) {
    // A record that somebody else wrote must not remove other files.
    const bool is_ours =
        absl::StartsWith(output.path(), beside) && !absl::StrContains(output.path(), "/../");
    if (is_ours) (void)file_system_.Delete(output.path());
  }
  (void)file_system_.Delete(PathOf(stage));
}

std::optional<StageRecord> StageCache::Find(const std::string& stage,
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

absl::Status StageCache::Store(const std::string& stage, StageRecord record) const {
  for (ReportedFile& output : *record.mutable_outputs()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> file, file_system_.Map(output.path()));
    output.set_bytes(static_cast<int64_t>(file->bytes().size()));
  }
  return WriteOutput(file_system_, PathOf(stage), ReportToJson(record));
}

}  // namespace meridian
