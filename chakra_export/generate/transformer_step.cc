#include "chakra_export/generate/transformer_step.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_attributes.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr int64_t kMaxLayers = 1 << 16;
constexpr int64_t kMaxMicrobatches = 1 << 20;
constexpr int64_t kMaxSize = 1 << 24;
constexpr int64_t kMaxElementBytes = 8;

absl::Status CheckChunks(const TransformerOptions& options) {
  RETURN_IF_ERROR(CheckRange("--chunks", options.chunks, 1, kMaxLayers));
  if (options.chunks == 1) return absl::OkStatus();
  if (options.pipeline_parallel == 1 || options.schedule == PipelineSchedule::kGpipe) {
    return InvalidArgument(
        "--chunks interleaves stages of 1f1b; give --pp, and no other --schedule");
  }
  RETURN_IF_ERROR(CheckDivides("--microbatches", options.microbatches,
                               absl::StrCat("--pp=", options.pipeline_parallel),
                               options.pipeline_parallel));
  return CheckDivides(
      "--layers", options.layers,
      absl::StrCat("--pp=", options.pipeline_parallel, " times --chunks=", options.chunks),
      options.pipeline_parallel * options.chunks);
}

absl::Status CheckSequenceParallel(const TransformerOptions& options) {
  if (!options.sequence_parallel) return absl::OkStatus();
  if (options.tensor_parallel == 1 || options.phase == TransformerPhase::kDecode) {
    return InvalidArgument(
        "--sequence_parallel divides the tokens of a sequence between tensor parallel ranks; give "
        "--tp, and no --phase=decode");
  }
  return CheckDivides(
      "--sequence", options.sequence,
      absl::StrCat("--cp=", options.context_parallel, " times --tp=", options.tensor_parallel),
      options.context_parallel * options.tensor_parallel);
}

absl::Status CheckOptions(const TransformerOptions& options) {
  RETURN_IF_ERROR(CheckRange("--tp", options.tensor_parallel, 1, kMaxGeneratedRanks));
  RETURN_IF_ERROR(CheckRange("--dp", options.data_parallel, 1, kMaxGeneratedRanks));
  RETURN_IF_ERROR(CheckRange("--pp", options.pipeline_parallel, 1, kMaxGeneratedRanks));
  RETURN_IF_ERROR(CheckRange("--layers", options.layers, 1, kMaxLayers));
  RETURN_IF_ERROR(CheckRange("--hidden", options.hidden, 1, kMaxSize));
  RETURN_IF_ERROR(CheckRange("--sequence", options.sequence, 1, kMaxSize));
  RETURN_IF_ERROR(CheckRange("--vocab", options.vocabulary, 0, kMaxSize));
  RETURN_IF_ERROR(CheckRange("--batch", options.batch, 1, kMaxSize));
  RETURN_IF_ERROR(CheckRange("--microbatches", options.microbatches, 1, kMaxMicrobatches));
  RETURN_IF_ERROR(CheckRange("--dtype_bytes", options.element_bytes, 1, kMaxElementBytes));
  RETURN_IF_ERROR(CheckRange("--experts", options.experts, 0, kMaxSize));
  RETURN_IF_ERROR(
      CheckRange("--experts_per_token", options.experts_per_token, 1,
                 std::max<int64_t>(1, options.experts > 0 ? options.experts : kMaxSize)));
  if (options.phase != TransformerPhase::kTraining && (options.zero || options.sharded)) {
    return InvalidArgument(
        "--zero and --sharded divide what training keeps; leave them out with --phase");
  }
  RETURN_IF_ERROR(CheckRange("--cp", options.context_parallel, 1, kMaxGeneratedRanks));
  RETURN_IF_ERROR(CheckDivides("--sequence", options.sequence,
                               absl::StrCat("--cp=", options.context_parallel),
                               options.context_parallel));
  if (options.phase == TransformerPhase::kDecode && options.context_parallel > 1) {
    return InvalidArgument("--cp divides the tokens of a sequence; --phase=decode has one of each");
  }
  RETURN_IF_ERROR(CheckTflops(options.tflops));
  RETURN_IF_ERROR(CheckCount(absl::int128(options.tensor_parallel) * options.data_parallel *
                                 options.context_parallel * options.pipeline_parallel,
                             "ranks", kMaxGeneratedRanks, "make --tp, --dp, --cp or --pp smaller"));
  RETURN_IF_ERROR(CheckDivides(
      "--experts", options.experts,
      options.context_parallel == 1
          ? absl::StrCat("--dp=", options.data_parallel)
          : absl::StrCat("--dp=", options.data_parallel, " times --cp=", options.context_parallel),
      options.data_parallel * options.context_parallel));
  RETURN_IF_ERROR(CheckDivides("--layers", options.layers,
                               absl::StrCat("--pp=", options.pipeline_parallel),
                               options.pipeline_parallel));
  RETURN_IF_ERROR(CheckChunks(options));
  RETURN_IF_ERROR(CheckSequenceParallel(options));
  const std::string tensor_parallel = absl::StrCat("--tp=", options.tensor_parallel);
  RETURN_IF_ERROR(
      CheckDivides("--hidden", options.hidden, tensor_parallel, options.tensor_parallel));
  RETURN_IF_ERROR(
      CheckDivides("--vocab", options.vocabulary, tensor_parallel, options.tensor_parallel));
  return CheckDivides(
      "--batch", options.batch,
      absl::StrCat("--dp=", options.data_parallel, " times --microbatches=", options.microbatches),
      options.data_parallel * options.microbatches);
}

