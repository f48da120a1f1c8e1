#include "chakra_export/xspace/memory_copy.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

CopyDirection DirectionOf(absl::string_view name, absl::string_view details) {
  return ParseMemoryCopy(name, details).direction;
}

TEST(MemoryCopyTest, TheKindsOfMemoryTellTheWay) {
  constexpr char kAny[] = "Memcpy";
  EXPECT_EQ(DirectionOf(kAny, "kind_src:pinned kind_dst:device size:8"), CopyDirection::kFromHost);
  EXPECT_EQ(DirectionOf(kAny, "kind_src:pageable kind_dst:array size:8"), CopyDirection::kFromHost);
  EXPECT_EQ(DirectionOf(kAny, "kind_src:device kind_dst:pageable size:8"), CopyDirection::kToHost);
  EXPECT_EQ(DirectionOf(kAny, "kind_src:device kind_dst:device size:8"),
            CopyDirection::kWithinDevice);
  EXPECT_EQ(DirectionOf(kAny, "kind_src:pinned kind_dst:pinned size:8"),
            CopyDirection::kWithinDevice);
  // They are what happened, whatever the name says.
  EXPECT_EQ(DirectionOf("MemcpyD2H", "kind_src:device kind_dst:device size:8"),
            CopyDirection::kWithinDevice);
}

TEST(MemoryCopyTest, WhereTheyAreNotKnownTheNameTells) {
  constexpr char kUnknown[] = "kind_src:unknown kind_dst:unknown size:8";
  EXPECT_EQ(DirectionOf("MemcpyH2D", kUnknown), CopyDirection::kFromHost);
  EXPECT_EQ(DirectionOf("MemcpyD2H", kUnknown), CopyDirection::kToHost);
  EXPECT_EQ(DirectionOf("MemcpyD2D", kUnknown), CopyDirection::kWithinDevice);
  EXPECT_EQ(DirectionOf("MemcpyH2D", "size:8"), CopyDirection::kFromHost);
  EXPECT_EQ(DirectionOf("MemcpyH2D_like_kernel", ""), CopyDirection::kWithinDevice);
}

TEST(MemoryCopyTest, BytesAreKnownOrZero) {
  EXPECT_EQ(ParseMemoryCopy("m", "kind_src:pinned kind_dst:device size:4096 dest:0").bytes, 4096);
  for (const char* details : {"", "size:", "size:-5", "size:x", "size:99999999999999999999"}) {
    EXPECT_EQ(ParseMemoryCopy("m", details).bytes, 0) << details;
  }
}

}  // namespace
}  // namespace meridian
