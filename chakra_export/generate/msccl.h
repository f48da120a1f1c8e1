// SPDX-License-Identifier: Apache-2.0
// Collective algorithms of MSCCL (the XML that MSCCL's tools write) as Chakra traces, one per GPU, which
// simulators take for custom collectives.
//
//   <algo coll="allreduce" ngpus="2" nchunksperloop="2" ...>
//     <gpu id="0" ...>
//       <tb id="0" send="1" recv="1" chan="0">
//         <step s="0" type="s" cnt="1" depid="-1" deps="-1" .../>
//
// A step becomes a receive, a computation and a send, as far as its type has them:
//
//   s    send              r    receive              cpy, re    computation        nop   none
//   rcs  receive, send     rrc  receive, compute     rrs, rrcs  receive, compute, send
//
// Steps of a thread block (tb) follow each other; besides, a step waits for step `deps` of thread block
// `depid` of its GPU. A send is over when its message has arrived. The tag is the channel. A chunk has
// the bytes of the buffer over nchunksperloop. Computations have no duration.
#ifndef CHAKRA_EXPORT_GENERATE_MSCCL_H_
#define CHAKRA_EXPORT_GENERATE_MSCCL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/run/workload_report.pb.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

// What a step does, in this order.
struct MscclOperation {
  absl::string_view type;
  bool receives = false;
  bool computes = false;
  bool sends = false;
};

struct MscclStep {
  MscclOperation operation;
  // Chunks that it moves.
  int64_t count = 0;
  // The thread block and its step that this one waits for; -1 for none.
  int64_t waits_for_block = -1;
  int64_t waits_for_step = -1;
};

struct MscclBlock {
  // The GPUs that it sends to and receives from; -1 for none.
  int64_t send = -1;
  int64_t receive = -1;
  int64_t channel = 0;
  std::vector<MscclStep> steps;
};

struct MscclAlgorithm {
  // Where it came from, for messages.
  std::string source;
  // Sizes are then one rank's shard of the buffer.
  bool is_all_gather = false;
  // Into how many chunks the buffer of a rank is divided.
  int64_t chunks = 0;
  // Thread blocks by GPU.
  std::vector<std::vector<MscclBlock>> gpus;
};

// Errors name source and offset. Other attributes than those above are ignored; other elements, text,
// CDATA and declarations of types are refused.
absl::StatusOr<MscclAlgorithm> ParseMsccl(absl::string_view xml, absl::string_view source);

// Returns the nodes of a GPU for a collective of so many bytes, in ASTRA-sim's meaning. InvalidArgument
// when the bytes are no multiple of the chunks, or a step waits for one that is not there or does
// nothing.
absl::StatusOr<std::vector<ChakraProtoMsg::Node>> MscclNodes(const MscclAlgorithm& algorithm,
                                                             int64_t gpu, int64_t bytes);

// Reads the XML and writes PREFIX.<gpu>.et.
absl::StatusOr<ChakraWorkloadReport> WriteMscclTraces(FileSystem& file_system,
                                                      const std::string& path,
                                                      const InputFileOptions& input, int64_t bytes,
                                                      const std::string& prefix);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_MSCCL_H_
