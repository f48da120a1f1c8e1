// SPDX-License-Identifier: Apache-2.0
// Profiles of single devices that ran one made-up program, in the forms that JAX writes on GPUs and
// TPUs. All devices share a clock; times are nanoseconds from kProfileStartNs.
#ifndef CHAKRA_EXPORT_XSPACE_TESTING_DEVICE_PROFILE_H_
#define CHAKRA_EXPORT_XSPACE_TESTING_DEVICE_PROFILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "xla_profiler/testing/hlo_module_builder.h"
#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {

inline constexpr int64_t kProfileStartNs = 1794701451000000000;

struct ProfileKernel {
  std::string name;
  std::string hlo_op;
  int64_t stream = 14;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // Makes it a copy, e.g. "kind_src:pinned kind_dst:device size:64".
  std::string copy_details;
};

// One execution of the program; calls launch the kernels in the order given, 1 us after each other.
struct ProfileRun {
  int64_t run_id = 0;
  int64_t launch_ns = 0;
  std::vector<ProfileKernel> kernels;
};

// The program's device assignment gives partition i the device i.
XSpaceProto GpuProfile(int64_t partition, const HloModuleBuilder& program,
                       const std::vector<ProfileRun>& runs);

// Kernels are ops here: their names do not matter, their streams are one.
XSpaceProto TpuProfile(int64_t device, const HloModuleBuilder& program,
                       const std::vector<ProfileRun>& runs);

// Appends an instruction to the program: groups of partitions, or pairs of them.
xla::HloInstructionProto* AddAllReduce(const std::string& name, const xla::ShapeProto& shape,
                                       const std::vector<const xla::HloInstructionProto*>& operands,
                                       const std::vector<std::vector<int64_t>>& groups,
                                       HloModuleBuilder* program);
xla::HloInstructionProto* AddPermute(const std::string& name, const xla::ShapeProto& shape,
                                     const std::vector<const xla::HloInstructionProto*>& operands,
                                     const std::vector<std::pair<int64_t, int64_t>>& pairs,
                                     HloModuleBuilder* program);

// A program that partitions 0 .. count - 1 run.
HloModuleBuilder PartitionedProgram(int64_t count);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_TESTING_DEVICE_PROFILE_H_
