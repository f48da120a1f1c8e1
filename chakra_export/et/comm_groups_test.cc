#include "chakra_export/et/comm_groups.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;

TEST(CommGroupsTest, ReadsGroupsInTheOrderOfTheirNumbers) {
  EXPECT_THAT(ParseCommGroups(R"({"10": [3, 1], "2": ["0"]})", "g.json"),
              IsOkAndHolds(ElementsAre(Pair("2", ElementsAre(0)), Pair("10", ElementsAre(3, 1)))));
  EXPECT_THAT(ParseCommGroups(" {} ", "g.json"), IsOkAndHolds(IsEmpty()));
}

TEST(CommGroupsTest, AGroupNameWithADecimalPointIsItsNumber) {
  EXPECT_THAT(ParseCommGroups(R"({"1.0": [3, 1]})", "g.json"),
              IsOkAndHolds(ElementsAre(Pair("1", ElementsAre(3, 1)))));
  EXPECT_THAT(ParseCommGroups(R"({"1": [0], "1.0": [1]})", "g.json"),
              StatusIs(kBad, HasSubstr("group \"1\" comes twice")));
  EXPECT_EQ(PlainGroupName("10.00"), "10");
  for (const char* const name : {"", "0", "0.0", "1.5", "1.0b", "tp", "tp.0", ".0", "-1.0"}) {
    EXPECT_EQ(PlainGroupName(name), name);
  }
}

TEST(CommGroupsTest, FindsTheFileBesideTheTraces) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.path() + "/w";
  EXPECT_EQ(CommGroupsBeside(FileSystem::Posix(), prefix), "");
  const std::string path = directory.Write("w.comm_groups.json", "{}");
  EXPECT_EQ(CommGroupsBeside(FileSystem::Posix(), prefix), path);
  EXPECT_EQ(CommGroupsPath(prefix), path);
}

TEST(CommGroupsTest, SaysWhatIsWrong) {
  EXPECT_THAT(ParseCommGroups("", "g.json"), StatusIs(kBad, HasSubstr("g.json: offset 0")));
  EXPECT_THAT(ParseCommGroups("{\"1\": [0]", "g.json"), StatusIs(kBad, HasSubstr("g.json: off")));
  EXPECT_THAT(ParseCommGroups("{} x", "g.json"), StatusIs(kBad, HasSubstr("more after the obj")));
  EXPECT_THAT(ParseCommGroups(R"({"1": {"ranks": [0]}})", "g.json"),
              StatusIs(kBad, HasSubstr("group \"1\" is no list of ranks")));
  EXPECT_THAT(ParseCommGroups(R"({"1": []})", "g.json"), StatusIs(kBad, HasSubstr("no ranks")));
  EXPECT_THAT(ParseCommGroups(R"({"1": [-1]})", "g.json"), StatusIs(kBad, HasSubstr("rank -1")));
  EXPECT_THAT(ParseCommGroups(R"({"1": [4, 0, 4]})", "g.json"),
              StatusIs(kBad, HasSubstr("has rank 4 twice")));
  EXPECT_THAT(ParseCommGroups(R"({"1": [0], "1": [1]})", "g.json"),
              StatusIs(kBad, HasSubstr("group \"1\" comes twice")));
}

TEST(CommGroupsTest, WritesWhatItReads) {
  const CommGroups groups = {{"1", {0, 2}}, {"2", {3, 1}}};
  const std::string json = CommGroupsJson(groups);
  EXPECT_EQ(json, "{\n  \"1\": [0, 2],\n  \"2\": [3, 1]\n}\n");
  const TemporaryDirectory directory;
  EXPECT_THAT(ReadCommGroups(FileSystem::Posix(), directory.Write("g.json", json)),
              IsOkAndHolds(groups));
  EXPECT_THAT(ParseCommGroups(CommGroupsJson({}), "g.json"), IsOkAndHolds(IsEmpty()));
}

TEST(CommGroupsTest, ReadsTheTableOfAMetadataNode) {
  ChakraProtoMsg::Node node;
  node.mutable_inputs()->set_values(R"(['[{"pg_name": "0", "pg_desc": "default_pg", "ranks": []}, )"
                                    R"({"pg_name": "3", "ranks": [4, 5], "group_size": 2}]'])");
  EXPECT_THAT(ProcessGroupsOf(node), IsOkAndHolds(ElementsAre(Pair("3", ElementsAre(4, 5)))));
}

TEST(CommGroupsTest, ATableRoundTrips) {
  const CommGroups groups = {{"1", {0, 2}}, {"2", {3, 1}}};
  ChakraProtoMsg::Node node;
  node.mutable_inputs()->set_values(ProcessGroupTable(groups));
  EXPECT_EQ(node.inputs().values(),
            R"(['[{"pg_name": "1", "ranks": [0, 2]}, {"pg_name": "2", "ranks": [3, 1]}]'])");
  EXPECT_THAT(ProcessGroupsOf(node), IsOkAndHolds(groups));
}

TEST(CommGroupsTest, OtherInputsAreNoTable) {
  ChakraProtoMsg::Node node;
  EXPECT_THAT(ProcessGroupsOf(node), IsOkAndHolds(IsEmpty()));
  node.mutable_inputs()->set_values("['hello']");
  EXPECT_THAT(ProcessGroupsOf(node), IsOkAndHolds(IsEmpty()));
  node.mutable_inputs()->set_values("['[{\"pg_name\": \"1\"}]']");
  EXPECT_THAT(ProcessGroupsOf(node), StatusIs(kBad, HasSubstr("has no list of ranks")));
}

TEST(CommGroupsTest, KnowsTheNamesOfTheWorld) {
  EXPECT_TRUE(IsWorldGroup(""));
  EXPECT_TRUE(IsWorldGroup("0"));
  EXPECT_FALSE(IsWorldGroup("1"));
  EXPECT_FALSE(IsWorldGroup("00"));
}

}  // namespace
}  // namespace meridian
