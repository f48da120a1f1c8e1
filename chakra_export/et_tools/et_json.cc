#include "chakra_export/et_tools/et_json.h"

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_writer.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::Node;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

constexpr size_t kBufferBytes = size_t{1} << 20;

// Writes the value of a scalar field, or of the element of a repeated one when index >= 0.
void WriteScalar(const Message& message, const FieldDescriptor& field, int index,
                 JsonWriter* json) {
  const Reflection& reflection = *message.GetReflection();
  const auto value = [&](auto get_repeated, auto get) {
    return index >= 0 ? (reflection.*get_repeated)(message, &field, index)
                      : (reflection.*get)(message, &field);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return json->Value(value(&Reflection::GetRepeatedInt32, &Reflection::GetInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return json->Value(value(&Reflection::GetRepeatedInt64, &Reflection::GetInt64));
    case FieldDescriptor::CPPTYPE_UINT32:
      return json->Value(value(&Reflection::GetRepeatedUInt32, &Reflection::GetUInt32));
    case FieldDescriptor::CPPTYPE_UINT64:
      return json->Value(value(&Reflection::GetRepeatedUInt64, &Reflection::GetUInt64));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return json->Value(value(&Reflection::GetRepeatedDouble, &Reflection::GetDouble));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return json->Value(value(&Reflection::GetRepeatedFloat, &Reflection::GetFloat));
    case FieldDescriptor::CPPTYPE_BOOL:
      return json->Value(value(&Reflection::GetRepeatedBool, &Reflection::GetBool));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = value(&Reflection::GetRepeatedString, &Reflection::GetString);
      const bool is_bytes = field.type() == FieldDescriptor::TYPE_BYTES;
      return json->Value(is_bytes ? absl::Base64Escape(text) : text);
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = value(&Reflection::GetRepeatedEnumValue, &Reflection::GetEnumValue);
      const auto* known = field.enum_type()->FindValueByNumber(number);
      return json->Value(known == nullptr ? absl::StrCat(number) : std::string(known->name()));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return json->Raw("null");
  }
}

void WriteObject(const Message& message, JsonWriter* json);

void WriteList(const Message& message, const FieldDescriptor& field, JsonWriter* json) {
  const Reflection& reflection = *message.GetReflection();
  json->BeginArray();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      WriteObject(reflection.GetRepeatedMessage(message, &field, i), json);
    } else {
      WriteScalar(message, field, i, json);
    }
  }
  json->EndArray();
}

// Writes the fields from a position on as members of an object that is open. Of the fields that may
// be absent, among them descriptions that are empty, only those that are there.
void WriteFields(const Message& message, int first, JsonWriter* json) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = first; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const bool may_be_absent = field.has_presence() || field.name() == "doc_string";
    if (may_be_absent && !reflection.HasField(message, &field)) continue;
    json->Key(std::string(field.name()));
    if (field.is_repeated()) {
      WriteList(message, field, json);
    } else if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      WriteScalar(message, field, -1, json);
    } else {
      // A message that is nothing but a list is written as that.
      const Message& part = reflection.GetMessage(message, &field);
      const FieldDescriptor& only = *part.GetDescriptor()->field(0);
      only.is_repeated() ? WriteList(part, only, json) : WriteObject(part, json);
    }
  }
  const auto& unknown = reflection.GetUnknownFields(message);
  if (unknown.empty()) return;
  std::string bytes;
  unknown.SerializeToString(&bytes);
  json->Member("unknown_fields", absl::Base64Escape(bytes));
}

void WriteObject(const Message& message, JsonWriter* json) {
  json->BeginObject();
  WriteFields(message, 0, json);
  json->EndObject();
}

// Writes the file and hands the buffer to the sink when it is full.
absl::Status WriteFile(const EtFile& file, EtReader* reader, JsonWriter* json, std::string* buffer,
                       ByteSink* sink) {
  json->BeginObject();
  json->Member("rank", file.rank);
  json->Member("path", file.path);
  json->Key("metadata");
  WriteObject(reader->metadata(), json);
  json->Key("nodes");
  json->BeginArray(JsonLayout::kLines);
  RETURN_IF_ERROR(reader->ForEachNode([&](const Node& node) {
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
    RETURN_IF_ERROR(reader.ForEachNode([](const Node&) { return absl::OkStatus(); }));
  }
  std::string buffer;
  JsonWriter json(&buffer);
  json.BeginObject();
  json.Key("ranks");
  json.BeginArray(JsonLayout::kLines);
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    RETURN_IF_ERROR(WriteFile(file, &reader, &json, &buffer, sink));
  }
  json.EndArray();
  json.EndObject();
  buffer.push_back('\n');
  return sink->Append(buffer);
}

std::string AttributeValueJson(const AttributeProto& attribute) {
  std::string object;
  JsonWriter json(&object);
  json.BeginObject();
  // The first field is the name.
  WriteFields(attribute, 1, &json);
  json.EndObject();
  return object.substr(1, object.size() - 2);
}

}  // namespace meridian
