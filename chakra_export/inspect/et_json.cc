#include "chakra_export/inspect/et_json.h"

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::IOInfo;
using ::ChakraProtoMsg::Node;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

constexpr char kUnknownFields[] = "unknown_fields";

std::string Object(const TraceJsonArgs& members) {
  return absl::StrCat("{", members.members(), "}");
}

std::string TextJson(const FieldDescriptor& field, const std::string& value) {
  std::string json;
  AppendJsonString(field.type() == FieldDescriptor::TYPE_BYTES ? absl::Base64Escape(value) : value,
                   &json);
  return json;
}

std::string DoubleJson(double value) {
  TraceJsonArgs member;
  member.AddDouble("", value);
  // What follows the empty key and its colon.
  return std::string(member.members().substr(3));
}

// Returns the value of a scalar field, or of the element of a repeated one when index >= 0.
std::string ScalarJson(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(repeated ? reflection.GetRepeatedInt32(message, &field, index)
                                   : reflection.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(repeated ? reflection.GetRepeatedInt64(message, &field, index)
                                   : reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(repeated ? reflection.GetRepeatedUInt32(message, &field, index)
                                   : reflection.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(repeated ? reflection.GetRepeatedUInt64(message, &field, index)
                                   : reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return DoubleJson(repeated ? reflection.GetRepeatedDouble(message, &field, index)
                                 : reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return DoubleJson(repeated ? reflection.GetRepeatedFloat(message, &field, index)
                                 : reflection.GetFloat(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (repeated ? reflection.GetRepeatedBool(message, &field, index)
                       : reflection.GetBool(message, &field))
                 ? "true"
                 : "false";
    case FieldDescriptor::CPPTYPE_STRING:
      return TextJson(field, repeated ? reflection.GetRepeatedString(message, &field, index)
                                      : reflection.GetString(message, &field));
    default:
      return "null";
  }
}

std::string ListJson(const Message& list) {
  const FieldDescriptor& values = *list.GetDescriptor()->FindFieldByNumber(1);
  std::string json = "[";
  for (int i = 0; i < list.GetReflection()->FieldSize(list, &values); ++i) {
    absl::StrAppend(&json, i == 0 ? "" : ",", ScalarJson(list, values, i));
  }
  return json + "]";
}

void AddUnknownFields(const Message& message, TraceJsonArgs* members) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return;
  std::string bytes;
  unknown.SerializeToString(&bytes);
  members->AddString(kUnknownFields, absl::Base64Escape(bytes));
}

void AddAttributes(const EtAttributes& attributes, TraceJsonArgs* members) {
  std::string json = "[";
  for (const AttributeProto& attribute : attributes) {
    TraceJsonArgs name;
    name.AddString("name", attribute.name());
    const std::string value = AttributeValueJson(attribute);
    absl::StrAppend(&json, json.size() == 1 ? "{" : ",{", name.members(), value.empty() ? "" : ",",
                    value, "}");
  }
  members->AddJson("attr", json + "]");
}

template <typename Ids>
void AddIds(absl::string_view key, const Ids& ids, TraceJsonArgs* members) {
  members->AddJson(key, absl::StrCat("[", absl::StrJoin(ids, ","), "]"));
}

void AddIoInfo(absl::string_view key, const IOInfo& info, TraceJsonArgs* members) {
  TraceJsonArgs io;
  io.AddString("values", info.values());
  io.AddString("shapes", info.shapes());
  io.AddString("types", info.types());
  AddUnknownFields(info, &io);
  members->AddJson(key, Object(io));
}

std::string TypeName(int type) {
  if (!ChakraProtoMsg::NodeType_IsValid(type)) return absl::StrCat(type);
  return ChakraProtoMsg::NodeType_Name(static_cast<ChakraProtoMsg::NodeType>(type));
}

std::string MetadataJson(const ChakraProtoMsg::GlobalMetadata& metadata) {
  TraceJsonArgs members;
  members.AddString("version", metadata.version());
  AddAttributes(metadata.attr(), &members);
  AddUnknownFields(metadata, &members);
  return Object(members);
}

// Returns one object, without line breaks.
std::string NodeJson(const Node& node) {
  TraceJsonArgs members;
  members.AddUint64("id", node.id());
  members.AddString("name", node.name());
  members.AddString("type", TypeName(node.type()));
  AddIds("ctrl_deps", node.ctrl_deps(), &members);
  AddIds("data_deps", node.data_deps(), &members);
  members.AddUint64("start_time_micros", node.start_time_micros());
  members.AddUint64("duration_micros", node.duration_micros());
  if (node.has_inputs()) AddIoInfo("inputs", node.inputs(), &members);
  if (node.has_outputs()) AddIoInfo("outputs", node.outputs(), &members);
  AddAttributes(node.attr(), &members);
  AddUnknownFields(node, &members);
  return Object(members);
}

}  // namespace

absl::Status WriteEtJson(FileSystem& file_system, const EtFiles& files,
                         const EtReaderOptions& options, ByteSink* sink) {
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    RETURN_IF_ERROR(reader.ForEachNode([](const Node&) { return absl::OkStatus(); }));
  }
  RETURN_IF_ERROR(sink->Append("{\"ranks\":["));
  absl::string_view rank_separator = "\n";
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    std::string path;
    AppendJsonString(file.path, &path);
    RETURN_IF_ERROR(sink->Append(
        absl::StrCat(rank_separator, "{\"rank\":", file.rank, ",\"path\":", path,
                     ",\"metadata\":", MetadataJson(reader.metadata()), ",\"nodes\":[")));
    absl::string_view separator = "\n";
    RETURN_IF_ERROR(reader.ForEachNode([&](const Node& node) {
      const std::string json = absl::StrCat(separator, NodeJson(node));
      separator = ",\n";
      return sink->Append(json);
    }));
    RETURN_IF_ERROR(sink->Append("\n]}"));
    rank_separator = ",\n";
  }
  return sink->Append("\n]}\n");
}

std::string AttributeValueJson(const AttributeProto& attribute) {
  TraceJsonArgs members;
  if (!attribute.doc_string().empty()) members.AddString("doc_string", attribute.doc_string());
  if (attribute.value_case() != AttributeProto::VALUE_NOT_SET) {
    const FieldDescriptor& field =
        *AttributeProto::descriptor()->FindFieldByNumber(attribute.value_case());
    const bool is_list = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    members.AddJson(AttributeKindName(attribute.value_case()),
                    is_list ? ListJson(attribute.GetReflection()->GetMessage(attribute, &field))
                            : ScalarJson(attribute, field, -1));
  }
  AddUnknownFields(attribute, &members);
  return std::string(members.members());
}

}  // namespace meridian
