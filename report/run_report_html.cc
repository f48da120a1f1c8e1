#include "report/run_report_html.h"

#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "report/page_glossary.h"
#include "report/page_library.h"
#include "report/page_script.h"
#include "report/page_style.h"
#include "report/page_template.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Inside of strings, JSON may write these as escapes; outside they do not occur. So no text of a trace
// ends the element that holds the data.
std::string ScriptSafe(absl::string_view json) {
  return absl::StrReplaceAll(json, {{"<", "\\u003c"},
                                    {">", "\\u003e"},
                                    {"&", "\\u0026"},
                                    {"\u2028", "\\u2028"},
                                    {"\u2029", "\\u2029"}});
}

// Returns how the page reads a field: "text", "number", "flag" or the name of a message; followed by
// "[]" for a list, or "?" for a message that is undefined when it is absent.
std::string ShapeOf(const FieldDescriptor& field) {
  std::string shape = "number";
  if (field.message_type() != nullptr) {
    shape = std::string(field.message_type()->name());
    if (field.has_optional_keyword()) shape.push_back('?');
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING || field.enum_type() != nullptr) {
    shape = "text";
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    shape = "flag";
  }
  return field.is_repeated() ? absl::StrCat(shape, "[]") : shape;
}

void FindMessages(const Descriptor& message, std::map<std::string, const Descriptor*>* found) {
  if (!found->insert({std::string(message.name()), &message}).second) return;
  for (int i = 0; i < message.field_count(); ++i) {
    const Descriptor* type = message.field(i)->message_type();
    if (type != nullptr) FindMessages(*type, found);
  }
}

// Returns {"RunReport": {"title": "text", "findings": "Finding[]", ...}, "Finding": ...}, of all
// messages that a report may hold.
std::string SchemaJson() {
  std::map<std::string, const Descriptor*> messages;
  FindMessages(*RunReport::descriptor(), &messages);
  std::string schema;
  JsonWriter json(&schema);
  json.BeginObject();
  for (const auto& [name, message] : messages) {
    json.BeginObject(name);
    for (int i = 0; i < message->field_count(); ++i) {
      json.Key(message->field(i)->name());
      json.Value(ShapeOf(*message->field(i)));
    }
    json.EndObject();
  }
  json.EndObject();
  return schema;
}

// Returns {"rank": "The position of ...", ...}: the rows of docs/glossary.md, which tooltips show.
std::string GlossaryJson() {
  std::string glossary;
  JsonWriter json(&glossary);
  json.BeginObject();
  for (absl::string_view line : absl::StrSplit(kPageGlossary, '\n')) {
    const std::vector<absl::string_view> cells = absl::StrSplit(line, '|');
    if (cells.size() != 4 || absl::StartsWith(cells[1], "-") || cells[1] == " word ") continue;
    json.Key(absl::StripAsciiWhitespace(cells[1]));
    json.Value(absl::StripAsciiWhitespace(cells[2]));
  }
  json.EndObject();
  return glossary;
}

}  // namespace

std::string RunReportHtml(const RunReport& report) {
  // Marks in what is filled in stay text.
  return absl::StrReplaceAll(
      kPageTemplate, {{"{{style}}", kPageStyle},
                      {"{{library}}", kPageLibrary},
                      {"{{script}}", kPageScript},
                      {"{{schema}}", SchemaJson()},
                      {"{{glossary}}", ScriptSafe(GlossaryJson())},
                      {"{{data}}", ScriptSafe(ReportToCompactJson(report))},
                      {"{{script_policy}}", absl::StrCat(kPageLibraryHash, " ", kPageScriptHash)}});
}

}  // namespace meridian
