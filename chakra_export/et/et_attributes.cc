#include "chakra_export/et/et_attributes.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::google::protobuf::FieldDescriptor;

// Returns the kinds in which readers expect the values of names.
const absl::flat_hash_map<absl::string_view, EtAttributeKind>& Conventions() {
  static const auto* const kinds = new absl::flat_hash_map<absl::string_view, EtAttributeKind>({
      {kIsCpuOpAttribute, AttributeProto::kBoolVal},
      {kCommTypeAttribute, AttributeProto::kInt64Val},
      {kCommSizeAttribute, AttributeProto::kInt64Val},
      {kCommPriorityAttribute, AttributeProto::kInt32Val},
      {kCommSrcAttribute, AttributeProto::kInt32Val},
      {kCommDstAttribute, AttributeProto::kInt32Val},
      {kCommTagAttribute, AttributeProto::kInt32Val},
      {kPgNameAttribute, AttributeProto::kStringVal},
      {kInvolvedDimAttribute, AttributeProto::kBoolList},
      {kNumOpsAttribute, AttributeProto::kInt64Val},
      {kTensorSizeAttribute, AttributeProto::kUint64Val},
      {kInputsAttribute, AttributeProto::kStringList},
      {kOutputsAttribute, AttributeProto::kStringList},
      {kStreamAttribute, AttributeProto::kInt64Val},
      {kThreadAttribute, AttributeProto::kInt64Val},
      {kRecordFunctionIdAttribute, AttributeProto::kInt64Val},
      {kOpSchemaAttribute, AttributeProto::kStringVal},
      {kStartNsAttribute, AttributeProto::kInt64Val},
      {kDurationNsAttribute, AttributeProto::kInt64Val},
      {kOpKindAttribute, AttributeProto::kStringVal},
      {kDependencyKindsAttribute, AttributeProto::kStringVal},
  });
  return *kinds;
}

absl::Status Unexpected(const AttributeProto& attribute, absl::string_view expected) {
  return InvalidArgument("attribute ", attribute.name(), " is a ",
                         AttributeKindName(attribute.value_case()), "; expected ", expected);
}

absl::Status BadValue(const AttributeProto& attribute, absl::string_view value,
                      absl::string_view expected) {
  return InvalidArgument("attribute ", attribute.name(), " is '", value, "'; expected ", expected);
}

constexpr absl::string_view kAnInteger = "an integer of 64 bits";

