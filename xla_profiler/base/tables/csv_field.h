#ifndef XLA_PROFILER_BASE_TABLES_CSV_FIELD_H_
#define XLA_PROFILER_BASE_TABLES_CSV_FIELD_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {

// Returns the text in quotes, as a field that a spreadsheet takes as it is.
inline std::string CsvField(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(Printable(text), {{"\"", "\"\""}}), "\"");
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TABLES_CSV_FIELD_H_
