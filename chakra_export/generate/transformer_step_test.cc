#include "chakra_export/generate/transformer_step.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chakra_export/generate/testing/tiny_transformer.h"
#include "chakra_export/generate/testing/workload_check.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

ExecutionGraph GraphOf(const TransformerOptions& options) {
  const auto workload = MakeTransformerStep(options);
  EXPECT_OK(workload.status());
  absl::StatusOr<ExecutionGraph> graph = BuildWorkloadGraph(**workload);
  EXPECT_OK(graph.status());
  return *std::move(graph);
}

void ExpectRefused(const TransformerOptions& options, const std::string& message) {
  const absl::Status status = MakeTransformerStep(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

// Nodes of a rank by kind, bytes and group or peer.
using Traffic = std::map<std::tuple<std::string, int64_t, std::string>, int>;

Traffic TrafficOf(const ExecutionGraph& graph, int64_t rank) {
  Traffic traffic;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const Communication* communication = graph.communication(node);
    if (communication == nullptr || graph.rank(node) != rank) continue;
    std::string with;
    if (graph.type(node) == ChakraProtoMsg::COMM_COLL_NODE) {
      with = graph.groups()[communication->group].name;
    } else {
      const bool sends = communication->source == rank;
      with = absl::StrCat(sends ? communication->target : communication->source);
    }
    ++traffic[{graph.CommunicationKind(node), communication->bytes, with}];
  }
  return traffic;
}

int64_t ReplayNs(const ExecutionGraph& graph) {
  const CommunicationMatch match(graph);
  EXPECT_THAT(match.problems(), IsEmpty());
  ReplayOptions options;
  options.resources = ReplayResources::kSimulator;
  options.send_mode = SendMode::kEager;
  const absl::StatusOr<GraphReplay> eager = ReplayGraph(graph, match, options);
  EXPECT_OK(eager.status());
  // NCCL's way comes to the same, since receives are posted early.
  const absl::StatusOr<GraphReplay> rendezvous = ReplayGraph(graph, match);
  EXPECT_OK(rendezvous.status());
  EXPECT_EQ(eager->makespan_ns, rendezvous->makespan_ns);
  return eager->makespan_ns;
}

NodeIndex FindNode(const ExecutionGraph& graph, int64_t rank, absl::string_view name,
                   int occurrence = 0) {
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.rank(node) == rank && graph.name(node) == name && occurrence-- == 0) return node;
  }
  ADD_FAILURE() << "rank " << rank << " has no " << name;
  return 0;
}

// Activations are 16 * 64 * 2 = 2048 bytes, the loss 12 * 16 = 192. A layer has 12 * 64 * 64 / 2 =
// 24576 parameters on a rank, embedding and head 128 * 64 / 2 = 4096 each; two bytes per gradient.
// Two layers and three microbatches make 2 * 3 * 4 all-reduces, embedding and head one each.
TEST(TransformerStepTest, CommunicatesAsMegatronDoes) {
  const ExecutionGraph graph = GraphOf(TinyTransformer());
  EXPECT_THAT(TrafficOf(graph, 0),
              UnorderedElementsAre(Pair(std::make_tuple("ALL_REDUCE", 2048, "1"), 24 + 3),
                                   Pair(std::make_tuple("ALL_REDUCE", 49152, "5"), 2),
                                   Pair(std::make_tuple("ALL_REDUCE", 8192, "5"), 1),
                                   Pair(std::make_tuple("SEND", 2048, "4"), 3),
                                   Pair(std::make_tuple("RECV", 2048, "4"), 3)));
  EXPECT_THAT(TrafficOf(graph, 7),
              UnorderedElementsAre(Pair(std::make_tuple("ALL_REDUCE", 2048, "4"), 24 + 3),
                                   Pair(std::make_tuple("ALL_REDUCE", 192, "4"), 3),
                                   Pair(std::make_tuple("ALL_REDUCE", 49152, "8"), 2),
                                   Pair(std::make_tuple("ALL_REDUCE", 8192, "8"), 1),
                                   Pair(std::make_tuple("SEND", 2048, "3"), 3),
                                   Pair(std::make_tuple("RECV", 2048, "3"), 3)));
}

