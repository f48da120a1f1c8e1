// SPDX-License-Identifier: Apache-2.0
// Which ranks a process group has. Chakra nodes name a group (`pg_name`); its ranks stand in a file
// beside the traces, as ASTRA-sim's --comm-group-configuration wants it,
//
//   {"1": [0, 1], "2": [2, 3]}
//
// or in a METADATA node of the traces themselves, as PyTorch writes its process groups.
#ifndef CHAKRA_EXPORT_ET_COMM_GROUPS_H_
#define CHAKRA_EXPORT_ET_COMM_GROUPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace ChakraProtoMsg {
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

// Orders names that are numbers by their values, "2" before "10".
struct GroupNameLess {
  bool operator()(const std::string& a, const std::string& b) const;
};

// Ranks by the name of their group, in the order that rings follow.
using CommGroups = std::map<std::string, std::vector<int64_t>, GroupNameLess>;

// True for the names that mean all ranks: "" and "0".
bool IsWorldGroup(absl::string_view name);

// Returns "3" for "3.0", which simulators read as 3, too; any other name as it is.
std::string PlainGroupName(absl::string_view name);

// Read the groups of a file, with plain names. Errors name `source` or the path, the offset and the
// reason. A group is refused that has no rank, a negative one or one twice; so is a name that comes
// twice.
absl::StatusOr<CommGroups> ParseCommGroups(absl::string_view json, absl::string_view source);
absl::StatusOr<CommGroups> ReadCommGroups(FileSystem& file_system, const std::string& path);

// Returns "PREFIX.comm_groups.json", where the groups of the traces PREFIX.<rank>.et stand.
std::string CommGroupsPath(absl::string_view prefix);

// Returns that path where there is such a file, else "".
std::string CommGroupsBeside(FileSystem& file_system, absl::string_view prefix);

// Returns the groups of the file `path` or, without a path, of that beside the prefix; none where there
// is no such file.
absl::StatusOr<CommGroups> FindCommGroups(FileSystem& file_system, std::string path,
                                          absl::string_view prefix);

// Returns the text of a file that ParseCommGroups reads back.
std::string CommGroupsJson(const CommGroups& groups);

// Returns the groups that a METADATA node lists; none when its inputs are not such a table. A group
// without ranks is one of all ranks and left out.
absl::StatusOr<CommGroups> ProcessGroupsOf(const ChakraProtoMsg::Node& metadata_node);

// Returns what `inputs.values` of a METADATA node says for these groups, as ASTRA-sim parses it:
// ['[{"pg_name": "1", "ranks": [0, 1]}]'].
std::string ProcessGroupTable(const CommGroups& groups);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_COMM_GROUPS_H_
