#include "trace_alignment/probes/probe_offsets.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

// Node 1 is between 80 and 120 ns ahead.
constexpr absl::string_view kProbes =
    "{\"src\":0,\"dst\":1,\"t1\":1000,\"t2\":1120,\"t3\":1180,\"t4\":1100}\n"
    "{\"src\":0,\"dst\":1,\"t1\":2000,\"t2\":2120,\"t3\":2180,\"t4\":2100}\n"
    // Whoever wrote was ended meanwhile.
    "{\"src\":0,\"dst\":1,\"t1\":3000,\"t2\":";
constexpr absl::string_view kWindows =
    "{\"meta\":true,\"node_id\":0}\n"
    "{\"window_start_ns\":0,\"window_end_ns\":4000,\"round_id\":0,\"node_id\":0,"
    "\"edges\":[{\"dst\":1,\"alpha\":0,\"beta\":900,\"pairs\":40,\"lost\":0}]}\n";

TEST(ProbeOffsetsTest, RawProbesHaveBounds) {
  const TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(const ProbeOffsets offsets,
                       LoadProbeOffsets(FileSystem::Posix(),
                                        {directory.Write("probes_node0.jsonl", kProbes)}, 0, 100));
  ASSERT_EQ(offsets.samples.SamplesOf(1).size(), 1u);
  const OffsetSample& sample = offsets.samples.SamplesOf(1)[0];
  EXPECT_EQ(sample.offset_ps, 100'000);
  // Half of the interval, rounded outward.
  EXPECT_NEAR(sample.uncertainty_ns.value(), 20, 0.01);
}

TEST(ProbeOffsetsTest, WindowsAloneHaveNoBounds) {
  const TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(
      const ProbeOffsets offsets,
      LoadProbeOffsets(FileSystem::Posix(),
                       {directory.Write("probe_windows_node0.jsonl", kWindows)}, 0, 100));
  ASSERT_EQ(offsets.samples.SamplesOf(1).size(), 1u);
  EXPECT_EQ(offsets.samples.SamplesOf(1)[0].offset_ps, 900'000);
  EXPECT_FALSE(offsets.samples.SamplesOf(1)[0].uncertainty_ns.has_value());
}

}  // namespace
}  // namespace meridian
