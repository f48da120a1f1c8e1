#include "chakra_export/generate/micro_benchmark.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/generate/generated_workload.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 50;
// Twice as many times the bytes still fit into 64 bits.
constexpr int64_t kMaxBlocks = 2048;
// A minute: at the highest speed its operations still fit into 64 bits.
constexpr int64_t kMaxComputeUs = 60000000;

struct PatternInfo {
  absl::string_view name;
  // Nullopt for messages.
  std::optional<ChakraProtoMsg::CollectiveCommType> type;
  bool in_pairs;
  // How many axes the grid of a group has; 0 for patterns without one.
  size_t axes = 0;
};

constexpr PatternInfo kPatterns[] = {
    {"all-reduce", ChakraProtoMsg::ALL_REDUCE, false},
    {"all-gather", ChakraProtoMsg::ALL_GATHER, false},
    {"reduce-scatter", ChakraProtoMsg::REDUCE_SCATTER, false},
    {"all-to-all", ChakraProtoMsg::ALL_TO_ALL, false},
    {"p2p-ring", std::nullopt, false},
    {"p2p-pair", std::nullopt, true},
    {"p2p-ping-pong", std::nullopt, true},
    {"p2p-incast", std::nullopt, false},
    {"halo-1d", std::nullopt, false, 1},
    {"halo-2d", std::nullopt, false, 2},
    {"halo-3d", std::nullopt, false, 3},
    {"sweep3d", std::nullopt, false, 2},
    {"lu", std::nullopt, false, 2},
};

// The pattern is one of these.
const PatternInfo& InfoOf(absl::string_view pattern) {
  return *absl::c_find_if(kPatterns, [&](const PatternInfo& info) { return info.name == pattern; });
}

// A round of more messages than a ring's is joined before the next.
constexpr size_t kMostWaitedFor = 2;

// What a member of a group does at once, others being positions in the group. It receives from those
// upstream, computes, and then exchanges messages.
struct Exchange {
  std::vector<int64_t> targets;
  std::vector<int64_t> sources;
  std::vector<int64_t> upstream = {};
  bool computes = true;
  // Messages have so many times the bytes.
  int64_t factor = 1;
};

// Where waves go along both axes, from each corner of the grid in the order of Sweep3D.
constexpr int64_t kSweeps[][2] = {{1, 1}, {-1, 1}, {-1, -1}, {1, -1}};
// From each corner up the planes, and down.
constexpr int64_t kOctants = 8;

// What happens in a round of a pattern on a grid.
class GridRound {
 public:
  GridRound(const MicroBenchmarkOptions& options, int64_t position)
      : options_(options), position_(position) {}

  std::vector<Exchange> Exchanges() {
    if (options_.pattern == "sweep3d") {
      for (int64_t octant = 0; octant < kOctants; ++octant) AddSweep(kSweeps[octant % 4]);
    } else if (options_.pattern == "lu") {
      // The lower triangle, then the upper one.
      AddSweep(kSweeps[0]);
      AddSweep(kSweeps[2]);
      // All planes of the right-hand side, two deep.
      AddHalo();
      exchanges_.back().computes = false;
      exchanges_.back().factor = 2 * options_.blocks;
    } else {
      AddHalo();
    }
    return std::move(exchanges_);
  }

  static int64_t Count(const MicroBenchmarkOptions& options) {
    if (options.pattern == "sweep3d") return kOctants * options.blocks;
    return options.pattern == "lu" ? 2 * options.blocks + 1 : 1;
  }

 private:
  // Adds the neighbour so many steps along an axis; nobody beyond the end.
  void AddNeighbour(size_t axis, int64_t step, std::vector<int64_t>* neighbours) const {
    int64_t stride = 1;
    for (size_t i = 0; i < axis; ++i) stride *= options_.grid[i];
    const int64_t place = position_ / stride % options_.grid[axis] + step;
    if (place >= 0 && place < options_.grid[axis]) neighbours->push_back(position_ + step * stride);
  }

  void AddHalo() {
    Exchange& halo = exchanges_.emplace_back();
    for (size_t axis = 0; axis < options_.grid.size(); ++axis) {
      for (const int64_t step : {-1, 1}) AddNeighbour(axis, step, &halo.targets);
    }
    halo.sources = halo.targets;
  }

  void AddSweep(const int64_t (&directions)[2]) {
    Exchange block;
    for (size_t axis = 0; axis < 2; ++axis) {
      AddNeighbour(axis, -directions[axis], &block.upstream);
      AddNeighbour(axis, directions[axis], &block.targets);
    }
    exchanges_.insert(exchanges_.end(), static_cast<size_t>(options_.blocks), block);
  }

  const MicroBenchmarkOptions& options_;
  const int64_t position_;
  std::vector<Exchange> exchanges_;
};

