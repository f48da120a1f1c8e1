// SPDX-License-Identifier: Apache-2.0
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
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/plane_metadata_merger.h"

namespace meridian {

// Returns the message with what `write(field, output)` makes of each of its fields. `message` lies
// within the file that begins at `origin`, and `depth` levels may nest below it.
template <typename Write>
absl::StatusOr<std::string> RewriteFields(absl::string_view message, const char* origin, int depth,
                                          Write write) {
  std::string rewritten;
  StringOutput output(&rewritten);
  WireReader reader(message, origin, depth);
  WireField field;
  while (reader.Next(&field)) write(field, &output);
  RETURN_IF_ERROR(reader.status());
  return rewritten;
}

// What became of a node's programs that had to give up their id; others are not in it.
struct RenumberedPrograms {
  // New ids, by old id.
  absl::flat_hash_map<uint64_t, uint64_t> ids;
  // New names, by old name: "jit_step(5)" -> "jit_step(9)".
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
  // The id of a program in the table.
  struct Place {
    uint64_t id = 0;
    // Whether the table has it already.
    bool is_known = false;
  };
  // Returns the program's own id unless another program has it, else a free one.
  Place PlaceProgram(uint64_t program_id, absl::uint128 content);
  uint64_t FreeId() const;

  XPlaneProto plane_;
  PlaneMetadataMerger merger_;
  // The hash of the program that has each id, and the id of each program, by its hash, that had to
  // give up its own.
  absl::flat_hash_map<uint64_t, absl::uint128> content_of_id_;
  absl::flat_hash_map<absl::uint128, uint64_t> new_id_of_content_;
};

// Replaces the program ids and names in the metadata of one of the node's planes.
void RenumberMetadata(const RenumberedPrograms& programs, XPlaneProto* plane);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_PROGRAM_TABLE_H_