// A rank of two has half of the 2048 bytes. Of each layer and microbatch attention and MLP gather
// tokens before, and of the inputs again in the backward pass, and scatter sums behind, forward and
// backward: 2 * 3 * 6 and 2 * 3 * 4. The embedding scatters its sum and gathers its gradient; the
// head gathers twice and scatters its gradient.
TEST(TransformerStepTest, SequenceParallelRanksShareTheTokens) {
  TransformerOptions options = TinyTransformer();
  options.sequence_parallel = true;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(TrafficOf(graph, 0),
              UnorderedElementsAre(Pair(std::make_tuple("ALL_GATHER", 1024, "1"), 36 + 3),
                                   Pair(std::make_tuple("REDUCE_SCATTER", 2048, "1"), 24 + 3),
                                   Pair(std::make_tuple("ALL_REDUCE", 49152, "5"), 2),
                                   Pair(std::make_tuple("ALL_REDUCE", 8192, "5"), 1),
                                   Pair(std::make_tuple("SEND", 1024, "4"), 3),
                                   Pair(std::make_tuple("RECV", 1024, "4"), 3)));
  const Traffic last = TrafficOf(graph, 7);
  EXPECT_EQ(last.at(std::make_tuple("ALL_GATHER", 1024, "4")), 36 + 2 * 3);
  EXPECT_EQ(last.at(std::make_tuple("REDUCE_SCATTER", 2048, "4")), 24 + 3);
  EXPECT_EQ(last.at(std::make_tuple("ALL_REDUCE", 192, "4")), 3);
  EXPECT_GT(ReplayNs(graph), 0);

  options.tensor_parallel = 1;
  ExpectRefused(options, "--sequence_parallel divides the tokens");
  options.tensor_parallel = 2;
  options.sequence = 15;
  ExpectRefused(options, "--sequence=15 does not divide");
}

int64_t ComputedNs(const ExecutionGraph& graph, int64_t rank) {
  int64_t sum_ns = 0;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const bool counts = graph.rank(node) == rank && graph.communication(node) == nullptr &&
                        graph.name(node) != "optimizer";
    if (counts) sum_ns += graph.duration_ns(node);
  }
  return sum_ns;
}

// With four microbatches on two stages the ramps are one pass of a stage out of five, with two chunks
// half of one. Each chunk but the last sends activations, each but the first gradients.
TEST(TransformerStepTest, InterleavedStagesHaveShorterRamps) {
  TransformerOptions options = TinyTransformer();
  options.tensor_parallel = options.data_parallel = 1;
  options.vocabulary = 0;
  options.batch = options.microbatches = 4;
  const ExecutionGraph plain = GraphOf(options);
  options.chunks = 2;
  const ExecutionGraph interleaved = GraphOf(options);
  EXPECT_EQ(ComputedNs(plain, 0), ComputedNs(interleaved, 0));
  const double pass_ns = static_cast<double>(ComputedNs(plain, 0)) / 4;
  EXPECT_NEAR(static_cast<double>(ReplayNs(plain) - ReplayNs(interleaved)), pass_ns / 2,
              pass_ns / 100);
  const Traffic first = TrafficOf(interleaved, 0);
  const auto bytes = std::get<1>(first.begin()->first);
  EXPECT_THAT(first, UnorderedElementsAre(Pair(std::make_tuple("SEND", bytes, "1"), 8 + 4),
                                          Pair(std::make_tuple("RECV", bytes, "1"), 4 + 8)));
  EXPECT_EQ(interleaved.name(FindNode(interleaved, 1, "layer1.mlp.forward")), "layer1.mlp.forward");
  EXPECT_EQ(interleaved.name(FindNode(interleaved, 0, "layer2.mlp.forward")), "layer2.mlp.forward");

  options.microbatches = 1;
  ExpectRefused(options, "--microbatches=1 does not divide by --pp=2");
  options.microbatches = 4;
  options.chunks = 4;
  ExpectRefused(options, "does not divide by --pp=2 times --chunks=4");
  options.chunks = 2;
  options.schedule = PipelineSchedule::kGpipe;
  ExpectRefused(options, "--chunks interleaves stages of 1f1b");
}

// Halves of 24576 and 4096 parameters.
TEST(TransformerStepTest, ZeroScattersGradientsAndGathersParameters) {
  TransformerOptions options = TinyTransformer();
  options.zero = true;
  options.tensor_parallel = 1;
  options.pipeline_parallel = 1;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(TrafficOf(graph, 1),
              UnorderedElementsAre(Pair(std::make_tuple("REDUCE_SCATTER", 2 * 49152, ""), 4),
                                   Pair(std::make_tuple("ALL_GATHER", 49152, ""), 4),
                                   Pair(std::make_tuple("REDUCE_SCATTER", 2 * 8192, ""), 2),
                                   Pair(std::make_tuple("ALL_GATHER", 8192, ""), 2)));
}

