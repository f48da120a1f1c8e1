// SPDX-License-Identifier: Apache-2.0
// SQLite with this project's statuses:
//
//   DataLoss           the file is damaged, no database, or has other tables than a statement names
//   Aborted            the file was moved away under the connection: open it again
//   ResourceExhausted  the disk is full
//   Unavailable        everything else, such as a lock that somebody held for too long
#ifndef ASTRA_BRIDGE_CACHE_SQLITE_DATABASE_H_
#define ASTRA_BRIDGE_CACHE_SQLITE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace meridian {

// A prepared statement, to be bound and stepped again and again. Columns and parameters count from
// 0 and 1, as SQLite has it.
class SqliteStatement {
 public:
  // Give a parameter its value, which stays until it is replaced. The bytes must live until the
  // next Reset.
  absl::Status BindBlob(int parameter, absl::string_view bytes);
  absl::Status BindInt64(int parameter, int64_t number);

  // Runs the statement up to its next row. True when there is one to read.
  absl::StatusOr<bool> Step();

  // Return a column of the row; the bytes are valid until the next Step or Reset.
  absl::string_view Blob(int column) const;
  int64_t Int64(int column) const;

  // Ends the walk over rows and lets go of locks.
  void Reset();

 private:
  friend class SqliteDatabase;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };

  SqliteStatement(sqlite3* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

// Waits a moment for a lock of the file that another process holds, for the n-th time, from 0. Says
// on standard error that it waits when that takes a second. False when it has taken long enough.
bool WaitForLock(const char* file, int n);

// One connection. Not thread safe.
class SqliteDatabase {
 public:
  enum class Access {
    // Makes the file when there is none.
    kReadWrite,
    kReadOnly,
    // The file must not change while it is open. The only way to read it in a folder that cannot be
    // written to.
    kImmutable,
  };

  // Does not look into the file: that it is no database is found out by the first statement.
  static absl::StatusOr<SqliteDatabase> Open(const std::string& path, Access access);

  // Runs statements that return no rows.
  absl::Status Execute(const std::string& sql);

  absl::StatusOr<SqliteStatement> Prepare(absl::string_view sql);

  // Returns the number that a query such as "PRAGMA user_version" gives; 0 when it gives no row.
  absl::StatusOr<int64_t> QueryInt64(absl::string_view sql);

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
  };

  explicit SqliteDatabase(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Closer> database_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CACHE_SQLITE_DATABASE_H_
