#include "chakra_export/inspect/et_json.h"

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_writer.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::IOInfo;
using ::ChakraProtoMsg::Node;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

std::string TypeName(int type) {
  if (!ChakraProtoMsg::NodeType_IsValid(type)) return absl::StrCat(type);
  return ChakraProtoMsg::NodeType_Name(static_cast<ChakraProtoMsg::NodeType>(type));
}

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
    default:
      return json->Raw("null");
  }
}

void WriteUnknownFields(const Message& message, JsonWriter* json) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return;
  std::string bytes;
  unknown.SerializeToString(&bytes);
  json->Member("unknown_fields", absl::Base64Escape(bytes));
}

// Writes all but the name, as members of an object that is open.
void WriteAttributeValue(const AttributeProto& attribute, JsonWriter* json) {
  if (!attribute.doc_string().empty()) json->Member("doc_string", attribute.doc_string());
  if (attribute.value_case() != AttributeProto::VALUE_NOT_SET) {
    json->Key(AttributeKindName(attribute.value_case()));
    const FieldDescriptor& field =
        *AttributeProto::descriptor()->FindFieldByNumber(attribute.value_case());
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Message& list = attribute.GetReflection()->GetMessage(attribute, &field);
      const FieldDescriptor& values = *list.GetDescriptor()->FindFieldByNumber(1);
      json->BeginArray();
      for (int i = 0; i < list.GetReflection()->FieldSize(list, &values); ++i) {
        WriteScalar(list, values, i, json);
      }
      json->EndArray();
    } else {
      WriteScalar(attribute, field, -1, json);
    }
  }
  WriteUnknownFields(attribute, json);
}

void WriteAttributes(const EtAttributes& attributes, JsonWriter* json) {
  json->Key("attr");
  json->BeginArray();
  for (const AttributeProto& attribute : attributes) {
    json->BeginObject();
    json->Member("name", attribute.name());
    WriteAttributeValue(attribute, json);
    json->EndObject();
  }
  json->EndArray();
}

void WriteIoInfo(absl::string_view key, const IOInfo& info, JsonWriter* json) {
  json->Key(key);
  json->BeginObject();
  json->Member("values", info.values());
  json->Member("shapes", info.shapes());
  json->Member("types", info.types());
  WriteUnknownFields(info, json);
  json->EndObject();
}

void WriteNode(const Node& node, JsonWriter* json) {
  json->BeginObject();
  json->Member("id", node.id());
  json->Member("name", node.name());
  json->Member("type", TypeName(node.type()));
  json->Key("ctrl_deps");
  json->List(node.ctrl_deps());
  json->Key("data_deps");
  json->List(node.data_deps());
  json->Member("start_time_micros", node.start_time_micros());
  json->Member("duration_micros", node.duration_micros());
  if (node.has_inputs()) WriteIoInfo("inputs", node.inputs(), json);
  if (node.has_outputs()) WriteIoInfo("outputs", node.outputs(), json);
  WriteAttributes(node.attr(), json);
  WriteUnknownFields(node, json);
  json->EndObject();
}

// Writes the file and hands the buffer to the sink after each node.
absl::Status WriteFile(const EtFile& file, EtReader* reader, JsonWriter* json, std::string* buffer,
                       ByteSink* sink) {
  json->BeginObject();
  json->Member("rank", file.rank);
  json->Member("path", file.path);
  json->Key("metadata");
  json->BeginObject();
  json->Member("version", reader->metadata().version());
  WriteAttributes(reader->metadata().attr(), json);
  WriteUnknownFields(reader->metadata(), json);
  json->EndObject();
  json->Key("nodes");
  json->BeginArray(JsonLayout::kLines);
  RETURN_IF_ERROR(reader->ForEachNode([&](const Node& node) {
    WriteNode(node, json);
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
  WriteAttributeValue(attribute, &json);
  json.EndObject();
  return object.substr(1, object.size() - 2);
}

}  // namespace meridian