// 12 * 9 * 9 = 972 parameters for five: 195 for each, which is 975 in all.
TEST(TransformerStepTest, ShardsThatDoNotComeOutEvenAreFilledUp) {
  TransformerOptions options;
  options.zero = true;
  options.data_parallel = 5;
  options.layers = 1;
  options.hidden = 9;
  options.sequence = 8;
  options.vocabulary = 0;
  options.batch = 5;
  options.microbatches = 1;
  EXPECT_THAT(TrafficOf(GraphOf(options), 0),
              UnorderedElementsAre(Pair(std::make_tuple("REDUCE_SCATTER", 2 * 975, ""), 1),
                                   Pair(std::make_tuple("ALL_GATHER", 2 * 195, ""), 1)));
}

// No copy keeps a layer: gathered forward and backward of each of three microbatches, and scattered
// after each; the optimizer waits for all of these, and nothing is gathered behind it.
TEST(TransformerStepTest, ShardedParametersAreGatheredForEachUse) {
  TransformerOptions options = TinyTransformer();
  options.sharded = true;
  options.tensor_parallel = 1;
  options.pipeline_parallel = 1;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(TrafficOf(graph, 1),
              UnorderedElementsAre(Pair(std::make_tuple("ALL_GATHER", 49152, ""), 4 * 2 * 3),
                                   Pair(std::make_tuple("REDUCE_SCATTER", 2 * 49152, ""), 4 * 3),
                                   Pair(std::make_tuple("ALL_GATHER", 8192, ""), 2 * 2 * 3),
                                   Pair(std::make_tuple("REDUCE_SCATTER", 2 * 8192, ""), 2 * 3)));
  // The last of a chain.
  EXPECT_THAT(graph.dependencies(FindNode(graph, 0, "optimizer")),
              ElementsAre(FindNode(graph, 0, "embedding.gradients.reduce-scatter", 2)));
  // Layer 1 is gathered while layer 0 is computed, so behind the embedding.
  EXPECT_THAT(graph.dependencies(FindNode(graph, 0, "layer1.parameters.all-gather")),
              Contains(FindNode(graph, 0, "embedding.forward")));
  EXPECT_THAT(graph.dependencies(FindNode(graph, 0, "layer1.attention.forward")),
              UnorderedElementsAre(FindNode(graph, 0, "layer0.mlp.forward"),
                                   FindNode(graph, 0, "layer1.parameters.all-gather")));
}

// 8 experts on 2 copies; each token goes to 2: 2 x 16 tokens x 64 numbers of 2 bytes. Only attention's
// 4 h^2 parameters of a layer are summed over the copies.
TEST(TransformerStepTest, TokensGoToTheirExpertsAndBack) {
  TransformerOptions options = TinyTransformer();
  options.experts = 8;
  options.tensor_parallel = 1;
  options.pipeline_parallel = 1;
  options.vocabulary = 0;
  constexpr int64_t tokens = 16;
  EXPECT_THAT(
      TrafficOf(GraphOf(options), 1),
      UnorderedElementsAre(
          Pair(std::make_tuple("ALL_TO_ALL", 2 * 2 * tokens * options.hidden, ""), 4 * 4 * 3),
          Pair(std::make_tuple("ALL_REDUCE", 2 * 4 * options.hidden * options.hidden, ""), 4)));
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(options));
  EXPECT_EQ(cost.mlp.operations, 2 * 16 * tokens * options.hidden * options.hidden);
  EXPECT_EQ(cost.expert_parameters, 4 * 8 * options.hidden * options.hidden);
}

