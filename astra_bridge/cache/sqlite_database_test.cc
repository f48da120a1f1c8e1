#include "astra_bridge/cache/sqlite_database.h"

#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using Access = SqliteDatabase::Access;
using ::testing::HasSubstr;

TEST(SqliteDatabaseTest, BlobsAndNumbersComeBackAsTheyWentIn) {
  const TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(SqliteDatabase database,
                       SqliteDatabase::Open(directory.PathOf("a.db"), Access::kReadWrite));
  ASSERT_OK(database.Execute("CREATE TABLE t (b BLOB, i INTEGER)"));
  const std::string bytes("a\0b\xFF", 4);
  {
    ASSERT_OK_AND_ASSIGN(SqliteStatement insert, database.Prepare("INSERT INTO t VALUES (?1, ?2)"));
    ASSERT_OK(insert.BindBlob(1, bytes));
    ASSERT_OK(insert.BindInt64(2, -7));
    EXPECT_THAT(insert.Step(), IsOkAndHolds(false));
  }
  ASSERT_OK_AND_ASSIGN(SqliteStatement select, database.Prepare("SELECT b, i FROM t"));
  EXPECT_THAT(select.Step(), IsOkAndHolds(true));
  EXPECT_EQ(select.Blob(0), bytes);
  EXPECT_EQ(select.Int64(1), -7);
  EXPECT_THAT(select.Step(), IsOkAndHolds(false));
  EXPECT_THAT(database.QueryInt64("SELECT count(*) FROM t"), IsOkAndHolds(1));
}

TEST(SqliteDatabaseTest, WhatIsNoDatabaseIsDataLossAndNamesTheFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("a.db", std::string(5000, 'x'));
  ASSERT_OK_AND_ASSIGN(SqliteDatabase database, SqliteDatabase::Open(path, Access::kReadWrite));
  EXPECT_THAT(database.QueryInt64("PRAGMA user_version"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
}

TEST(SqliteDatabaseTest, AMissingFileIsNotMadeWhenReading) {
  const TemporaryDirectory directory;
  EXPECT_THAT(SqliteDatabase::Open(directory.PathOf("a.db"), Access::kReadOnly),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("a.db")));
  EXPECT_TRUE(directory.List().empty());
}

TEST(SqliteDatabaseTest, OddNamesOpenAsImmutableToo) {
  const TemporaryDirectory directory;
  const std::string path = directory.PathOf("50% ?#.db");
  {
    ASSERT_OK_AND_ASSIGN(SqliteDatabase database, SqliteDatabase::Open(path, Access::kReadWrite));
    ASSERT_OK(database.Execute("PRAGMA user_version = 5"));
  }
  ASSERT_OK_AND_ASSIGN(SqliteDatabase database, SqliteDatabase::Open(path, Access::kImmutable));
  EXPECT_THAT(database.QueryInt64("PRAGMA user_version"), IsOkAndHolds(5));
}

TEST(SqliteDatabaseTest, AFileThatMovedAwayIsAborted) {
  const TemporaryDirectory directory;
  const std::string path = directory.PathOf("a.db");
  ASSERT_OK_AND_ASSIGN(SqliteDatabase database, SqliteDatabase::Open(path, Access::kReadWrite));
  ASSERT_OK(database.Execute("CREATE TABLE t (i INTEGER)"));
  ASSERT_EQ(std::rename(path.c_str(), directory.PathOf("b.db").c_str()), 0);
  EXPECT_THAT(database.Execute("INSERT INTO t VALUES (1)"), StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace meridian
