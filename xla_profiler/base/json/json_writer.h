// SPDX-License-Identifier: Apache-2.0
// Writes JSON piece by piece onto the end of a string, with the commas where they belong:
//
//   JsonWriter json(&out, JsonSpacing::kSpaced);
//   json.BeginObject(JsonLayout::kIndented);
//   json.Member("rank", 3);                     //   {
//   json.Key("groups");                         //     "rank": 3,
//   json.List(groups);                          //     "groups": [0, 1]
//   json.EndObject();                           //   }
//
// That keys and values alternate is the caller's business.
#ifndef XLA_PROFILER_BASE_JSON_JSON_WRITER_H_
#define XLA_PROFILER_BASE_JSON_JSON_WRITER_H_

#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Appends the text in quotes. Control characters are escaped; each byte that is not part of
// well-formed UTF-8 becomes U+FFFD, since JSON has no other way to hold it.
void AppendJsonString(absl::string_view text, std::string* out);

// Appends the number with as many digits as it takes to read the same value. NaN and Infinity are
// written as strings, since JSON has no such numbers.
void AppendJsonNumber(double number, std::string* out);

// What follows the commas and colons within a line: nothing or a space.
enum class JsonSpacing { kCompact, kSpaced };

// Where the members of an object, or the elements of an array, stand.
enum class JsonLayout {
  // All on the line of the opening bracket.
  kInline,
  // Each on a line of its own, as is the closing bracket.
  kLines,
  // The same, indented once more for each such object or array around.
  kIndented,
};

class JsonWriter {
 public:
  // The string must outlive the writer; it may be emptied at any time, once its bytes are safe
  // elsewhere. JsonLayout::kIndented indents by so many spaces.
  explicit JsonWriter(std::string* out, JsonSpacing spacing = JsonSpacing::kCompact,
                      int indentation_width = 2)
      : out_(*out),
        is_spaced_(spacing == JsonSpacing::kSpaced),
        indentation_width_(indentation_width) {}

  void BeginObject(JsonLayout layout = JsonLayout::kInline) { Begin('{', layout); }
  // Begins an object with the text of one that has members already and lacks its closing brace.
  void ContinueObject(absl::string_view text);
  void EndObject() { End('}'); }
  void BeginArray(JsonLayout layout = JsonLayout::kInline) { Begin('[', layout); }
  // The same as the value of a member.
  void BeginObject(absl::string_view key, JsonLayout layout = JsonLayout::kInline) {
    Key(key);
    BeginObject(layout);
  }
  void BeginArray(absl::string_view key, JsonLayout layout = JsonLayout::kInline) {
    Key(key);
    BeginArray(layout);
  }
  void EndArray() { End(']'); }

  void Key(absl::string_view key);

  // A bool, a whole number, a floating-point number (AppendJsonNumber) or a text.
  template <typename T>
  void Value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      Raw(value ? "true" : "false");
    } else if constexpr (std::is_integral_v<T>) {
      Raw(absl::AlphaNum(value).Piece());
    } else if constexpr (std::is_floating_point_v<T>) {
      BeginValue();
      AppendJsonNumber(value, &out_);
    } else {
      BeginValue();
      AppendJsonString(value, &out_);
    }
  }

  // A value that is JSON already.
  void Raw(absl::string_view json) {
    BeginValue();
    absl::StrAppend(&out_, json);
  }

  // An array of values on one line.
  template <typename Values>
  void List(const Values& values) {
    BeginArray();
    for (const auto& value : values) Value(value);
    EndArray();
  }

  template <typename T>
  void Member(absl::string_view key, const T& value) {
    Key(key);
    Value(value);
  }

 private:
  struct Level {
    JsonLayout layout;
    bool has_items;
  };

  void Begin(char bracket, JsonLayout layout);
  void End(char bracket);
  // Writes what stands before a value: nothing behind a key, else the comma and the line break.
  void BeginValue();
  void BreakLine();

  std::string& out_;
  const bool is_spaced_;
  const int indentation_width_;
  bool is_behind_key_ = false;
  // The objects and arrays that are open, the outermost first.
  std::vector<Level> levels_;
  // How many of them are indented.
  int indentation_ = 0;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_JSON_JSON_WRITER_H_
