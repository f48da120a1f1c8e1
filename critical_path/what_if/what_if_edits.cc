#include "critical_path/what_if/what_if_edits.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"

namespace meridian {
namespace {

using ::re2::RE2;
using Field = Condition::Field;
using Kind = WhatIfEdit::Kind;

constexpr size_t kMaxPatternBytes = 1000;
constexpr int64_t kMaxPatternMemory = int64_t{8} << 20;
constexpr int64_t kMaxFactor = 1'000'000 * kFactorOne;
// A day. int64 picoseconds hold 106 of them, so that sums of edited times may have to saturate
// (SaturatingSum in what_if_graph.h).
constexpr int64_t kMaxDurationPs = int64_t{86'400} * 1'000'000'000'000;

// A word, or a condition: "rank=3", "name=~\"nccl\"".
struct Token {
  // What stands before = or =~, and whether it is the latter; empty for a word.
  std::string field;
  bool is_pattern = false;
  // The word, or the condition's value without its quotes.
  std::string value;
  // As written.
  std::string text;
};

// Takes the next token off the front of an edit that has one.
absl::StatusOr<Token> TakeToken(re2::StringPiece* rest) {
  static const RE2& pattern =
      *new RE2(R"re(((?:([a-z_]+)(=~?))?("(?:\\"|[^"\n])*"|[^\s;"]+))\s*)re", RE2::Latin1);
  Token token;
  std::string equals;
  if (!RE2::Consume(rest, pattern, &token.text, &token.field, &equals, &token.value)) {
    return InvalidArgument("cannot read '", std::string(*rest),
                           "'; expected a word, or a text in quotes");
  }
  token.is_pattern = equals == "=~";
  if (token.value[0] == '"') {
    token.value =
        absl::StrReplaceAll(token.value.substr(1, token.value.size() - 2), {{"\\\"", "\""}});
  }
  return token;
}

