#include "chakra_export/xspace/run_agreement.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "chakra_export/xspace/testing/device_profile.h"
#include "chakra_export/xspace/testing/made_up_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNccl[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)";
constexpr char kSendRecv[] = "ncclDevKernel_SendRecv(ncclDevKernelArgs)";

// An all-reduce, then a collective of that opcode, of 64 floats each.
HloModuleBuilder Program(const std::string& opcode,
                         const std::vector<std::vector<int64_t>>& groups) {
  HloModuleBuilder program = PartitionedProgram(4);
  const xla::ShapeProto shape = ArrayShape(xla::F32, {64});
  auto* x = program.Add("x", "parameter", shape);
  auto* first = AddAllReduce("first.1", shape, {x}, groups, &program);
  AddAllReduce("second.2", shape, {first}, groups, &program)->set_opcode(opcode);
  return program;
}

// Three executions of the program.
XSpaceProto Profile(int64_t partition, const HloModuleBuilder& program) {
  std::vector<ProfileRun> runs;
  for (const int64_t run_id : {7, 8, 9}) {
    const int64_t begin_ns = (run_id - 6) * 1000000;
    runs.push_back({run_id,
                    begin_ns,
                    {{kNccl, "first.1", 15, begin_ns + 100000, begin_ns + 200000, ""},
                     {kSendRecv, "second.2", 15, begin_ns + 300000, begin_ns + 400000, ""}}});
  }
  return GpuProfile(partition, program, runs);
}

TEST(CheckProgramsAgreeTest, OneProgramOnAllRanksIsFine) {
  const HloModuleBuilder program = Program("all-to-all", {{0, 1}, {2, 3}});
  const MadeUpRun run({Profile(0, program), Profile(1, program), Profile(2, program)});
  EXPECT_OK(CheckProgramsAgree(run.profiles, run.run));
}

TEST(CheckProgramsAgreeTest, AnOpcodeThatDiffersIsNamedWithItsCollective) {
  const HloModuleBuilder program = Program("all-to-all", {{0, 1}, {2, 3}});
  const HloModuleBuilder other = Program("all-gather", {{0, 1}, {2, 3}});
  const MadeUpRun run({Profile(0, program), Profile(1, program), Profile(2, other)});
  EXPECT_THAT(CheckProgramsAgree(run.profiles, run.run),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("profile0"), HasSubstr("profile2"),
                             HasSubstr("disagree about the program jit_step"),
                             HasSubstr("all-to-all second.2 of 256 bytes {0,1},{2,3}"),
                             HasSubstr("all-gather second.2 of 256 bytes {0,1},{2,3}"))));
}

TEST(CheckProgramsAgreeTest, GroupsThatDifferAreNamed) {
  const MadeUpRun run({Profile(0, Program("all-to-all", {{0, 1}, {2, 3}})),
                       Profile(1, Program("all-to-all", {{0, 2}, {1, 3}}))});
  EXPECT_THAT(CheckProgramsAgree(run.profiles, run.run),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("all-reduce first.1 of 256 bytes {0,1},{2,3}"),
                             HasSubstr("all-reduce first.1 of 256 bytes {0,2},{1,3}"))));
}

}  // namespace
}  // namespace meridian
