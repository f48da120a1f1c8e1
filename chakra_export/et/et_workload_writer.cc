#include "chakra_export/et/et_workload_writer.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "google/protobuf/message_lite.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_writer.h"

namespace meridian {
namespace {

absl::Status CheckSize(uint64_t size) {
  if (size <= kMaxEtRecordBytes) return absl::OkStatus();
  return InvalidArgument("a record of ", size, " bytes; a Chakra trace has ", "room for ",
                         kMaxEtRecordBytes, " in each");
}

// `size` is what ByteSizeLong has just returned. No message of the schema holds a map, whose order
// would be open.
void AppendRecord(const google::protobuf::MessageLite& message, size_t size,
                  absl::string_view fields, std::string* out) {
  StringOutput(out).Varint(size + fields.size());
  const size_t begin = out->size();
  out->resize(begin + size);
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(&(*out)[begin]));
  out->append(fields.data(), fields.size());
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

void AppendEtRecord(const google::protobuf::MessageLite& message, std::string* out) {
  AppendRecord(message, message.ByteSizeLong(), "", out);
}

absl::Status EtTrace::Add(const ChakraProtoMsg::Node& node, absl::string_view fields) {
  const size_t size = node.ByteSizeLong();
  RETURN_IF_ERROR(CheckSize(size + fields.size()));
  described_.set_nodes(described_.nodes() + 1);
  if (node.type() == ChakraProtoMsg::COMM_COLL_NODE ||
      node.type() == ChakraProtoMsg::COMM_SEND_NODE ||
      node.type() == ChakraProtoMsg::COMM_RECV_NODE) {
    described_.set_comm_nodes(described_.comm_nodes() + 1);
  }
  buffer_.clear();
  AppendRecord(node, size, fields, &buffer_);
  return file_->Append(buffer_);
}

absl::StatusOr<EtTrace> EtWorkloadWriter::Begin(
    int64_t rank, const ChakraProtoMsg::GlobalMetadata& metadata) const {
  EtTrace trace;
  trace.described_.set_rank(rank);
  trace.described_.set_path(EtPath(prefix_, rank));
  RETURN_IF_ERROR(CheckSize(metadata.ByteSizeLong()));
  ASSIGN_OR_RETURN(trace.file_,
                   AtomicFileWriter::CreateWithFolder(file_system_, trace.described_.path()));
  AppendEtRecord(metadata, &trace.buffer_);
  RETURN_IF_ERROR(trace.file_->Append(trace.buffer_));
  return trace;
}

absl::Status EtWorkloadWriter::Finish(EtTrace trace) {
  const std::lock_guard<std::mutex> lock(mutex_);
  report_.set_nodes(report_.nodes() + trace.described_.nodes());
  *report_.add_ranks() = std::move(trace.described_);
  return finished_.Add(std::move(trace.file_));
}

absl::StatusOr<std::vector<std::string>> EtWorkloadWriter::StaleTraces(
    std::optional<int64_t> rank_count) const {
  const int64_t first_stale = rank_count.value_or(std::numeric_limits<int64_t>::max());
  // A directory may be spelled in several ways; all of these are in the same.
  std::map<int64_t, std::string> names;
  for (const ChakraWorkloadRank& rank : report_.ranks()) names[rank.rank()] = FileName(rank.path());
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

absl::StatusOr<ChakraWorkloadReport> EtWorkloadWriter::Commit(std::optional<int64_t> rank_count) {
  std::sort(report_.mutable_ranks()->begin(), report_.mutable_ranks()->end(),
            [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
  const std::string groups_path = CommGroupsPath(prefix_);
  if (!groups_.empty()) {
    report_.set_comm_groups(groups_path);
    ASSIGN_OR_RETURN(std::unique_ptr<AtomicFileWriter> groups_file,
                     AtomicFileWriter::Create(file_system_, groups_path));
    RETURN_IF_ERROR(groups_file->Append(CommGroupsJson(groups_)));
    RETURN_IF_ERROR(finished_.Add(std::move(groups_file)));
  }
  RETURN_IF_ERROR(finished_.Commit());

  ASSIGN_OR_RETURN(std::vector<std::string> stale, StaleTraces(rank_count));
  if (groups_.empty() && rank_count.has_value() && file_system_.Kind(groups_path).ok()) {
    stale.push_back(groups_path);
  }
  for (const std::string& path : stale) {
    RETURN_IF_ERROR(file_system_.Delete(path));
    report_.add_removed(path);
  }
  return std::move(report_);
}

}  // namespace meridian
