// SPDX-License-Identifier: Apache-2.0
// The rules that can be checked on one node of a Chakra trace by itself.
#ifndef CHAKRA_EXPORT_INSPECT_NODE_CHECK_H_
#define CHAKRA_EXPORT_INSPECT_NODE_CHECK_H_

#include <cstdint>
#include <optional>

#include "chakra_export/et/comm_groups.h"
#include "chakra_export/inspect/et_check.h"

namespace ChakraProtoMsg {
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

// What a node is checked against.
struct NodeCheckContext {
  int64_t rank = 0;
  // How many ranks the workload has; absent when that is not known.
  std::optional<int64_t> rank_count;
  // The groups whose ranks are known.
  const CommGroups* groups = nullptr;
};

// Adds what is wrong with the node, whose record begins at `offset` of the inflated file.
void CheckNode(const ChakraProtoMsg::Node& node, uint64_t offset, const NodeCheckContext& context,
               EtProblems* problems);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_NODE_CHECK_H_
