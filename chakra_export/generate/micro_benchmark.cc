#include "chakra_export/generate/micro_benchmark.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/generate/generated_workload.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 50;
// A minute: at the highest speed its operations still fit into 64 bits.
constexpr int64_t kMaxComputeUs = 60000000;

struct PatternInfo {
  absl::string_view name;
  // Nullopt for messages.
  std::optional<ChakraProtoMsg::CollectiveCommType> type;
  bool in_pairs;
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
};

// The pattern is one of these.
const PatternInfo& InfoOf(absl::string_view pattern) {
  return *absl::c_find_if(kPatterns, [&](const PatternInfo& info) { return info.name == pattern; });
}

// A round of more messages than a ring's is joined before the next.
constexpr size_t kMostWaitedFor = 2;

// The members of a group with which another one exchanges messages at once, as positions in the
// group.
struct Exchange {
  std::vector<int64_t> targets;
  std::vector<int64_t> sources;
};

// Returns the exchanges of the member at `position`, one after the other; none for collectives.
std::vector<Exchange> ExchangesOf(absl::string_view pattern, int64_t position, int64_t group_size) {
  const Exchange sends = {{1 - position}, {}}, receives = {{}, {1 - position}};
  const bool is_first = position == 0;
  if (pattern == "p2p-pair") return {is_first ? sends : receives};
  if (pattern == "p2p-ping-pong") return {is_first ? sends : receives, is_first ? receives : sends};
  Exchange exchange;
  if (pattern == "p2p-ring") {
    exchange = {{(position + 1) % group_size}, {(position + group_size - 1) % group_size}};
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
    const int64_t first_rank = rank - position;
    const std::vector<Exchange> exchanges =
        ExchangesOf(options_.pattern, position, options_.group_size);
    // What the next round waits for.
    std::vector<NodeIndex> round;
    if (NeedsStart()) round = {program->Compute("start", {1, 1}, 1, {})};
    int32_t tag = 0;
    for (const int64_t bytes : options_.bytes) {
      const std::string name = absl::StrCat(info.name, ".", FormatByteSize(bytes));
      for (int64_t i = 0; i < options_.repeats; ++i) {
        if (options_.compute_us > 0) {
          round = {program->Compute("compute", ComputeCost(), compute_ns(), round)};
        }
        if (IsCollective()) round = {program->Collective(name, *info.type, bytes, group, round)};
        for (const Exchange& exchange : exchanges) {
          // Each message of a round waits for all of the round before: one node that does is enough.
          if (round.size() > kMostWaitedFor) round = {program->Compute("join", {1, 1}, 1, round)};
          std::vector<NodeIndex> next;
          for (const int64_t target : exchange.targets) {
            next.push_back(program->Send(name, {first_rank + target, bytes, tag}, round));
          }
          for (const int64_t source : exchange.sources) {
            next.push_back(program->Receive(name, {first_rank + source, bytes, tag}, round));
          }
          round = std::move(next);
          ++tag;
        }
      }
    }
  }

  const RankLayout& layout() const { return layout_; }

  // A rank has a collective, or on average ends of at most two messages, in each round.
  absl::int128 MostNodes() const {
    const absl::int128 rounds = absl::int128(options_.bytes.size()) * options_.repeats;
    const int64_t of_round = (IsCollective() ? 1 : 2) + (options_.compute_us > 0 ? 1 : 0);
    return options_.ranks * (rounds * of_round + (NeedsStart() ? 1 : 0));
  }

  // As long as the computation lasts at the given speed, and bound by nothing else.
  WorkCost ComputeCost() const {
    return {static_cast<int64_t>(static_cast<double>(compute_ns()) * options_.tflops * 1000), 1};
  }

 private:
  int64_t compute_ns() const { return 1000 * options_.compute_us; }
  bool IsCollective() const { return InfoOf(options_.pattern).type.has_value(); }
  bool NeedsStart() const {
    return !IsCollective() && options_.compute_us == 0 && options_.bytes[0] < kMinEarlyMessageBytes;
  }

  const MicroBenchmarkOptions options_;
  // Its tensor groups are the groups of the benchmark.
  const RankLayout layout_;
};

absl::Status CheckOptions(const MicroBenchmarkOptions& options) {
  const PatternInfo& info = InfoOf(options.pattern);
  RETURN_IF_ERROR(CheckRange("--ranks", options.ranks, 2, kMaxGeneratedRanks));
  RETURN_IF_ERROR(
      CheckRange("--group_size", options.group_size, 2, info.in_pairs ? 2 : options.ranks));
  RETURN_IF_ERROR(CheckDivides("--ranks", options.ranks,
                               absl::StrCat("--group_size=", options.group_size),
                               options.group_size));
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
  RETURN_IF_ERROR(CheckOptions(options));
  auto workload = std::make_unique<MicroBenchmark>(options);
  RETURN_IF_ERROR(CheckCount(workload->MostNodes(), "nodes", kMaxGeneratedNodes,
                             "choose fewer --ranks or --repeats"));
  if (InfoOf(options.pattern).type.has_value()) {
    RETURN_IF_ERROR(CheckCount(workload->layout().named_tensor_groups(), "process groups",
                               kMaxGroupNumber, "choose a larger --group_size"));
  }
  RETURN_IF_ERROR(CheckComputation(
      absl::int128(workload->ComputeCost().operations) * options.bytes.size() * options.repeats,
      options.tflops, "choose fewer --repeats or less --compute_us"));
  return workload;
}

}  // namespace meridian