// Four ranks share the tokens of each sequence, and are copies of the model: keys and values of 4
// tokens x 64 numbers x 2, of 2 bytes, are gathered forward and backward, their gradients scattered.
TEST(TransformerStepTest, ContextParallelRanksShareTokens) {
  TransformerOptions options = TinyTransformer();
  options.tensor_parallel = 1;
  options.data_parallel = 2;
  options.context_parallel = 4;
  options.pipeline_parallel = 1;
  options.vocabulary = 0;
  const int64_t own_bytes = 2 * 2 * (16 / 4) * options.hidden;
  const int64_t layer_bytes = 2 * 12 * options.hidden * options.hidden;
  const ExecutionGraph graph = GraphOf(options);
  // Ranks 0 to 3 and 4 to 7; behind no tensor group and the group of all copies, which has no name.
  EXPECT_THAT(
      TrafficOf(graph, 5),
      UnorderedElementsAre(Pair(std::make_tuple("ALL_GATHER", own_bytes, "2"), 4 * 2 * 3),
                           Pair(std::make_tuple("REDUCE_SCATTER", 4 * own_bytes, "2"), 4 * 3),
                           Pair(std::make_tuple("ALL_REDUCE", layer_bytes, ""), 4)));
  ASSERT_OK_AND_ASSIGN(const TransformerCost shared, CostOfTransformer(options));
  options.context_parallel = 1;
  ASSERT_OK_AND_ASSIGN(const TransformerCost alone, CostOfTransformer(options));
  EXPECT_EQ(alone.attention.operations, 4 * shared.attention.operations);
  EXPECT_EQ(alone.mlp.operations, 4 * shared.mlp.operations);
}

// Forward alone: no gradient, no optimizer; a new token of each sequence moves 1 / s of what all do.
TEST(TransformerStepTest, InferenceIsForwardAlone) {
  TransformerOptions options = TinyTransformer();
  options.phase = TransformerPhase::kDecode;
  options.data_parallel = 1;
  options.pipeline_parallel = 1;
  options.batch = 3;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(
      TrafficOf(graph, 1),
      UnorderedElementsAre(
          // After attention and MLP of four layers, and the embedding, of three microbatches.
          Pair(std::make_tuple("ALL_REDUCE", 2 * options.hidden, ""), (4 * 2 + 1) * 3),
          Pair(std::make_tuple("ALL_REDUCE", 8, ""), 3)));
  ASSERT_OK_AND_ASSIGN(const TransformerCost decode, CostOfTransformer(options));
  options.phase = TransformerPhase::kPrefill;
  ASSERT_OK_AND_ASSIGN(const TransformerCost prefill, CostOfTransformer(options));
  EXPECT_EQ(prefill.mlp.operations, options.sequence * decode.mlp.operations);
  EXPECT_EQ(prefill.loss_bytes, decode.loss_bytes);
  // It reads keys and values of the whole sequence.
  options.sequence *= 2;
  options.phase = TransformerPhase::kDecode;
  ASSERT_OK_AND_ASSIGN(const TransformerCost longer, CostOfTransformer(options));
  EXPECT_EQ(longer.attention.bytes - decode.attention.bytes,
            2 * 2 * (options.sequence / 2) * options.hidden / options.tensor_parallel);
}

TEST(TransformerStepTest, DurationsAreOperationsAtTheSpeed) {
  const ExecutionGraph graph = GraphOf(TinyTransformer());
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 0, "layer0.attention.forward")), 279);
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 0, "layer0.mlp.forward")), 524);
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 5, "layer3.attention.backward")), 557);
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 5, "layer3.mlp.backward")), 1049);
  // 16 * 64 and 2 * 16 * 128 * 64 / 2.
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 0, "embedding.forward")), 1);
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 5, "head.forward")), 131);
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 5, "head.backward")), 262);
  // 12 * (2 * 24576 + 4096).
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 5, "optimizer")), 639);
  EXPECT_EQ(graph.duration_ns(FindNode(graph, 0, "layer0.mlp.forward.all-reduce")), 0);
}

TEST(TransformerStepTest, EachPieceWaitsForTheSumBeforeIt) {
  const ExecutionGraph graph = GraphOf(TinyTransformer());
  const auto find = [&](const char* name, int pass = 0) { return FindNode(graph, 0, name, pass); };
  EXPECT_THAT(graph.dependencies(find("layer0.attention.forward")),
              ElementsAre(find("embedding.forward.all-reduce")));
  EXPECT_THAT(graph.dependencies(find("layer0.mlp.forward")),
              ElementsAre(find("layer0.attention.forward.all-reduce")));
  EXPECT_THAT(graph.dependencies(find("send.activations")),
              ElementsAre(find("layer1.mlp.forward.all-reduce")));
  // The second receive is posted once the first is done.
  EXPECT_THAT(graph.dependencies(find("receive.gradients")), IsEmpty());
  EXPECT_THAT(graph.dependencies(find("receive.gradients", 1)),
              ElementsAre(find("receive.gradients")));
}