// Takes 128-bit numbers into 64 bits and remembers whether one did not fit.
class Narrower {
 public:
  int64_t operator()(absl::int128 value) {
    // A backward pass is twice a forward pass.
    if (value > std::numeric_limits<int64_t>::max() / 2) fits_ = false;
    return static_cast<int64_t>(value);
  }
  absl::Status status() const {
    return fits_ ? absl::OkStatus()
                 : absl::OutOfRangeError(
                       "operations or bytes of one node do not fit into 64 bits; make --hidden, "
                       "--sequence, --vocab or the batch smaller");
  }

 private:
  bool fits_ = true;
};

// What the stages of the pipeline hold and what that costs.
struct TransformerStep : public GeneratedWorkload {
  explicit TransformerStep(const TransformerOptions& given)
      : options(given),
        layout(given.tensor_parallel, given.data_parallel * given.context_parallel,
               given.pipeline_parallel, given.context_parallel) {}

  int64_t rank_count() const override { return layout.rank_count(); }
  void AddRank(int64_t rank, RankProgram* program) const override;

  int64_t stages() const { return options.pipeline_parallel; }
  int64_t layers_per_stage() const { return options.layers / stages(); }
  int64_t layers_per_chunk() const { return layers_per_stage() / options.chunks; }
  // Chunks in the order in which a microbatch passes through them: the first of all stages, ...
  int64_t all_chunks() const { return stages() * options.chunks; }
  bool HasEmbedding(int64_t place) const { return place == 0 && options.vocabulary > 0; }
  bool HasHead(int64_t place) const { return place + 1 == all_chunks() && options.vocabulary > 0; }
  bool is_tensor_parallel() const { return options.tensor_parallel > 1; }
  // Of the model, with which gradients are summed.
  int64_t copies() const { return options.data_parallel * options.context_parallel; }
  bool is_data_parallel() const { return copies() > 1; }
  bool is_context_parallel() const { return options.context_parallel > 1; }
  bool is_sequence_parallel() const { return options.sequence_parallel; }
  // How many ranks share the activations between layers.
  int64_t activation_ranks() const {
    return options.sequence_parallel ? options.tensor_parallel : 1;
  }
  bool is_training() const { return options.phase == TransformerPhase::kTraining; }
  bool is_sharded() const { return options.sharded && is_data_parallel(); }
  // Experts of all copies are reached by messages.
  bool has_remote_experts() const { return options.experts > 0 && is_data_parallel(); }

  int64_t NsOf(const WorkCost& of) const {
    return options.device.memories.empty() ? DurationNs(of, options.tflops) : of.duration_ns;
  }

  // What one of the data parallel copies holds when they divide so many parameters between them.
  template <typename Integer>
  Integer ShardOf(Integer parameters) const {
    return (parameters + copies() - 1) / copies();
  }

