#include "xla_profiler/base/config/config_value.h"

#include <optional>
#include <sstream>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace meridian {
namespace {

std::shared_ptr<const YAML::Node> Share(const YAML::Node& node) {
  return std::make_shared<const YAML::Node>(node);
}

// Takes a document and keeps nothing of it.
class IgnoredDocument : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Returns whether there is a second document. YAML::LoadAll takes ", s" for documents without end.
bool HasSecondDocument(const std::string& yaml) {
  std::istringstream text(yaml);
  YAML::Parser parser(text);
  IgnoredDocument ignored;
  return parser.HandleNextDocument(ignored) && parser.HandleNextDocument(ignored);
}

std::optional<std::string> KeyText(const YAML::Node& key) {
  return key.IsScalar() ? std::make_optional(key.Scalar()) : std::nullopt;
}

}  // namespace

absl::Status ConfigError(absl::string_view source, absl::string_view place,
                         absl::string_view reason) {
  return InvalidArgument(source, source.empty() ? "" : ": ", place, place.empty() ? "" : ": ",
                         reason);
}

absl::StatusOr<ConfigValue> ConfigValue::FromYaml(absl::string_view yaml, absl::string_view source,
                                                  size_t max_bytes, absl::string_view what) {
  if (yaml.size() > max_bytes) {
    return ConfigError(source, "",
                       absl::StrCat("too long for ", what, ": ", yaml.size(), " bytes"));
  }
  // yaml-cpp reports by exceptions; only these calls have any to report.
  try {
    const std::string text(yaml);
    if (HasSecondDocument(text)) {
      return ConfigError(source, "", "text after the end of the document");
    }
    return ConfigValue(source, "", Share(YAML::Load(text)));
  } catch (const YAML::Exception& error) {
    return InvalidArgument(source, ":", error.mark.line + 1, ": ", Printable(error.msg),
                           "; expected YAML or JSON");
  }
}

int32_t ConfigValue::line() const { return exists() ? node_->Mark().line + 1 : 0; }

absl::Status ConfigValue::ErrorAtLine(absl::string_view reason) const {
  if (!exists()) return Error(reason);
  return ConfigError(absl::StrCat(source_, ":", line()), place_, reason);
}

bool ConfigValue::IsMap() const { return exists() && node_->IsMap(); }

bool ConfigValue::IsList() const { return exists() && node_->IsSequence(); }

bool ConfigValue::IsScalar() const { return exists() && node_->IsScalar(); }

std::string ConfigValue::PlaceOf(absl::string_view key) const {
  return absl::StrCat(place_, place_.empty() ? "" : ".", Printable(key));
}

ConfigValue ConfigValue::Find(absl::string_view key) const {
  std::shared_ptr<const YAML::Node> found;
  if (IsMap()) {
    for (const auto& member : *node_) {
      if (found == nullptr && KeyText(member.first) == key) found = Share(member.second);
    }
  }
  return ConfigValue(source_, PlaceOf(key), std::move(found));
}

absl::StatusOr<std::string> ConfigValue::Text(absl::string_view reason) const {
  if (!IsScalar() || node_->Scalar().empty()) return Error(reason);
  return node_->Scalar();
}

absl::StatusOr<int64_t> ConfigValue::Integer(absl::string_view reason, int64_t min,
                                             int64_t max) const {
  int64_t number = 0;
  const bool is_number = IsScalar() && absl::SimpleAtoi(node_->Scalar(), &number);
  if (!is_number || number < min || number > max) return Error(reason);
  return number;
}

absl::StatusOr<double> ConfigValue::Number(absl::string_view reason) const {
  double number = 0;
  if (!IsScalar() || !absl::SimpleAtod(node_->Scalar(), &number)) return Error(reason);
  return number;
}

absl::StatusOr<bool> ConfigValue::Switch(absl::string_view reason) const {
  const std::string word = IsScalar() ? node_->Scalar() : "";
  if (word == "true" || word == "false") return word == "true";
  ASSIGN_OR_RETURN(const int64_t number, Integer(reason));
  return number != 0;
}

absl::StatusOr<std::vector<std::string>> ConfigValue::Texts(absl::string_view reason) const {
  std::vector<std::string> texts;
  RETURN_IF_ERROR(ForEachElement([&](const ConfigValue& element) {
    if (!element.IsScalar()) return Error(reason);
    texts.push_back(element.node_->Scalar());
    return absl::OkStatus();
  }));
  return texts;
}

absl::Status ConfigValue::ReadIfThere(int64_t* number) const {
  return exists() ? ReadInto(number, [](const auto& value) { return value.Integer(); })(*this)
                  : absl::OkStatus();
}

absl::Status ConfigValue::ReadIfThere(double* number) const {
  return exists() ? ReadInto(number, [](const auto& value) { return value.Number(); })(*this)
                  : absl::OkStatus();
}

absl::Status ConfigValue::ReadIfThere(bool* is_on) const {
  return exists() ? ReadInto(is_on, [](const auto& value) { return value.Switch(); })(*this)
                  : absl::OkStatus();
}

absl::Status ConfigValue::ForEachMember(
    absl::FunctionRef<absl::Status(const std::string&, const ConfigValue&)> fn) const {
  if (!IsMap()) return Error("expected keys and values");
  absl::flat_hash_set<std::string> seen;
  for (const auto& member : *node_) {
    const std::optional<std::string> key = KeyText(member.first);
    if (!key.has_value()) return Error("has a key that is no text");
    if (!seen.insert(*key).second) return Error(absl::StrCat(Printable(*key), " occurs twice"));
    RETURN_IF_ERROR(fn(*key, ConfigValue(source_, PlaceOf(*key), Share(member.second))));
  }
  return absl::OkStatus();
}

absl::Status ConfigValue::ForEachElement(
    absl::FunctionRef<absl::Status(const ConfigValue&)> fn) const {
  if (!IsList()) return Error("expected a list");
  size_t position = 0;
  for (const YAML::Node& element : *node_) {
    const std::string place = absl::StrCat(place_, "[", position++, "]");
    RETURN_IF_ERROR(fn(ConfigValue(source_, place, Share(element))));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ConfigValue::NoteUnknownKeys(
    absl::Span<const absl::string_view> known) const {
  std::string first;
  size_t unknown = 0;
  RETURN_IF_ERROR(ForEachMember([&](const std::string& key, const ConfigValue& member) {
    if (!absl::c_linear_search(known, key) && ++unknown == 1) first = member.place_;
    return absl::OkStatus();
  }));
  if (unknown == 0) return "";
  return absl::StrCat(source_, source_.empty() ? "" : ": ", first, ": not known and ignored",
                      unknown == 1 ? "" : absl::StrCat(", as are ", unknown - 1, " more"),
                      "; there are ", absl::StrJoin(known, ", "));
}

absl::Status ConfigValue::ReadMembers(const std::map<std::string, Reader>& readers) const {
  return ForEachMember([&](const std::string& key, const ConfigValue& member) -> absl::Status {
    const auto reader = readers.find(key);
    if (reader != readers.end()) return reader->second(member);
    return member.Error(absl::StrCat(
        "not known; there are ",
        absl::StrJoin(readers, ", ",
                      [](std::string* out, const auto& known) { *out += known.first; })));
  });
}

}  // namespace meridian
