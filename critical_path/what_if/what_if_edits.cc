#include "critical_path/what_if/what_if_edits.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"

namespace meridian {
namespace {

using Field = Condition::Field;
using Kind = WhatIfEdit::Kind;

constexpr size_t kMaxPatternBytes = 1000;
constexpr int64_t kMaxPatternMemory = int64_t{8} << 20;
constexpr int64_t kMaxFactor = 1'000'000 * kFactorOne;
// A day. int64 picoseconds hold 106 of them, so that sums of edited times may have to saturate
// (SaturatingSum in what_if_graph.h).
constexpr int64_t kMaxDurationPs = int64_t{86'400} * 1'000'000'000'000;

struct Token {
  enum class Type : uint8_t { kWord, kQuoted, kCondition };
  Type type = Type::kWord;
  // The word, the text within the quotes, or a condition's value.
  std::string value;
  // Only for a condition: what stands before = or =~, and which of the two it is.
  std::string field;
  bool is_pattern = false;
  int line = 0;
  int column = 0;
  // The offsets in the text at which it begins and ends.
  size_t begin = 0;
  size_t end = 0;
};

absl::Status ErrorAt(int line, int column, absl::string_view reason) {
  return InvalidArgument(line, ":", column, ": ", reason);
}
absl::Status ErrorAt(const Token& token, absl::string_view reason) {
  return ErrorAt(token.line, token.column, reason);
}

class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  // Returns the tokens of the next edit; empty at the text's end.
  absl::StatusOr<std::vector<Token>> NextEdit() {
    std::vector<Token> tokens;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        TakeUntil("\n");
      } else if (c == ';' || c == '\n') {
        ++at_;
        if (c == '\n') {
          ++line_;
          line_begin_ = at_;
        }
        if (!tokens.empty()) break;
      } else if (absl::ascii_isspace(c)) {
        ++at_;
      } else {
        ASSIGN_OR_RETURN(Token token, NextToken());
        tokens.push_back(std::move(token));
      }
    }
    return tokens;
  }

 private:
  int Column() const { return static_cast<int>(at_ - line_begin_) + 1; }
  bool IsAt(char c) const { return at_ < text_.size() && text_[at_] == c; }

  // Returns the text up to the next of these bytes, or to the end, and steps there.
  std::string TakeUntil(absl::string_view bytes) {
    const size_t begin =
        std::exchange(at_, std::min(text_.find_first_of(bytes, at_), text_.size()));
    return std::string(text_.substr(begin, at_ - begin));
  }

  absl::StatusOr<Token> NextToken() {
    Token token;
    token.line = line_;
    token.column = Column();
    token.begin = at_;
    if (IsAt('"')) {
      token.type = Token::Type::kQuoted;
      ASSIGN_OR_RETURN(token.value, Quoted());
    } else {
      token.value = TakeUntil(absl::StrCat(kWordEnds, "="));
      if (IsAt('=')) RETURN_IF_ERROR(TakeCondition(&token));
    }
    token.end = at_;
    return token;
  }

  absl::Status TakeCondition(Token* token) {
    token->type = Token::Type::kCondition;
    token->field = std::exchange(token->value, "");
    ++at_;
    token->is_pattern = IsAt('~');
    if (token->is_pattern) ++at_;
    if (IsAt('"')) {
      ASSIGN_OR_RETURN(token->value, Quoted());
      return absl::OkStatus();
    }
    token->value = TakeUntil(kWordEnds);
    return token->value.empty() ? ErrorAt(line_, Column(), "a value is missing after '='")
                                : absl::OkStatus();
  }

  absl::StatusOr<std::string> Quoted() {
    const int column = Column();
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (IsAt('"')) {
        ++at_;
        return value;
      }
      if (absl::StartsWith(text_.substr(at_), "\\\"")) ++at_;
      value += text_[at_];
    }
    return ErrorAt(line_, column, "the quote is not closed on its line");
  }

  static constexpr absl::string_view kWordEnds = " \t\n\v\f\r;#\"";

  const absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  // The offset in the text at which the line begins; tokens do not go beyond it.
  size_t line_begin_ = 0;
};

