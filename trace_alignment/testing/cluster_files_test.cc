#include "trace_alignment/testing/cluster_files.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ClusterFilesTest, WritesWhatIsAskedFor) {
  const TemporaryDirectory directory;
  const SyntheticCluster cluster({});
  ASSERT_OK(WriteCluster(FileSystem::Posix(), cluster, {}, directory.path()));
  EXPECT_THAT(directory.List(), ElementsAre("node0.xplane.pb", "node1.xplane.pb", "truth.json"));
  ClusterFilesOptions options;
  options.snapshots.emplace();
  options.offsets.emplace();
  options.probe_windows.emplace();
  options.probes.emplace();
  const std::string folder = directory.PathOf("a/b");
  ASSERT_OK(WriteCluster(FileSystem::Posix(), cluster, options, folder));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, FileSystem::Posix().List(folder));
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                         "node0.snapshots.jsonl", "node0.xplane.pb", "node1.snapshots.jsonl",
                         "node1.xplane.pb", "offsets.jsonl", "probe_windows_node0.jsonl",
                         "probe_windows_node1.jsonl", "probes.jsonl", "truth.json"));
}

TEST(ClusterFilesTest, TheSameClusterMakesTheSameBytes) {
  const TemporaryDirectory directory;
  const SyntheticCluster cluster({});
  for (const char* folder : {"a", "b"}) {
    ASSERT_OK(WriteCluster(FileSystem::Posix(), cluster, {}, directory.PathOf(folder)));
  }
  EXPECT_EQ(directory.Read("a/node1.xplane.pb"), directory.Read("b/node1.xplane.pb"));
}

TEST(ClusterFilesTest, ProfilesAreReadAsOneRun) {
  const TemporaryDirectory directory;
  ClusterOptions options;
  options.nodes = 3;
  const SyntheticCluster cluster(options);
  ASSERT_OK(WriteCluster(FileSystem::Posix(), cluster, {}, directory.path()));
  ASSERT_OK_AND_ASSIGN(
      const CollectiveRun run,
      ReadCollectiveRun(FileSystem::Posix(), ClusterTracePaths(cluster, directory.path())));
  EXPECT_EQ(CheckHappensBefore(run.table).checked, 8);
}

TEST(ClusterFilesTest, TheTruthIsWrittenBeside) {
  const TemporaryDirectory directory;
  ClusterOptions options;
  options.host_clocks = {{}, {-3'000'000, 12'500, {}}};
  ASSERT_OK(WriteCluster(FileSystem::Posix(), SyntheticCluster(options), {}, directory.path()));
  EXPECT_THAT(directory.Read("truth.json"),
              HasSubstr("{\"node_id\": 1, \"offset_ns\": -3000, \"drift_ppm\": 12.500"));
}

}  // namespace
}  // namespace meridian
