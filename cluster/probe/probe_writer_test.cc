#include "cluster/probe/probe_writer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RotatingFileTest, PutsFullFilesAsideAndKeepsTheLast) {
  const TemporaryDirectory directory;
  RotationOptions options;
  options.max_file_bytes = 8;
  options.kept_files = 2;
  RotatingFile file(FileSystem::Posix(), directory.path(), "a", options);
  EXPECT_THAT(directory.List(), IsEmpty());
  for (const char* line : {"one\n", "two\n", "three\n", "four\n", "five\n", "six\n"}) {
    ASSERT_OK(file.Append(line));
  }
  EXPECT_THAT(directory.List(), ElementsAre("a.3.jsonl", "a.4.jsonl", "a.jsonl"));
  EXPECT_EQ(directory.Read("a.jsonl"), "six\n");
  EXPECT_EQ(directory.Read("a.4.jsonl"), "five\n");
}

TEST(RotatingFileTest, AnEarlierDaemonsFileIsPutAside) {
  const TemporaryDirectory directory;
  directory.Write("a.jsonl", "old\n");
  directory.Write("a.9.jsonl", "older\n");
  RotatingFile file(FileSystem::Posix(), directory.path(), "a");
  ASSERT_OK(file.Append("new\n"));
  EXPECT_EQ(directory.Read("a.10.jsonl"), "old\n");
  EXPECT_EQ(directory.Read("a.jsonl"), "new\n");
}

TEST(RotatingFileTest, AFullDiskIsAnError) {
  const TemporaryDirectory directory;
  FaultyFileSystem file_system(FileSystem::Posix());
  file_system.Fail(Operation::kAppend, 2, absl::ResourceExhaustedError("disk full"));
  RotatingFile file(file_system, directory.path(), "a");
  ASSERT_OK(file.Append("one\n"));
  EXPECT_THAT(file.Append("two\n"), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ProbeLinesTest, ProbesAndThatNodesOfAHostShareAClock) {
  ProbeWindow window;
  window.window_id = 5;
  window.probes = {{2, 0, 21000, 20920, 20980, 21100}, {2, 0, 22000, 21920, 21980, 22100}};
  EXPECT_EQ(ProbeLines({"b", 0, 2, 2}, window, 4000),
            "{\"src\":2,\"dst\":0,\"t1\":21000,\"t2\":20920,\"t3\":20980,\"t4\":21100}\n"
            "{\"src\":2,\"dst\":0,\"t1\":22000,\"t2\":21920,\"t3\":21980,\"t4\":22100}\n"
            "{\"src\":2,\"dst\":3,\"t1\":20000,\"t2\":20000,\"t3\":20000,\"t4\":20000}\n"
            "{\"src\":2,\"dst\":3,\"t1\":23999,\"t2\":23999,\"t3\":23999,\"t4\":23999}\n");
}

}  // namespace
}  // namespace meridian
