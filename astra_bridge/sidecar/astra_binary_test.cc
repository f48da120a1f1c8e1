#include "astra_bridge/sidecar/astra_binary.h"

#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "astra_bridge/sidecar/testing/script.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Congestion kAware = Congestion::kAware;
constexpr Congestion kUnaware = Congestion::kUnaware;

class AstraBinaryTest : public ::testing::Test {
 protected:
  std::string MakeProgram(const std::string& name) {
    const std::string path = directory_.Write(name, "#!/bin/sh\n");
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }

  absl::StatusOr<std::string> Find(const std::string& given, const std::string& search_path,
                                   Congestion congestion) {
    return FindAstraBinary(FileSystem::Posix(), given, search_path, congestion);
  }

  absl::StatusOr<std::string> Probe(const std::string& script, Congestion wanted) {
    UseScript(directory_, script);
    AstraSimulatorOptions options;
    options.binary = ScriptedProgram();
    options.work_folder = directory_.path();
    options.timeout = absl::Seconds(60);
    return ProbeAstraBinary(FileSystem::Posix(), options, wanted);
  }

  const TemporaryDirectory directory_;
};

TEST_F(AstraBinaryTest, FindsTheNameThatItsBuildGivesIt) {
  const std::string aware = MakeProgram("b/AstraSim_Analytical_Congestion_Aware");
  const std::string unaware = MakeProgram("b/AstraSim_Analytical_Congestion_Unaware");
  const std::string path = absl::StrCat(directory_.PathOf("missing"), "::", directory_.PathOf("b"));
  EXPECT_THAT(Find("", path, kAware), IsOkAndHolds(aware));
  EXPECT_THAT(Find("", path, kUnaware), IsOkAndHolds(unaware));
  const std::string short_name = MakeProgram("c/AstraSim");
  EXPECT_THAT(Find("", directory_.PathOf("c"), kAware), IsOkAndHolds(short_name));
}

TEST_F(AstraBinaryTest, AGivenPathMustBeAProgram) {
  const std::string program = MakeProgram("mine");
  EXPECT_THAT(Find(program, "", kAware), IsOkAndHolds(program));
  for (const std::string& path :
       {directory_.PathOf("missing"), directory_.Write("text", ""), directory_.path()}) {
    EXPECT_THAT(Find(path, "", kAware),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr(path), HasSubstr("--astra_binary"))));
  }
}

TEST_F(AstraBinaryTest, WithoutOneItSaysWhatToDo) {
  EXPECT_THAT(Find("", directory_.path(), kAware),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("AstraSim_Analytical_Congestion_Aware"),
                             HasSubstr("--astra_binary"), HasSubstr("embedded"))));
}

// 1 MiB over two links of 50 GiB/s and 500 ns, after 1 ns.
TEST_F(AstraBinaryTest, IsToldByItsAnswer) {
  EXPECT_THAT(Probe(FinishScript({40063, 40063}), kAware),
              IsOkAndHolds(::testing::MatchesRegex("binary [0-9a-f]+")));
  EXPECT_OK(Probe(FinishScript({20532, 20532}), kUnaware));
}

TEST_F(AstraBinaryTest, TheOtherKindIsRefused) {
  EXPECT_THAT(Probe(FinishScript({40063, 40063}), kUnaware),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("is the congestion-aware AstraSim"),
                             HasSubstr("--congestion=aware"))));
}

TEST_F(AstraBinaryTest, WhatIsNoAstraSimIsUnavailable) {
  EXPECT_THAT(Probe(FinishScript({7, 7}), kAware),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("took 7 cycles")));
  EXPECT_THAT(Probe("err no such option\nexit 2\n", kAware),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("fails a first try"), HasSubstr("no such option"))));
}

}  // namespace
}  // namespace meridian
