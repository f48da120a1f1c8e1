// Any bytes as a Chakra trace, its attributes and the groups of its metadata nodes.
#include "absl/status/statusor.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_reader.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  absl::StatusOr<EtReader> reader = EtReader::OverBytes(bytes, "fuzz.et");
  if (!reader.ok()) return absl::OkStatus();
  reader
      ->ForEachNode([](const ChakraProtoMsg::Node& node) {
        ProcessGroupsOf(node).IgnoreError();
        for (const ChakraProtoMsg::AttributeProto& attribute : node.attr()) {
          GetIntAttribute(node.attr(), attribute.name()).IgnoreError();
          GetBoolAttribute(node.attr(), attribute.name()).IgnoreError();
          GetStringAttribute(node.attr(), attribute.name()).IgnoreError();
          GetBoolListAttribute(node.attr(), attribute.name()).IgnoreError();
        }
        return absl::OkStatus();
      })
      .IgnoreError();
  return absl::OkStatus();
}