TEST(TransformerStepTest, TagsAreMicrobatchesAndTheNumberOfThoseBeyondForGradients) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
    TransformerOptions options = TinyTransformer();
    options.schedule = schedule;
    const ExecutionGraph graph = GraphOf(options);
    for (int i = 0; i < 3; ++i) {
      const bool gpipe = schedule == PipelineSchedule::kGpipe;
      const auto tag = [&](int64_t rank, absl::string_view name) {
        return graph.communication(FindNode(graph, rank, name, i))->tag;
      };
      EXPECT_EQ(tag(0, "send.activations"), i);
      EXPECT_EQ(tag(4, "receive.activations"), i);
      EXPECT_EQ(tag(4, "send.gradients"), gpipe ? 5 - i : 3 + i);
      EXPECT_EQ(tag(0, "receive.gradients"), gpipe ? 5 - i : 3 + i);
    }
  }
}

// The head's backward pass needs the loss of the same microbatch.
TEST(TransformerStepTest, TheLastStageTurnsRoundAtTheLoss) {
  TransformerOptions options = TinyTransformer();
  options.schedule = PipelineSchedule::kGpipe;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(graph.dependencies(FindNode(graph, 4, "head.backward")),
              ElementsAre(FindNode(graph, 4, "loss.all-reduce", 2)));
}

// Forward 279 + 524 ns a layer, two layers a stage; backward 557 + 1049. A rank of layers alone has
// 12 * 49152 operations of the optimizer.
TEST(TransformerStepTest, ThePipelineTakesMicrobatchesPlusStagesLessOne) {
  constexpr int64_t kForwardNs = 2 * (279 + 524);
  constexpr int64_t kBackwardNs = 2 * (557 + 1049);
  constexpr int64_t kOptimizerNs = 590;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
    for (const auto& [stages, microbatches] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {1, 5}, {2, 1}, {2, 3}, {4, 2}, {4, 4}, {4, 12}, {8, 16}}) {
      TransformerOptions options = TinyTransformer();
      options.vocabulary = 0;
      options.schedule = schedule;
      options.pipeline_parallel = stages;
      options.layers = 2 * stages;
      options.microbatches = microbatches;
      options.batch = 2 * 2 * microbatches;
      EXPECT_EQ(ReplayNs(GraphOf(options)),
                (microbatches + stages - 1) * (kForwardNs + kBackwardNs) + kOptimizerNs)
          << stages << " stages, " << microbatches << " microbatches";
    }
  }
}

// The first stage is the last to finish, so it sums while it still computes; others first send what
// the stage before them waits for.
TEST(TransformerStepTest, GradientsAreSummedBesideComputationAndBehindMessages) {
  const ExecutionGraph graph = GraphOf(TinyTransformer());
  const auto id = [&](int64_t rank, absl::string_view name, int pass = 0) {
    return graph.id(FindNode(graph, rank, name, pass));
  };
  EXPECT_LT(id(0, "layer1.gradients.all-reduce"), id(0, "layer0.mlp.backward", 2));
  EXPECT_GT(id(0, "layer1.gradients.all-reduce"), id(0, "layer1.attention.backward.all-reduce", 2));
  EXPECT_GT(id(4, "head.gradients.all-reduce"), id(4, "send.gradients", 2));
  EXPECT_THAT(graph.dependencies(FindNode(graph, 0, "optimizer")),
              ElementsAre(FindNode(graph, 0, "embedding.gradients.all-reduce")));
}

struct Shape {
  int64_t tp, dp, pp, microbatches;
};

struct Kind {
  bool zero = false;
  bool sharded = false;
  int64_t experts = 0;
  TransformerPhase phase = TransformerPhase::kTraining;
  int64_t context_parallel = 1;
};

