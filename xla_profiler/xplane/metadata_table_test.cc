#include "xla_profiler/xplane/metadata_table.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace meridian {
namespace {

struct Entry {
  int value = 0;
};

TEST(MetadataTableTest, FindsSmallLargeAndNegativeIds) {
  MetadataTable<Entry> table;
  table.Reserve(4);
  const int64_t ids[] = {0, 7, int64_t{1} << 40, std::numeric_limits<int64_t>::min()};
  for (int64_t id : ids) table.Add(id)->value = static_cast<int>(id % 1000);
  for (int64_t id : ids) {
    ASSERT_NE(table.Find(id), nullptr);
    EXPECT_EQ(table.Find(id)->value, static_cast<int>(id % 1000));
  }
  EXPECT_EQ(table.Find(1), nullptr);
  EXPECT_EQ(table.Find(-1), nullptr);
  EXPECT_EQ(table.entries().size(), 4u);
}

TEST(MetadataTableTest, RefusesAnIdThatIsTaken) {
  MetadataTable<Entry> table;
  table.Reserve(4);
  EXPECT_NE(table.Add(3), nullptr);
  EXPECT_EQ(table.Add(3), nullptr);
  EXPECT_NE(table.Add(-9), nullptr);
  EXPECT_EQ(table.Add(-9), nullptr);
}

TEST(MetadataTableTest, AnEmptyTableFindsNothing) {
  const MetadataTable<Entry> table;
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.Find(5), nullptr);
}

}  // namespace
}  // namespace meridian
