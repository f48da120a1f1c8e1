#include "chakra_export/testing/et_workload.h"

#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/testing/et_nodes.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

constexpr uint64_t kStartMicros = 1794701451000000;
constexpr int kLayers = 3;

void Place(uint64_t start_micros, int64_t stream, Node* node) {
  node->set_start_time_micros(kStartMicros + start_micros);
  SetIntAttribute(kStreamAttribute, stream, node->mutable_attr());
}

// Layer after layer on stream 7; the all-reduce of a layer on stream 20, beside the next layer.
std::vector<Node> Rank(int64_t rank) {
  std::vector<Node> nodes;
  uint64_t id = 1;
  uint64_t before = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    const uint64_t start_micros = 100 * layer + 10 * rank;
    Node matmul = CompNode(id, 80, before == 0 ? EtIds() : EtIds{before});
    matmul.set_name(absl::StrCat("secret_model/layer", layer, "/attention_matmul"));
    matmul.mutable_inputs()->set_values("[[12, 13]]");
    matmul.mutable_inputs()->set_shapes("[[4096, 11008], [11008]]");
    matmul.mutable_inputs()->set_types("['Tensor(bfloat16)', 'Tensor(float)']");
    matmul.mutable_outputs()->set_shapes("[[4096]]");
    SetIntAttribute(kNumOpsAttribute, 90177536, matmul.mutable_attr());
    SetStringAttribute(kOpSchemaAttribute, "aten::proprietary(Tensor x)", matmul.mutable_attr());
    Place(start_micros, 7, &matmul);
    nodes.push_back(matmul);
    before = id++;

    Node all_reduce = CollectiveNode(id, ChakraProtoMsg::ALL_REDUCE, 8 << 20, {before});
    all_reduce.set_name("secret_model/gradients_all_reduce");
    all_reduce.set_duration_micros(50);
    if (layer > 0) all_reduce.add_data_deps(id - 2);
    Place(start_micros + 80, 20, &all_reduce);
    nodes.push_back(all_reduce);
    ++id;
  }
  Node message =
      rank == 0 ? SendNode(id, 0, 1, 65536, 3, {id - 1}) : RecvNode(id, 0, 1, 65536, 3, {id - 1});
  message.set_name("pipeline_handover");
  message.set_duration_micros(5);
  Place(350 + 10 * rank, 21, &message);
  nodes.push_back(message);
  return nodes;
}

}  // namespace

EtFiles WriteWorkload(const TemporaryDirectory& directory, const std::string& name,
                      const std::vector<std::vector<Node>>& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    directory.Write(absl::StrCat(name, ".", rank, ".et"), EncodeEt(ranks[rank]));
  }
  const absl::StatusOr<EtFiles> files = FindEtFiles(FileSystem::Posix(), directory.PathOf(name));
  MERIDIAN_CHECK(files.ok());
  return *files;
}

std::vector<std::vector<Node>> TrainingStep() { return {Rank(0), Rank(1)}; }

std::vector<Node> ReadNodes(const std::string& path) {
  absl::StatusOr<EtReader> reader = EtReader::Open(FileSystem::Posix(), path);
  MERIDIAN_CHECK(reader.ok());
  std::vector<Node> nodes;
  Node node;
  while (true) {
    const absl::StatusOr<bool> found = reader->Next(&node);
    MERIDIAN_CHECK(found.ok());
    if (!*found) return nodes;
    nodes.push_back(node);
  }
}

}  // namespace meridian
