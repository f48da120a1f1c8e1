// SPDX-License-Identifier: Apache-2.0
// What the stages of a chain made of which inputs, so that a stage whose inputs did not change is not
// run again. FOLDER/NAME.json holds a StageRecord.
#ifndef PIPELINE_STAGE_CACHE_H_
#define PIPELINE_STAGE_CACHE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class StageCache {
 public:
  // With `force` nothing is found.
  StageCache(FileSystem& file_system, std::string folder, bool force)
      : file_system_(file_system), folder_(std::move(folder)), force_(force) {}

  // Returns what tells inputs apart: the stage, its options, the content of the files in their order,
  // of which those that are missing ("") have none. Each file is read once. Errors name the file.
  absl::StatusOr<std::string> KeyOf(absl::string_view stage, absl::string_view options,
                                    const std::vector<std::string>& inputs);

  // Returns the record of the stage when its key is this one and its outputs are as large as they
  // were.
  std::optional<StageRecord> Find(const std::string& stage, const std::string& key) const;

  // Removes what the stage made of other inputs, so that nobody takes it for part of this run: the
  // outputs of a record with another key, as far as they lie beside the records' folder.
  void RemoveStale(const std::string& stage, const std::string& key) const;

  // The record's outputs get their sizes.
  absl::Status Store(const std::string& stage, StageRecord record) const;

 private:
  std::string PathOf(const std::string& stage) const;
  // Returns the record, whatever its key is; nullopt when there is none to be read.
  std::optional<StageRecord> Read(const std::string& stage) const;

  FileSystem& file_system_;
  const std::string folder_;
  const bool force_;
  // By path.
  std::map<std::string, std::string> hashes_;
};

}  // namespace meridian

#endif  // PIPELINE_STAGE_CACHE_H_
