// Text in aligned columns, for people. Widths count UTF-8 code points; control characters are shown
// as "?" so that a name from a trace cannot steer the terminal.
#ifndef XLA_PROFILER_UTIL_TEXT_TABLE_H_
#define XLA_PROFILER_UTIL_TEXT_TABLE_H_

#include <string>
#include <vector>

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

// Returns the text with control characters replaced by "?".
std::string Printable(absl::string_view text);

}  // namespace meridian

#endif  // XLA_PROFILER_UTIL_TEXT_TABLE_H_
