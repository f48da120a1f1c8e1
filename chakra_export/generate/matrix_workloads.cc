#include "chakra_export/generate/matrix_workloads.h"

#include <string>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/generate/transformer_step.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr int64_t kMaxSide = 1 << 24;
constexpr int64_t kMaxElementBytes = 8;
// Operations for each element of a cell's state besides the product: three sigmoids, two hyperbolic
// tangents, three products and a sum.
constexpr int64_t kCellOperations = 9;

absl::Status CheckFits(absl::int128 operations, absl::int128 bytes, absl::string_view remedy) {
  // A backward pass is twice a forward pass.
  constexpr int64_t kMost = int64_t{1} << 61;
  if (operations <= kMost && bytes <= kMost) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("operations or bytes of one node do not fit into 64 bits; ", remedy));
}

class Gemm : public GeneratedWorkload {
 public:
  explicit Gemm(const GemmOptions& options)
      : options_(options), layout_(options.grid[0], options.grid[1], options.grid[2]) {
    const auto& [m, k, n, count] = options.product;
    own_ = {m / options.grid[0], k / options.grid[2], n / options.grid[1]};
  }

  int64_t rank_count() const override { return layout_.rank_count(); }

  absl::Status Check() const {
    const absl::int128 m = own_.m, k = own_.k, n = own_.n, e = options_.element_bytes;
    RETURN_IF_ERROR(CheckFits(2 * m * k * n, e * (m * k + k * n + m * n),
                              "make --gemm smaller or the --grid larger"));
    RETURN_IF_ERROR(CheckCount(absl::int128(rank_count()) * options_.repeats * 4, "nodes",
                               kMaxGeneratedNodes, "choose fewer --repeats or ranks"));
    RETURN_IF_ERROR(CheckCount(
        layout_.named_tensor_groups() + layout_.named_data_groups() + layout_.named_stage_groups(),
        "process groups", kMaxGroupNumber, "choose another --grid"));
    for (const auto& [ranks, elements] :
         {std::make_pair(options_.grid[1], m * k), std::make_pair(options_.grid[0], k * n)}) {
      if (ranks == 1) continue;
      RETURN_IF_ERROR(CheckAllGatherBytes(static_cast<int64_t>(e * elements / ranks),
                                          "make --gemm larger or the --grid smaller"));
    }
    return CheckDuration(static_cast<double>(Duration()) * static_cast<double>(options_.repeats),
                         "choose fewer --repeats or a smaller --gemm");
  }

  void AddRank(int64_t rank, RankProgram* program) const override {
    const int64_t e = options_.element_bytes;
    const auto [m, k, n, count] = own_;
    std::vector<NodeIndex> before;
    for (int64_t i = 0; i < options_.repeats; ++i) {
      std::vector<NodeIndex> factors = before;
      if (options_.grid[1] > 1) {
        factors.push_back(program->Collective("rows.all-gather", ChakraProtoMsg::ALL_GATHER,
                                              e * m * k / options_.grid[1],
                                              program->AddGroup(layout_.DataGroup(rank)), before));
      }
      if (options_.grid[0] > 1) {
        factors.push_back(program->Collective(
            "columns.all-gather", ChakraProtoMsg::ALL_GATHER, e * k * n / options_.grid[0],
            program->AddGroup(layout_.TensorGroup(rank)), before));
      }
      NodeIndex value = program->Compute("gemm", Cost(), Duration(), factors);
      if (options_.grid[2] > 1) {
        value = program->Collective("result.all-reduce", ChakraProtoMsg::ALL_REDUCE, e * m * n,
                                    program->AddGroup(layout_.StageGroup(rank)), {value});
      }
      before = {value};
    }
  }

 private:
  WorkCost Cost() const {
    return {2 * own_.m * own_.k * own_.n,
            options_.element_bytes * (own_.m * own_.k + own_.k * own_.n + own_.m * own_.n)};
  }
  int64_t Duration() const {
    return DurationNs(options_.device, Cost(), {own_}, options_.element_bytes);
  }

  const GemmOptions options_;
  const RankLayout layout_;
  // A rank's part.
  MatrixProduct own_;
};

