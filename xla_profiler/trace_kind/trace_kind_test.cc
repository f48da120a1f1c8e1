#include "xla_profiler/trace_kind/trace_kind.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TraceKindTest, ContentTells) {
  EXPECT_EQ(TellTraceKind(""), TraceKind::kXSpace);
  EXPECT_EQ(TellTraceKind("\x0a\xc7\xf2\x07\x12\x0e/host:metadata"), TraceKind::kXSpace);
  EXPECT_EQ(
      TellTraceKind(" \n{\"schemaVersion\": 1, \"deviceProperties\": [{}], \"traceEvents\": ["),
      TraceKind::kKineto);
  EXPECT_EQ(TellTraceKind(R"({"displayTimeUnit":"ns","metadata":{},"traceEvents":[{)"),
            TraceKind::kTraceJson);
  EXPECT_EQ(TellTraceKind("[{\"ph\":\"X\"}"), TraceKind::kTraceJson);
  EXPECT_EQ(TellTraceKind(R"({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [{)"),
            TraceKind::kPytorchEt);
  EXPECT_EQ(TellTraceKind("\x07\x0a\x05"
                          "1.0.0\x9e\x01"),
            TraceKind::kChakraEt);
  // Ten bytes, which also begin an XSpace.
  EXPECT_EQ(TellTraceKind("\x0a\x0a\x08"
                          "0.0.4-rc\x9e"),
            TraceKind::kChakraEt);
  EXPECT_EQ(TellTraceKind(R"({"header":{"id":"0x7f","rank":2},"metadata":{},"coll_perf":{"coll":)"),
            TraceKind::kInspector);
  EXPECT_EQ(TellTraceKind("epoch 1\n{\"header\":{\"id\n{\"p2p_perf\":{\"p2p\":\"Send\"}}\n"),
            TraceKind::kInspector);
  EXPECT_EQ(TellTraceKind(R"({"schemaVersion": 1, "combinedRanks": 4, "traceEvents": [)"),
            TraceKind::kCombinedKineto);
  EXPECT_EQ(TellTraceKind(R"({"metadata":{},"baseTimeNanoseconds":5,"traceEvents":[{)"),
            TraceKind::kTraceJson);
  EXPECT_EQ(TellTraceKind("{\"a\": 1}"), TraceKind::kUnknown);
  EXPECT_EQ(TellTraceKind("hello"), TraceKind::kUnknown);
  // Cut off before what tells.
  EXPECT_EQ(TellTraceKind("{\"schemaVersion\": 1, \"devicePro"), TraceKind::kKineto);
}

TEST(TraceKindTest, FilesMayBeCompressed) {
  const TemporaryDirectory directory;
  const std::string kineto = R"({"schemaVersion": 1, "traceEvents": []})";
  const std::string path = directory.Write("k.pb", GzipText(kineto));
  EXPECT_THAT(TellTraceKind(FileSystem::Posix(), path), IsOkAndHolds(TraceKind::kKineto));
  const std::string cut = directory.Write("cut.gz", GzipText(kineto).substr(0, 12));
  EXPECT_OK(TellTraceKind(FileSystem::Posix(), cut).status());
  EXPECT_THAT(TellTraceKind(FileSystem::Posix(), directory.PathOf("missing")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(TraceKindTest, KindsAreNotMixedAndNamed) {
  const TemporaryDirectory directory;
  const std::string kineto =
      directory.Write("kineto_0.json", R"({"schemaVersion": 1, "traceEvents": []})");
  const std::string xspace = directory.Write("a.xplane.pb", "\x0a\x02\x12\x00");
  const std::vector<TraceKind> both = {TraceKind::kXSpace, TraceKind::kKineto};
  EXPECT_THAT(TellOneTraceKind(FileSystem::Posix(), {kineto, kineto}, both),
              IsOkAndHolds(TraceKind::kKineto));
  EXPECT_THAT(TellOneTraceKind(FileSystem::Posix(), {kineto, xspace}, both),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("kineto_0.json is a Kineto trace"),
                             HasSubstr("a.xplane.pb is an XSpace"))));
  EXPECT_THAT(TellOneTraceKind(FileSystem::Posix(), {kineto}, {TraceKind::kXSpace}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("kineto_0.json is a Kineto trace; expected an XSpace")));
}

TEST(TraceKindTest, WhatIsBrokenIsOfTheKindOfTheOthers) {
  const TemporaryDirectory directory;
  const std::string kineto =
      directory.Write("kineto_0.json", R"({"schemaVersion": 1, "traceEvents": []})");
  const std::string broken = directory.Write("kineto_1.json", "{\"zz\": [1}");
  const std::vector<TraceKind> both = {TraceKind::kXSpace, TraceKind::kKineto};
  EXPECT_THAT(TellOneTraceKind(FileSystem::Posix(), {broken, kineto}, both),
              IsOkAndHolds(TraceKind::kKineto));
  EXPECT_THAT(TellOneTraceKind(FileSystem::Posix(), {broken}, both),
              IsOkAndHolds(TraceKind::kXSpace));
  EXPECT_THAT(TellOneTraceKind(FileSystem::Posix(), {broken}, {TraceKind::kKineto}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("kineto_1.json is no trace that is known; expected a Kineto")));
}

TEST(TraceKindTest, WhatLiesBesideProfilesDoesNotMatter) {
  const TemporaryDirectory directory;
  const std::string kineto =
      directory.Write("kineto_0.json", R"({"schemaVersion": 1, "traceEvents": []})");
  const std::string et = directory.Write("et_0.json", R"({"schema": "1.0.1", "nodes": []})");
  const std::string viewer = directory.Write("trace.json", R"({"traceEvents": []})");
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {et, kineto, viewer}), ElementsAre(kineto));
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {et, viewer}), ElementsAre(et, viewer));
  const std::string broken = directory.Write("a.xplane.pb", "?");
  EXPECT_THAT(KeepProfiles(FileSystem::Posix(), {broken, kineto}), ElementsAre(broken, kineto));
}

}  // namespace
}  // namespace meridian
