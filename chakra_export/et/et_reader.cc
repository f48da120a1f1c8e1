#include "chakra_export/et/et_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message_lite.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/utf8.h"
#include "xla_profiler/base/wire/wire_reader.h"

namespace meridian {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;

// Lengths of records are 32-bit varints.
constexpr int kMaxLengthBytes = 5;

constexpr uint32_t kNodeIdField = 1;

constexpr uint64_t kBytesPerProgress = uint64_t{1} << 20;

// Checks what libprotobuf checks, too; but that says neither where nor why, and writes to standard
// error on its own account.
absl::Status CheckMessage(absl::string_view message, const Descriptor& descriptor,
                          const char* origin, int depth) {
  WireReader reader(message, origin, depth);
  WireField field;
  while (reader.Next(&field)) {
    const FieldDescriptor* known = descriptor.FindFieldByNumber(static_cast<int>(field.number));
    if (known == nullptr || field.type != WireType::kBytes) continue;
    if (known->type() == FieldDescriptor::TYPE_STRING) {
      const size_t valid = ValidUtf8Prefix(field.bytes);
      if (valid != field.bytes.size()) {
        return WireError(field.bytes.data() + valid, origin, "text is not UTF-8");
      }
    } else if (known->type() == FieldDescriptor::TYPE_MESSAGE) {
      RETURN_IF_ERROR(CheckMessage(field.bytes, *known->message_type(), origin, depth - 1));
    }
  }
  return reader.status();
}

// Files older than schema 0.0.4 begin with a node. The metadata's first field is a text, a node's
// is a number, which libprotobuf would keep as an unknown field of the metadata.
bool LooksLikeNode(absl::string_view record) {
  WireReader reader(record, record.data(), kMaxWireDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsVarint(kNodeIdField)) return true;
  }
  return false;
}

bool Parse(absl::string_view record, google::protobuf::MessageLite* message) {
  return message->ParseFromArray(record.data(), static_cast<int>(record.size()));
}

}  // namespace

absl::StatusOr<EtReader> EtReader::Open(FileSystem& file_system, const std::string& path,
                                        const EtReaderOptions& options) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(file_system, path, options.input));
  ASSIGN_OR_RETURN(EtReader reader, OverBytes(file.bytes(), path, options.progress));
  reader.file_ = std::move(file);
  return reader;
}

absl::StatusOr<EtReader> EtReader::OverBytes(absl::string_view bytes, const std::string& path,
                                             EtProgress progress) {
  EtReader reader;
  reader.path_ = path;
  reader.bytes_ = bytes;
  reader.progress_ = std::move(progress);
  RETURN_IF_ERROR(reader.ReadMetadata());
  return reader;
}

EtReader::EtReader() : metadata_(std::make_unique<ChakraProtoMsg::GlobalMetadata>()) {}
EtReader::EtReader(EtReader&&) = default;
EtReader::~EtReader() = default;

absl::StatusOr<bool> EtReader::Next(ChakraProtoMsg::Node* node) {
  if (offset_ == bytes_.size()) {
    ReportProgress();
    return false;
  }
  node_offset_ = offset_;
  ASSIGN_OR_RETURN(const absl::string_view record, NextRecord());
  unreported_bytes_ += offset_ - node_offset_;
  if (unreported_bytes_ >= kBytesPerProgress) ReportProgress();
  RETURN_IF_ERROR(
      Annotate(CheckMessage(record, *node->GetDescriptor(), bytes_.data(), kMaxWireDepth), path_));
  if (!Parse(record, node)) return Error(node_offset_, "the record is no Chakra node");
  return true;
}

absl::Status EtReader::ForEachNode(
    absl::FunctionRef<absl::Status(const ChakraProtoMsg::Node& node)> fn) {
  ChakraProtoMsg::Node node;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, Next(&node));
    if (!found) return absl::OkStatus();
    const absl::Status status = fn(node);
    if (status.ok()) continue;
    if (!absl::IsInvalidArgument(status)) return status;
    return NodeError(absl::StrCat("node ", node.id(), ": ", status.message()));
  }
}

absl::Status EtReader::NodeErrorAt(uint64_t position, absl::string_view reason) {
  Rewind();
  ChakraProtoMsg::Node node;
  for (uint64_t i = 0; i <= position; ++i) RETURN_IF_ERROR(Next(&node).status());
  return NodeError(reason);
}

void EtReader::ReportProgress() {
  if (progress_ != nullptr) progress_(unreported_bytes_);
  unreported_bytes_ = 0;
}

absl::Status EtReader::ReadMetadata() {
  if (bytes_.empty()) return Error(0, "the file is empty; expected a Chakra execution trace");
  ASSIGN_OR_RETURN(const absl::string_view record, NextRecord());
  first_node_offset_ = offset_;
  if (LooksLikeNode(record)) {
    return Error(0,
                 "the first record is a node; expected GlobalMetadata as since schema 0.0.4, so "
                 "convert the trace again with a newer tool");
  }
  RETURN_IF_ERROR(Annotate(
      CheckMessage(record, *metadata_->GetDescriptor(), bytes_.data(), kMaxWireDepth), path_));
  if (!Parse(record, metadata_.get()))
    return Error(0, "the first record is no Chakra GlobalMetadata");
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> EtReader::NextRecord() {
  const char* begin = bytes_.data() + offset_;
  const char* end = bytes_.data() + bytes_.size();
  uint64_t length = 0;
  const char* payload = ParseVarint(begin, end, &length);
  if (payload == nullptr) {
    if (end - begin >= kMaxLengthBytes) return Error(offset_, "the record has no valid length");
    return absl::DataLossError(
        absl::StrCat(path_, ": offset ", offset_,
                     ": the file ends within the length of a record; it was cut short"));
  }
  if (payload - begin > kMaxLengthBytes || length > kMaxEtRecordBytes) {
    return Error(offset_, absl::StrCat("the record's length is ", length, ", more than ",
                                       kMaxEtRecordBytes, "; this is no Chakra execution trace"));
  }
  const uint64_t present = end - payload;
  if (length > present) {
    return absl::DataLossError(absl::StrCat(path_, ": offset ", offset_, ": the record has ",
                                            length, " bytes, the file ends after ", present,
                                            " of them; it was cut short"));
  }
  offset_ = payload - bytes_.data() + length;
  return absl::string_view(payload, length);
}

absl::Status EtReader::Error(uint64_t offset, absl::string_view reason) const {
  return InvalidArgument(path_, ": offset ", offset, ": ", reason);
}

}  // namespace meridian
