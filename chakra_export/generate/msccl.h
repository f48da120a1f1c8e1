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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/run/workload_report.pb.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

struct XmlElement {
  size_t offset = 0;
  absl::string_view name;
  std::vector<std::pair<absl::string_view, absl::string_view>> attributes;
  std::vector<XmlElement> children;
};

struct MscclAlgorithm {
  // Where it came from, for messages.
  std::string source;
  // Absent for MSCCL's "custom". Sizes of an all-gather are one rank's shard of the buffer.
  std::optional<CollectiveKind> kind;
  // Into how many chunks the buffer of a rank is divided.
  int64_t chunks = 0;
  std::vector<XmlElement> gpus;
};

// The result refers to the text. Errors name source and offset. Elements beside those above, text between
// them and what would need a definition (entities, types) are refused; other attributes are ignored.
absl::StatusOr<MscclAlgorithm> ParseMsccl(absl::string_view xml, absl::string_view source);

// Returns the nodes of a GPU for a collective of so many bytes, in ASTRA-sim's meaning. InvalidArgument
// when the bytes are no multiple of the chunks, for values that have no meaning, and when a step waits for
// one that is not there or is a nop, or reads or writes chunks that its GPU's buffers do not have.
absl::StatusOr<std::vector<ChakraProtoMsg::Node>> MscclNodes(const MscclAlgorithm& algorithm,
                                                             int64_t gpu, int64_t bytes);

// Reads the XML and writes PREFIX.<gpu>.et, unless chakra_inspect would find an error in them.
absl::StatusOr<ChakraWorkloadReport> WriteMscclTraces(FileSystem& file_system,
                                                      const std::string& path,
                                                      const InputFileOptions& input, int64_t bytes,
                                                      const std::string& prefix);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_MSCCL_H_
