#include "chakra_export/graph/testing/random_graph.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

// What a node is before it has an index.
struct Draft {
  ExecutionNode node;
  int64_t rank = 0;
  std::string name;
};

class Generator {
 public:
  Generator(const RandomGraphOptions& options, std::mt19937_64& random)
      : options_(options), random_(random) {}

  ExecutionGraph Run() {
    AddResources();
    AddCollectivesAndMessages();
    for (int64_t rank = 0; rank < options_.ranks; ++rank) AddComputation(rank);
    std::vector<size_t> order(drafts_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    for (const size_t i : order) {
      drafts_[i].node.name = drafts_[i].name;
      drafts_[i].node.duration_ns = Below(options_.max_duration_ns + 1);
      builder_.AddNode(drafts_[i].node);
    }
    AddEdges(order);
    return std::move(builder_).Build();
  }

 private:
  int64_t Below(int64_t end) { return static_cast<int64_t>(random_() % end); }

  void AddResources() {
    for (int64_t rank = 0; rank < options_.ranks; ++rank) {
      for (int64_t i = 0; i < options_.resources; ++i) {
        const ResourceKind kind = i % 2 == 0 ? ResourceKind::kStream : ResourceKind::kHostThread;
        builder_.AddResource({rank, kind, i});
      }
      builder_.AddResource({rank, ResourceKind::kCommunication, 0});
    }
  }

  ResourceIndex CommunicationResource(int64_t rank) {
    return builder_.AddResource({rank, ResourceKind::kCommunication, 0});
  }

  ExecutionNode CommunicationNode(int64_t rank, uint64_t id, ChakraProtoMsg::NodeType type) {
    ExecutionNode node;
    node.id = id;
    node.type = type;
    node.resource = CommunicationResource(rank);
    node.communication = Communication();
    return node;
  }

  // Communication has the ids 1000, 2000, ...; computation comes between.
  void AddCollectivesAndMessages() {
    std::vector<int64_t> all(options_.ranks);
    std::iota(all.begin(), all.end(), int64_t{0});
    const GroupIndex world = builder_.AddGroup({"", all});
    const GroupIndex pair = options_.ranks > 2 ? builder_.AddGroup({"1", {1, 0}}) : world;
    uint64_t step = 0;
    for (int i = 0; i < options_.messages; ++i) {
      const int64_t source = Below(options_.ranks);
      const int64_t target = (source + 1 + Below(options_.ranks - 1)) % options_.ranks;
      const int64_t bytes = Below(100);
      step += 1000;
      for (const bool sends : {true, false}) {
        const int64_t rank = sends ? source : target;
        ExecutionNode node = CommunicationNode(
            rank, step, sends ? ChakraProtoMsg::COMM_SEND_NODE : ChakraProtoMsg::COMM_RECV_NODE);
        node.communication->source = source;
        node.communication->target = target;
        node.communication->bytes = bytes;
        drafts_.push_back({node, rank, absl::StrCat(sends ? "send" : "receive", i)});
      }
    }
    for (int i = 0; i < options_.collectives; ++i) {
      step += 1000;
      const GroupIndex group = Below(2) == 0 ? world : pair;
      const int64_t members = group == world ? options_.ranks : 2;
      for (int64_t rank = 0; rank < members; ++rank) {
        ExecutionNode node = CommunicationNode(rank, step, ChakraProtoMsg::COMM_COLL_NODE);
        node.communication->group = group;
        node.communication->bytes = i;
        drafts_.push_back({node, rank, absl::StrCat("collective", i)});
      }
    }
    last_step_ = step;
  }

  void AddComputation(int64_t rank) {
    for (int i = 0; i < options_.nodes; ++i) {
      ExecutionNode node;
      // Never a multiple of 1000, and no two alike.
      node.id = static_cast<uint64_t>(Below(static_cast<int64_t>(last_step_ / 1000) + 1)) * 1000 +
                1 + static_cast<uint64_t>(i);
      const ResourceKind kinds[] = {ResourceKind::kStream, ResourceKind::kHostThread};
      const int64_t number = Below(options_.resources);
      node.resource = builder_.AddResource({rank, kinds[number % 2], number});
      drafts_.push_back({node, rank, absl::StrCat("n", i)});
    }
  }

  void AddEdges(const std::vector<size_t>& order) {
    std::bernoulli_distribution has_edge(options_.edge_probability);
    for (NodeIndex node = 0; node < order.size(); ++node) {
      for (NodeIndex source = 0; source < order.size(); ++source) {
        const Draft& to = drafts_[order[node]];
        const Draft& from = drafts_[order[source]];
        if (to.rank != from.rank || from.node.id >= to.node.id) continue;
        const bool both_communicate =
            to.node.communication.has_value() && from.node.communication.has_value();
        if (!both_communicate && !has_edge(random_)) continue;
        builder_.AddDependency(node, source, kEdgeKinds[Below(kEdgeKinds.size())]);
      }
    }
  }

  const RandomGraphOptions& options_;
  std::mt19937_64& random_;
  ExecutionGraphBuilder builder_;
  std::vector<Draft> drafts_;
  uint64_t last_step_ = 0;
};

}  // namespace

ExecutionGraph RandomExecutionGraph(const RandomGraphOptions& options, std::mt19937_64& random) {
  return Generator(options, random).Run();
}

}  // namespace meridian
