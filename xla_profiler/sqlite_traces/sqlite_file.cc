#include "xla_profiler/sqlite_traces/sqlite_file.h"

#include <sqlite3.h>

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// A row takes some hundred steps of SQLite's machine at most and has some ten bytes. Rows may share
// a name, which then counts for each.
constexpr int64_t kStepsPerByte = 64;
constexpr int64_t kTextPerByte = 128;
constexpr int64_t kFreeSteps = int64_t{1} << 22;
constexpr int kStepsPerCheck = 1000;
constexpr int kMaxValueBytes = 1 << 24;

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

// Lets tables be read and refuses everything else.
int Authorize(void*, int action, const char*, const char* function, const char*, const char*) {
  const bool is_read = action == SQLITE_SELECT || action == SQLITE_READ;
  const bool is_harmless =
      action == SQLITE_FUNCTION && function != nullptr && absl::string_view(function) == "coalesce";
  return is_read || is_harmless ? SQLITE_OK : SQLITE_DENY;
}

}  // namespace

int64_t SqliteRow::Int(int column, int64_t otherwise) const {
  const bool is_int = sqlite3_column_type(statement_, column) == SQLITE_INTEGER;
  return is_int ? sqlite3_column_int64(statement_, column) : otherwise;
}

absl::string_view SqliteRow::Text(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) return "";
  const void* text = sqlite3_column_blob(statement_, column);
  if (text == nullptr) return "";
  return {static_cast<const char*>(text),
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

absl::StatusOr<std::unique_ptr<SqliteFile>> SqliteFile::Open(absl::string_view bytes,
                                                             const std::string& path) {
  std::unique_ptr<SqliteFile> file(new SqliteFile);
  file->path_ = path;
  const int64_t size = static_cast<int64_t>(bytes.size());
  file->steps_left_ = kFreeSteps + size * kStepsPerByte;
  file->text_left_ = size * kTextPerByte;
  const int opened = sqlite3_open_v2(":memory:", &file->database_,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  sqlite3* const database = file->database_;
  // Nothing writes there: the database is read-only.
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  if (opened != SQLITE_OK || sqlite3_deserialize(database, "main", data, size, size,
                                                 SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) {
    return file->Error("the header");
  }
  for (const auto& [option, value] : {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1),
                                      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                      {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}}) {
    sqlite3_db_config(database, option, value, nullptr);
  }
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_progress_handler(
      database, kStepsPerCheck,
      [](void* left) { return (*static_cast<int64_t*>(left) -= kStepsPerCheck) <= 0 ? 1 : 0; },
      &file->steps_left_);
  sqlite3_exec(database, "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY", nullptr, nullptr,
               nullptr);
  // Virtual tables have no page, and computed columns are hidden.
  RETURN_IF_ERROR(file->Query(
      "SELECT t.name, c.name FROM main.sqlite_master t, pragma_table_xinfo(t.name, 'main') c WHERE "
      "t.type='table' AND t.rootpage>0 AND substr(t.sql, 1, 12)='CREATE TABLE' AND c.hidden=0",
      "",
      [&](const SqliteRow& row) { file->tables_[std::string(row.Text(0))].emplace(row.Text(1)); }));
  sqlite3_set_authorizer(database, Authorize, nullptr);
  return file;
}

SqliteFile::~SqliteFile() { sqlite3_close(database_); }

absl::Status SqliteFile::Error(absl::string_view where) const {
  const std::string reason =
      steps_left_ <= 0 ? "takes more work than a file of its size can need; export it again"
      : text_left_ < 0 ? "has more text than a file of its size can need; export it again"
      : rows_left_ < 0 ? "has more rows than are read; record less at once"
                       : absl::StrCat(Printable(sqlite3_errmsg(database_)),
                                      "; is it damaged, or is a part of it in a -wal file? Export "
                                      "it again, or first run sqlite3 FILE ",
                                      "'PRAGMA journal_mode=DELETE'");
  return InvalidArgument(Printable(path_), ": ", where, ": ", reason);
}

std::string SqliteFile::Expand(absl::string_view select, absl::string_view suffix) const {
  const std::vector<absl::string_view> pieces = absl::StrSplit(select, '{');
  std::string sql(pieces[0]);
  for (size_t i = 1; i < pieces.size(); ++i) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(pieces[i], absl::MaxSplits(absl::ByAnyChar(":}"), 2));
    const auto table = tables_.find(absl::StrCat(parts[0], suffix));
    const bool has_table = table != tables_.end();
    std::vector<std::string> columns;
    for (absl::string_view name : absl::StrSplit(parts[1], ',')) {
      name = absl::StripAsciiWhitespace(name);
      const bool has_column = has_table && table->second.count(std::string(name)) > 0;
      columns.push_back(absl::StrCat(has_column ? "" : "NULL AS ", Quoted(name)));
    }
    absl::StrAppend(&sql, "(SELECT ", absl::StrJoin(columns, ", "),
                    has_table ? " FROM main." + Quoted(table->first) : " WHERE 0", ")", parts[2]);
  }
  return sql;
}

absl::Status SqliteFile::Query(absl::string_view select, absl::string_view suffix,
                               absl::FunctionRef<void(const SqliteRow&)> take) {
  const std::string sql = Expand(select, suffix);
  sqlite3_stmt* statement = nullptr;
  int result = sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr);
  int64_t rows = 0;
  while (result == SQLITE_OK || result == SQLITE_ROW) {
    result = sqlite3_step(statement);
    if (result != SQLITE_ROW) break;
    const SqliteRow row(statement);
    for (int i = 0; i < sqlite3_column_count(statement); ++i) text_left_ -= row.Text(i).size();
    if (--rows_left_ < 0 || text_left_ < 0) break;
    take(row);
    ++rows;
  }
  const absl::Status status =
      result == SQLITE_DONE ? absl::OkStatus() : Error(absl::StrCat("row ", rows + 1));
  sqlite3_finalize(statement);
  return status;
}

}  // namespace meridian
