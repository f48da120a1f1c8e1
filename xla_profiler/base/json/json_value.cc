#include "xla_profiler/base/json/json_value.h"

#include "absl/strings/numbers.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_writer.h"

namespace meridian {
namespace {

// Returns the text of a number that may stand in quotes.
absl::string_view NumberText(absl::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
  return text.substr(1, text.size() - 2);
}

}  // namespace

JsonValue JsonValue::Find(absl::string_view key) const {
  JsonCutter cutter(text_);
  JsonValue found;
  cutter.Enter('{');
  for (absl::string_view name; cutter.NextMember(&name);) {
    const JsonValue value(cutter.CutValue());
    if (name == key) found = value;
  }
  return cutter.status().ok() ? found : JsonValue();
}

std::optional<int64_t> JsonValue::AsInt64() const {
  int64_t value = 0;
  return absl::SimpleAtoi(NumberText(text_), &value) ? std::optional<int64_t>(value) : std::nullopt;
}

std::optional<uint64_t> JsonValue::AsUint64() const {
  uint64_t value = 0;
  return absl::SimpleAtoi(NumberText(text_), &value) ? std::optional<uint64_t>(value)
                                                     : std::nullopt;
}

std::optional<double> JsonValue::AsDouble() const {
  double value = 0;
  return absl::SimpleAtod(NumberText(text_), &value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<std::string> JsonValue::AsString() const { return ParseJsonString(text_); }

std::optional<std::vector<int64_t>> JsonValue::AsInt64Array() const {
  JsonCutter cutter(text_);
  std::vector<int64_t> values;
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const std::optional<int64_t> value = JsonValue(cutter.CutValue()).AsInt64();
    if (!value.has_value()) return std::nullopt;
    values.push_back(*value);
  }
  if (!cutter.status().ok()) return std::nullopt;
  return values;
}

}  // namespace meridian
