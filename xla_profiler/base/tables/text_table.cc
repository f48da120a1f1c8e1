#include "xla_profiler/base/tables/text_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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

void AppendCell(absl::string_view text, size_t width, TextTable::Align align, std::string* line) {
  const std::string padding(width - Width(text), ' ');
  if (align == TextTable::Align::kLeft) {
    absl::StrAppend(line, text, padding);
  } else {
    absl::StrAppend(line, padding, text);
  }
}

void StripTrailingSpaces(std::string* line) { line->erase(line->find_last_not_of(' ') + 1); }

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = Printable(column.title);
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
      AppendCell(cells[i], widths[i], columns_[i].align, &line);
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

}  // namespace meridian