TEST(TransformerStepTest, EveryShapePassesEveryRuleAndHasAsManyNodesAsItSays) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 1, 1, 2}, Shape{1, 2, 1, 2},
                             Shape{1, 1, 2, 1}, Shape{1, 1, 4, 7}, Shape{2, 2, 2, 3},
                             Shape{4, 2, 1, 2}, Shape{2, 1, 4, 5}, Shape{1, 3, 2, 2}}) {
    for (const Kind& kind : {Kind{}, Kind{true}, Kind{false, true}, Kind{false, false, 6},
                             Kind{true, true, 6}, Kind{false, false, 0, TransformerPhase::kPrefill},
                             Kind{false, false, 6, TransformerPhase::kDecode},
                             Kind{false, true, 12, TransformerPhase::kTraining, 2},
                             Kind{false, false, 0, TransformerPhase::kPrefill, 2}}) {
      for (const int64_t vocabulary : {0, 128}) {
        for (const PipelineSchedule schedule :
             {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward}) {
          TransformerOptions options = TinyTransformer();
          options.tensor_parallel = shape.tp;
          options.data_parallel = shape.dp;
          options.pipeline_parallel = shape.pp;
          options.microbatches = shape.microbatches;
          options.batch = shape.dp * shape.microbatches;
          options.zero = kind.zero;
          options.sharded = kind.sharded;
          options.experts = kind.experts;
          options.phase = kind.phase;
          options.context_parallel = kind.context_parallel;
          options.vocabulary = vocabulary;
          options.schedule = schedule;
          const auto workload = MakeTransformerStep(options);
          ASSERT_OK(workload.status());
          ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, BuildWorkloadGraph(**workload));
          EXPECT_EQ((*workload)->rank_count(),
                    shape.tp * shape.dp * shape.pp * kind.context_parallel);
          ReplayNs(graph);
          EXPECT_THAT(ProblemsOf(**workload), IsOkAndHolds(IsEmpty()))
              << shape.tp << " x " << shape.dp << " x " << shape.pp;
        }
      }
    }
  }
}

TEST(TransformerStepTest, RefusesSizesThatAreOutOfRange) {
  const auto with = [](int64_t TransformerOptions::*member, int64_t value) {
    TransformerOptions options = TinyTransformer();
    options.*member = value;
    return options;
  };
  ExpectRefused(with(&TransformerOptions::tensor_parallel, 0), "--tp=0: expected 1 to");
  ExpectRefused(with(&TransformerOptions::data_parallel, -1), "--dp=-1: expected 1 to");
  ExpectRefused(with(&TransformerOptions::pipeline_parallel, 0), "--pp=0: expected 1 to");
  ExpectRefused(with(&TransformerOptions::layers, 0), "--layers=0: expected 1 to");
  ExpectRefused(with(&TransformerOptions::hidden, 1 << 25), "--hidden=33554432: expected 1 to");
  ExpectRefused(with(&TransformerOptions::sequence, 0), "--sequence=0: expected 1 to");
  ExpectRefused(with(&TransformerOptions::vocabulary, -1), "--vocab=-1: expected 0 to");
  ExpectRefused(with(&TransformerOptions::batch, 0), "--batch=0: expected 1 to");
  ExpectRefused(with(&TransformerOptions::microbatches, 0), "--microbatches=0: expected 1 to");
  ExpectRefused(with(&TransformerOptions::element_bytes, 9), "--dtype_bytes=9: expected 1 to 8");
  TransformerOptions options = TinyTransformer();
  options.tflops = 0;
  ExpectRefused(options, "--tflops=0");
}

TEST(TransformerStepTest, RefusesSizesThatDoNotDivide) {
  TransformerOptions options = TinyTransformer();
  options.layers = 5;
  ExpectRefused(options, "--layers=5 does not divide by --pp=2; 4 or 6 would");
  options = TinyTransformer();
  options.hidden = 65;
  ExpectRefused(options, "--hidden=65 does not divide by --tp=2");
  options = TinyTransformer();
  options.vocabulary = 129;
  ExpectRefused(options, "--vocab=129 does not divide by --tp=2");
  options = TinyTransformer();
  options.batch = 11;
  ExpectRefused(options, "--batch=11 does not divide by --dp=2 times --microbatches=3; 6 or 12");
}

TEST(TransformerStepTest, RefusesWhatIsTooLarge) {
  TransformerOptions options = TinyTransformer();
  options.tensor_parallel = options.data_parallel = options.pipeline_parallel = 32;
  ExpectRefused(options, "32,768 ranks");
  options = TinyTransformer();
  options.data_parallel = 512;
  options.batch = 512 * 3;
  ExpectRefused(options, "1,028 process groups");
  options = TinyTransformer();
  options.layers = 1 << 16;
  options.microbatches = 1 << 10;
  options.batch = 2 << 10;
  ExpectRefused(options, "nodes; at most 50,000,000");
  options = TinyTransformer();
  options.hidden = options.sequence = 1 << 24;
  ExpectRefused(options, "do not fit into 64 bits");
  options = TinyTransformer();
  options.layers = 1 << 16;
  options.hidden = 1 << 24;
  options.sequence = options.microbatches = 1;
  options.batch = 2;
  ExpectRefused(options, "do not fit into 64 bits");
  options = TinyTransformer();
  options.tflops = 1e-15;
  ExpectRefused(options, "three years");
  options = TinyTransformer();
  options.zero = true;
  options.vocabulary = 2;
  options.hidden = 2;
  ExpectRefused(options, "leave out --zero and --sharded");
  options = TinyTransformer();
  options.experts = 7;
  ExpectRefused(options, "--experts=7 does not divide by --dp=2");
  options.experts = 2;
  options.experts_per_token = 3;
  ExpectRefused(options, "--experts_per_token=3: expected 1 to 2");
  options = TinyTransformer();
  options.phase = TransformerPhase::kDecode;
  options.sharded = true;
  ExpectRefused(options, "leave them out with --phase");
  options = TinyTransformer();
  options.context_parallel = 5;
  ExpectRefused(options, "does not divide by --cp=5");
  options.context_parallel = 2;
  options.phase = TransformerPhase::kDecode;
  ExpectRefused(options, "--phase=decode has one of each");
}

