#include "chakra_export/et/et_workload_writer.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "chakra_export/et/et_reader.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_writer.h"

namespace meridian {
namespace {

absl::Status CheckSize(const google::protobuf::MessageLite& message) {
  const uint64_t size = message.ByteSizeLong();
  if (size <= kMaxEtRecordBytes) return absl::OkStatus();
  return InvalidArgument("a record of ", size, " bytes; a Chakra trace has ", "room for ",
                         kMaxEtRecordBytes, " in each");
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

void AppendEtRecord(const google::protobuf::MessageLite& message, std::string* out) {
  StringOutput(out).Varint(message.ByteSizeLong());
  google::protobuf::io::StringOutputStream stream(out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  MERIDIAN_CHECK(message.SerializeToCodedStream(&coded));
}

absl::Status EtWorkloadWriter::BeginTrace(int64_t rank,
                                          const ChakraProtoMsg::GlobalMetadata& metadata) {
  RETURN_IF_ERROR(FinishTrace());
  files_.push_back({rank, EtPath(prefix_, rank)});
  RETURN_IF_ERROR(CheckSize(metadata));
  ASSIGN_OR_RETURN(trace_, AtomicFileWriter::CreateWithFolder(file_system_, files_.back().path));
  buffer_.clear();
  AppendEtRecord(metadata, &buffer_);
  return trace_->Append(buffer_);
}

absl::Status EtWorkloadWriter::Add(const ChakraProtoMsg::Node& node) {
  RETURN_IF_ERROR(CheckSize(node));
  buffer_.clear();
  AppendEtRecord(node, &buffer_);
  return trace_->Append(buffer_);
}

absl::StatusOr<std::vector<std::string>> EtWorkloadWriter::StaleTraces(
    const std::vector<EtFile>& written, std::optional<int64_t> rank_count) const {
  const int64_t first_stale = rank_count.value_or(std::numeric_limits<int64_t>::max());
  // A directory may be spelled in several ways; all of these are in the same.
  std::map<int64_t, std::string> names;
  for (const EtFile& file : written) names[file.rank] = FileName(file.path);
  ASSIGN_OR_RETURN(const std::vector<EtFile> found, ListEtFiles(file_system_, prefix_));
  std::vector<std::string> stale;
  for (const EtFile& file : found) {
    const auto name = names.find(file.rank);
    const bool is_stale =
        name == names.end() ? file.rank >= first_stale : name->second != FileName(file.path);
    if (is_stale) stale.push_back(file.path);
  }
  std::sort(stale.begin(), stale.end());
  return stale;
}

absl::StatusOr<WrittenWorkload> EtWorkloadWriter::Commit(std::optional<int64_t> rank_count) {
  WrittenWorkload written;
  RETURN_IF_ERROR(FinishTrace());
  const std::string groups_path = CommGroupsPath(prefix_);
  if (!groups_.empty()) {
    written.comm_groups = groups_path;
    ASSIGN_OR_RETURN(std::unique_ptr<AtomicFileWriter> groups_file,
                     AtomicFileWriter::Create(file_system_, groups_path));
    RETURN_IF_ERROR(groups_file->Append(CommGroupsJson(groups_)));
    RETURN_IF_ERROR(finished_.Add(std::move(groups_file)));
  }
  RETURN_IF_ERROR(finished_.Commit());
  written.files = std::move(files_);

  ASSIGN_OR_RETURN(written.removed, StaleTraces(written.files, rank_count));
  if (groups_.empty() && rank_count.has_value() && file_system_.Kind(groups_path).ok()) {
    written.removed.push_back(groups_path);
  }
  for (const std::string& path : written.removed) RETURN_IF_ERROR(file_system_.Delete(path));
  return written;
}

}  // namespace meridian
