// Text in aligned columns, for people. Widths count UTF-8 code points; control characters and bytes
// that are not UTF-8 are shown as "?" so that a name from a trace cannot steer the terminal.
#ifndef XLA_PROFILER_BASE_TABLES_TEXT_TABLE_H_
#define XLA_PROFILER_BASE_TABLES_TEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace meridian {

class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns);

  // As many cells as there are columns.
  void AddRow(std::vector<std::string> cells);

  // Title line, rule, rows; no trailing spaces.
  std::string ToString() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Returns the number with thousands separators, e.g. "1,234,567".
std::string WithThousands(int64_t number);

// Returns the first `count` characters and "..." when there are more.
std::string FirstCharacters(absl::string_view text, size_t count);

// Returns the text with each control character (line breaks and tabs too) and each byte that is not
// UTF-8 replaced by "?".
std::string Printable(absl::string_view text);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TABLES_TEXT_TABLE_H_
