#include "astra_bridge/cache/sqlite_database.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Locks of others are waited for in naps of 1, 2, ..., 50, 50, ... ms: a second is over after 45 of
// them, when people are told, 30 s after 625.
constexpr int kLongestNapMs = 50;
constexpr int kNapsUntilToldOf = 45;
constexpr int kMaxNaps = 625;

int WaitWhileBusy(void* database, int n) {
  return WaitForLock(sqlite3_db_filename(static_cast<sqlite3*>(database), "main"), n) ? 1 : 0;
}

absl::Status ToStatus(sqlite3* database, int code) {
  if (code == SQLITE_OK) return absl::OkStatus();
  const char* file = sqlite3_db_filename(database, "main");
  const std::string message =
      absl::StrCat(file == nullptr ? "" : file, ": ", sqlite3_errmsg(database));
  if (code == SQLITE_READONLY_DBMOVED) return absl::AbortedError(message);
  switch (code & 0xFF) {
    // All statements are ours and right: the tables are not.
    case SQLITE_ERROR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(message);
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

// SQLite takes a name with options for a URI only.
std::string ImmutableUri(const std::string& path) {
  std::string uri = "file:";
  for (char c : path) {
    if (c == '?' || c == '#' || c == '%') {
      absl::StrAppendFormat(&uri, "%%%02X", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

bool WaitForLock(const char* file, int n) {
  if (n == kNapsUntilToldOf) {
    std::fprintf(stderr, "note: waiting for another process that uses %s\n",
                 Printable(file).c_str());
  }
  absl::SleepFor(absl::Milliseconds(std::min(n + 1, kLongestNapMs)));
  return n < kMaxNaps;
}

void SqliteStatement::Finalizer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

absl::Status SqliteStatement::BindBlob(int parameter, absl::string_view bytes) {
  return ToStatus(database_, sqlite3_bind_blob64(statement_.get(), parameter, bytes.data(),
                                                 bytes.size(), SQLITE_STATIC));
}

absl::Status SqliteStatement::BindInt64(int parameter, int64_t number) {
  return ToStatus(database_, sqlite3_bind_int64(statement_.get(), parameter, number));
}

absl::StatusOr<bool> SqliteStatement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return ToStatus(database_, sqlite3_extended_errcode(database_));
}

absl::string_view SqliteStatement::Blob(int column) const {
  // The order matters: the first call may convert the value.
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return absl::string_view(static_cast<const char*>(bytes), bytes == nullptr ? 0 : size);
}

int64_t SqliteStatement::Int64(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

void SqliteStatement::Reset() { sqlite3_reset(statement_.get()); }

void SqliteDatabase::Closer::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

absl::StatusOr<SqliteDatabase> SqliteDatabase::Open(const std::string& path, Access access) {
  const bool immutable = access == Access::kImmutable;
  const int flags = (access == Access::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                  : SQLITE_OPEN_READONLY) |
                    (immutable ? SQLITE_OPEN_URI : 0) | SQLITE_OPEN_NOMUTEX;
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2((immutable ? ImmutableUri(path) : path).c_str(), &handle, flags, nullptr);
  if (handle == nullptr) return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory"));
  SqliteDatabase database(handle);
  if (code != SQLITE_OK) {
    return absl::UnavailableError(absl::StrCat(path, ": ", sqlite3_errmsg(handle)));
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_handler(handle, WaitWhileBusy, handle);
  return database;
}

absl::Status SqliteDatabase::Execute(const std::string& sql) {
  return ToStatus(database_.get(),
                  sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

absl::StatusOr<SqliteStatement> SqliteDatabase::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  RETURN_IF_ERROR(ToStatus(
      database_.get(), sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                          &statement, nullptr)));
  return SqliteStatement(database_.get(), statement);
}

absl::StatusOr<int64_t> SqliteDatabase::QueryInt64(absl::string_view sql) {
  ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  return found ? statement.Int64(0) : 0;
}

}  // namespace meridian
