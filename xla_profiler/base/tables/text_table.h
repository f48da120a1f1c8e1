// SPDX-License-Identifier: Apache-2.0
// Text for people: tables in aligned columns, fields of CSV files, numbers, times and sizes.
//
// Widths count UTF-8 code points. Control characters and bytes that are not UTF-8 are shown as "?"
// so that a name from a trace cannot steer the terminal.
#ifndef XLA_PROFILER_BASE_TABLES_TEXT_TABLE_H_
#define XLA_PROFILER_BASE_TABLES_TEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

class TextTable {
 public:
  // Columns whose titles have ">" in front are aligned right.
  explicit TextTable(const std::vector<std::string>& titles);

  // There must be as many cells as there are columns.
  void AddRow(std::vector<std::string> cells);

  // Returns a line of titles, a rule and the rows, without trailing spaces.
  std::string ToString() const;

 private:
  struct Column {
    std::string title;
    bool is_right = false;
  };

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Returns the text with each control character (line breaks and tabs too) and each byte that is not
// UTF-8 replaced by "?".
std::string Printable(absl::string_view text);

// Returns the first `count` characters and "..." when there are more.
std::string FirstCharacters(absl::string_view text, size_t count);

// Returns the text, made printable, in quotes: a field that a spreadsheet takes as it is.
std::string CsvField(absl::string_view text);

// Returns the number with thousands separators, e.g. "1,234,567".
std::string WithThousands(int64_t number);

// Return picoseconds as milliseconds (0 to 9 decimals) or microseconds (0 to 6), e.g. "-12.346",
// rounded to the nearest with halves away from zero.
std::string FormatMillis(int64_t ps, int decimals = 3);
std::string FormatMicros(int64_t ps, int decimals = 3);

// Parses a number of bytes as people write it, 4096, 64KiB or 10MB: a whole number and B, KiB, MiB,
// GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000), in capitals or not; no unit is B.
// InvalidArgument for anything else and for what does not fit.
absl::StatusOr<int64_t> ParseByteSize(absl::string_view text);

// Returns the exact size in the largest of the powers of 1024 that divide it: "64KiB", "1000B".
std::string FormatByteSize(int64_t bytes);

// Returns runs of numbers in order, "0-3, 8"; each once.
std::string RangesText(std::vector<int64_t> numbers);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TABLES_TEXT_TABLE_H_
