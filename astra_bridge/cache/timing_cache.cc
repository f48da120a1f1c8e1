#include "astra_bridge/cache/timing_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/cache/sqlite_database.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// "MTmg": tells our files from other SQLite databases.
constexpr int64_t kApplicationId = 0x4D546D67;
// Version of the tables. Files of another version are begun anew.
constexpr int64_t kVersion = 1;

constexpr char kSchema[] =
    "CREATE TABLE estimates (key BLOB PRIMARY KEY NOT NULL, ns BLOB NOT NULL, "
    "checksum INTEGER NOT NULL) WITHOUT ROWID";

int64_t Checksum(absl::string_view key, absl::string_view bytes) {
  ContentHash hash;
  hash.AddText(key);
  hash.AddText(bytes);
  return static_cast<int64_t>(absl::Uint128Low64(hash.value()));
}

std::string Encode(absl::Span<const double> numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()),
                     numbers.size() * sizeof(double));
}

std::vector<double> Decode(absl::string_view bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Makes an empty database ours. Others are damage (ours, of another version) or refused.
absl::Status PrepareSchema(const std::string& path, SqliteDatabase* database) {
  ASSIGN_OR_RETURN(const int64_t application, database->QueryInt64("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t tables,
                   database->QueryInt64("SELECT count(*) FROM sqlite_schema"));
  if (application != kApplicationId && tables > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": this is a database of another program; name another file for the cache"));
  }
  if (tables == 0) {
    return database->Execute(absl::StrCat("BEGIN IMMEDIATE; ", kSchema,
                                          "; PRAGMA application_id = ", kApplicationId,
                                          "; PRAGMA user_version = ", kVersion, "; COMMIT"));
  }
  ASSIGN_OR_RETURN(const int64_t version, database->QueryInt64("PRAGMA user_version"));
  if (version != kVersion) {
    return absl::DataLossError(absl::StrCat(path, ": layout ", version, ", not ", kVersion));
  }
  ASSIGN_OR_RETURN(const int64_t foreign,
                   database->QueryInt64(absl::StrCat(
                       "SELECT count(*) FROM sqlite_schema WHERE sql IS NOT '", kSchema, "'")));
  if (foreign > 0) return absl::DataLossError(absl::StrCat(path, ": its tables are not ours"));
  return absl::OkStatus();
}

absl::Status CheckAllPages(const std::string& path, SqliteDatabase* database) {
  ASSIGN_OR_RETURN(SqliteStatement statement, database->Prepare("PRAGMA quick_check(1)"));
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (found && statement.Blob(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": pages are damaged"));
}

// Takes a lock on a file beside the cache: making, switching to WAL and moving aside are not safe
// against each other. Returns the descriptor whose closing gives the lock back.
absl::StatusOr<int> TakeOpeningLock(const std::string& path) {
  const std::string lock_path = absl::StrCat(path, ".lock");
  const int descriptor = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return ErrnoToStatus(errno, lock_path);
  for (int n = 0; flock(descriptor, LOCK_EX | LOCK_NB) != 0; ++n) {
    const bool is_held = errno == EWOULDBLOCK;
    if (errno == EINTR || (is_held && WaitForLock(lock_path.c_str(), n))) continue;
    const absl::Status status =
        is_held ? absl::UnavailableError(absl::StrCat(
                      lock_path,
                      ": another process has held it for 30 s; end that, or do without "
                      "the cache"))
                : ErrnoToStatus(errno, lock_path);
    close(descriptor);
    return status;
  }
  return descriptor;
}

}  // namespace

std::optional<CacheMode> CacheModeFromName(absl::string_view name) {
  if (name == "off") return CacheMode::kOff;
  if (name == "readonly") return CacheMode::kReadOnly;
  if (name == "readwrite") return CacheMode::kReadWrite;
  return std::nullopt;
}

struct TimingCache::Connection {
  // Declared before the statements, which must go first.
  SqliteDatabase database;
  SqliteStatement find;
  std::optional<SqliteStatement> store;

