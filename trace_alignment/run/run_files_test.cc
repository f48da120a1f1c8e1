#include "trace_alignment/run/run_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunFilesTest : public ::testing::Test {
 protected:
  // Makes an empty file, and its folders, below the temporary one.
  void Add(const std::string& name) {
    const std::string path = Path(name);
    ASSERT_OK(FileSystem::Posix().CreateDirectories(path.substr(0, path.rfind('/'))));
    ASSERT_OK(WriteOutput(FileSystem::Posix(), path, "x"));
  }
  std::string Path(const std::string& name) const {
    return absl::StrCat(directory_.path(), "/", name);
  }
  absl::StatusOr<RunFiles> Find(const std::string& folder = "run") const {
    return FindRunFiles(FileSystem::Posix(), Path(folder));
  }

  TemporaryDirectory directory_;
};

TEST_F(RunFilesTest, FindsEverythingInTheFolderInNaturalOrder) {
  for (const char* name :
       {"run/rank10.xplane.pb", "run/rank2.xplane.pb.gz", "run/rank2.snapshots.jsonl",
        "run/round_offsets.jsonl", "run/probe_windows_node0.jsonl", "run/notes.txt"}) {
    Add(name);
  }
  ASSERT_OK_AND_ASSIGN(const RunFiles files, Find());
  EXPECT_THAT(files.traces,
              ElementsAre(Path("run/rank2.xplane.pb.gz"), Path("run/rank10.xplane.pb")));
  EXPECT_THAT(files.snapshots, ElementsAre(Path("run/rank2.snapshots.jsonl"), ""));
  EXPECT_EQ(files.offsets, Path("run/round_offsets.jsonl"));
  EXPECT_THAT(files.probes, ElementsAre(Path("run/probe_windows_node0.jsonl")));
  EXPECT_EQ(files.name, "run");
}

TEST_F(RunFilesTest, DotsAndSlashesAreNoNamesOfRuns) {
  Add("run/rank0.xplane.pb");
  Add("run/sub/notes.txt");
  for (const char* folder : {"run/", "run/.", "run//", "run/sub/..", "run/sub/../"}) {
    ASSERT_OK_AND_ASSIGN(const RunFiles files, FindRunFiles(FileSystem::Posix(), Path(folder)));
    EXPECT_EQ(files.name, "run") << folder;
  }
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(Path("run"));
  ASSERT_OK_AND_ASSIGN(const RunFiles files, FindRunFiles(FileSystem::Posix(), "."));
  EXPECT_EQ(files.name, "run");
  std::filesystem::current_path(before);
}

TEST_F(RunFilesTest, FindsTheOneRunOfALogFolder) {
  Add("run/plugins/profile/2026_11_15_05_00_00/host_a.xplane.pb");
  ASSERT_OK_AND_ASSIGN(const RunFiles files, Find());
  EXPECT_THAT(files.traces,
              ElementsAre(Path("run/plugins/profile/2026_11_15_05_00_00/host_a.xplane.pb")));
  EXPECT_EQ(files.name, "2026_11_15_05_00_00");
  EXPECT_THAT(files.snapshots, IsEmpty());
}

TEST_F(RunFilesTest, SeveralRunsAreListed) {
  Add("run/plugins/profile/first/a.xplane.pb");
  Add("run/plugins/profile/second/a.xplane.pb");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("2 runs"), HasSubstr("profile/first"),
                                     HasSubstr("profile/second"))));
}

// Every host wrote its own time stamp.
TEST_F(RunFilesTest, FoldersOfDifferentHostsAreOneRun) {
  Add("run/plugins/profile/2026_11_15_05_00_01/host-b.xplane.pb");
  Add("run/plugins/profile/2026_11_15_05_00_00/host-a.xplane.pb");
  Add("run/plugins/profile/2026_11_15_05_00_00/host-a.snapshots.jsonl");
  ASSERT_OK_AND_ASSIGN(const RunFiles files, Find());
  EXPECT_THAT(files.traces,
              ElementsAre(Path("run/plugins/profile/2026_11_15_05_00_00/host-a.xplane.pb"),
                          Path("run/plugins/profile/2026_11_15_05_00_01/host-b.xplane.pb")));
  EXPECT_THAT(
      files.snapshots,
      ElementsAre(Path("run/plugins/profile/2026_11_15_05_00_00/host-a.snapshots.jsonl"), ""));
  EXPECT_EQ(files.name, "2026_11_15_05_00_00");
  EXPECT_THAT(files.notes, ElementsAre(HasSubstr("2 folders")));
}