constexpr PipelineSchedule kOneForwardOneBackward = PipelineSchedule::kOneForwardOneBackward;

std::string Text(const std::vector<PipelinePass>& passes) {
  return absl::StrJoin(passes, " ", [](std::string* out, const PipelinePass& pass) {
    absl::StrAppend(out, pass.is_forward ? "F" : "B", pass.microbatch);
  });
}

// The pictures of PipelineSchedule.
TEST(PipelineScheduleTest, GpipeRunsAllForwardPassesFirst) {
  for (int64_t stage = 0; stage < 3; ++stage) {
    EXPECT_EQ(Text(PassesOfStage(PipelineSchedule::kGpipe, stage, 3, 4)),
              "F0 F1 F2 F3 B3 B2 B1 B0");
  }
}

TEST(PipelineScheduleTest, OneForwardOneBackwardAlternatesOnceTheLastStageHasWork) {
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 0, 3, 4)), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 1, 3, 4)), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 2, 3, 4)), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(PipelineScheduleTest, ChunksTakeTurns) {
  const auto text = [](int64_t stage) {
    return absl::StrJoin(PassesOfStage(kOneForwardOneBackward, stage, 2, 4, 2), " ",
                         [](std::string* out, const PipelinePass& pass) {
                           absl::StrAppend(out, pass.is_forward ? "F" : "B", pass.chunk, ".",
                                           pass.microbatch, pass.completes_gradients ? "!" : "");
                         });
  };
  EXPECT_EQ(text(0),
            "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3! B0.2 B0.3!");
  EXPECT_EQ(text(1),
            "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3! B0.2 B0.3!");
}

TEST(PipelineScheduleTest, OneStageHasNoPipeline) {
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 0, 1, 2)), "F0 B0 F1 B1");
}

TEST(PipelineScheduleTest, FewerMicrobatchesThanStagesAllGoForwardFirst) {
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 0, 5, 2)), "F0 F1 B0 B1");
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 4, 5, 2)), "F0 B0 F1 B1");
}

// So no stage keeps the activations of more microbatches than there are stages from it on.
TEST(PipelineScheduleTest, OneForwardOneBackwardIsNeverFartherAheadThanItsPlace) {
  for (int64_t stage = 0; stage < 6; ++stage) {
    int64_t kept = 0;
    int64_t most = 0;
    for (const PipelinePass& pass : PassesOfStage(kOneForwardOneBackward, stage, 6, 40)) {
      kept += pass.is_forward ? 1 : -1;
      most = std::max(most, kept);
    }
    EXPECT_EQ(kept, 0);
    EXPECT_EQ(most, 6 - stage);
  }
}

// 3 sequences of 5 tokens: t = 15; h = 4, v = 20.
TransformerOptions Tiny() {
  TransformerOptions options;
  options.hidden = 4;
  options.sequence = 5;
  options.vocabulary = 20;
  options.batch = 3;
  options.microbatches = 1;
  return options;
}

// Product by product, an (a x b) times (b x c) being 2 a b c operations:
//   attention   Q, K, V    3 x 2*15*4*4                          = 1440
//               scores     3 sequences x 2*5*4*5                 =  600
//               weighting  3 sequences x 2*5*5*4                 =  600
//               output     2*15*4*4                              =  480   -> 3120
//   MLP         up 2*15*4*16 + down 2*15*16*4 = 1920 + 1920      = 3840
//   head        2*15*4*20                                        = 2400
TEST(TransformerCostTest, CountsTheOperationsOfEachProduct) {
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(Tiny()));
  EXPECT_EQ(cost.attention.operations, 3120);
  EXPECT_EQ(cost.mlp.operations, 3840);
  EXPECT_EQ(cost.embedding.operations, 60);
  EXPECT_EQ(cost.head.operations, 2400);
}