  static absl::StatusOr<std::unique_ptr<Connection>> Make(SqliteDatabase database, bool writable) {
    ASSIGN_OR_RETURN(SqliteStatement find,
                     database.Prepare("SELECT ns, checksum FROM estimates WHERE key = ?1"));
    std::optional<SqliteStatement> store;
    if (writable) {
      ASSIGN_OR_RETURN(
          store, database.Prepare(
                     "INSERT OR REPLACE INTO estimates (key, ns, checksum) VALUES (?1, ?2, ?3)"));
    }
    return std::unique_ptr<Connection>(
        new Connection{std::move(database), std::move(find), std::move(store)});
  }
};

TimingCache::TimingCache(std::string path, CacheMode mode) : path_(std::move(path)), mode_(mode) {
  MERIDIAN_CHECK(mode_ != CacheMode::kOff);
}

TimingCache::~TimingCache() = default;

absl::StatusOr<std::unique_ptr<TimingCache>> TimingCache::Open(const std::string& path,
                                                               CacheMode mode) {
  std::unique_ptr<TimingCache> cache(new TimingCache(path, mode));
  absl::MutexLock lock(&cache->mutex_);
  RETURN_IF_ERROR(mode == CacheMode::kReadOnly ? cache->ConnectReadOnly()
                                               : cache->ConnectReadWrite(Check::kHeader));
  return cache;
}

absl::Status TimingCache::ConnectReadOnly() {
  if (access(path_.c_str(), F_OK) != 0) return absl::OkStatus();
  absl::Status failure;
  for (const SqliteDatabase::Access access :
       {SqliteDatabase::Access::kReadOnly, SqliteDatabase::Access::kImmutable}) {
    failure = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(SqliteDatabase database, SqliteDatabase::Open(path_, access));
      ASSIGN_OR_RETURN(const int64_t tables,
                       database.QueryInt64("SELECT count(*) FROM sqlite_schema"));
      if (tables == 0) return absl::OkStatus();
      RETURN_IF_ERROR(PrepareSchema(path_, &database));
      ASSIGN_OR_RETURN(connection_, Connection::Make(std::move(database), /*writable=*/false));
      return absl::OkStatus();
    }();
    // Only a folder that cannot be written to is worth the second way.
    if (!absl::IsUnavailable(failure)) break;
  }
  if (absl::IsDataLoss(failure)) {
    Warn(absl::StrCat("the cache is damaged or of another version and not used: ",
                      failure.message()));
    return absl::OkStatus();
  }
  return failure;
}

absl::Status TimingCache::ConnectReadWrite(Check check) {
  connection_ = nullptr;
  ASSIGN_OR_RETURN(const int lock, TakeOpeningLock(path_));
  const auto unlock = absl::MakeCleanup([lock] { close(lock); });
  const auto connect = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(SqliteDatabase database,
                     SqliteDatabase::Open(path_, SqliteDatabase::Access::kReadWrite));
    RETURN_IF_ERROR(PrepareSchema(path_, &database));
    if (check == Check::kAllPages) RETURN_IF_ERROR(CheckAllPages(path_, &database));
    // Readers and one writer at a time, without waiting for each other; a crash of the machine may
    // lose the last rows, not the file.
    RETURN_IF_ERROR(database.Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
    ASSIGN_OR_RETURN(connection_, Connection::Make(std::move(database), /*writable=*/true));
    return absl::OkStatus();
  };
  const absl::Status status = connect();
  if (!absl::IsDataLoss(status)) return status;
  RETURN_IF_ERROR(MoveAside());
  ++stats_.rebuilds;
  Warn(absl::StrCat("the cache was damaged or of another version (", status.message(), "), is now ",
                    path_, ".damaged, and was begun anew"));
  return connect();
}