// Takes the next edit off the front of the text; empty at the end. Edits end at a line's end, a
// ';' or a comment, which begins with '#', outside of quotes.
std::string TakeEdit(re2::StringPiece* text) {
  static const RE2& pattern =
      *new RE2(R"re((?:[\s;]|#[^\n]*)*((?:[^\n;"#]|"(?:\\"|[^"\n])*"|")*))re", RE2::Latin1);
  std::string edit;
  RE2::Consume(text, pattern, &edit);
  return std::string(absl::StripTrailingAsciiWhitespace(edit));
}

// The names of fields, in the order of Condition::Field.
constexpr absl::string_view kFieldNames[] = {"name", "within", "category", "rank", "with", "event"};

struct Verb {
  absl::string_view name;
  Kind kind;
  // How the whole edit is written, for messages.
  absl::string_view usage;
};
constexpr Verb kVerbs[] = {
    {"scale", Kind::kScale, "scale CONDITIONS FACTOR"},
    {"set", Kind::kSet, "set CONDITIONS DURATION"},
    {"level", Kind::kLevel, "level rank=N"},
};

absl::StatusOr<int64_t> ParseFactor(absl::string_view text) {
  absl::string_view number = text;
  absl::ConsumePrefix(&number, "x");
  // Picoseconds are to microseconds as millionths to the number.
  const std::optional<absl::int128> factor = ParseMicrosAsPicos(number);
  if (!factor.has_value()) {
    return InvalidArgument("'", text, "' is no factor; expected e.g. 0.5");
  }
  if (*factor < 0 || *factor > kMaxFactor) {
    return InvalidArgument("the factor ", number, " is not between 0 and 1000000");
  }
  return static_cast<int64_t>(*factor);
}

absl::StatusOr<int64_t> ParseDuration(absl::string_view text) {
  struct Unit {
    absl::string_view name;
    int64_t nanos;
  };
  // The longer names come first, since "s" ends them all.
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  absl::string_view number = text;
  int64_t unit_ns = text == "0" ? 1 : 0;
  for (const Unit& unit : kUnits) {
    if (unit_ns == 0 && absl::ConsumeSuffix(&number, unit.name)) unit_ns = unit.nanos;
  }
  const std::optional<absl::int128> millionths = ParseMicrosAsPicos(number);
  if (unit_ns == 0 || !millionths.has_value()) {
    return InvalidArgument("'", text, "' is no duration; expected e.g. 0us, 12.5us, 3ms");
  }
  if (*millionths < 0) return InvalidArgument("the duration ", text, " is negative");
  // A millionth of a nanosecond is a thousandth of a picosecond.
  if (*millionths > absl::int128(kMaxDurationPs) * 1000 / unit_ns) {
    return InvalidArgument("the duration ", text, " is longer than a day");
  }
  return static_cast<int64_t>((*millionths * unit_ns + 500) / 1000);
}

absl::Status ParsePattern(const Token& token, Condition* condition) {
  if (condition->field != Field::kName && condition->field != Field::kWithin) {
    return InvalidArgument("patterns (=~) are for name and within, not for ", token.field,
                           "; expected ", token.field, "=VALUE");
  }
  if (token.value.size() > kMaxPatternBytes) {
    return InvalidArgument("the pattern is longer than ", kMaxPatternBytes, " bytes");
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxPatternMemory);
  auto pattern = std::make_shared<const RE2>(token.value, options);
  if (!pattern->ok()) {
    return InvalidArgument("'", token.value, "' is no RE2 pattern: ", pattern->error());
  }
  condition->pattern = std::move(pattern);
  return absl::OkStatus();
}

absl::StatusOr<Condition> ParseCondition(const Token& token) {
  const auto known = std::find(std::begin(kFieldNames), std::end(kFieldNames), token.field);
  if (known == std::end(kFieldNames)) {
    return InvalidArgument("'", token.field,
                           "' is no condition; there are: ", absl::StrJoin(kFieldNames, ", "));
  }
  Condition condition;
  condition.field = static_cast<Field>(known - std::begin(kFieldNames));
  condition.value = token.value;
  if (token.is_pattern) {
    RETURN_IF_ERROR(ParsePattern(token, &condition));
  } else if (condition.field == Field::kRank || condition.field == Field::kWith ||
             condition.field == Field::kEvent) {
    if (!absl::SimpleAtoi(token.value, &condition.number) || condition.number < 0) {
      return InvalidArgument("'", token.value, "' is no ", token.field,
                             "; expected a number from 0");
    }
  }
  return condition;
}

absl::StatusOr<WhatIfEdit> ParseEdit(const std::string& text) {
  std::vector<Token> tokens;
  for (re2::StringPiece rest(text); !rest.empty();) {
    ASSIGN_OR_RETURN(Token token, TakeToken(&rest));
    tokens.push_back(std::move(token));
  }
  const auto* const verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                        [&](const Verb& v) { return v.name == tokens[0].text; });
  if (verb == std::end(kVerbs)) {
    const auto name = [](std::string* out, const Verb& v) { absl::StrAppend(out, v.name); };
    return InvalidArgument("'", tokens[0].text,
                           "' is no edit; there are: ", absl::StrJoin(kVerbs, ", ", name));
  }
  WhatIfEdit edit;
  edit.kind = verb->kind;
  edit.text = text;
  std::vector<Condition>& conditions = edit.subject.conditions;
  size_t next = 1;
  for (; next < tokens.size() && !tokens[next].field.empty(); ++next) {
    ASSIGN_OR_RETURN(Condition condition, ParseCondition(tokens[next]));
    conditions.push_back(std::move(condition));
  }
  if (next == 1 && tokens.size() > 1 && tokens[1].text == "all") ++next;
  const bool has_value = edit.kind != Kind::kLevel;
  if (next == 1 || tokens.size() != next + (has_value ? 1 : 0)) {
    return next < tokens.size()
               ? InvalidArgument("unexpected '", tokens.back().text, "'; expected: ", verb->usage)
               : InvalidArgument("the edit ends too early; expected: ", verb->usage);
  }
  const auto append = [](std::string* out, const Token& token) { *out += token.text; };
  edit.subject.text =
      absl::StrJoin(tokens.begin() + 1, tokens.begin() + static_cast<ptrdiff_t>(next), " ", append);
  if (edit.kind == Kind::kLevel) {
    if (conditions.size() != 1 || conditions[0].field != Field::kRank) {
      return InvalidArgument("only a whole rank can be levelled; expected: ", verb->usage);
    }
  } else if (edit.kind == Kind::kScale) {
    ASSIGN_OR_RETURN(edit.factor, ParseFactor(tokens[next].text));
  } else {
    ASSIGN_OR_RETURN(edit.duration_ps, ParseDuration(tokens[next].text));
  }
  return edit;
}

}  // namespace

absl::StatusOr<std::vector<WhatIfEdit>> ParseWhatIfEdits(absl::string_view text) {
  if (text.size() > kMaxEditTextBytes) {
    return InvalidArgument("the edits have ", text.size(), " bytes; at most ", kMaxEditTextBytes);
  }
  std::vector<WhatIfEdit> edits;
  re2::StringPiece rest(text.data(), text.size());
  for (std::string edit_text; !(edit_text = TakeEdit(&rest)).empty();) {
    if (edits.size() == kMaxEdits) return InvalidArgument("more than ", kMaxEdits, " edits");
    ASSIGN_OR_RETURN(WhatIfEdit edit, Annotate(ParseEdit(edit_text), edit_text));
    edits.push_back(std::move(edit));
  }
  if (edits.empty()) {
    return InvalidArgument("there are no edits; expected e.g. scale category=communication 0.5");
  }
  return edits;
}

}  // namespace meridian
