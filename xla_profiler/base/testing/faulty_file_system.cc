#include "xla_profiler/base/testing/faulty_file_system.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

std::ostream& operator<<(std::ostream& out, Operation operation) {
  static constexpr const char* kNames[] = {"CreateFile",    "CreateTemporary",
                                           "Append",        "Sync",
                                           "Close",         "MapTemporary",
                                           "Map",           "Rename",
                                           "Delete",        "CreateDirectories",
                                           "SyncDirectory", "SyncFileSystem",
                                           "Kind",          "List",
                                           "Glob"};
  return out << kNames[static_cast<int>(operation)];
}

class FaultyFileSystem::File : public WritableFile {
 public:
  File(FaultyFileSystem& file_system, std::unique_ptr<WritableFile> base)
      : file_system_(file_system), base_(std::move(base)) {}

  absl::Status Append(absl::string_view data) override {
    const Fault fault = file_system_.Record(Operation::kAppend);
    if (fault.status.ok()) return base_->Append(data);
    RETURN_IF_ERROR(base_->Append(data.substr(0, fault.written_bytes)));
    return fault.status;
  }

  absl::Status Sync() override {
    RETURN_IF_ERROR(file_system_.Record(Operation::kSync).status);
    return base_->Sync();
  }

  absl::Status Close() override {
    RETURN_IF_ERROR(file_system_.Record(Operation::kClose).status);
    return base_->Close();
  }

  const WritableFile& base() const { return *base_; }

 private:
  FaultyFileSystem& file_system_;
  std::unique_ptr<WritableFile> base_;
};

void FaultyFileSystem::Fail(Operation operation, int n, absl::Status status) {
  faults_[{operation, n}] = {std::move(status), 0};
}

void FaultyFileSystem::TearAppend(int n, uint64_t written_bytes, absl::Status status) {
  faults_[{Operation::kAppend, n}] = {std::move(status), written_bytes};
}

FaultyFileSystem::Fault FaultyFileSystem::Record(Operation operation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  operations_.push_back(operation);
  const int n = std::count(operations_.begin(), operations_.end(), operation);
  const auto fault = faults_.find({operation, n});
  return fault == faults_.end() ? Fault() : fault->second;
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::CreateFile(
    const std::string& path) {
  RETURN_IF_ERROR(Record(Operation::kCreateFile).status);
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_.CreateFile(path));
  return std::make_unique<File>(*this, std::move(file));
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::CreateTemporary(
    const std::string& directory) {
  RETURN_IF_ERROR(Record(Operation::kCreateTemporary).status);
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_.CreateTemporary(directory));
  return std::make_unique<File>(*this, std::move(file));
}

absl::StatusOr<std::unique_ptr<MappedRegion>> FaultyFileSystem::MapTemporary(
    const WritableFile& file) {
  RETURN_IF_ERROR(Record(Operation::kMapTemporary).status);
  return base_.MapTemporary(dynamic_cast<const File&>(file).base());
}

absl::StatusOr<std::unique_ptr<MappedRegion>> FaultyFileSystem::Map(const std::string& path) {
  RETURN_IF_ERROR(Record(Operation::kMap).status);
  return base_.Map(path);
}

absl::Status FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Record(Operation::kRename).status);
  return base_.Rename(from, to);
}

absl::Status FaultyFileSystem::Delete(const std::string& path) {
  RETURN_IF_ERROR(Record(Operation::kDelete).status);
  return base_.Delete(path);
}

absl::Status FaultyFileSystem::CreateDirectories(const std::string& path) {
  RETURN_IF_ERROR(Record(Operation::kCreateDirectories).status);
  return base_.CreateDirectories(path);
}

absl::Status FaultyFileSystem::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Record(Operation::kSyncDirectory).status);
  return base_.SyncDirectory(path);
}

absl::Status FaultyFileSystem::SyncFileSystem(const std::string& directory) {
  RETURN_IF_ERROR(Record(Operation::kSyncFileSystem).status);
  return base_.SyncFileSystem(directory);
}

absl::StatusOr<FileKind> FaultyFileSystem::Kind(const std::string& path) {
  RETURN_IF_ERROR(Record(Operation::kKind).status);
  return base_.Kind(path);
}

absl::StatusOr<std::vector<std::string>> FaultyFileSystem::List(const std::string& directory) {
  RETURN_IF_ERROR(Record(Operation::kList).status);
  return base_.List(directory);
}

absl::StatusOr<std::vector<std::string>> FaultyFileSystem::Glob(const std::string& pattern) {
  RETURN_IF_ERROR(Record(Operation::kGlob).status);
  return base_.Glob(pattern);
}

}  // namespace meridian
