// SPDX-License-Identifier: Apache-2.0
// The folder that the stages of a chain fill, one process at a time. FOLDER/stages/NAME.json, a
// StageRecord, says what the stage NAME made of which inputs, so that a stage whose inputs did not
// change is not run again.
#ifndef PIPELINE_STAGE_FOLDER_H_
#define PIPELINE_STAGE_FOLDER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/unfinished_files.h"

namespace meridian {

class StageFolder {
 public:
  // Makes the folder and locks it for as long as the object lives; Unavailable when another process
  // has it. With `force` no stage is found. What was made and stayed empty goes with the object; the
  // lock goes also when a signal ends the process.
  static absl::StatusOr<std::unique_ptr<StageFolder>> Open(FileSystem& file_system,
                                                           const std::string& folder, bool force);
  ~StageFolder();
  StageFolder(const StageFolder&) = delete;
  StageFolder& operator=(const StageFolder&) = delete;

  // Returns the path of a file in the folder.
  std::string PathOf(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }

  // Returns what tells inputs apart: the stage, its options, the content of the files in their order,
  // of which those that are missing ("") have none. Each file is read once. Errors name the file.
  absl::StatusOr<std::string> KeyOf(absl::string_view stage, absl::string_view options,
                                    const std::vector<std::string>& inputs);

  // Returns the record of the stage when its key is this one and its outputs are as large as they
  // were.
  std::optional<StageRecord> Find(const std::string& stage, const std::string& key) const;

  // Removes what the stage made of other inputs, so that nobody takes it for part of this run: the
  // outputs of a record with another key, as far as they lie in the folder.
  void RemoveStale(const std::string& stage, const std::string& key) const;

  // The record's outputs get their sizes.
  absl::Status Store(const std::string& stage, StageRecord record) const;

 private:
  StageFolder(FileSystem& file_system, std::string folder, bool force)
      : file_system_(file_system), folder_(std::move(folder)), force_(force) {}

  std::string LockPath() const { return PathOf("stages/lock"); }
  std::string RecordPath(const std::string& stage) const {
    return PathOf(absl::StrCat("stages/", stage, ".json"));
  }
  // Returns the record, whatever its key is; nullopt when there is none to be read.
  std::optional<StageRecord> Read(const std::string& stage) const;

  FileSystem& file_system_;
  const std::string folder_;
  const bool force_;
  // The open file of the lock, -1 while it is not held, and what removes it after a signal.
  int lock_ = -1;
  std::unique_ptr<const UnfinishedFile> unfinished_;
  // Whether the folder was not there before.
  bool is_new_ = false;
  // Hashes of the contents of files, by their paths.
  std::map<std::string, std::string> hashes_;
};

}  // namespace meridian

#endif  // PIPELINE_STAGE_FOLDER_H_
