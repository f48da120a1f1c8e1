// SPDX-License-Identifier: Apache-2.0
// An SQLite database of whoever, read as bytes in memory. Nothing in it is carried out: views,
// triggers, virtual tables and computed columns do not exist, and the SQL is ours alone. Work, rows
// and text are limited by the file's size.
#ifndef XLA_PROFILER_SQLITE_TRACES_SQLITE_FILE_H_
#define XLA_PROFILER_SQLITE_TRACES_SQLITE_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace meridian {

// A row of a query's result. Columns count from 0.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}

  // `otherwise` is for NULL and for what is no whole number.
  int64_t Int(int column, int64_t otherwise = 0) const;
  // A text or a blob, valid until the next row; empty for everything else.
  absl::string_view Text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class SqliteFile {
 public:
  // The most rows that are read of one file.
  static constexpr int64_t kMaxRows = int64_t{1} << 25;

  // The bytes must outlive the object. InvalidArgument, which names the path, when they are no
  // database that can be read.
  static absl::StatusOr<std::unique_ptr<SqliteFile>> Open(absl::string_view bytes,
                                                          const std::string& path);
  ~SqliteFile();

  const std::string& path() const { return path_; }
  // The columns of each table that has some.
  const std::map<std::string, std::set<std::string>>& tables() const { return tables_; }

  // Calls the function for each row of a SELECT. In it, {TABLE: a, b} stands for these columns of
  // the table with that name and the suffix; columns that are not there are NULL, and a table that
  // is not there has no rows. Errors name the path and the row.
  absl::Status Query(absl::string_view select, absl::string_view suffix,
                     absl::FunctionRef<void(const SqliteRow&)> take);

 private:
  SqliteFile() = default;
  std::string Expand(absl::string_view select, absl::string_view suffix) const;
  absl::Status Error(absl::string_view where) const;

  std::string path_;
  sqlite3* database_ = nullptr;
  std::map<std::string, std::set<std::string>> tables_;
  int64_t steps_left_ = 0;
  int64_t text_left_ = 0;
  int64_t rows_left_ = kMaxRows;
};

}  // namespace meridian

#endif  // XLA_PROFILER_SQLITE_TRACES_SQLITE_FILE_H_