  // Of each rank, microbatch and layer there are attention and MLP, forward and backward, each with a
  // sum; the parameters gathered twice and gradients scattered; keys and values gathered twice and
  // scattered; and tokens sent to experts and back, twice; eight more when tokens are gathered and
  // scattered. Embedding, head and the messages of a chunk are no more than two layers, the optimizer
  // and its sums no more than a microbatch.
  absl::int128 MostNodes() const {
    return absl::int128(rank_count()) * (options.microbatches + 1) *
           (layers_per_stage() + 2 * options.chunks) * (is_sequence_parallel() ? 26 : 18);
  }

  TransformerOptions options;
  TransformerCost cost;
  // Cost of the optimizer by stage.
  std::vector<WorkCost> optimizers;
  RankLayout layout;
};

// Gives the pieces their durations on the device. In attention, scores are no products of their own:
// they never leave the chip.
void PriceByRoofline(const TransformerOptions& options, TransformerCost* cost) {
  const int64_t h = options.hidden;
  const int64_t part = h / options.tensor_parallel;
  const int64_t t = cost->activation_bytes / options.element_bytes / h;
  const int64_t experts = options.experts > 0
                              ? options.experts / (options.data_parallel * options.context_parallel)
                              : 1;
  const int64_t chosen = options.experts > 0 ? options.experts_per_token : 1;
  const int64_t tokens = (chosen * t + experts - 1) / experts;
  const auto price = [&](std::initializer_list<MatrixProduct> products, WorkCost* piece) {
    piece->duration_ns = DurationNs(options.device, *piece, products, options.element_bytes);
  };
  price({{t, h, 3 * part}, {t, part, h}}, &cost->attention);
  price({{tokens, h, 4 * part, experts}, {tokens, 4 * part, h, experts}}, &cost->mlp);
  price({}, &cost->embedding);
  if (options.vocabulary > 0) {
    price({{t, h, options.vocabulary / options.tensor_parallel}}, &cost->head);
  }
}

absl::Status PriceStep(TransformerStep* step) {
  ASSIGN_OR_RETURN(step->cost, CostOfTransformer(step->options));
  if (!step->options.device.memories.empty()) PriceByRoofline(step->options, &step->cost);
  for (int64_t stage = 0; stage < step->stages(); ++stage) {
    const int64_t last_place = stage + step->all_chunks() - step->stages();
    const int64_t parts_with_vocabulary = step->HasEmbedding(stage) + step->HasHead(last_place);
    absl::int128 parameters =
        absl::int128(step->layers_per_stage()) * step->cost.layer_parameters +
        absl::int128(parts_with_vocabulary) * step->cost.vocabulary_parameters;
    if (step->options.zero || step->options.sharded) parameters = step->ShardOf(parameters);
    parameters += absl::int128(step->layers_per_stage()) * step->cost.expert_parameters;
    ASSIGN_OR_RETURN(WorkCost cost, OptimizerCost(parameters, step->options.element_bytes));
    if (!step->options.device.memories.empty()) {
      cost.duration_ns = DurationNs(step->options.device, cost, {}, step->options.element_bytes);
    }
    step->optimizers.push_back(cost);
  }
  return absl::OkStatus();
}

// Checks a stage that had embedding, head and all optimizers: none computes more.
absl::Status CheckStageComputation(const TransformerStep& step) {
  const TransformerCost& cost = step.cost;
  const absl::int128 forward =
      step.layers_per_stage() * (absl::int128(cost.attention.operations) + cost.mlp.operations) +
      cost.embedding.operations + cost.head.operations;
  absl::int128 operations = 3 * forward * step.options.microbatches;
  double ns = 3 * static_cast<double>(step.options.microbatches) *
              (static_cast<double>(step.layers_per_stage()) *
                   static_cast<double>(cost.attention.duration_ns + cost.mlp.duration_ns) +
               static_cast<double>(cost.embedding.duration_ns + cost.head.duration_ns));
  for (const WorkCost& optimizer : step.optimizers) {
    operations += optimizer.operations;
    ns += static_cast<double>(optimizer.duration_ns);
  }
  RETURN_IF_ERROR(CheckDuration(ns, "make the model smaller or the --device faster"));
  return CheckComputation(operations, step.options.tflops,
                          "make the model smaller or --tflops larger");
}