// The names of fields, in the order of Condition::Field.
constexpr absl::string_view kFieldNames[] = {"name",    "within", "category", "rank", "with",
                                             "process", "thread", "stream",   "event"};

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

absl::StatusOr<int64_t> ParseFactor(const Token& token) {
  absl::string_view text = token.value;
  absl::ConsumePrefix(&text, "x");
  // Picoseconds are to microseconds as millionths to the number.
  const std::optional<absl::int128> factor = ParseMicrosAsPicos(text);
  if (token.type != Token::Type::kWord || !factor.has_value()) {
    return ErrorAt(token, absl::StrCat("'", token.value, "' is no factor; expected e.g. 0.5"));
  }
  if (*factor < 0 || *factor > kMaxFactor) {
    return ErrorAt(token, absl::StrCat("the factor ", text, " is not between 0 and 1000000"));
  }
  return static_cast<int64_t>(*factor);
}

absl::StatusOr<int64_t> ParseDuration(const Token& token) {
  struct Unit {
    absl::string_view name;
    int64_t nanos;
  };
  // The longer names come first, since "s" ends them all.
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  absl::string_view text = token.value;
  int64_t unit_ns = token.value == "0" ? 1 : 0;
  for (const Unit& unit : kUnits) {
    if (unit_ns == 0 && absl::ConsumeSuffix(&text, unit.name)) unit_ns = unit.nanos;
  }
  const std::optional<absl::int128> millionths = ParseMicrosAsPicos(text);
  if (token.type != Token::Type::kWord || unit_ns == 0 || !millionths.has_value()) {
    return ErrorAt(
        token, absl::StrCat("'", token.value, "' is no duration; expected e.g. 0us, 12.5us, 3ms"));
  }
  if (*millionths < 0) {
    return ErrorAt(token, absl::StrCat("the duration ", token.value, " is negative"));
  }
  // A millionth of a nanosecond is a thousandth of a picosecond.
  if (*millionths > absl::int128(kMaxDurationPs) * 1000 / unit_ns) {
    return ErrorAt(token, absl::StrCat("the duration ", token.value, " is longer than a day"));
  }
  return static_cast<int64_t>((*millionths * unit_ns + 500) / 1000);
}

absl::Status ParsePattern(const Token& token, Condition* condition) {
  if (condition->field != Field::kName && condition->field != Field::kWithin) {
    return ErrorAt(token, absl::StrCat("patterns (=~) are for name and within, not for ",
                                       token.field, "; expected ", token.field, "=VALUE"));
  }
  if (token.value.size() > kMaxPatternBytes) {
    return ErrorAt(token, absl::StrCat("the pattern is longer than ", kMaxPatternBytes, " bytes"));
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxPatternMemory);
  auto pattern = std::make_shared<const re2::RE2>(token.value, options);
  if (!pattern->ok()) {
    return ErrorAt(token,
                   absl::StrCat("'", token.value, "' is no RE2 pattern: ", pattern->error()));
  }
  condition->pattern = std::move(pattern);
  return absl::OkStatus();
}

absl::StatusOr<Condition> ParseCondition(const Token& token) {
  const auto known = std::find(std::begin(kFieldNames), std::end(kFieldNames), token.field);
  if (known == std::end(kFieldNames)) {
    return ErrorAt(token, absl::StrCat("'", token.field, "' is no condition; there are: ",
                                       absl::StrJoin(kFieldNames, ", ")));
  }
  Condition condition;
  condition.field = static_cast<Field>(known - std::begin(kFieldNames));
  condition.value = token.value;
  if (token.is_pattern) {
    RETURN_IF_ERROR(ParsePattern(token, &condition));
  } else if (condition.field == Field::kRank || condition.field == Field::kWith ||
             condition.field == Field::kEvent) {
    if (!absl::SimpleAtoi(token.value, &condition.number) || condition.number < 0) {
      return ErrorAt(token, absl::StrCat("'", token.value, "' is no ", token.field,
                                         "; expected a number from 0"));
    }
  }
  return condition;
}

