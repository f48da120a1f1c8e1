#include "xla_profiler/base/json/report_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Reasons may quote the text.
constexpr size_t kMaxReason = 200;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void WriteDouble(double value, JsonWriter* json) {
  if (!std::isfinite(value)) return json->Value(value);
  char digits[32];
  const auto print = [&](int precision) {
    const char* end = std::to_chars(std::begin(digits), std::end(digits), value,
                                    std::chars_format::general, precision)
                          .ptr;
    return absl::string_view(digits, end - digits);
  };
  absl::string_view text = print(15);
  double read = 0;
  std::from_chars(text.begin(), text.end(), read);
  json->Raw(read == value ? text : print(17));
}

class ReportWriter {
 public:
  ReportWriter(bool with_blanks, std::string* out)
      : layout_(with_blanks ? JsonLayout::kIndented : JsonLayout::kInline),
        json_(out, with_blanks ? JsonSpacing::kSpaced : JsonSpacing::kCompact,
              /*indentation_width=*/1) {}

  void WriteMessage(const Message& message) {
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    std::vector<const FieldDescriptor*> fields;
    for (int i = 0; i < type.field_count(); ++i) {
      if (IsPrinted(message, *type.field(i))) fields.push_back(type.field(i));
    }
    json_.BeginObject(LayoutOf(fields.size()));
    for (const FieldDescriptor* field : fields) {
      json_.Key(field->name());
      WriteField(message, *field);
    }
    json_.EndObject();
  }

 private:
  static bool IsPrinted(const Message& message, const FieldDescriptor& field) {
    return !field.has_presence() || message.GetReflection()->HasField(message, &field);
  }

  JsonLayout LayoutOf(size_t items) const { return items == 0 ? JsonLayout::kInline : layout_; }

  void WriteField(const Message& message, const FieldDescriptor& field) {
    if (!field.is_repeated()) return WriteValue(message, field, -1);
    const int size = message.GetReflection()->FieldSize(message, &field);
    if (field.is_map()) return WriteMap(message, field, size);
    json_.BeginArray(LayoutOf(size));
    for (int i = 0; i < size; ++i) WriteValue(message, field, i);
    json_.EndArray();
  }

  // The keys of all maps of reports are texts.
  void WriteMap(const Message& message, const FieldDescriptor& field, int size) {
    const FieldDescriptor& key = *field.message_type()->map_key();
    std::map<std::string, const Message*> entries;
    for (int i = 0; i < size; ++i) {
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, i);
      entries[entry.GetReflection()->GetString(entry, &key)] = &entry;
    }
    json_.BeginObject(LayoutOf(size));
    for (const auto& [name, entry] : entries) {
      json_.Key(name);
      WriteValue(*entry, *field.message_type()->map_value(), -1);
    }
    json_.EndObject();
  }

  // Writes the value of a singular field, or, when index >= 0, one of a repeated field.
  void WriteValue(const Message& message, const FieldDescriptor& field, int index) {
    const Reflection& reflection = *message.GetReflection();
    const auto value = [&](auto get_repeated, auto get) -> decltype(auto) {
      return index >= 0 ? (reflection.*get_repeated)(message, &field, index)
                        : (reflection.*get)(message, &field);
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return json_.Value(value(&Reflection::GetRepeatedInt32, &Reflection::GetInt32));
      case FieldDescriptor::CPPTYPE_UINT32:
        return json_.Value(value(&Reflection::GetRepeatedUInt32, &Reflection::GetUInt32));
      case FieldDescriptor::CPPTYPE_INT64:
        return json_.Value(value(&Reflection::GetRepeatedInt64, &Reflection::GetInt64));
      case FieldDescriptor::CPPTYPE_UINT64:
        return json_.Value(value(&Reflection::GetRepeatedUInt64, &Reflection::GetUInt64));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return WriteDouble(value(&Reflection::GetRepeatedDouble, &Reflection::GetDouble), &json_);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return json_.Value(value(&Reflection::GetRepeatedFloat, &Reflection::GetFloat));
      case FieldDescriptor::CPPTYPE_BOOL:
        return json_.Value(value(&Reflection::GetRepeatedBool, &Reflection::GetBool));
      case FieldDescriptor::CPPTYPE_ENUM:
        return json_.Value(value(&Reflection::GetRepeatedEnum, &Reflection::GetEnum)->name());
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = value(&Reflection::GetRepeatedString, &Reflection::GetString);
        const bool is_bytes = field.type() == FieldDescriptor::TYPE_BYTES;
        return json_.Value(is_bytes ? absl::Base64Escape(text) : text);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return WriteMessage(index >= 0 ? reflection.GetRepeatedMessage(message, &field, index)
                                       : reflection.GetMessage(message, &field));
    }
  }

  // Of objects and arrays that hold something.
  const JsonLayout layout_;
  JsonWriter json_;
};

std::string ToJson(const Message& report, bool with_blanks) {
  std::string json;
  ReportWriter(with_blanks, &json).WriteMessage(report);
  json.push_back('\n');
  return json;
}

}  // namespace

std::string ReportToJson(const Message& report) { return ToJson(report, /*with_blanks=*/true); }

std::string ReportToCompactJson(const Message& report) {
  return ToJson(report, /*with_blanks=*/false);
}

absl::Status ReportFromJson(absl::string_view json, google::protobuf::Message* report) {
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), report);
  if (status.ok()) return absl::OkStatus();
  // Parsers append lines that point into the text.
  absl::string_view reason(status.message().data(), status.message().size());
  absl::ConsumePrefix(&reason, ": ");
  return InvalidArgument(Printable(reason.substr(0, std::min(reason.find('\n'), kMaxReason))));
}

}  // namespace meridian