absl::Status CheckStep(const TransformerStep& step) {
  RETURN_IF_ERROR(CheckCount(step.MostNodes(), "nodes", kMaxGeneratedNodes,
                             "choose fewer --layers, --microbatches or ranks"));
  RETURN_IF_ERROR(CheckCount(
      step.layout.named_tensor_groups() + step.layout.named_data_groups() +
          (step.is_context_parallel() ? step.layout.named_context_groups() : 0),
      "process groups", kMaxGroupNumber,
      "a larger --tp makes fewer tensor parallel groups, a larger --dp fewer data parallel ones"));
  RETURN_IF_ERROR(CheckStageComputation(step));
  if (step.is_sequence_parallel()) {
    RETURN_IF_ERROR(CheckAllGatherBytes(
        step.cost.activation_bytes / step.activation_ranks(),
        "leave out --sequence_parallel, or make --sequence or --hidden larger"));
  }
  if (step.is_context_parallel()) {
    RETURN_IF_ERROR(CheckAllGatherBytes(step.cost.context_bytes,
                                        "leave out --cp, or make --sequence or --hidden larger"));
    if (step.cost.context_bytes >
        std::numeric_limits<int64_t>::max() / step.options.context_parallel) {
      return absl::OutOfRangeError("keys and values do not fit into 64 bits");
    }
  }
  if (!(step.options.zero || step.options.sharded) || !step.is_data_parallel()) {
    return absl::OkStatus();
  }
  const int64_t smallest = std::min(
      step.cost.layer_parameters,
      step.options.vocabulary > 0 ? step.cost.vocabulary_parameters : step.cost.layer_parameters);
  return CheckAllGatherBytes(step.options.element_bytes * step.ShardOf(smallest),
                             "leave out --zero and --sharded, or make --hidden or --vocab larger");
}

class StageWriter {
 public:
  StageWriter(const TransformerStep& step, int64_t rank, RankProgram* program)
      : step_(step), rank_(rank), stage_(step.layout.Stage(rank)), program_(*program) {
    if (step.is_tensor_parallel()) tensor_group_ = program->AddGroup(step.layout.TensorGroup(rank));
    if (step.is_data_parallel()) data_group_ = program->AddGroup(step.layout.DataGroup(rank));
    if (step.is_context_parallel()) {
      context_group_ = program->AddGroup(step.layout.ContextGroup(rank));
    }
  }

  void Write() {
    const std::vector<PipelinePass> passes =
        PassesOfStage(step_.options.schedule, stage_, step_.stages(), step_.options.microbatches,
                      step_.options.chunks);
    forward_values_.assign(step_.options.microbatches, kNoNodeIndex);
    for (const PipelinePass& pass : passes) {
      gradients_are_complete_ = pass.completes_gradients;
      place_ = stage_ + pass.chunk * step_.stages();
      if (pass.is_forward) {
        Forward(pass.microbatch);
      } else if (step_.is_training()) {
        Backward(pass.microbatch);
      }
    }
    if (!step_.is_training()) return;
    SumGradients();
    Optimize();
  }

 private:
  // Parameters whose gradients are summed together.
  struct Part {
    std::string name;
    int64_t parameters = 0;
    // What computed the gradients.
    NodeIndex source = kNoNodeIndex;
  };

  // Nodes are passed on as values: the next one waits for the value that it is given, which is
  // kNoNodeIndex at the beginning of the first stage.
  static absl::Span<const NodeIndex> AsSources(const NodeIndex& value) {
    return absl::MakeConstSpan(&value, value == kNoNodeIndex ? 0 : 1);
  }

  bool IsFirst() const { return place_ == 0; }
  bool IsLast() const { return place_ + 1 == step_.all_chunks(); }
  int64_t first_layer() const { return place_ * step_.layers_per_chunk(); }
  // Messages of a direction have the microbatch and the chunk that receives them.
  int64_t TagOf(bool is_gradient, int64_t receiver, int64_t microbatch) const {
    const int64_t chunk = receiver / step_.stages();
    return (is_gradient * step_.options.chunks + chunk) * step_.options.microbatches + microbatch;
  }

