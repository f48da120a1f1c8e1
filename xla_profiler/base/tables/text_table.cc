#include "xla_profiler/base/tables/text_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/utf8.h"

namespace meridian {
namespace {

constexpr absl::string_view kGap = "  ";

size_t Width(absl::string_view text) {
  size_t width = 0;
  for (; !text.empty(); ConsumeCodePoint(&text)) ++width;
  return width;
}

// Controls of terminals, line separators and marks that reverse the direction of text.
bool IsControl(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

void AppendCell(absl::string_view text, size_t width, bool is_right, std::string* line) {
  const std::string padding(width - Width(text), ' ');
  absl::StrAppend(line, is_right ? padding : "", text, is_right ? "" : padding);
}

void StripTrailingSpaces(std::string* line) { line->erase(line->find_last_not_of(' ') + 1); }

// Returns the time in the unit that is 10^digits picoseconds.
std::string FormatTime(int64_t ps, int digits, int decimals) {
  MERIDIAN_CHECK(decimals >= 0 && decimals <= digits);
  // Unsigned: the smallest int64 has no positive counterpart.
  const uint64_t magnitude = ps < 0 ? uint64_t{0} - static_cast<uint64_t>(ps) : ps;
  uint64_t dropped = 1;
  for (int i = decimals; i < digits; ++i) dropped *= 10;
  uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const uint64_t rounded = magnitude / dropped + (magnitude % dropped >= dropped - dropped / 2);
  const char* const sign = ps < 0 && rounded > 0 ? "-" : "";
  if (decimals == 0) return absl::StrCat(sign, rounded);
  return absl::StrFormat("%s%d.%0*d", sign, rounded / scale, decimals, rounded % scale);
}

struct Unit {
  absl::string_view name;
  int64_t bytes;
};

// The powers of 1024 come first, from the largest down: FormatByteSize takes the first that fits.
constexpr Unit kUnits[] = {{"TiB", int64_t{1} << 40},
                           {"GiB", int64_t{1} << 30},
                           {"MiB", int64_t{1} << 20},
                           {"KiB", int64_t{1} << 10},
                           {"B", 1},
                           {"TB", 1000000000000},
                           {"GB", 1000000000},
                           {"MB", 1000000},
                           {"kB", 1000},
                           {"", 1}};

// Returns 0 when there is no such unit.
int64_t BytesOfUnit(absl::string_view name) {
  for (const Unit& unit : kUnits) {
    if (absl::EqualsIgnoreCase(name, unit.name)) return unit.bytes;
  }
  return 0;
}

}  // namespace

TextTable::TextTable(const std::vector<std::string>& titles) {
  for (absl::string_view title : titles) {
    const bool is_right = absl::ConsumePrefix(&title, ">");
    columns_.push_back({Printable(title), is_right});
  }
}

void TextTable::AddRow(std::vector<std::string> cells) {
  MERIDIAN_CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString() const {
  std::vector<std::string> titles;
  std::vector<std::string> rules;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = Width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Width(row[i]));
    titles.push_back(columns_[i].title);
    rules.push_back(std::string(width, '-'));
    widths.push_back(width);
  }

  std::string text;
  const auto append_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) absl::StrAppend(&line, kGap);
      AppendCell(cells[i], widths[i], columns_[i].is_right, &line);
    }
    StripTrailingSpaces(&line);
    absl::StrAppend(&text, line, "\n");
  };
  append_line(titles);
  append_line(rules);
  for (const auto& row : rows_) append_line(row);
  return text;
}

std::string WithThousands(int64_t number) {
  std::string text = absl::StrCat(number);
  const int first_digit = number < 0 ? 1 : 0;
  for (int i = static_cast<int>(text.size()) - 3; i > first_digit; i -= 3) text.insert(i, ",");
  return text;
}

std::string FirstCharacters(absl::string_view text, size_t count) {
  if (text.size() <= count) return std::string(text);
  absl::string_view rest = text;
  for (size_t i = 0; i < count && !rest.empty(); ++i) ConsumeCodePoint(&rest);
  if (rest.empty()) return std::string(text);
  return absl::StrCat(text.substr(0, text.size() - rest.size()), "...");
}

std::string Printable(absl::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const absl::string_view before = text;
    const char32_t code_point = ConsumeCodePoint(&text);
    if (code_point == kNotUtf8 || IsControl(code_point)) {
      printable += '?';
    } else {
      absl::StrAppend(&printable, before.substr(0, before.size() - text.size()));
    }
  }
  return printable;
}

std::string CsvField(absl::string_view text) {
  const std::string printable = Printable(text);
  double number;
  const bool is_formula = !printable.empty() && absl::StrContains("=+-@", printable[0]) &&
                          !absl::SimpleAtod(printable, &number);
  return absl::StrCat(is_formula ? "\"'" : "\"", absl::StrReplaceAll(printable, {{"\"", "\"\""}}),
                      "\"");
}

std::string FormatMillis(int64_t ps, int decimals) { return FormatTime(ps, 9, decimals); }

std::string FormatMicros(int64_t ps, int decimals) { return FormatTime(ps, 6, decimals); }

absl::StatusOr<int64_t> ParseByteSize(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  const int64_t unit_bytes = BytesOfUnit(text.substr(digits));
  int64_t number = 0;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number) || unit_bytes == 0 ||
      number > std::numeric_limits<int64_t>::max() / unit_bytes) {
    return InvalidArgument("'", text, "' is no size; expected e.g. 4096, 64KiB or 10MB");
  }
  return number * unit_bytes;
}

std::string FormatByteSize(int64_t bytes) {
  const Unit* unit = kUnits;
  while (unit->bytes > 1 && (bytes % unit->bytes != 0 || bytes == 0)) ++unit;
  return absl::StrCat(bytes / unit->bytes, unit->name);
}

std::string RangesText(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ", ", numbers[i]);
    if (last > i) absl::StrAppend(&text, "-", numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace meridian