// Returns a grid of so many ranks whose axes are as equal as can be.
std::vector<int64_t> EvenGrid(int64_t ranks, size_t axes) {
  std::vector<int64_t> grid;
  for (; axes > 0; --axes) {
    auto length = static_cast<int64_t>(std::ceil(std::pow(ranks, 1.0 / axes) - 1e-9));
    while (ranks % length != 0) ++length;
    grid.push_back(length);
    ranks /= length;
  }
  return grid;
}

// Returns the exchanges of the member at `position`, one after the other; none for collectives.
std::vector<Exchange> ExchangesOf(const MicroBenchmarkOptions& options, int64_t position) {
  const std::string& pattern = options.pattern;
  const int64_t group_size = options.group_size;
  if (!options.grid.empty()) return GridRound(options, position).Exchanges();
  const Exchange sends = {{1 - position}, {}}, receives = {{}, {1 - position}};
  const bool is_first = position == 0;
  if (pattern == "p2p-pair") return {is_first ? sends : receives};
  if (pattern == "p2p-ping-pong") {
    Exchange answer = is_first ? receives : sends;
    answer.computes = false;
    return {is_first ? sends : receives, answer};
  }
  Exchange exchange;
  if (pattern == "p2p-ring") {
    exchange.targets = {(position + 1) % group_size};
    exchange.sources = {(position + group_size - 1) % group_size};
  } else if (pattern != "p2p-incast") {
    return {};
  } else if (!is_first) {
    exchange.targets = {0};
  } else {
    for (int64_t i = 1; i < group_size; ++i) exchange.sources.push_back(i);
  }
  return {exchange};
}

class MicroBenchmark : public GeneratedWorkload {
 public:
  explicit MicroBenchmark(MicroBenchmarkOptions options)
      : options_(std::move(options)),
        layout_(options_.group_size, options_.ranks / options_.group_size, 1) {}

  int64_t rank_count() const override { return options_.ranks; }

  void AddRank(int64_t rank, RankProgram* program) const override {
    const PatternInfo& info = InfoOf(options_.pattern);
    const GroupIndex group = IsCollective() ? program->AddGroup(layout_.TensorGroup(rank)) : 0;
    const int64_t position = rank % options_.group_size;
    const std::vector<Exchange> exchanges = ExchangesOf(options_, position);
    // What the next round waits for.
    std::vector<NodeIndex> round;
    if (NeedsStart()) round = {program->Compute("start", {1, 1}, 1, {})};
    int32_t tag = 0;
    for (const int64_t bytes : options_.bytes) {
      const std::string name = absl::StrCat(info.name, ".", FormatByteSize(bytes));
      for (int64_t i = 0; i < options_.repeats; ++i) {
        if (IsCollective()) {
          Compute(program, &round);
          round = {program->Collective(name, *info.type, bytes, group, round)};
        }
        for (const Exchange& exchange : exchanges) {
          const PeerMessage message = {rank - position, exchange.factor * bytes, tag++};
          Communicate(name, {}, exchange.upstream, message, program, &round);
          if (exchange.computes) Compute(program, &round);
          Communicate(name, exchange.targets, exchange.sources, message, program, &round);
        }
      }
    }
  }

  const RankLayout& layout() const { return layout_; }

  // In each round a rank has a collective, or on average ends of at most two messages, or, on a grid, of
  // two along each axis both ways in each exchange.
  absl::int128 MostNodes() const {
    const absl::int128 rounds = absl::int128(options_.bytes.size()) * options_.repeats;
    const size_t axes = options_.grid.size();
    absl::int128 of_round = (IsCollective() ? 1 : 2) + (options_.compute_us > 0 ? 1 : 0);
    if (axes > 0) of_round = absl::int128(GridRound::Count(options_)) * (4 * axes + 2);
    return options_.ranks * (rounds * of_round + (NeedsStart() ? 1 : 0));
  }

  // As long as the computation lasts at the given speed, and bound by nothing else.
  WorkCost ComputeCost() const {
    return {static_cast<int64_t>(static_cast<double>(compute_ns()) * options_.tflops * 1000), 1};
  }

 private:
  void Compute(RankProgram* program, std::vector<NodeIndex>* round) const {
    if (options_.compute_us == 0) return;
    *round = {program->Compute("compute", ComputeCost(), compute_ns(), *round)};
  }

