// SPDX-License-Identifier: Apache-2.0
// Changes to a measured run, and the language in which people write them: one edit per line, or
// several with ';' between, and comments from '#' to the end of the line.
//
//   scale   name=~"AllReduce" 0.5                  own time times 0.5
//   set     category=launch 0us                    own time, or delay, of each
//   level   rank=3                                 not slower than the other ranks' median
//
// What is edited is said by conditions, all of which must hold, or by the word `all`:
//
//   name="TEXT"  name=~"RE2"       the event's name: equal, or containing a match
//   within="TEXT"  within=~"RE2"   the event, or one around it or that launched it, has that name
//   category=WORD                  a category, group or delay of selection.h
//   rank=N  event=N                the rank; the event's place in its trace file
//   with=N                         rank N takes part in what the event communicates
//
// Values need quotes when they hold blanks, ';', '#' or quotes. In quotes \" stands for a quote;
// every other backslash is kept, as patterns need it.
#ifndef CRITICAL_PATH_WHAT_IF_WHAT_IF_EDITS_H_
#define CRITICAL_PATH_WHAT_IF_WHAT_IF_EDITS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"

namespace meridian {

// Texts with more bytes, or more edits, are refused: no person wrote them.
inline constexpr size_t kMaxEditTextBytes = size_t{1} << 20;
inline constexpr size_t kMaxEdits = 1000;

// Factors count in millionths, so that decimals are exact.
inline constexpr int64_t kFactorOne = 1'000'000;

struct Condition {
  enum class Field : uint8_t {
    kName,
    kWithin,
    kCategory,
    kRank,
    kWith,
    kEvent,
  };
  Field field = Field::kName;
  // The value as written, without quotes.
  std::string value;
  // The value as a pattern after =~; null after =.
  std::shared_ptr<const re2::RE2> pattern;
  // The number of a rank or an event.
  int64_t number = 0;
};

struct Selector {
  // All of them must hold. Empty for `all`.
  std::vector<Condition> conditions;
  // The conditions as written, for messages; empty for what nobody wrote.
  std::string text;
};

// An edit. The command's are parsed from text; the program's own are made as they are.
struct WhatIfEdit {
  enum class Kind : uint8_t { kScale, kSet, kLevel };
  Kind kind = Kind::kScale;
  // What is edited; for level a single condition on the rank.
  Selector subject;

  // The factor of scale, in millionths.
  int64_t factor = kFactorOne;
  // The duration of set.
  int64_t duration_ps = 0;

  // The edit as written; empty for what nobody wrote.
  std::string text;
};

// Returns the edits of a text in order, at least one. Errors are InvalidArgument: "edit: reason;
// what was expected".
absl::StatusOr<std::vector<WhatIfEdit>> ParseWhatIfEdits(absl::string_view text);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_WHAT_IF_EDITS_H_