  void Forward(int64_t microbatch) {
    NodeIndex value = kNoNodeIndex;
    if (!IsFirst()) {
      value = Receive("receive.activations", place_ - 1, TagOf(false, place_, microbatch),
                      &last_activation_);
    }
    if (step_.HasEmbedding(place_)) {
      GatherParameters("embedding", step_.cost.vocabulary_parameters);
      value = Compute("embedding.forward", step_.cost.embedding, value);
      value = SumActivations("embedding.forward", value);
    }
    for (int64_t i = 0; i < step_.layers_per_chunk(); ++i) {
      const std::string layer = absl::StrCat("layer", first_layer() + i);
      GatherParameters(layer, step_.cost.layer_parameters);
      value = GatherContext(absl::StrCat(layer, ".attention.forward"), value);
      value = ComputeAndSum(absl::StrCat(layer, ".attention.forward"), step_.cost.attention, value);
      value = ComputeMlp(absl::StrCat(layer, ".mlp.forward"), step_.cost.mlp, value);
    }
    if (step_.HasHead(place_)) {
      GatherParameters("head", step_.cost.vocabulary_parameters);
      value = GatherTokens("head.forward", value);
      value = Compute("head.forward", step_.cost.head, value);
      value = SumOverTensorGroup(step_.is_training() ? "loss" : "next-token", step_.cost.loss_bytes,
                                 value);
    }
    if (!IsLast()) {
      Send("send.activations", place_ + 1, TagOf(false, place_ + 1, microbatch), value);
    }
    forward_values_[microbatch] = value;
  }

  void Backward(int64_t microbatch) {
    NodeIndex value = IsLast() ? forward_values_[microbatch]
                               : Receive("receive.gradients", place_ + 1,
                                         TagOf(true, place_, microbatch), &last_gradient_);
    if (step_.HasHead(place_)) {
      GatherParameters("head", step_.cost.vocabulary_parameters);
      value = GatherTokens("head.backward.inputs", value);
      value = Compute("head.backward", BackwardCost(step_.cost.head), value);
      value = SumActivations("head.backward", value);
      AddGradients("head", step_.cost.vocabulary_parameters);
    }
    for (int64_t i = step_.layers_per_chunk() - 1; i >= 0; --i) {
      const std::string layer = absl::StrCat("layer", first_layer() + i);
      GatherParameters(layer, step_.cost.layer_parameters);
      value = ComputeMlp(absl::StrCat(layer, ".mlp.backward"), BackwardCost(step_.cost.mlp), value);
      value = GatherContext(absl::StrCat(layer, ".attention.backward"), value);
      value = ComputeAndSum(absl::StrCat(layer, ".attention.backward"),
                            BackwardCost(step_.cost.attention), value);
      value = ScatterContext(absl::StrCat(layer, ".attention.backward"), value);
      AddGradients(layer, step_.cost.layer_parameters);
    }
    if (step_.HasEmbedding(place_)) {
      GatherParameters("embedding", step_.cost.vocabulary_parameters);
      value = GatherTokens("embedding.backward", value);
      value = Compute("embedding.backward", BackwardCost(step_.cost.embedding), value);
      AddGradients("embedding", step_.cost.vocabulary_parameters);
    }
    if (!IsFirst()) Send("send.gradients", place_ - 1, TagOf(true, place_ - 1, microbatch), value);
  }

  NodeIndex Compute(absl::string_view name, const WorkCost& cost, NodeIndex value) {
    std::vector<NodeIndex> sources;
    for (NodeIndex source : {value, gathered_}) {
      if (source != kNoNodeIndex) sources.push_back(source);
    }
    // What comes next of this part waits for this node anyway.
    gathered_ = kNoNodeIndex;
    last_compute_ = program_.Compute(name, cost, step_.NsOf(cost), sources);
    return last_compute_;
  }

