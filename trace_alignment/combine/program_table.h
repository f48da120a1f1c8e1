// The programs of several nodes in one `/host:metadata` plane.
//
// A program is an entry of event metadata, "jit_step(5)"; kernels and thunks name the 5 in their
// stat `program_id`. Nodes number their programs as they compile them, so one id may stand for two
// programs: the later gets another, in its entry, its HLO module and its node's events. The same
// program on two nodes is kept once.
#ifndef TRACE_ALIGNMENT_COMBINE_PROGRAM_TABLE_H_
#define TRACE_ALIGNMENT_COMBINE_PROGRAM_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/plane_metadata_merger.h"

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
  absl::StatusOr<RenumberedPrograms> AddNode(XPlaneProto metadata);

  // The plane, without the nodes' own stats and lines. Without event metadata when no node had
  // programs.
  const XPlaneProto& plane() const { return plane_; }

 private:
  // Where a program is to be found.
  struct Place {
    uint64_t id = 0;
    // Whether it is there already.
    bool is_known = false;
  };
  // Its own id unless another program has it.
  Place PlaceProgram(uint64_t program_id, uint64_t content);
  uint64_t FreeId() const;

  XPlaneProto plane_;
  PlaneMetadataMerger merger_;
  // What the programs of an id are, and the id of each content that was (first) given another.
  absl::flat_hash_map<uint64_t, uint64_t> content_of_id_;
  absl::flat_hash_map<uint64_t, uint64_t> new_id_of_content_;
};

// Replaces the program ids and names in the metadata of one of the node's planes.
void RenumberMetadata(const RenumberedPrograms& programs, XPlaneProto* plane);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_PROGRAM_TABLE_H_
