#include <string>

#include "absl/strings/strip.h"
#include "chakra_export/et_tools/et_summary.h"
#include "google/protobuf/message.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

void WriteObject(const google::protobuf::Message& message, JsonWriter* json) {
  json->Raw(absl::StripSuffix(ReportToCompactJson(message), "\n"));
}

// Writes the file and hands the buffer to the sink when it is full.
absl::Status WriteFile(const EtFile& file, EtReader* reader, JsonWriter* json, std::string* buffer,
                       ByteSink* sink) {
  json->BeginObject();
  json->Member("rank", file.rank);
  json->Member("path", file.path);
  json->Key("metadata");
  WriteObject(reader->metadata(), json);
  json->BeginArray("nodes", JsonLayout::kLines);
  RETURN_IF_ERROR(reader->ForEachNode([&](const ChakraProtoMsg::Node& node) {
    WriteObject(node, json);
    if (buffer->size() < kBufferBytes) return absl::OkStatus();
    RETURN_IF_ERROR(sink->Append(*buffer));
    buffer->clear();
    return absl::OkStatus();
  }));
  json->EndArray();
  json->EndObject();
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteEtJson(FileSystem& file_system, const EtFiles& files,
                         const EtReaderOptions& options, ByteSink* sink) {
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    RETURN_IF_ERROR(
        reader.ForEachNode([](const ChakraProtoMsg::Node&) { return absl::OkStatus(); }));
  }
  std::string buffer;
  JsonWriter json(&buffer);
  json.BeginObject();
  json.BeginArray("ranks", JsonLayout::kLines);
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    RETURN_IF_ERROR(WriteFile(file, &reader, &json, &buffer, sink));
  }
  json.EndArray();
  json.EndObject();
  buffer.push_back('\n');
  return sink->Append(buffer);
}

}  // namespace meridian
