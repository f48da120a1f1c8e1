// SPDX-License-Identifier: Apache-2.0
// Chakra nodes for tests, with the attributes as ASTRA-sim reads them.
#ifndef CHAKRA_EXPORT_TESTING_ET_NODES_H_
#define CHAKRA_EXPORT_TESTING_ET_NODES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

using EtIds = std::vector<uint64_t>;

// Named "n<id>"; the ids of `deps` become data dependencies.
ChakraProtoMsg::Node CompNode(uint64_t id, uint64_t duration_micros, const EtIds& deps = {});
ChakraProtoMsg::Node CollectiveNode(uint64_t id, ChakraProtoMsg::CollectiveCommType type,
                                    int64_t bytes, const EtIds& deps = {},
                                    absl::string_view pg_name = "");
ChakraProtoMsg::Node SendNode(uint64_t id, int64_t src, int64_t dst, int64_t bytes, int64_t tag = 0,
                              const EtIds& deps = {});
ChakraProtoMsg::Node RecvNode(uint64_t id, int64_t src, int64_t dst, int64_t bytes, int64_t tag = 0,
                              const EtIds& deps = {});

// Returns the bytes of a trace: metadata with a version, then the nodes.
std::string EncodeEt(const std::vector<ChakraProtoMsg::Node>& nodes);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_TESTING_ET_NODES_H_
