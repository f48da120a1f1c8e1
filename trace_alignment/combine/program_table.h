// The programs of several nodes in one `/host:metadata` plane.
//
// A program is an entry of event metadata whose id is the program's id; kernels and thunks name
// that id in their stat `program_id`. Nodes number their programs as they compile them, so one id
// may stand for two programs: the later gets another, in its entry, its HLO module and its node's
// events. The same program on two nodes is kept once.
#ifndef TRACE_ALIGNMENT_COMBINE_PROGRAM_TABLE_H_
#define TRACE_ALIGNMENT_COMBINE_PROGRAM_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "xla_profiler/xplane/plane_metadata_merger.h"
#include "xla_profiler/xplane/xplane_builder.h"

namespace meridian {

// What became of a node's programs that had to give up their id; others are not in it.
struct RenumberedPrograms {
  absl::flat_hash_map<uint64_t, uint64_t> ids;
  // By old name, e.g. "jit_step(5)" -> "jit_step(9)".
  absl::flat_hash_map<std::string, std::string> names;

  bool empty() const { return ids.empty(); }
};

class ProgramTable {
 public:
  ProgramTable();

  // Adds a node's `/host:metadata`, without lines. InvalidArgument when it uses ids that it does
  // not define.
  absl::Status AddNode(const XPlaneProto& metadata);

  // By node, in the order they were added. No node is added after.
  std::vector<RenumberedPrograms> Finish();

  // Serialized, without lines; whole after Finish. Empty when no node had programs.
  std::string Serialize() const;

 private:
  struct Renumbered {
    size_t node = 0;
    int64_t old_id = 0;
    int64_t new_id = 0;
  };

  XPlaneProto plane_;
  PlaneMetadataMerger merger_;
  size_t nodes_ = 0;
  std::vector<Renumbered> renumbered_;
};

// Replaces the program ids and names in the metadata of one of the node's planes.
void RenumberMetadata(const RenumberedPrograms& programs, XPlaneProto* plane);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_PROGRAM_TABLE_H_
