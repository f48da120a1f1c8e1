#include "pipeline/job_traces.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class JobTracesTest : public testing::Test {
 protected:
  // Exports a run of four ranks and returns the size of rank 0's trace.
  size_t Export(size_t most_work) {
    JobTraces traces;
    for (int rank = 0; rank < 4; ++rank) {
      traces.xspaces.push_back("examples/jax_cpu4/rank" + std::to_string(rank) + ".xplane.pb.gz");
    }
    ProfiledRun profiled;
    notes_.clear();
    JobExportOptions options;
    options.profiled = &profiled;
    options.most_work = most_work;
    options.notes = &notes_;
    EXPECT_OK(ExportJob(FileSystem::Posix(), traces, directory_.PathOf("job"), options));
    for (const auto& profile : profiled.profiles) {
      for (const WorkingDevice& device : profile->devices) {
        work_ = std::max(work_, device.work.size());
      }
    }
    return directory_.Read("job.0.et").size();
  }

  const TemporaryDirectory directory_;
  std::vector<std::string> notes_;
  // Of the rank that has most.
  size_t work_ = 0;
};

TEST_F(JobTracesTest, OfLongRunsTheStepsInTheMiddleAreExported) {
  const size_t all = Export(1 << 20);
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(Export(work_), all);
  EXPECT_THAT(notes_, IsEmpty());
  // Eight steps of as much work, from 0.
  EXPECT_LT(Export(work_ - 1), all);
  EXPECT_THAT(notes_, ElementsAre(StartsWith("Chakra traces hold the steps 1 to 7, 7 of 8: ")));
  Export(work_ / 2);
  EXPECT_THAT(notes_, ElementsAre(StartsWith("Chakra traces hold the steps 2 to 5, 4 of 8: ")));
  // One is always there.
  Export(1);
  EXPECT_THAT(notes_, ElementsAre(StartsWith("Chakra traces hold the steps 4 to 4, 1 of 8: ")));
}

}  // namespace
}  // namespace meridian