  // Gathers the parameters of a part that the next computation needs, one part ahead: while the part
  // before is computed, so behind the part before that.
  void GatherParameters(absl::string_view name, int64_t parameters) {
    if (!step_.is_sharded()) return;
    gathered_ = GatherShards(name, parameters, end_of_part_before_);
    end_of_part_before_ = last_compute_;
  }

  NodeIndex GatherShards(absl::string_view name, int64_t parameters, NodeIndex source) {
    return program_.Collective(
        absl::StrCat(name, ".parameters.all-gather"), ChakraProtoMsg::ALL_GATHER,
        step_.options.element_bytes * step_.ShardOf(parameters), data_group_, AsSources(source));
  }

  // Keys and values of all tokens of the sequences, of which each rank has some.
  NodeIndex GatherContext(absl::string_view name, NodeIndex value) {
    if (!step_.is_context_parallel()) return value;
    return program_.Collective(absl::StrCat(name, ".keys-and-values.all-gather"),
                               ChakraProtoMsg::ALL_GATHER, step_.cost.context_bytes, context_group_,
                               AsSources(value));
  }
  // Their gradients, to the ranks that they are of.
  NodeIndex ScatterContext(absl::string_view name, NodeIndex value) {
    if (!step_.is_context_parallel()) return value;
    return program_.Collective(absl::StrCat(name, ".keys-and-values.reduce-scatter"),
                               ChakraProtoMsg::REDUCE_SCATTER,
                               step_.cost.context_bytes * step_.options.context_parallel,
                               context_group_, AsSources(value));
  }

  // Tokens go to their experts and back.
  NodeIndex ComputeMlp(absl::string_view name, const WorkCost& cost, NodeIndex value) {
    if (!step_.has_remote_experts()) return ComputeAndSum(name, cost, value);
    const auto exchange = [&](absl::string_view what) {
      return program_.Collective(
          absl::StrCat(name, what, ".all-to-all"), ChakraProtoMsg::ALL_TO_ALL,
          step_.cost.expert_bytes / step_.activation_ranks(), data_group_, AsSources(value));
    };
    value = exchange(".dispatch");
    value = ComputeAndSum(name, cost, value);
    return exchange(".combine");
  }

  // Each rank of a tensor group computes a part of a sum. A backward pass needs all tokens of the
  // gradients, and of the inputs, of which each rank has kept its own.
  NodeIndex ComputeAndSum(absl::string_view name, const WorkCost& cost, NodeIndex value) {
    value = GatherTokens(name, value);
    if (absl::EndsWith(name, "backward")) {
      value = GatherTokens(absl::StrCat(name, ".inputs"), value);
    }
    return SumActivations(name, Compute(name, cost, value));
  }

  // All tokens, of which each rank of the tensor group has some; where it has all, nothing is done.
  NodeIndex GatherTokens(absl::string_view name, NodeIndex value) {
    if (!step_.is_sequence_parallel()) return value;
    return program_.Collective(absl::StrCat(name, ".all-gather"), ChakraProtoMsg::ALL_GATHER,
                               step_.cost.activation_bytes / step_.activation_ranks(),
                               tensor_group_, AsSources(value));
  }

  NodeIndex SumActivations(absl::string_view name, NodeIndex value) {
    if (!step_.is_sequence_parallel()) {
      return SumOverTensorGroup(name, step_.cost.activation_bytes, value);
    }
    return program_.Collective(absl::StrCat(name, ".reduce-scatter"),
                               ChakraProtoMsg::REDUCE_SCATTER, step_.cost.activation_bytes,
                               tensor_group_, AsSources(value));
  }

  NodeIndex SumOverTensorGroup(absl::string_view name, int64_t bytes, NodeIndex value) {
    if (!step_.is_tensor_parallel()) return value;
    return program_.Collective(absl::StrCat(name, ".all-reduce"), ChakraProtoMsg::ALL_REDUCE, bytes,
                               tensor_group_, AsSources(value));
  }

  PeerMessage MessageWith(int64_t place, int64_t tag) const {
    return {step_.layout.InStage(rank_, place % step_.stages()),
            step_.cost.activation_bytes / step_.activation_ranks(), static_cast<int32_t>(tag)};
  }

