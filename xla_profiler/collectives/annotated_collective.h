// Collectives of profiles that hold no HLO, by what XLA's detailed annotations say about a kernel:
//
//   hlo_op=all-reduce.2  replica_groups={{0;1};{2;3}}  shape=f32[1024]     (";" stands for ",")
//
// Only a kernel with replica_groups counts. The annotations do not name the kind; NCCL and RCCL
// write it as a whole word into the kernel's symbol, ncclDevKernel_AllReduce_Sum_f32_RING_LL(...).
// Groups hold logical ids, taken for device ids since there is no device assignment.
#ifndef XLA_PROFILER_COLLECTIVES_ANNOTATED_COLLECTIVE_H_
#define XLA_PROFILER_COLLECTIVES_ANNOTATED_COLLECTIVE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/collectives/collective_collector.h"
#include "xla_profiler/hlo/replica_groups.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

// Returns the kind of a communication kernel by the function in its symbol; nullopt for other
// kernels. Send and receive is how both all-to-all and permute run: with groups it is the former.
std::optional<CollectiveKind> KindOfKernel(absl::string_view kernel_name, bool has_groups);

// Parses "{{0;1};{2;3}}", with commas or semicolons, and the iota forms "[2,2]<=[4]" and
// "[2,2]<=[2,2]T(1,0)". InvalidArgument for anything else.
absl::StatusOr<IdGroups> ParseReplicaGroups(absl::string_view text);

// Parses "f32[4,8]" or "(f32[4], bf16[2,2])", with commas or semicolons, layouts ignored, into its
// size in bytes. InvalidArgument for anything else.
absl::StatusOr<int64_t> ParseShapeBytes(absl::string_view text);

// Remembers the ops it has found.
class AnnotatedCollectives {
 public:
  // Returns the op of a kernel that is annotated as a collective; nullopt for others. Annotations
  // that cannot be read are counted as unresolved.
  std::optional<uint32_t> FindOp(const XEventVisitor& event, CollectiveCollector* collector);

 private:
  // By module, instruction.
  absl::flat_hash_map<std::pair<std::string, std::string>, std::optional<uint32_t>> ops_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_ANNOTATED_COLLECTIVE_H_
