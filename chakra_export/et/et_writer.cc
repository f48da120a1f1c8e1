#include "chakra_export/et/et_writer.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_reader.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_writer.h"

namespace meridian {
namespace {

// The field `id` with value 0, as bytes.
constexpr absl::string_view kNodeOfDefaults("\x08\x00", 2);

void AppendRecord(const google::protobuf::MessageLite& message, std::string* out) {
  StringOutput(out).Varint(message.ByteSizeLong());
  google::protobuf::io::StringOutputStream stream(out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  MERIDIAN_CHECK(message.SerializeToCodedStream(&coded));
}

absl::Status CheckSize(const google::protobuf::MessageLite& message) {
  const uint64_t size = message.ByteSizeLong();
  if (size <= kMaxEtRecordBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a record of ", size,
                                                 " bytes; a Chakra trace has ", "room for ",
                                                 kMaxEtRecordBytes, " in each"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<EtWriter>> EtWriter::Create(
    FileSystem& file_system, const std::string& path,
    const ChakraProtoMsg::GlobalMetadata& metadata) {
  RETURN_IF_ERROR(CheckSize(metadata));
  ASSIGN_OR_RETURN(std::unique_ptr<AtomicFileWriter> file,
                   AtomicFileWriter::Create(file_system, path));
  std::unique_ptr<EtWriter> writer(new EtWriter(std::move(file)));
  AppendEtRecord(metadata, &writer->buffer_);
  RETURN_IF_ERROR(writer->file_->Append(writer->buffer_));
  return writer;
}

absl::Status EtWriter::Add(const ChakraProtoMsg::Node& node) {
  RETURN_IF_ERROR(CheckSize(node));
  buffer_.clear();
  AppendEtRecord(node, &buffer_);
  return file_->Append(buffer_);
}

absl::Status EtWriter::Prepare() { return file_->Prepare(); }

absl::Status EtWriter::Commit() { return file_->Commit(); }

void AppendEtRecord(const ChakraProtoMsg::GlobalMetadata& metadata, std::string* out) {
  AppendRecord(metadata, out);
}

void AppendEtRecord(const ChakraProtoMsg::Node& node, std::string* out) {
  if (node.ByteSizeLong() > 0) {
    AppendRecord(node, out);
  } else {
    StringOutput(out).Varint(kNodeOfDefaults.size());
    out->append(kNodeOfDefaults.data(), kNodeOfDefaults.size());
  }
}

}  // namespace meridian
