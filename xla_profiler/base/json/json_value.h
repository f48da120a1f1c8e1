// SPDX-License-Identifier: Apache-2.0
// What a piece of JSON text means, looked up when somebody asks:
//
//   const std::optional<uint64_t> correlation = args.Find("correlation").AsUint64();
//   const std::optional<int64_t> rank = header.Find("distributedInfo").Find("rank").AsInt64();
//
// Nothing is kept but the text, so that a lookup costs a walk over it. Damaged text is safe to ask;
// it answers nullopt.
#ifndef XLA_PROFILER_BASE_JSON_JSON_VALUE_H_
#define XLA_PROFILER_BASE_JSON_JSON_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace meridian {

class JsonValue {
 public:
  // A value that does not exist.
  JsonValue() = default;
  // The text must outlive the value and have no white space around it, as JsonCutter cuts it.
  explicit JsonValue(absl::string_view text) : text_(text) {}

  bool exists() const { return !text_.empty(); }
  absl::string_view text() const { return text_; }

  // Returns the member of that name, the last if there are several (as Python and JavaScript do).
  // One that does not exist when there is none, or when this is no whole object. Keys are compared
  // as written, escapes unresolved.
  JsonValue Find(absl::string_view key) const;

  // Returns the elements of an array, `most` of them at most; of damaged text those before the damage.
  std::vector<JsonValue> Elements(size_t most = std::numeric_limits<size_t>::max()) const;

  // Numbers may also be given as strings, "7" for 7. An integer has no fraction and no exponent.
  std::optional<int64_t> AsInt64() const;
  std::optional<uint64_t> AsUint64() const;
  // Takes NaN and Infinity too, which some writers put although JSON has none.
  std::optional<double> AsDouble() const;

  // Nullopt for a string that ParseJsonString refuses.
  std::optional<std::string> AsString() const;

  // Nullopt unless this is an array and every element an integer.
  std::optional<std::vector<int64_t>> AsInt64Array() const;

 private:
  absl::string_view text_;
};

// Returns the text that a JSON string (with its quotes) stands for. Nullopt when it is none: no
// quotes, a bad escape, half a surrogate pair, a raw control character, or not UTF-8.
std::optional<std::string> ParseJsonString(absl::string_view quoted);

// Takes what follows a backslash in a JSON string off the front and appends what it stands for.
// False when it is no escape.
bool TakeJsonEscape(absl::string_view* text, std::string* out);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_JSON_JSON_VALUE_H_