class LstmStep : public GeneratedWorkload {
 public:
  explicit LstmStep(const LstmOptions& options)
      : options_(options), layout_(options.tensor_parallel, options.data_parallel, 1) {
    const int64_t h = options.hidden;
    const int64_t b = options.batch / options.data_parallel;
    // Input and hidden state side by side, times the weights of four gates.
    product_ = {b, 2 * h, 4 * h / options.tensor_parallel};
  }

  int64_t rank_count() const override { return layout_.rank_count(); }

  absl::Status Check() const {
    const absl::int128 m = product_.m, k = product_.k, n = product_.n;
    RETURN_IF_ERROR(CheckFits(2 * m * k * n + kCellOperations * m * n,
                              options_.element_bytes * (m * k + k * n + 2 * m * n),
                              "make --hidden or --batch smaller"));
    const absl::int128 cells = absl::int128(options_.layers) * options_.sequence;
    RETURN_IF_ERROR(CheckCount(rank_count() * (4 * cells + 2 * options_.layers), "nodes",
                               kMaxGeneratedNodes, "choose a shorter --sequence or fewer ranks"));
    RETURN_IF_ERROR(CheckCount(layout_.named_tensor_groups() + layout_.named_data_groups(),
                               "process groups", kMaxGroupNumber, "choose another --tp or --dp"));
    if (options_.tensor_parallel > 1) {
      RETURN_IF_ERROR(CheckAllGatherBytes(StateBytes() / options_.tensor_parallel,
                                          "make --hidden or --batch larger"));
    }
    ASSIGN_OR_RETURN(const WorkCost optimizer, Optimizer());
    return CheckDuration(3 * static_cast<double>(CellNs()) * static_cast<double>(cells) +
                             static_cast<double>(OptimizerNs(optimizer)),
                         "make the network smaller or the device faster");
  }

  void AddRank(int64_t rank, RankProgram* program) const override {
    GroupIndex tensor_group = 0, data_group = 0;
    if (options_.tensor_parallel > 1) tensor_group = program->AddGroup(layout_.TensorGroup(rank));
    if (options_.data_parallel > 1) data_group = program->AddGroup(layout_.DataGroup(rank));
    // By layer: what its last cell gave.
    std::vector<NodeIndex> states;
    Sweep(
        "forward", Cost(), CellNs(),
        [&](const std::string& name, NodeIndex cell) {
          if (options_.tensor_parallel == 1) return cell;
          return program->Collective(absl::StrCat(name, ".all-gather"), ChakraProtoMsg::ALL_GATHER,
                                     StateBytes() / options_.tensor_parallel, tensor_group, {cell});
        },
        program, &states);
    Sweep(
        "backward", BackwardCost(Cost()), 2 * CellNs(),
        [&](const std::string& name, NodeIndex cell) {
          if (options_.tensor_parallel == 1) return cell;
          // Gradients of the input and of the hidden state.
          return program->Collective(absl::StrCat(name, ".all-reduce"), ChakraProtoMsg::ALL_REDUCE,
                                     2 * StateBytes(), tensor_group, {cell});
        },
        program, &states);
    // The last layer is done first.
    for (int64_t layer = options_.layers - 1; layer >= 0 && options_.data_parallel > 1; --layer) {
      states[layer] = program->Collective(
          absl::StrCat("layer", layer, ".gradients.all-reduce"), ChakraProtoMsg::ALL_REDUCE,
          options_.element_bytes * product_.k * product_.n, data_group, {states[layer]});
    }
    const absl::StatusOr<WorkCost> optimizer = Optimizer();
    if (optimizer.ok()) {
      program->Compute("optimizer", *optimizer, OptimizerNs(*optimizer), states);
    }
  }

 private:
  // Passes through all time steps and layers; `states` are those of the layers before and after.
  template <typename Finish>
  void Sweep(absl::string_view direction, const WorkCost& cost, int64_t duration_ns, Finish finish,
             RankProgram* program, std::vector<NodeIndex>* states) const {
    const bool is_forward = direction == "forward";
    for (int64_t step = 0; step < options_.sequence; ++step) {
      NodeIndex neighbour = kNoNodeIndex;
      for (int64_t i = 0; i < options_.layers; ++i) {
        const int64_t layer = is_forward ? i : options_.layers - 1 - i;
        const int64_t time = is_forward ? step : options_.sequence - 1 - step;
        const std::string name = absl::StrCat("layer", layer, ".step", time, ".", direction);
        if (states->size() <= static_cast<size_t>(layer)) states->push_back(kNoNodeIndex);
        NodeIndex& state = (*states)[layer];
        std::vector<NodeIndex> after;
        for (const NodeIndex source : {state, neighbour}) {
          if (source != kNoNodeIndex) after.push_back(source);
        }
        state = finish(name, program->Compute(name, cost, duration_ns, after));
        neighbour = state;
      }
    }
  }