absl::StatusOr<int64_t> IntValue(const AttributeProto& attribute) {
  // Most values are of these kinds, and reflection takes longer.
  if (attribute.has_int64_val()) return attribute.int64_val();
  if (attribute.has_bool_val()) return attribute.bool_val() ? 1 : 0;
  const FieldDescriptor* field =
      AttributeProto::descriptor()->FindFieldByNumber(attribute.value_case());
  if (field == nullptr) return Unexpected(attribute, "an integer");
  const google::protobuf::Reflection& values = *AttributeProto::GetReflection();
  int64_t value = 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return values.GetInt32(attribute, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return values.GetInt64(attribute, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return values.GetUInt32(attribute, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      value = static_cast<int64_t>(values.GetUInt64(attribute, field));
      if (value >= 0) return value;
      return BadValue(attribute, absl::StrCat(values.GetUInt64(attribute, field)), kAnInteger);
    default:
      if (!attribute.has_string_val()) return Unexpected(attribute, "an integer");
      if (absl::SimpleAtoi(attribute.string_val(), &value)) return value;
      return BadValue(attribute, attribute.string_val(), kAnInteger);
  }
}

absl::StatusOr<bool> BoolValue(const AttributeProto& attribute) {
  if (attribute.value_case() == AttributeProto::kStringVal) {
    if (absl::EqualsIgnoreCase(attribute.string_val(), "true")) return true;
    if (absl::EqualsIgnoreCase(attribute.string_val(), "false")) return false;
  }
  ASSIGN_OR_RETURN(const int64_t value, IntValue(attribute));
  return value != 0;
}

absl::StatusOr<std::string> StringValue(const AttributeProto& attribute) {
  switch (attribute.value_case()) {
    case AttributeProto::kStringVal:
      return attribute.string_val();
    case AttributeProto::kBytesVal:
      return attribute.bytes_val();
    case AttributeProto::kUint64Val:
      return absl::StrCat(attribute.uint64_val());
    case AttributeProto::kFixed64Val:
      return absl::StrCat(attribute.fixed64_val());
    default: {
      const absl::StatusOr<int64_t> value = IntValue(attribute);
      if (!value.ok()) return Unexpected(attribute, "a text");
      return absl::StrCat(*value);
    }
  }
}

absl::StatusOr<std::vector<bool>> BoolListValue(const AttributeProto& attribute) {
  if (!attribute.has_bool_list()) return Unexpected(attribute, "a list of bools");
  const auto& values = attribute.bool_list().values();
  return std::vector<bool>(values.begin(), values.end());
}

template <typename Value>
absl::StatusOr<std::optional<Value>> Get(
    const EtAttributes& attributes, absl::string_view name,
    absl::StatusOr<Value> (*value_of)(const AttributeProto& attribute)) {
  const AttributeProto* attribute = FindAttribute(attributes, name);
  if (attribute == nullptr) return std::optional<Value>();
  ASSIGN_OR_RETURN(Value value, value_of(*attribute));
  return std::optional<Value>(std::move(value));
}

AttributeProto* Add(absl::string_view name, EtAttributes* attributes) {
  AttributeProto* added = attributes->Add();
  added->set_name(name.data(), name.size());
  return added;
}

AttributeProto* FindOrAdd(absl::string_view name, EtAttributes* attributes) {
  for (AttributeProto& attribute : *attributes) {
    if (attribute.name() == name) return &attribute;
  }
  return Add(name, attributes);
}

// Sets the attribute to `least` where it is absent or below; one that is no number stays.
void RaiseTo(int64_t least, absl::string_view name, EtAttributes* attributes) {
  const absl::StatusOr<std::optional<int64_t>> value = GetIntAttribute(*attributes, name);
  if (value.ok() && value->value_or(0) < least) SetIntAttribute(name, least, attributes);
}

bool ConventionAllows(absl::string_view name, EtAttributeKind kind) {
  const EtAttributeKind expected = ExpectedAttributeKind(name);
  return expected == kind || expected == AttributeProto::VALUE_NOT_SET;
}

}  // namespace

const AttributeProto* FindAttribute(const EtAttributes& attributes, absl::string_view name) {
  for (const AttributeProto& attribute : attributes) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

absl::StatusOr<std::optional<int64_t>> GetIntAttribute(const EtAttributes& attributes,
                                                       absl::string_view name) {
  return Get(attributes, name, IntValue);
}

absl::StatusOr<std::optional<bool>> GetBoolAttribute(const EtAttributes& attributes,
                                                     absl::string_view name) {
  return Get(attributes, name, BoolValue);
}

absl::StatusOr<std::optional<std::string>> GetStringAttribute(const EtAttributes& attributes,
                                                              absl::string_view name) {
  return Get(attributes, name, StringValue);
}

absl::StatusOr<std::optional<std::vector<bool>>> GetBoolListAttribute(
    const EtAttributes& attributes, absl::string_view name) {
  return Get(attributes, name, BoolListValue);
}

void SetIntAttribute(absl::string_view name, int64_t value, EtAttributes* attributes) {
  AttributeProto* attribute = FindOrAdd(name, attributes);
  switch (ExpectedAttributeKind(name)) {
    case AttributeProto::kInt32Val:
      MERIDIAN_CHECK(value == static_cast<int32_t>(value));
      attribute->set_int32_val(static_cast<int32_t>(value));
      return;
    case AttributeProto::kUint64Val:
      MERIDIAN_CHECK(value >= 0);
      attribute->set_uint64_val(static_cast<uint64_t>(value));
      return;
    default:
      MERIDIAN_CHECK(ConventionAllows(name, AttributeProto::kInt64Val));
      attribute->set_int64_val(value);
  }
}

void SetBoolAttribute(absl::string_view name, bool value, EtAttributes* attributes) {
  MERIDIAN_CHECK(ConventionAllows(name, AttributeProto::kBoolVal));
  FindOrAdd(name, attributes)->set_bool_val(value);
}

void RemoveAttribute(absl::string_view name, EtAttributes* attributes) {
  for (int i = attributes->size() - 1; i >= 0; --i) {
    if (attributes->Get(i).name() == name) attributes->DeleteSubrange(i, 1);
  }
}

void SetStringAttribute(absl::string_view name, absl::string_view value, EtAttributes* attributes) {
  MERIDIAN_CHECK(ConventionAllows(name, AttributeProto::kStringVal));
  FindOrAdd(name, attributes)->set_string_val(value.data(), value.size());
}

void SetBoolListAttribute(absl::string_view name, const std::vector<bool>& values,
                          EtAttributes* attributes) {
  MERIDIAN_CHECK(ConventionAllows(name, AttributeProto::kBoolList));
  auto* list = FindOrAdd(name, attributes)->mutable_bool_list();
  list->clear_values();
  for (const bool value : values) list->add_values(value);
}

void AddEmptyList(absl::string_view name, EtAttributes* attributes) {
  if (FindAttribute(*attributes, name) == nullptr) {
    Add(name, attributes)->mutable_string_list();
  }
}

void SetRoofline(int64_t operations, int64_t bytes, EtAttributes* attributes) {
  SetIntAttribute(kNumOpsAttribute, operations, attributes);
  SetIntAttribute(kTensorSizeAttribute, bytes, attributes);
}

void CompleteForSimulators(ChakraProtoMsg::Node* node) {
  EtAttributes* const attributes = node->mutable_attr();
  const absl::StatusOr<std::optional<bool>> on_host =
      GetBoolAttribute(*attributes, kIsCpuOpAttribute);
  if (node->type() == ChakraProtoMsg::COMP_NODE && on_host.ok() && !on_host->value_or(false)) {
    const bool waits = node->data_deps_size() > 0 || node->ctrl_deps_size() > 0;
    RaiseTo(1, kNumOpsAttribute, attributes);
    RaiseTo(waits ? 1 : kMinEarlyTensorBytes, kTensorSizeAttribute, attributes);
  }
  AddEmptyList(kInputsAttribute, attributes);
  AddEmptyList(kOutputsAttribute, attributes);
}

EtAttributeKind ExpectedAttributeKind(absl::string_view name) {
  const auto kind = Conventions().find(name);
  return kind == Conventions().end() ? AttributeProto::VALUE_NOT_SET : kind->second;
}

std::string AttributeKindName(EtAttributeKind kind) {
  if (kind == AttributeProto::VALUE_NOT_SET) return "nothing";
  return std::string(AttributeProto::descriptor()->FindFieldByNumber(kind)->name());
}

}  // namespace meridian
