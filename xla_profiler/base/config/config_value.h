// SPDX-License-Identifier: Apache-2.0
// A value of a configuration file that knows where it stands, so that whatever is wrong with it is
// told as "timing.yml: groups.tp[2]: reason". Files are YAML, of which JSON is a part:
//
//   ASSIGN_OR_RETURN(const ConfigValue document, ConfigValue::FromYaml(text, "timing.yml", ...));
//   RETURN_IF_ERROR(document.Find("peak-perf").ReadIfThere(&peak_performance));
//
// Values are looked up when somebody asks. Nothing is unfolded: a YAML alias costs nothing until a
// reader follows it, and readers go only as deep as their format does.
#ifndef XLA_PROFILER_BASE_CONFIG_CONFIG_VALUE_H_
#define XLA_PROFILER_BASE_CONFIG_CONFIG_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace YAML {
class Node;
}

namespace meridian {

// Returns InvalidArgument "source: place: reason"; what is empty is left out with its colon.
absl::Status ConfigError(absl::string_view source, absl::string_view place,
                         absl::string_view reason);

class ConfigValue {
 public:
  // The source, which names the text in errors, must outlive the value. Text that is no YAML is an
  // error "source:line: reason"; more than `max_bytes` of it are too long for `what`, e.g. "a network
  // configuration".
  static absl::StatusOr<ConfigValue> FromYaml(absl::string_view yaml, absl::string_view source,
                                              size_t max_bytes, absl::string_view what);

  absl::Status Error(absl::string_view reason) const {
    return ConfigError(source_, place_, reason);
  }
  // Line of the value in the text, from 1 on; 0 for one that does not exist.
  int32_t line() const;
  // An error with the line, "source:line: place: reason", for long files.
  absl::Status ErrorAtLine(absl::string_view reason) const;

  bool exists() const { return node_ != nullptr; }
  bool IsMap() const;
  bool IsList() const;
  bool IsScalar() const;

  // Returns the first member of that name; one that does not exist when there is none.
  ConfigValue Find(absl::string_view key) const;

  // Errors give the reason. An empty text is one that was forgotten: an error.
  absl::StatusOr<std::string> Text(absl::string_view reason = "expected one value") const;
  absl::StatusOr<int64_t> Integer(absl::string_view reason = "expected a whole number",
                                  int64_t min = std::numeric_limits<int64_t>::min(),
                                  int64_t max = std::numeric_limits<int64_t>::max()) const;
  // May be NaN or infinite.
  absl::StatusOr<double> Number(absl::string_view reason = "expected a number") const;
  // Takes true, false and whole numbers, of which all but 0 are true.
  absl::StatusOr<bool> Switch(absl::string_view reason = "expected 0 or 1") const;

  // Returns the texts of a list's scalars as written, the quotes of strings removed. An element
  // that is no scalar is an error of this value with the reason.
  absl::StatusOr<std::vector<std::string>> Texts(absl::string_view reason) const;

  // As above; a value that does not exist leaves the variable as it is.
  absl::Status ReadIfThere(int64_t* number) const;
  absl::Status ReadIfThere(double* number) const;
  absl::Status ReadIfThere(bool* is_on) const;

  // Calls fn for each member of a map, or element of a list, in file order, until an error. A name
  // that is no text or comes twice is an error.
  absl::Status ForEachMember(
      absl::FunctionRef<absl::Status(const std::string& key, const ConfigValue& member)> fn) const;
  absl::Status ForEachElement(absl::FunctionRef<absl::Status(const ConfigValue& element)> fn) const;

  // Returns a note that names the first of a map's members that is none of the known ones, which the
  // reader ignores; empty when there is none.
  absl::StatusOr<std::string> NoteUnknownKeys(absl::Span<const absl::string_view> known) const;

  // Hands each member of a map to the reader of its name; a member without one is an error that
  // lists the names there are.
  using Reader = std::function<absl::Status(const ConfigValue&)>;
  absl::Status ReadMembers(const std::map<std::string, Reader>& readers) const;

 private:
  ConfigValue(absl::string_view source, std::string place, std::shared_ptr<const YAML::Node> node)
      : source_(source), place_(std::move(place)), node_(std::move(node)) {}

  // Returns the place of the member of that name.
  std::string PlaceOf(absl::string_view key) const;

  absl::string_view source_;
  // The keys and positions that lead to the value, "groups.tp[2]"; empty for the document.
  std::string place_;
  // Null for a value that does not exist.
  std::shared_ptr<const YAML::Node> node_;
};

// Returns a reader that stores what `read`, a function of the value, returns.
template <typename T, typename Read>
ConfigValue::Reader ReadInto(T* out, Read read) {
  return [out, read](const ConfigValue& value) -> absl::Status {
    auto found = read(value);
    if (!found.ok()) return found.status();
    *out = *std::move(found);
    return absl::OkStatus();
  };
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_CONFIG_CONFIG_VALUE_H_