  void Send(absl::string_view name, int64_t to, int64_t tag, NodeIndex value) {
    program_.Send(name, MessageWith(to, tag), AsSources(value));
  }

  // *last is the receive before this one of the same direction.
  NodeIndex Receive(absl::string_view name, int64_t from, int64_t tag, NodeIndex* last) {
    *last = program_.Receive(name, MessageWith(from, tag), AsSources(*last));
    return *last;
  }

  // Takes down gradients that the last node computed.
  void AddGradients(std::string name, int64_t parameters) {
    if (step_.is_sharded()) {
      // Nobody has room for all of them.
      sums_.push_back(ScatterGradients(name, parameters, last_compute_));
      return;
    }
    if (!gradients_are_complete_) return;
    parts_.push_back({std::move(name), parameters, last_compute_});
    // Other stages must not wait for this one's sums.
    if (IsFirst()) SumGradients();
  }

  // Sums the gradients of the parts that were added since the last time.
  void SumGradients() {
    if (!step_.is_data_parallel()) return;
    const bool zero = step_.options.zero;
    for (; summed_parts_ < parts_.size(); ++summed_parts_) {
      const Part& part = parts_[summed_parts_];
      sums_.push_back(zero ? ScatterGradients(part.name, part.parameters, part.source)
                           : program_.Collective(absl::StrCat(part.name, ".gradients.all-reduce"),
                                                 ChakraProtoMsg::ALL_REDUCE,
                                                 step_.options.element_bytes * part.parameters,
                                                 data_group_, AsSources(part.source)));
    }
  }

  NodeIndex ScatterGradients(absl::string_view name, int64_t parameters, NodeIndex source) {
    const int64_t filled_up = step_.ShardOf(parameters) * step_.copies();
    return program_.Collective(
        absl::StrCat(name, ".gradients.reduce-scatter"), ChakraProtoMsg::REDUCE_SCATTER,
        step_.options.element_bytes * filled_up, data_group_, AsSources(source));
  }

  void Optimize() {
    const WorkCost& cost = step_.optimizers[stage_];
    const NodeIndex optimizer = program_.Compute("optimizer", cost, step_.NsOf(cost), sums_);
    if (!step_.options.zero || !step_.is_data_parallel()) return;
    // In the order in which the next step needs them.
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
      GatherShards(part->name, part->parameters, optimizer);
    }
  }

  const TransformerStep& step_;
  const int64_t rank_;
  const int64_t stage_;
  // Of the chunk at hand among all_chunks().
  int64_t place_ = 0;
  RankProgram& program_;
  // Set for the kinds of parallelism that there are.
  GroupIndex tensor_group_ = 0;
  GroupIndex data_group_ = 0;
  GroupIndex context_group_ = 0;

  NodeIndex last_compute_ = kNoNodeIndex;
  // The parameters that the next computation needs, where they are gathered; and the last computation
  // of the part before the one at hand.
  NodeIndex gathered_ = kNoNodeIndex;
  NodeIndex end_of_part_before_ = kNoNodeIndex;
  NodeIndex last_activation_ = kNoNodeIndex;
  NodeIndex last_gradient_ = kNoNodeIndex;
  // What the forward pass of each microbatch ended with.
  std::vector<NodeIndex> forward_values_;
  // Whether the pass at hand is the last of its chunk.
  bool gradients_are_complete_ = false;
  std::vector<Part> parts_;
  size_t summed_parts_ = 0;
  std::vector<NodeIndex> sums_;
};

void TransformerStep::AddRank(int64_t rank, RankProgram* program) const {
  StageWriter(*this, rank, program).Write();
}

}  // namespace

