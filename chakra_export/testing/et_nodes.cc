#include "chakra_export/testing/et_nodes.h"

#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_workload_writer.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

Node MakeNode(uint64_t id, ChakraProtoMsg::NodeType type, const EtIds& deps) {
  Node node;
  node.set_id(id);
  node.set_name(absl::StrCat("n", id));
  node.set_type(type);
  for (const uint64_t dep : deps) node.add_data_deps(dep);
  SetBoolAttribute(kIsCpuOpAttribute, false, node.mutable_attr());
  return node;
}

Node PeerNode(uint64_t id, ChakraProtoMsg::NodeType type, int64_t src, int64_t dst, int64_t bytes,
              int64_t tag, const EtIds& deps) {
  Node node = MakeNode(id, type, deps);
  SetIntAttribute(kCommSrcAttribute, src, node.mutable_attr());
  SetIntAttribute(kCommDstAttribute, dst, node.mutable_attr());
  SetIntAttribute(kCommSizeAttribute, bytes, node.mutable_attr());
  SetIntAttribute(kCommTagAttribute, tag, node.mutable_attr());
  return node;
}

}  // namespace

Node CompNode(uint64_t id, uint64_t duration_micros, const EtIds& deps) {
  Node node = MakeNode(id, ChakraProtoMsg::COMP_NODE, deps);
  node.set_duration_micros(duration_micros);
  return node;
}

Node CollectiveNode(uint64_t id, ChakraProtoMsg::CollectiveCommType type, int64_t bytes,
                    const EtIds& deps, absl::string_view pg_name) {
  Node node = MakeNode(id, ChakraProtoMsg::COMM_COLL_NODE, deps);
  SetIntAttribute(kCommTypeAttribute, type, node.mutable_attr());
  SetIntAttribute(kCommSizeAttribute, bytes, node.mutable_attr());
  if (!pg_name.empty()) SetStringAttribute(kPgNameAttribute, pg_name, node.mutable_attr());
  return node;
}

Node SendNode(uint64_t id, int64_t src, int64_t dst, int64_t bytes, int64_t tag,
              const EtIds& deps) {
  return PeerNode(id, ChakraProtoMsg::COMM_SEND_NODE, src, dst, bytes, tag, deps);
}

Node RecvNode(uint64_t id, int64_t src, int64_t dst, int64_t bytes, int64_t tag,
              const EtIds& deps) {
  return PeerNode(id, ChakraProtoMsg::COMM_RECV_NODE, src, dst, bytes, tag, deps);
}

std::string EncodeEt(const std::vector<Node>& nodes) {
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(kEtSchemaVersion);
  std::string bytes;
  AppendEtRecord(metadata, &bytes);
  for (const Node& node : nodes) AppendEtRecord(node, &bytes);
  return bytes;
}

}  // namespace meridian
