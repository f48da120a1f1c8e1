// xspace_inspect as users run it: on a real profile, with wrong flags and with broken files.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr char kExample[] = "examples/jax_cuda2/rank0.xplane.pb";

CommandResult Inspect(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/xspace_inspect", arguments);
}

TEST(XSpaceInspectTest, ShowsARealProfile) {
  const CommandResult result = Inspect({std::string("--trace=") + kExample});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(
      result.standard_output,
      AllOf(HasSubstr("host      vm\n"), HasSubstr("start     2026-11-15 00:10:51.406144825 UTC\n"),
            HasSubstr("  Stream #14(Compute,MemcpyD2D)  tracer     184"),
            HasSubstr("  python3                        host     1,016")));
}

TEST(XSpaceInspectTest, JsonHasSnakeCaseAndZeros) {
  const CommandResult result = Inspect({"--trace", kExample, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(StartsWith("{"), HasSubstr("\"profile_start_ns\": 1794701451406144825"),
                    HasSubstr("\"clock_domain\": \"tracer\""), HasSubstr("\"events\": 0,"),
                    HasSubstr("\"warnings\": []")));
}

TEST(XSpaceInspectTest, ReadsEverySharedProfile) {
  const std::vector<std::string> files = SharedXSpaceFiles();
  if (files.empty()) GTEST_SKIP() << kSharedDataMissing;
  for (const std::string& file : files) {
    const CommandResult result = Inspect({"--trace=" + file});
    EXPECT_EQ(result.exit_code, 0) << file << ": " << result.standard_error;
  }
}

TEST(XSpaceInspectTest, HelpShowsAnExampleAndSucceeds) {
  const CommandResult result = Inspect({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(
      result.standard_output,
      AllOf(HasSubstr("--trace"), HasSubstr("xspace_inspect --trace=node0.xplane.pb --json")));
}

TEST(XSpaceInspectTest, WrongUsageExitsWithTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {}, {"--trase=x"}, {"--trace"}, {"--trace=a", "--trace=b"}, {"file.pb"}, {"--json=maybe"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const CommandResult result = Inspect(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, StartsWith("xspace_inspect: "));
  }
}

TEST(XSpaceInspectTest, TextOfAFileDoesNotSteerTheTerminal) {
  ::tensorflow::profiler::XSpace space;
  auto* plane = space.add_planes();
  plane->set_name("\x1b[2J");
  const TemporaryDirectory directory;
  const CommandResult result =
      Inspect({"--trace=" + directory.Write("a.pb", space.SerializeAsString())});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.standard_output, HasSubstr("?[2J"));
}

// A file that is refused, with what must be said about it.
struct BrokenFile {
  const char* name;
  std::string contents;
  const char* reason;
};

std::string SpaceBytes(const ::tensorflow::profiler::XSpace& space) {
  return space.SerializePartialAsString();
}

::tensorflow::profiler::XSpace SpaceWithEvent() {
  ::tensorflow::profiler::XSpace space;
  auto* plane = space.add_planes();
  plane->set_name("/host:CPU");
  (*plane->mutable_event_metadata())[1].set_name("e");
  plane->add_lines()->add_events()->set_metadata_id(1);
  return space;
}

std::vector<BrokenFile> BrokenFiles() {
  std::vector<BrokenFile> files;
  const std::string whole = SpaceBytes(SpaceWithEvent());
  files.push_back({"empty", "", "offset 0: the file is empty"});
  files.push_back({"truncated", whole.substr(0, whole.size() - 1), "offset 1: length runs past"});
  files.push_back(
      {"garbage", "this is not a profile at all", "offset 0: group ends that never began"});
  files.push_back({"hostile length",
                   std::string("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 10) + "x",
                   "offset 1: length runs past"});
  files.push_back({"length inside a plane", std::string("\x0A\x03\x1A\xFF\x7F", 5),
                   "offset 3: length runs past"});

  std::string bad_text = whole;
  bad_text[bad_text.find("/host:CPU")] = '\xFF';
  files.push_back({"invalid UTF-8", bad_text, "text is not UTF-8"});

  auto missing = SpaceWithEvent();
  missing.mutable_planes(0)->mutable_lines(0)->mutable_events(0)->set_metadata_id(2);
  files.push_back({"missing metadata id", SpaceBytes(missing), "event metadata id 2 is used"});

  // Two planes in one: concatenated messages merge, so the id is there twice.
  const std::string plane = SpaceWithEvent().planes(0).SerializeAsString();
  std::string twice = plane + plane;
  files.push_back({"duplicate metadata id",
                   std::string("\x0A") + static_cast<char>(twice.size()) + twice,
                   "event metadata id 1 occurs twice"});

  const std::string gzip = GzipText(whole);
  files.push_back({"truncated gzip", gzip.substr(0, gzip.size() - 6), "truncated"});
  std::string corrupt = gzip;
  corrupt[corrupt.size() / 2] ^= 0x55;
  files.push_back({"corrupt gzip", corrupt, "offset "});
  files.push_back({"gzip of nothing", GzipText(""), "the file is empty"});
  return files;
}

TEST(XSpaceInspectTest, BrokenFilesExitWithTwoOffsetAndReason) {
  const TemporaryDirectory directory;
  for (const BrokenFile& broken : BrokenFiles()) {
    SCOPED_TRACE(broken.name);
    const std::string path = directory.Write("broken.xplane.pb", broken.contents);
    const CommandResult result = Inspect({"--trace=" + path});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error,
                AllOf(StartsWith("xspace_inspect: " + path), HasSubstr(broken.reason)));
    EXPECT_THAT(result.standard_error, HasSubstr("offset "));
  }
}

TEST(XSpaceInspectTest, AGzipBombIsRefused) {
  // 1 GiB of zeros in about 1 MB.
  const TemporaryDirectory directory;
  const std::string member = GzipText(std::string(std::size_t{1} << 24, '\0'));
  std::string bomb;
  for (int i = 0; i < 64; ++i) bomb += member;
  const CommandResult result = Inspect({"--trace=" + directory.Write("bomb.pb.gz", bomb)});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, AllOf(HasSubstr("offset "), HasSubstr("bomb")));
}

TEST(XSpaceInspectTest, MissingFileAndFolderExitWithTwo) {
  EXPECT_EQ(Inspect({"--trace=does_not_exist.pb"}).exit_code, 2);
  EXPECT_EQ(Inspect({"--trace=examples"}).exit_code, 2);
}

TEST(XSpaceInspectTest, NoPlaceToInflateIsTheEnvironments) {
  const TemporaryDirectory directory;
  setenv("TMPDIR", directory.PathOf("missing").c_str(), 1);
  const CommandResult result = Inspect({"--trace=" + directory.Write("a.pb.gz", GzipText("any"))});
  unsetenv("TMPDIR");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.standard_error, HasSubstr("TMPDIR"));
}

TEST(XSpaceInspectTest, AFullStandardOutputIsTheEnvironments) {
  // /dev/full refuses every byte; the command's own output is what fails.
  const CommandResult result = RunCommandLine(
      "/bin/sh", {"-c", std::string("tools/xspace_inspect --trace=") + kExample + " > /dev/full"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.standard_error, HasSubstr("standard output: No space left on device"));
}

}  // namespace
}  // namespace meridian