  WorkCost Cost() const {
    const auto& [m, k, n, count] = product_;
    return {2 * m * k * n + kCellOperations * m * n / 4,
            options_.element_bytes * (m * k + k * n + 2 * m * n)};
  }
  absl::StatusOr<WorkCost> Optimizer() const {
    return OptimizerCost(absl::int128(options_.layers) * product_.k * product_.n,
                         options_.element_bytes);
  }
  // The hidden state of all ranks of a tensor group.
  int64_t StateBytes() const { return options_.element_bytes * product_.m * options_.hidden; }
  int64_t CellNs() const {
    return DurationNs(options_.device, Cost(), {product_}, options_.element_bytes);
  }
  int64_t OptimizerNs(const WorkCost& cost) const {
    return DurationNs(options_.device, cost, {}, options_.element_bytes);
  }

  const LstmOptions options_;
  const RankLayout layout_;
  // A rank's part of the gates of one cell.
  MatrixProduct product_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeGemm(const GemmOptions& given) {
  GemmOptions options = given;
  options.grid.resize(3, 1);
  const int64_t sides[] = {options.product.m, options.product.n, options.product.k};
  absl::int128 ranks = 1;
  for (size_t i = 0; i < 3; ++i) {
    RETURN_IF_ERROR(CheckRange("--gemm", sides[i], 1, kMaxSide));
    RETURN_IF_ERROR(CheckRange("--grid", options.grid[i], 1, kMaxGeneratedRanks));
    RETURN_IF_ERROR(CheckDivides("--gemm", sides[i], absl::StrCat("--grid=", options.grid[i]),
                                 options.grid[i]));
    ranks *= options.grid[i];
  }
  RETURN_IF_ERROR(CheckCount(ranks, "ranks", kMaxGeneratedRanks, "choose a smaller --grid"));
  RETURN_IF_ERROR(CheckRange("--repeats", options.repeats, 1, kMaxGeneratedNodes));
  RETURN_IF_ERROR(CheckRange("--dtype_bytes", options.element_bytes, 1, kMaxElementBytes));
  RETURN_IF_ERROR(CheckTflops(options.device.tflops));
  auto workload = std::make_unique<Gemm>(options);
  RETURN_IF_ERROR(workload->Check());
  return workload;
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeLstmStep(const LstmOptions& options) {
  RETURN_IF_ERROR(CheckRange("--tp", options.tensor_parallel, 1, kMaxGeneratedRanks));
  RETURN_IF_ERROR(CheckRange("--dp", options.data_parallel, 1, kMaxGeneratedRanks));
  RETURN_IF_ERROR(CheckCount(absl::int128(options.tensor_parallel) * options.data_parallel, "ranks",
                             kMaxGeneratedRanks, "make --tp or --dp smaller"));
  RETURN_IF_ERROR(CheckRange("--layers", options.layers, 1, 1 << 16));
  RETURN_IF_ERROR(CheckRange("--hidden", options.hidden, 1, kMaxSide));
  RETURN_IF_ERROR(CheckRange("--sequence", options.sequence, 1, kMaxSide));
  RETURN_IF_ERROR(CheckRange("--batch", options.batch, 1, kMaxSide));
  RETURN_IF_ERROR(CheckRange("--dtype_bytes", options.element_bytes, 1, kMaxElementBytes));
  RETURN_IF_ERROR(CheckDivides("--hidden", options.hidden,
                               absl::StrCat("--tp=", options.tensor_parallel),
                               options.tensor_parallel));
  RETURN_IF_ERROR(CheckDivides("--batch", options.batch,
                               absl::StrCat("--dp=", options.data_parallel),
                               options.data_parallel));
  RETURN_IF_ERROR(CheckTflops(options.device.tflops));
  auto workload = std::make_unique<LstmStep>(options);
  RETURN_IF_ERROR(workload->Check());
  return workload;
}

}  // namespace meridian