TEST_F(RunFilesTest, SeveralFilesOfOffsetsAreListed) {
  Add("run/a.xplane.pb");
  Add("run/offsets.jsonl");
  Add("run/round_offsets.jsonl");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("offsets.jsonl, round_offsets.jsonl")));
  // What the message asks for helps.
  RunFilesOptions options;
  options.find_offsets = false;
  ASSERT_OK_AND_ASSIGN(const RunFiles files,
                       FindRunFiles(FileSystem::Posix(), Path("run"), options));
  EXPECT_EQ(files.offsets, "");
}

// The empty dump is known by its name; its reader says what is wrong.
TEST_F(RunFilesTest, DumpsBesideProfilesAreNamedAndElseCount) {
  directory_.Write("run/nccl_trace_rank_0", R"({"pg_config": {}, "entries": []})");
  directory_.Write("run/nccl_trace_rank_1", "");
  directory_.Write("run/fr_2.json", "");
  ASSERT_OK_AND_ASSIGN(const RunFiles dumps, Find());
  EXPECT_THAT(dumps.traces, ElementsAre(Path("run/fr_2.json"), Path("run/nccl_trace_rank_0"),
                                        Path("run/nccl_trace_rank_1")));
  Add("run/rank0.xplane.pb");
  std::filesystem::remove(Path("run/fr_2.json"));
  std::vector<std::string> notes;
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> traces,
                       FindRunTraces(FileSystem::Posix(), Path("run"), &notes));
  EXPECT_THAT(traces, ElementsAre(Path("run/rank0.xplane.pb")));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("2 flight recorder dump(s) beside the profiles")));
}

TEST_F(RunFilesTest, ProfilesBesideARunAreAmbiguous) {
  Add("run/stray.xplane.pb");
  Add("run/plugins/profile/first/a.xplane.pb");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("name the files of one with --traces, or give one of "
                                         "--run_dir=")));
}

// Without it the run would be one of fewer ranks.
TEST_F(RunFilesTest, AProfileThatIsALinkToNowhereOrAPipeIsRefused) {
  Add("run/a.xplane.pb");
  ASSERT_EQ(symlink("nowhere", Path("run/readme").c_str()), 0);
  ASSERT_OK_AND_ASSIGN(const RunFiles files, Find());
  EXPECT_THAT(files.traces, ElementsAre(Path("run/a.xplane.pb")));
  ASSERT_EQ(symlink("nowhere", Path("run/b.xplane.pb").c_str()), 0);
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("run/b.xplane.pb: a link that leads nowhere")));
  ASSERT_EQ(unlink(Path("run/b.xplane.pb").c_str()), 0);
  ASSERT_EQ(mkfifo(Path("run/b.json").c_str(), 0600), 0);
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("run/b.json: not a regular file")));
}

TEST_F(RunFilesTest, DamagedJsonIsForItsReaderToRefuse) {
  ASSERT_OK(FileSystem::Posix().CreateDirectories(Path("run")));
  directory_.Write("run/kineto_0.json", R"({"schemaVersion": 1, "traceEvents": []})");
  directory_.Write("run/report.json", R"({"zz": [1]})");
  directory_.Write("run/lines.json", "{\"zz\": 1}\n{\"zz\": 2}\n");
  for (const char* damaged : {"{\"zz\": [1}", "{'schemaVersion': 1}", "{", "\xff\xfe{"}) {
    directory_.Write("run/kineto_1.json", damaged);
    ASSERT_OK_AND_ASSIGN(const RunFiles files, Find());
    EXPECT_THAT(files.traces, ElementsAre(Path("run/kineto_0.json"), Path("run/kineto_1.json")))
        << damaged;
  }
}

TEST_F(RunFilesTest, SnapshotsAreFoundByNumberWhenNamesDiffer) {
  Add("run/host-a_3.xplane.pb");
  Add("run/node3.snapshot_pairs.pb");
  ASSERT_OK_AND_ASSIGN(const RunFiles files, Find());
  EXPECT_THAT(files.snapshots, ElementsAre(Path("run/node3.snapshot_pairs.pb")));
}

TEST_F(RunFilesTest, SeveralSnapshotsForOneTraceAreListed) {
  Add("run/rank3.xplane.pb");
  Add("run/node3.snapshots.jsonl");
  Add("run/other3.snapshots.jsonl");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("node3.snapshots.jsonl, other3.snapshots.jsonl")));
}

TEST_F(RunFilesTest, AFolderWithoutProfilesAndAFileAreErrors) {
  Add("run/readme.txt");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("plugins/profile")));
  directory_.Write("run/a.csv", "");
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("; a.csv is empty")));
  EXPECT_THAT(Find("run/readme.txt"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--traces")));
  EXPECT_THAT(Find("nothing"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("nothing")));
}

}  // namespace
}  // namespace meridian