// Parses the tokens of one edit, which are parts of the text.
absl::StatusOr<WhatIfEdit> ParseEdit(absl::string_view text, absl::Span<const Token> tokens) {
  const auto text_of = [&](size_t begin, size_t end) {
    return std::string(text.substr(tokens[begin].begin, tokens[end - 1].end - tokens[begin].begin));
  };
  const Token& first = tokens.front();
  const auto* const verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                        [&](const Verb& v) { return v.name == first.value; });
  if (verb == std::end(kVerbs) || first.type != Token::Type::kWord) {
    const auto name = [](std::string* out, const Verb& v) { absl::StrAppend(out, v.name); };
    return ErrorAt(first, absl::StrCat("'", text_of(0, 1), "' is no edit; there are: ",
                                       absl::StrJoin(kVerbs, ", ", name)));
  }
  WhatIfEdit edit;
  edit.kind = verb->kind;
  edit.text = text_of(0, tokens.size());
  edit.line = first.line;
  edit.column = first.column;
  size_t next = 1;
  const auto unexpected = [&] {
    const std::string usage = absl::StrCat("; expected: ", verb->usage);
    if (next < tokens.size()) {
      return ErrorAt(tokens[next],
                     absl::StrCat("unexpected '", text_of(next, next + 1), "'", usage));
    }
    const Token& last = tokens.back();
    return ErrorAt(last.line, last.column + static_cast<int>(last.end - last.begin),
                   absl::StrCat("the edit ends too early", usage));
  };
  std::vector<Condition>& conditions = edit.subject.conditions;
  while (next < tokens.size() && tokens[next].type == Token::Type::kCondition) {
    ASSIGN_OR_RETURN(Condition condition, ParseCondition(tokens[next++]));
    conditions.push_back(std::move(condition));
  }
  const bool is_all = next == 1 && tokens.size() > 1 && tokens[1].type == Token::Type::kWord &&
                      tokens[1].value == "all";
  if (is_all) ++next;
  if (next == 1) return unexpected();
  edit.subject.text = text_of(1, next);
  if (edit.kind == Kind::kLevel) {
    if (conditions.size() != 1 || conditions[0].field != Field::kRank) {
      return ErrorAt(tokens[1],
                     absl::StrCat("only a whole rank can be levelled; expected: ", verb->usage));
    }
  } else if (next == tokens.size()) {
    return unexpected();
  } else if (edit.kind == Kind::kScale) {
    ASSIGN_OR_RETURN(edit.factor, ParseFactor(tokens[next++]));
  } else {
    ASSIGN_OR_RETURN(edit.duration_ps, ParseDuration(tokens[next++]));
  }
  if (next < tokens.size()) return unexpected();
  return edit;
}

}  // namespace

absl::StatusOr<std::vector<WhatIfEdit>> ParseWhatIfEdits(absl::string_view text) {
  if (text.size() > kMaxEditTextBytes) {
    return InvalidArgument("the edits have ", text.size(), " bytes; at most ", kMaxEditTextBytes);
  }
  std::vector<WhatIfEdit> edits;
  Lexer lexer(text);
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<Token> tokens, lexer.NextEdit());
    if (tokens.empty()) break;
    if (edits.size() == kMaxEdits) {
      return ErrorAt(tokens.front(), absl::StrCat("more than ", kMaxEdits, " edits"));
    }
    ASSIGN_OR_RETURN(WhatIfEdit edit, ParseEdit(text, tokens));
    edits.push_back(std::move(edit));
  }
  if (edits.empty()) {
    return InvalidArgument("there are no edits; expected e.g. scale category=communication 0.5");
  }
  return edits;
}

}  // namespace meridian