// Elements, in and out of each product:
//   attention   Q, K, V    60 + 3*16 + 180; scores to weighting 180 + 60; output 60 + 16 + 60 = 664
//   MLP         up 60 + 64 + 240; down 240 + 64 + 60                                          = 728
//   head        60 + 80 + 300                                                                 = 440
TEST(TransformerCostTest, CountsWhatEachProductReadsAndWrites) {
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(Tiny()));
  EXPECT_EQ(cost.attention.bytes, 2 * 664);
  EXPECT_EQ(cost.mlp.bytes, 2 * 728);
  EXPECT_EQ(cost.embedding.bytes, 2 * 120);
  EXPECT_EQ(cost.head.bytes, 2 * 440);
}

// 4 matrices of 4 x 4, and 4 x 16 and 16 x 4; 20 x 4.
TEST(TransformerCostTest, CountsParametersAndMessages) {
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(Tiny()));
  EXPECT_EQ(cost.layer_parameters, 64 + 128);
  EXPECT_EQ(cost.vocabulary_parameters, 80);
  EXPECT_EQ(cost.activation_bytes, 2 * 60);
  EXPECT_EQ(cost.loss_bytes, 3 * 4 * 15);
}

// Activations at the ends of a block are whole on every rank: 2 t h and t h of the head.
TEST(TransformerCostTest, TensorParallelRanksShareWeightsAndWhatIsInside) {
  TransformerOptions options = Tiny();
  options.tensor_parallel = 2;
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(options));
  EXPECT_EQ(cost.attention.operations, 1560);
  EXPECT_EQ(cost.attention.bytes, 2 * (120 + (664 - 120) / 2));
  EXPECT_EQ(cost.mlp.operations, 1920);
  EXPECT_EQ(cost.mlp.bytes, 2 * (120 + (728 - 120) / 2));
  EXPECT_EQ(cost.head.operations, 1200);
  EXPECT_EQ(cost.head.bytes, 2 * (60 + (440 - 60) / 2));
  EXPECT_EQ(cost.embedding.operations, 60);
  EXPECT_EQ(cost.layer_parameters, 96);
  EXPECT_EQ(cost.vocabulary_parameters, 40);
  EXPECT_EQ(cost.activation_bytes, 120);
  EXPECT_EQ(cost.loss_bytes, 180);
}

// Of GPT-3's 175 billion: 96 layers of hidden size 12288, and an embedding of 50257 (51200 here).
TEST(TransformerCostTest, AgreesWithAKnownModel) {
  TransformerOptions options;
  options.hidden = 12288;
  options.sequence = 2048;
  options.vocabulary = 51200;
  options.batch = 1;
  options.microbatches = 1;
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(options));
  EXPECT_EQ(96 * cost.layer_parameters + cost.vocabulary_parameters, 174'575'321'088);
}

TEST(TransformerCostTest, ABackwardPassIsTwoForwardPasses) {
  EXPECT_EQ(BackwardCost({3120, 1328}).operations, 6240);
  EXPECT_EQ(BackwardCost({3120, 1328}).bytes, 2656);
}

TEST(TransformerCostTest, AnOptimizerTouchesStateOfEachParameter) {
  ASSERT_OK_AND_ASSIGN(const WorkCost cost, OptimizerCost(10, 2));
  EXPECT_EQ(cost.operations, 120);
  EXPECT_EQ(cost.bytes, 10 * (2 + 2 + 3 * 8));
}

TEST(TransformerCostTest, RefusesWhatDoesNotFit) {
  TransformerOptions options = Tiny();
  options.hidden = 1 << 24;
  options.batch = 1 << 10;
  EXPECT_THAT(CostOfTransformer(options),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("--hidden")));
  EXPECT_THAT(OptimizerCost(absl::int128(1) << 70, 2), StatusIs(absl::StatusCode::kOutOfRange));
  // 16 t h^2 of the MLP is the most: with h = 2^22 and t = 5 * 2^10 it is 1.25 * 2^60, and the
  // backward pass twice that.
  options.hidden = 1 << 22;
  options.batch = 3 << 10;
  EXPECT_THAT(CostOfTransformer(options), IsOk());
  options.batch = 4 << 10;
  EXPECT_THAT(CostOfTransformer(options), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace meridian