absl::Status TimingCache::MoveAside() {
  const std::string aside = absl::StrCat(path_, ".damaged");
  if (std::rename(path_.c_str(), aside.c_str()) != 0) return ErrnoToStatus(errno, path_);
  // What belonged to it must not be taken for the new file's.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    unlink(absl::StrCat(path_, suffix).c_str());
  }
  return absl::OkStatus();
}

std::optional<std::vector<double>> TimingCache::Find(absl::string_view key, size_t count) {
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<std::optional<std::vector<double>>> found = Read(key, count);
  if (!found.ok()) {
    Recover(found.status());
    found = std::nullopt;
  }
  ++(found->has_value() ? stats_.hits : stats_.misses);
  return *std::move(found);
}

absl::StatusOr<std::optional<std::vector<double>>> TimingCache::Read(absl::string_view key,
                                                                     size_t count) {
  if (connection_ == nullptr) return std::nullopt;
  SqliteStatement& find = connection_->find;
  const auto reset = absl::MakeCleanup([&find] { find.Reset(); });
  RETURN_IF_ERROR(find.BindBlob(1, key));
  ASSIGN_OR_RETURN(const bool exists, find.Step());
  if (!exists) return std::nullopt;
  const absl::string_view bytes = find.Blob(0);
  const auto damaged = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++stats_.damaged_rows;
    Warn(absl::StrCat(path_, ": rows of the cache are damaged and not used"));
    return std::nullopt;
  };
  if (bytes.size() != count * sizeof(double) || find.Int64(1) != Checksum(key, bytes)) {
    return damaged();
  }
  std::vector<double> times = Decode(bytes);
  for (const double ns : times) {
    // Whoever can write the file can write a checksum, too.
    if (!std::isfinite(ns) || ns < 0) return damaged();
  }
  return times;
}

void TimingCache::Store(absl::string_view key, absl::Span<const double> ns) {
  if (mode_ != CacheMode::kReadWrite) return;
  const std::string bytes = Encode(ns);
  absl::MutexLock lock(&mutex_);
  absl::Status status = Write(key, bytes);
  if (!status.ok() && Recover(status)) status = Write(key, bytes);
  if (status.ok()) {
    ++stats_.stored;
  } else {
    Warn(absl::StrCat("the cache could not be written: ", status.message()));
  }
}

absl::Status TimingCache::Write(absl::string_view key, absl::string_view bytes) {
  if (connection_ == nullptr) return absl::UnavailableError(absl::StrCat(path_, ": not open"));
  SqliteStatement& store = *connection_->store;
  const auto reset = absl::MakeCleanup([&store] { store.Reset(); });
  RETURN_IF_ERROR(store.BindBlob(1, key));
  RETURN_IF_ERROR(store.BindBlob(2, bytes));
  RETURN_IF_ERROR(store.BindInt64(3, Checksum(key, bytes)));
  return store.Step().status();
}

bool TimingCache::Recover(const absl::Status& failure) {
  if (absl::IsUnavailable(failure)) {
    // Whoever holds the file has been waited for: not again for each of thousands of times.
    connection_ = nullptr;
    Warn(absl::StrCat("the cache is no longer used: ", failure.message()));
    return false;
  }
  if (!absl::IsDataLoss(failure) && !absl::IsAborted(failure)) {
    Warn(absl::StrCat("the cache failed: ", failure.message()));
    return false;
  }
  if (mode_ == CacheMode::kReadOnly) {
    connection_ = nullptr;
    Warn(absl::StrCat("the cache is damaged and no longer used: ", failure.message()));
    return false;
  }
  // Another process may have begun the file anew already: then it is whole.
  const absl::Status status = ConnectReadWrite(Check::kAllPages);
  if (!status.ok()) Warn(absl::StrCat("the cache is no longer used: ", status.message()));
  return status.ok();
}

TimingCacheStats TimingCache::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

std::vector<std::string> TimingCache::warnings() const {
  absl::MutexLock lock(&mutex_);
  return warnings_;
}

void TimingCache::Warn(const std::string& warning) {
  if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end()) {
    warnings_.push_back(warning);
  }
}

}  // namespace meridian
