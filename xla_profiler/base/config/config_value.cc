#include "xla_profiler/base/config/config_value.h"

#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/tables/text_table.h"
#include "yaml-cpp/yaml.h"

namespace meridian {
namespace {

std::shared_ptr<const YAML::Node> Share(const YAML::Node& node) {
  return std::make_shared<const YAML::Node>(node);
}

std::optional<std::string> KeyText(const YAML::Node& key) {
  return key.IsScalar() ? std::make_optional(key.Scalar()) : std::nullopt;
}

std::optional<std::string> KeyText(absl::string_view json_key) {
  return ParseJsonString(absl::StrCat("\"", json_key, "\""));
}

}  // namespace

absl::Status ConfigError(absl::string_view source, absl::string_view place,
                         absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(source, source.empty() ? "" : ": ", place, place.empty() ? "" : ": ", reason));
}

ConfigValue::ConfigValue(absl::string_view source, std::string place, absl::string_view json,
                         std::shared_ptr<const YAML::Node> yaml)
    : source_(source), place_(std::move(place)), json_(json), yaml_(std::move(yaml)) {}

absl::StatusOr<ConfigValue> ConfigValue::FromJson(absl::string_view json,
                                                  absl::string_view source) {
  JsonCutter cutter(json);
  const absl::string_view document = cutter.CutValue();
  if (cutter.status().ok() && !cutter.AtEnd()) cutter.Fail("text after the end of the object");
  RETURN_IF_ERROR(Annotate(cutter.status(), source));
  // Once through all members, so that broken syntax is found wherever it is.
  JsonCutter members(document);
  members.Enter('{');
  for (absl::string_view key; members.NextMember(&key);) members.CutValue();
  RETURN_IF_ERROR(Annotate(members.status(), source));
  return ConfigValue(source, "", document, nullptr);
}

absl::StatusOr<ConfigValue> ConfigValue::FromYaml(absl::string_view yaml, absl::string_view source,
                                                  size_t max_bytes, absl::string_view what) {
  if (yaml.size() > max_bytes) {
    return ConfigError(source, "",
                       absl::StrCat("too long for ", what, ": ", yaml.size(), " bytes"));
  }
  // yaml-cpp reports by exceptions; only this call has any to report.
  try {
    return ConfigValue(source, "", "", Share(YAML::Load(std::string(yaml))));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(source, ":", error.mark.line + 1, ": ",
                                                   Printable(error.msg), "; expected YAML"));
  }
}

bool ConfigValue::IsMap() const {
  return yaml_ != nullptr ? yaml_->IsMap() : exists() && json_.front() == '{';
}

bool ConfigValue::IsList() const {
  return yaml_ != nullptr ? yaml_->IsSequence() : exists() && json_.front() == '[';
}

bool ConfigValue::IsScalar() const {
  return yaml_ != nullptr ? yaml_->IsScalar() : exists() && !IsMap() && !IsList();
}

std::string ConfigValue::PlaceOf(absl::string_view key) const {
  return absl::StrCat(place_, place_.empty() ? "" : ".", Printable(key));
}

ConfigValue ConfigValue::Find(absl::string_view key) const {
  if (yaml_ == nullptr) {
    return ConfigValue(source_, PlaceOf(key), JsonValue(json_).Find(key).text(), nullptr);
  }
  std::shared_ptr<const YAML::Node> found;
  if (yaml_->IsMap()) {
    for (const auto& member : *yaml_) {
      if (found == nullptr && KeyText(member.first) == key) found = Share(member.second);
    }
  }
  return ConfigValue(source_, PlaceOf(key), "", std::move(found));
}

absl::StatusOr<std::string> ConfigValue::Text(absl::string_view reason) const {
  std::optional<std::string> text =
      yaml_ == nullptr ? JsonValue(json_).AsString() : KeyText(*yaml_);
  if (!text.has_value() || (yaml_ != nullptr && text->empty())) return Error(reason);
  return *std::move(text);
}

absl::string_view ConfigValue::ScalarText() const {
  if (yaml_ != nullptr) return yaml_->Scalar();
  absl::string_view text = json_;
  if (absl::ConsumePrefix(&text, "\"")) absl::ConsumeSuffix(&text, "\"");
  return text;
}

absl::StatusOr<int64_t> ConfigValue::Integer(absl::string_view reason, int64_t min,
                                             int64_t max) const {
  int64_t number = 0;
  const bool is_number = IsScalar() && absl::SimpleAtoi(ScalarText(), &number);
  if (!is_number || number < min || number > max) return Error(reason);
  return number;
}

absl::StatusOr<double> ConfigValue::Number(absl::string_view reason) const {
  double number = 0;
  if (!IsScalar() || !absl::SimpleAtod(ScalarText(), &number)) return Error(reason);
  return number;
}

absl::StatusOr<bool> ConfigValue::Switch(absl::string_view reason) const {
  const absl::string_view word = yaml_ != nullptr ? ScalarText() : json_;
  if (word == "true" || word == "false") return word == "true";
  ASSIGN_OR_RETURN(const int64_t number, Integer(reason));
  return number != 0;
}

absl::StatusOr<std::vector<std::string>> ConfigValue::Texts(absl::string_view reason) const {
  std::vector<std::string> texts;
  RETURN_IF_ERROR(ForEachElement([&](const ConfigValue& element) {
    texts.emplace_back(element.ScalarText());
    return element.IsScalar() ? absl::OkStatus() : Error(reason);
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
  const auto visit = [&](const std::optional<std::string>& key, absl::string_view json,
                         std::shared_ptr<const YAML::Node> yaml) -> absl::Status {
    if (!key.has_value()) return Error("has a key that is no text");
    if (!seen.insert(*key).second) return Error(absl::StrCat(Printable(*key), " occurs twice"));
    return fn(*key, ConfigValue(source_, PlaceOf(*key), json, std::move(yaml)));
  };
  if (yaml_ != nullptr) {
    for (const auto& member : *yaml_) {
      RETURN_IF_ERROR(visit(KeyText(member.first), "", Share(member.second)));
    }
    return absl::OkStatus();
  }
  JsonCutter cutter(json_);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const absl::string_view value = cutter.CutValue();
    RETURN_IF_ERROR(visit(KeyText(key), value, nullptr));
  }
  return cutter.status().ok() ? absl::OkStatus() : Error(cutter.status().message());
}

absl::Status ConfigValue::ForEachElement(
    absl::FunctionRef<absl::Status(const ConfigValue&)> fn) const {
  if (!IsList()) return Error("expected a list");
  size_t position = 0;
  const auto visit = [&](absl::string_view json, std::shared_ptr<const YAML::Node> yaml) {
    return fn(
        ConfigValue(source_, absl::StrCat(place_, "[", position++, "]"), json, std::move(yaml)));
  };
  if (yaml_ != nullptr) {
    for (const YAML::Node& element : *yaml_) RETURN_IF_ERROR(visit("", Share(element)));
    return absl::OkStatus();
  }
  JsonCutter cutter(json_);
  cutter.Enter('[');
  while (cutter.NextElement()) RETURN_IF_ERROR(visit(cutter.CutValue(), nullptr));
  return cutter.status().ok() ? absl::OkStatus() : Error(cutter.status().message());
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
