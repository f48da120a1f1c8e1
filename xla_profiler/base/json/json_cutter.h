// SPDX-License-Identifier: Apache-2.0
// Cuts JSON text into its parts without parsing them, as fast as the text can be looked at:
//
//   {"schemaVersion": 1, "traceEvents": [{"ph": "X", "args": {"a": "]"}}, {"ph": "M"}], ...
//    member              member           element                         element
//
// Brackets, strings and the commas and colons on the cutter's own level are checked; what is inside
// a cut value is not, except that its brackets match, unless all of it is to be checked. Texts of
// any size work; all slices point into the text, so a slice's place in the file is the difference of
// two pointers.
#ifndef XLA_PROFILER_BASE_JSON_JSON_CUTTER_H_
#define XLA_PROFILER_BASE_JSON_JSON_CUTTER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Brackets may nest this deep in a cut value.
inline constexpr int kMaxJsonDepth = 512;

enum class JsonChecks {
  // Enough to cut text that was checked before, or whose parts will be.
  kStructure,
  // Members' names and values are JSON (RFC 8259) and UTF-8 throughout; surrogates come in pairs.
  // NaN, Infinity and -Infinity are taken for numbers, as Python's json does.
  kAll,
};

// A cursor. To walk an object whose members are numbers, say:
//
//   JsonCutter cutter(text);
//   cutter.Enter('{');
//   for (absl::string_view key; cutter.NextMember(&key);) Use(key, cutter.CutValue());
//   RETURN_IF_ERROR(cutter.status());
//
// The first error ends all walks; the functions are then free of effect.
class JsonCutter {
 public:
  explicit JsonCutter(absl::string_view text, uint64_t offset = 0,
                      JsonChecks checks = JsonChecks::kStructure)
      : text_(text), position_(offset), checks_(checks) {}

  // Returns the next byte that is not white space, or 0 at the end of the text.
  char Peek() { return AtEnd() ? '\0' : text_[position_]; }

  // True when only white space follows.
  bool AtEnd() {
    while (position_ < text_.size() && IsSpace(text_[position_])) ++position_;
    return position_ >= text_.size();
  }

  // Steps behind the opening bracket, '{' or '['; an error when another byte is there.
  void Enter(char bracket);

  // Steps to the value of the next member and stores its key as written, without the quotes and
  // with escapes unresolved. Returns false behind the closing brace, or on error.
  bool NextMember(absl::string_view* key);

  // Steps to the next element. Returns false behind the closing bracket, or on error.
  bool NextElement();

  // Returns the value at the cursor, without surrounding white space, and steps behind it. A
  // missing value, as in [1,,2] or {"a":}, is empty, or an error when all is checked.
  absl::string_view CutValue();

  // Reports an error at the cursor. The reason must outlive the cutter.
  void Fail(absl::string_view reason) { FailAt(position_, reason); }

  // "offset N: reason".
  absl::Status status() const;

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

  void FailAt(uint64_t offset, absl::string_view reason);
  bool Next(char closing_bracket);
  // Step behind the string or brackets at the cursor, in which anything may be as long as quotes and
  // brackets match; or check all of it on the way.
  void SkipString();
  void SkipBracketed();
  void CheckString();
  void CheckBracketed();

  absl::string_view text_;
  uint64_t position_;
  JsonChecks checks_;
  // Nothing was read since the last opening bracket, so that no comma is due.
  bool just_entered_ = false;
  bool failed_ = false;
  uint64_t failure_offset_ = 0;
  absl::string_view failure_reason_;
};

// What CutTrace calls; a status that is not OK ends the walk.
using TraceEventCallback = absl::FunctionRef<absl::Status(absl::string_view element)>;
using TraceMemberCallback =
    absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)>;

// Hands out the elements of the `traceEvents` array and the other members of a trace document, in
// file order. A bare array of events is a trace document too, and as for Chrome its closing bracket
// may be missing when the text ends after a whole element (writers that were stopped). Anything
// else that is cut off or not JSON (JsonChecks::kAll), wherever it stands, a document without
// `traceEvents`, and text after its end are errors.
//
// A mapped file leaves memory behind the walk (ForgetMapped).
absl::Status CutTrace(absl::string_view text, TraceEventCallback on_event,
                      TraceMemberCallback on_member);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_JSON_JSON_CUTTER_H_
