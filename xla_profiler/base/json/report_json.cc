#include "xla_profiler/base/json/report_json.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "google/protobuf/stubs/common.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/utf8.h"

namespace meridian {
namespace {

// Reasons may quote the text.
constexpr size_t kMaxReason = 200;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string ReplaceInvalidUtf8(absl::string_view text) {
  static constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";
  std::string valid;
  while (!text.empty()) {
    const absl::string_view before = text;
    const bool is_utf8 = ConsumeCodePoint(&text) != kNotUtf8;
    absl::StrAppend(
        &valid, is_utf8 ? before.substr(0, before.size() - text.size()) : kReplacementCharacter);
  }
  return valid;
}

// Calls visit(index) for each value of a set field; -1 stands for the value of a singular field.
template <typename Visit>
void ForEachValue(const Message& message, const FieldDescriptor& field, Visit visit) {
  if (!field.is_repeated()) return visit(-1);
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) visit(i);
}

void RepairStrings(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      ForEachValue(*message, *field, [&](int i) {
        if (i == -1) {
          reflection.SetString(message, field,
                               ReplaceInvalidUtf8(reflection.GetString(*message, field)));
        } else {
          reflection.SetRepeatedString(
              message, field, i,
              ReplaceInvalidUtf8(reflection.GetRepeatedString(*message, field, i)));
        }
      });
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachValue(*message, *field, [&](int i) {
        RepairStrings(i == -1 ? reflection.MutableMessage(message, field)
                              : reflection.MutableRepeatedMessage(message, field, i));
      });
    }
  }
}

std::string SerializeWithSortedMaps(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  MERIDIAN_CHECK(message.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
}

google::protobuf::util::JsonPrintOptions PrintOptions(bool with_blanks) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = with_blanks;
  options.preserve_proto_field_names = true;
#if GOOGLE_PROTOBUF_VERSION >= 5026000
  options.always_print_fields_with_no_presence = true;
#else
  options.always_print_primitive_fields = true;
#endif
  return options;
}

std::string ToJson(const Message& report, bool with_blanks) {
  const std::unique_ptr<Message> repaired(report.New());
  repaired->CopyFrom(report);
  RepairStrings(repaired.get());

  // By way of the wire format, because MessageToJsonString prints maps in an arbitrary order.
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          "type.googleapis.com", report.GetDescriptor()->file()->pool()));
  std::string json;
  MERIDIAN_CHECK(google::protobuf::util::BinaryToJsonString(
                     resolver.get(),
                     absl::StrCat("type.googleapis.com/", report.GetDescriptor()->full_name()),
                     SerializeWithSortedMaps(*repaired), &json, PrintOptions(with_blanks))
                     .ok());
  return absl::StrCat(absl::StripSuffix(json, "\n"), "\n");
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
  return absl::InvalidArgumentError(
      Printable(reason.substr(0, std::min(reason.find('\n'), kMaxReason))));
}

}  // namespace meridian
