#include "xla_profiler/base/json/jsonl_row.h"

#include <cmath>
#include <cstddef>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Of a value or a key that is shown.
constexpr size_t kShownCharacters = 40;

bool IsWholeObject(absl::string_view text) {
  JsonCutter cutter(text);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) cutter.CutValue();
  return cutter.status().ok() && cutter.AtEnd();
}

}  // namespace

absl::StatusOr<int64_t> JsonlRow::Int64(absl::string_view key) const {
  const std::optional<int64_t> number = Find(key).AsInt64();
  if (!number.has_value()) return WrongValue(key, "an integer");
  return *number;
}

absl::StatusOr<double> JsonlRow::FiniteDouble(absl::string_view key) const {
  const std::optional<double> number = Find(key).AsDouble();
  if (!number.has_value() || !std::isfinite(*number)) return WrongValue(key, "a number");
  return *number;
}

absl::StatusOr<int64_t> JsonlRow::NanosAsPicos(absl::string_view key) const {
  // The sixth decimal of a nanosecond is a femtosecond.
  const std::optional<absl::int128> fs = ParseMicrosAsPicos(Find(key).text());
  if (!fs.has_value()) return WrongValue(key, "a number");
  const int half = *fs < 0 ? -500 : 500;
  const std::optional<int64_t> ps = NarrowToInt64((*fs + half) / 1000);
  if (!ps.has_value()) return WrongValue(key, "within 106 days");
  return *ps;
}

absl::StatusOr<bool> JsonlRow::Bool(absl::string_view key, bool absent) const {
  const JsonValue value = Find(key);
  if (!value.exists()) return absent;
  if (value.text() != "true" && value.text() != "false") return WrongValue(key, "true or false");
  return value.text() == "true";
}

absl::Status JsonlRow::CheckKeys(absl::Span<const absl::string_view> known) const {
  JsonCutter cutter(value_.text());
  cutter.Enter('{');
  absl::flat_hash_set<absl::string_view> seen;
  for (absl::string_view key; cutter.NextMember(&key); cutter.CutValue()) {
    if (!seen.insert(key).second) {
      return Error(
          absl::StrCat(FirstCharacters(Printable(key), kShownCharacters), " occurs twice"));
    }
    if (absl::c_linear_search(known, key)) continue;
    return Error(absl::StrCat("there is no member '",
                              FirstCharacters(Printable(key), kShownCharacters), "'; known are ",
                              absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

absl::Status JsonlRow::Error(absl::string_view reason) const {
  return InvalidArgument(file_, ":", line_, ": ", reason, "; expected e.g. ", example_);
}

absl::Status JsonlRow::WrongValue(absl::string_view key, absl::string_view kind) const {
  const JsonValue value = Find(key);
  if (!value.exists()) return Error(absl::StrCat(key, " is missing"));
  return Error(absl::StrCat(key, " is ", FirstCharacters(Printable(value.text()), kShownCharacters),
                            ", not ", kind));
}

absl::Status ForEachJsonlRow(absl::string_view contents, absl::string_view file,
                             absl::string_view example,
                             absl::FunctionRef<absl::Status(const JsonlRow&)> fn) {
  int64_t number = 0;
  int64_t rows = 0;
  // Some editors begin files with a byte order mark.
  absl::ConsumePrefix(&contents, "\xEF\xBB\xBF");
  for (absl::string_view line : absl::StrSplit(contents, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    ++rows;
    const JsonlRow row(line, file, number, example);
    if (!IsWholeObject(line)) return row.Error("the line is no JSON object");
    RETURN_IF_ERROR(fn(row));
  }
  if (rows > 0) return absl::OkStatus();
  return InvalidArgument(file, ": the file is empty; expected lines like ", example);
}

absl::string_view WithoutTornLine(absl::string_view contents) {
  const size_t last = contents.rfind('\n');
  if (last == absl::string_view::npos) return contents;
  const absl::string_view line = absl::StripAsciiWhitespace(contents.substr(last));
  return line.empty() || IsWholeObject(line) ? contents : contents.substr(0, last + 1);
}

}  // namespace meridian
