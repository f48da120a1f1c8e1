#include "xla_profiler/xplane/xplane_schema.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(XPlaneSchemaTest, EveryTypeIsFoundByItsNameAndNoNameIsShared) {
  std::set<std::string> names;
  for (int i = 0; i < kNumStatTypes; ++i) {
    const auto type = static_cast<StatType>(i);
    EXPECT_EQ(FindStatType(StatTypeName(type)), type);
    names.insert(std::string(StatTypeName(type)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumStatTypes));
}

TEST(XPlaneSchemaTest, NamesAreTheProfilersOwn) {
  EXPECT_EQ(StatTypeName(StatType::kHloProto), "Hlo Proto");
  EXPECT_EQ(StatTypeName(StatType::kMemsetDetails), "Memset_details");
  EXPECT_EQ(StatTypeName(StatType::kRocmNs), "rocm_ns");
}

TEST(XPlaneSchemaTest, OtherNamesHaveNoType) {
  EXPECT_EQ(FindStatType("hlo op"), std::nullopt);
  EXPECT_EQ(FindStatType(""), std::nullopt);
}

}  // namespace
}  // namespace meridian