  // Sends to these members of the group and receives from those; the peer of `message` is the group's
  // first rank.
  static void Communicate(const std::string& name, const std::vector<int64_t>& targets,
                          const std::vector<int64_t>& sources, const PeerMessage& message,
                          RankProgram* program, std::vector<NodeIndex>* round) {
    if (targets.empty() && sources.empty()) return;
    // Each message waits for all of the round before: one node that does is enough.
    if (round->size() > kMostWaitedFor) *round = {program->Compute("join", {1, 1}, 1, *round)};
    std::vector<NodeIndex> next;
    const auto with = [&](int64_t member) {
      return PeerMessage{message.peer + member, message.bytes, message.tag};
    };
    for (const int64_t target : targets) {
      next.push_back(program->Send(name, with(target), *round));
    }
    for (const int64_t source : sources) {
      next.push_back(program->Receive(name, with(source), *round));
    }
    *round = std::move(next);
  }

  int64_t compute_ns() const { return 1000 * options_.compute_us; }
  bool IsCollective() const { return InfoOf(options_.pattern).type.has_value(); }
  bool NeedsStart() const {
    return !IsCollective() && options_.compute_us == 0 && options_.bytes[0] < kMinEarlyMessageBytes;
  }

  const MicroBenchmarkOptions options_;
  // Its tensor groups are the groups of the benchmark.
  const RankLayout layout_;
};

absl::Status CheckGrid(const MicroBenchmarkOptions& options, size_t axes) {
  RETURN_IF_ERROR(CheckRange("--blocks", options.blocks, 1, kMaxBlocks));
  absl::int128 ranks = 1;
  for (const int64_t length : options.grid) {
    RETURN_IF_ERROR(CheckRange("--grid", length, 1, options.group_size));
    ranks *= length;
  }
  if (options.grid.size() == axes && (axes == 0 || ranks == options.group_size)) {
    return absl::OkStatus();
  }
  if (axes == 0) return InvalidArgument("--grid means nothing with --pattern=", options.pattern);
  return InvalidArgument("--grid=", absl::StrJoin(options.grid, "x"), ": expected ", axes,
                         axes == 1 ? " length" : " lengths", " whose product is the ",
                         options.group_size, " ranks of a group, e.g. ",
                         absl::StrJoin(EvenGrid(options.group_size, axes), "x"));
}

absl::Status CheckOptions(const MicroBenchmarkOptions& options) {
  const PatternInfo& info = InfoOf(options.pattern);
  RETURN_IF_ERROR(CheckRange("--ranks", options.ranks, 2, kMaxGeneratedRanks));
  RETURN_IF_ERROR(
      CheckRange("--group_size", options.group_size, 2, info.in_pairs ? 2 : options.ranks));
  RETURN_IF_ERROR(CheckDivides("--ranks", options.ranks,
                               absl::StrCat("--group_size=", options.group_size),
                               options.group_size));
  RETURN_IF_ERROR(CheckGrid(options, info.axes));
  RETURN_IF_ERROR(CheckRange("--repeats", options.repeats, 1, kMaxGeneratedNodes));
  RETURN_IF_ERROR(CheckRange("--compute_us", options.compute_us, 0, kMaxComputeUs));
  RETURN_IF_ERROR(CheckTflops(options.tflops));
  if (options.bytes.empty()) {
    return absl::InvalidArgumentError("--bytes names no size; expected e.g. --bytes=1KiB,1MiB");
  }
  for (const int64_t bytes : options.bytes) {
    RETURN_IF_ERROR(CheckRange("--bytes", bytes, 1, kMaxBytes));
    if (options.pattern != "all-gather") continue;
    RETURN_IF_ERROR(CheckAllGatherBytes(bytes, "choose larger --bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> MicroPatternNames() {
  std::vector<std::string> names;
  for (const PatternInfo& info : kPatterns) names.emplace_back(info.name);
  return names;
}

absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeMicroBenchmark(
    const MicroBenchmarkOptions& given) {
  MicroBenchmarkOptions options = given;
  if (options.group_size == 0) {
    options.group_size = InfoOf(options.pattern).in_pairs ? 2 : options.ranks;
  }
  if (options.grid.empty() && options.group_size > 0 && options.group_size <= kMaxGeneratedRanks) {
    options.grid = EvenGrid(options.group_size, InfoOf(options.pattern).axes);
  }
  RETURN_IF_ERROR(CheckOptions(options));
  auto workload = std::make_unique<MicroBenchmark>(options);
  RETURN_IF_ERROR(CheckCount(workload->MostNodes(), "nodes", kMaxGeneratedNodes,
                             "choose fewer --ranks or --repeats"));
  if (InfoOf(options.pattern).type.has_value()) {
    RETURN_IF_ERROR(CheckCount(workload->layout().named_tensor_groups(), "process groups",
                               kMaxGroupNumber, "choose a larger --group_size"));
  }
  RETURN_IF_ERROR(CheckComputation(absl::int128(workload->ComputeCost().operations) *
                                       options.bytes.size() * options.repeats *
                                       GridRound::Count(options),
                                   options.tflops, "choose fewer --repeats or less --compute_us"));
  return workload;
}

}  // namespace meridian