std::vector<PipelinePass> PassesOfStage(PipelineSchedule schedule, int64_t stage, int64_t stages,
                                        int64_t microbatches, int64_t chunks) {
  std::vector<PipelinePass> passes;
  passes.reserve(2 * microbatches * chunks);
  if (schedule == PipelineSchedule::kGpipe) {
    for (int64_t i = 0; i < microbatches; ++i) passes.push_back({true, i});
    for (int64_t i = microbatches - 1; i >= 0; --i) passes.push_back({false, i, 0, i == 0});
    return passes;
  }
  // Chunks take turns, for as many microbatches as there are stages; all of one are in order.
  const auto pass_of = [&](bool is_forward, int64_t i) -> PipelinePass {
    if (chunks == 1) return {is_forward, i, 0, !is_forward && i + 1 == microbatches};
    const int64_t turn = i / stages;
    const int64_t microbatch = turn / chunks * stages + i % stages;
    const int64_t chunk = is_forward ? turn % chunks : chunks - 1 - turn % chunks;
    return {is_forward, microbatch, chunk, !is_forward && microbatch + 1 == microbatches};
  };
  // How far ahead of its first backward pass the stage is when the last stage begins.
  const int64_t count = microbatches * chunks;
  const int64_t ahead = std::min(
      count, chunks == 1 ? stages - 1 - stage : 2 * (stages - 1 - stage) + (chunks - 1) * stages);
  for (int64_t i = 0; i < ahead; ++i) passes.push_back(pass_of(true, i));
  for (int64_t i = 0; i < count; ++i) {
    if (ahead + i < count) passes.push_back(pass_of(true, ahead + i));
    passes.push_back(pass_of(false, i));
  }
  return passes;
}

absl::StatusOr<TransformerCost> CostOfTransformer(const TransformerOptions& options) {
  const int64_t sequences = options.batch / (options.data_parallel * options.microbatches);
  const bool decodes = options.phase == TransformerPhase::kDecode;
  const absl::int128 t =
      absl::int128(sequences) * (decodes ? 1 : options.sequence / options.context_parallel);
  const absl::int128 k = options.experts > 0 ? options.experts_per_token : 1;
  const absl::int128 own_experts =
      options.experts > 0 ? options.experts / (options.data_parallel * options.context_parallel)
                          : 0;
  const absl::int128 h = options.hidden;
  const absl::int128 s = options.sequence;
  const absl::int128 v = options.vocabulary;
  const absl::int128 p = options.tensor_parallel;
  const absl::int128 e = options.element_bytes;
  Narrower narrow;
  TransformerCost cost;
  const absl::int128 kept = decodes ? 2 * sequences * s * h : 0;
  cost.attention = {narrow((8 * t * h * h + 4 * t * s * h) / p),
                    narrow(e * (2 * t * h + (8 * t * h + 4 * h * h + kept) / p))};
  const absl::int128 mlps = options.experts > 0 ? own_experts : 1;
  cost.mlp = {narrow(16 * k * t * h * h / p),
              narrow(e * (2 * k * t * h + (8 * k * t * h + 8 * mlps * h * h) / p))};
  cost.embedding = {narrow(t * h), narrow(e * 2 * t * h)};
  cost.head = {narrow(2 * t * v * h / p), narrow(e * (t * h + (t * v + v * h) / p))};
  cost.layer_parameters = narrow((options.experts > 0 ? 4 : 12) * h * h / p);
  cost.expert_parameters = narrow(8 * own_experts * h * h / p);
  cost.expert_bytes = narrow(e * k * t * h);
  cost.context_bytes = narrow(2 * e * t * h / p);
  cost.vocabulary_parameters = narrow(v * h / p);
  cost.activation_bytes = narrow(e * t * h);
  cost.loss_bytes = narrow(
      options.phase == TransformerPhase::kTraining ? 3 * 4 * t : absl::int128(8) * sequences);
  if (!narrow.status().ok()) return narrow.status();
  return cost;
}

WorkCost BackwardCost(const WorkCost& forward) {
  return {2 * forward.operations, 2 * forward.bytes, 2 * forward.duration_ns};
}

absl::StatusOr<WorkCost> OptimizerCost(absl::int128 parameters, int64_t element_bytes) {
  Narrower narrow;
  const WorkCost cost = {narrow(12 * parameters), narrow((2 * element_bytes + 24) * parameters)};
  if (!narrow.status().ok()) return narrow.status();
  return cost;
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeTransformerStep(
    const TransformerOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  auto step = std::make_unique<TransformerStep>(options);
  RETURN_IF_ERROR(PriceStep(step.get()));
  RETURN_IF_ERROR(CheckStep(*step));
  return step;
}

}  // namespace meridian
