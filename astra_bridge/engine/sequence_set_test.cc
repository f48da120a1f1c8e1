#include "astra_bridge/engine/sequence_set.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(SequenceSetTest, TakesWhatWasInsertedOnce) {
  SequenceSet set;
  EXPECT_FALSE(set.Take(0));
  set.Insert(0);
  set.Insert(63);
  set.Insert(64);
  set.Insert(1000);
  EXPECT_TRUE(set.Take(64));
  EXPECT_FALSE(set.Take(64));
  EXPECT_FALSE(set.Take(65));
  EXPECT_TRUE(set.Take(1000));
  EXPECT_TRUE(set.Take(0));
  set.Clear();
  EXPECT_FALSE(set.Take(63));
}

}  // namespace
}  // namespace meridian
