#include "astra_bridge/corrections/corrected_simulation.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

CollectiveKind KindOf(const WorkloadNode& node) {
  return node.type == WorkloadNodeType::kSend ? CollectiveKind::kPointToPoint : node.op;
}

// Returns the first transfers that are tied together: from one to the next there is no instant at
// which none is under way. `transfers` is not empty.
absl::Span<const Transfer> FirstTogether(absl::Span<const Transfer> transfers) {
  int64_t end_ns = transfers[0].end_ns;
  size_t count = 1;
  for (; count < transfers.size() && transfers[count].begin_ns < end_ns; ++count) {
    end_ns = std::max(end_ns, transfers[count].end_ns);
  }
  return transfers.subspan(0, count);
}

// When a rank was at something, to be asked whether it was meanwhile.
class BusyTimes {
 public:
  // Is called in the order of the begins.
  void Add(int64_t begin_ns, int64_t end_ns) {
    begins_ns_.push_back(begin_ns);
    last_ends_ns_.push_back(last_ends_ns_.empty() ? end_ns
                                                  : std::max(last_ends_ns_.back(), end_ns));
  }

  bool Overlap(int64_t begin_ns, int64_t end_ns) const {
    const auto begun =
        std::lower_bound(begins_ns_.begin(), begins_ns_.end(), end_ns) - begins_ns_.begin();
    return begun > 0 && last_ends_ns_[begun - 1] > begin_ns;
  }

 private:
  std::vector<int64_t> begins_ns_;
  // The last end of each and all before it.
  std::vector<int64_t> last_ends_ns_;
};

class Corrector {
 public:
  // All must outlive this object, which fills in the durations.
  Corrector(const Workload& workload, const TransferLog& log, const Corrections& corrections,
            IsolatedTransfers& isolated, FixedDurations* durations)
      : workload_(workload),
        log_(log),
        corrections_(corrections),
        isolated_(isolated),
        durations_(durations) {}

  absl::Status Run() {
    for (const Transfer& transfer : log_.transfers()) {
      const WorkloadNode& node = NodeOf(transfer);
      if (node.type != WorkloadNodeType::kSend) continue;
      sending_[log_.parts(transfer)[0].rank].Add(transfer.begin_ns, transfer.end_ns);
      receiving_[node.peer].Add(transfer.begin_ns, transfer.end_ns);
    }
    CountMovingRanks();
    for (absl::Span<const Transfer> rest = log_.transfers(); !rest.empty();) {
      const absl::Span<const Transfer> together = FirstTogether(rest);
      rest.remove_prefix(together.size());
      const auto corrected = std::count_if(
          together.begin(), together.end(),
          [&](const Transfer& transfer) { return corrections_.Has(KindOf(NodeOf(transfer))); });
      corrected_ += corrected;
      if (corrected == 0 && !corrections_.factor) continue;
      RETURN_IF_ERROR(CorrectTogether(together));
    }
    return absl::OkStatus();
  }

  int64_t corrected() const { return corrected_; }

 private:
  // Returns a node of the transfer; all are alike.
  const WorkloadNode& NodeOf(const Transfer& transfer) const {
    const TransferPart& part = log_.parts(transfer)[0];
    return workload_.ranks[part.rank].nodes()[part.node];
  }

  void CountMovingRanks() {
    enum Change { kEnd, kBegin, kMiddle };
    std::vector<std::tuple<int64_t, Change, size_t>> changes;
    for (size_t i = 0; i < log_.transfers().size(); ++i) {
      const Transfer& transfer = log_.transfers()[i];
      if (NodeOf(transfer).type != WorkloadNodeType::kSend) continue;
      // What takes no time is under way for a moment, too.
      const int64_t end_ns = std::max(transfer.end_ns, transfer.begin_ns + 1);
      changes.push_back({transfer.begin_ns, kBegin, i});
      changes.push_back({transfer.begin_ns + (end_ns - transfer.begin_ns) / 2, kMiddle, i});
      changes.push_back({end_ns, kEnd, i});
    }
    std::sort(changes.begin(), changes.end());
    moving_.resize(log_.transfers().size());
    absl::flat_hash_map<int32_t, int64_t> messages_of_rank;
    for (const auto& [time_ns, change, i] : changes) {
      if (change == kMiddle) {
        moving_[i] = static_cast<int64_t>(messages_of_rank.size());
        continue;
      }
      const Transfer& transfer = log_.transfers()[i];
      for (const int32_t rank : {log_.parts(transfer)[0].rank, NodeOf(transfer).peer}) {
        int64_t& messages = messages_of_rank[rank];
        messages += change == kBegin ? 1 : -1;
        if (messages == 0) messages_of_rank.erase(rank);
      }
    }
  }

  // True for a message whose source does not receive, and whose target does not send, meanwhile.
  bool IsOneWay(const Transfer& transfer) const {
    const WorkloadNode& node = NodeOf(transfer);
    if (node.type != WorkloadNodeType::kSend) return false;
    const auto is_busy = [&](const absl::flat_hash_map<int32_t, BusyTimes>& times, int32_t rank) {
      const auto found = times.find(rank);
      return found != times.end() && found->second.Overlap(transfer.begin_ns, transfer.end_ns);
    };
    return !is_busy(receiving_, log_.parts(transfer)[0].rank) && !is_busy(sending_, node.peer);
  }

  TransferTraits TraitsOf(const Transfer& transfer) const {
    const WorkloadNode& node = NodeOf(transfer);
    const bool is_message = node.type == WorkloadNodeType::kSend;
    const int64_t moving = is_message ? moving_[&transfer - log_.transfers().data()]
                                      : static_cast<int64_t>(log_.parts(transfer).size());
    return {KindOf(node), node.bytes, static_cast<double>(std::max<int64_t>(moving, 1)),
            IsOneWay(transfer)};
  }

  absl::Status CorrectTogether(absl::Span<const Transfer> transfers) {
    std::vector<TransferSpan> spans;
    std::vector<TransferTraits> traits;
    for (const Transfer& transfer : transfers) {
      ASSIGN_OR_RETURN(const absl::Span<const int64_t> alone_ns,
                       isolated_.PartsNs(log_.parts(transfer), transfer.odd_trees));
      traits.push_back(TraitsOf(transfer));
      const int64_t longest_ns = *std::max_element(alone_ns.begin(), alone_ns.end());
      spans.push_back({transfer.begin_ns, transfer.end_ns,
                       AloneTimesOf(corrections_, traits.back(), static_cast<double>(longest_ns))});
    }
    const std::vector<double> stretches = OverlapStretches(spans);
    for (size_t i = 0; i < transfers.size(); ++i) {
      const absl::Span<const TransferPart> parts = log_.parts(transfers[i]);
      ASSIGN_OR_RETURN(const absl::Span<const int64_t> alone_ns,
                       isolated_.PartsNs(parts, transfers[i].odd_trees));
      for (size_t p = 0; p < parts.size(); ++p) {
        SetDuration(transfers[i], parts[p], traits[i], alone_ns[p], stretches[i]);
      }
    }
    return absl::OkStatus();
  }

  void SetDuration(const Transfer& transfer, const TransferPart& part, const TransferTraits& traits,
                   int64_t alone_ns, double stretch) {
    const int64_t shared_ns = part.end_ns - transfer.begin_ns;
    const int64_t duration_ns =
        std::llround(CorrectedSharedNs(corrections_, {traits, static_cast<double>(alone_ns),
                                                      static_cast<double>(shared_ns), stretch}));
    durations_->Set(part.rank, part.node, std::min(duration_ns, kMaxDurationNs));
  }

  const Workload& workload_;
  const TransferLog& log_;
  const Corrections& corrections_;
  IsolatedTransfers& isolated_;
  FixedDurations* const durations_;
  int64_t corrected_ = 0;
  // When messages of a rank, and to it, are under way, by rank.
  absl::flat_hash_map<int32_t, BusyTimes> sending_;
  absl::flat_hash_map<int32_t, BusyTimes> receiving_;
  // How many ranks send or receive in the middle of each transfer, indexed by transfer; 0 for
  // collectives.
  std::vector<int64_t> moving_;
};

}  // namespace

CorrectedSimulator::CorrectedSimulator(const Workload& workload, const NetworkConfig& network,
                                       const SystemConfig& system, const SimulationOptions& options)
    : workload_(&workload),
      network_(&network),
      system_(&system),
      options_(options),
      isolated_(
          std::make_unique<IsolatedTransfers>(workload, network, system, options.congestion)) {}

absl::StatusOr<CorrectedSimulator> CorrectedSimulator::Create(const Workload& workload,
                                                              const NetworkConfig& network,
                                                              const SystemConfig& system,
                                                              const SimulationOptions& options) {
  CorrectedSimulator simulator(workload, network, system, options);
  SimulationOptions recording = options;
  recording.transfers = true;
  ASSIGN_OR_RETURN(simulator.uncorrected_, Simulate(workload, network, system, recording));
  simulator.log_ = std::exchange(simulator.uncorrected_.transfers, {});
  return simulator;
}

absl::StatusOr<CorrectedSimulation> CorrectedSimulator::Run(const Corrections& corrections) {
  FixedDurations durations(*workload_);
  Corrector corrector(*workload_, log_, corrections, *isolated_, &durations);
  RETURN_IF_ERROR(corrector.Run());
  CorrectedSimulation simulation;
  simulation.corrected = corrector.corrected();
  simulation.uncorrected = static_cast<int64_t>(log_.transfers().size()) +
                           log_.untied_collectives() - simulation.corrected;
  if (simulation.corrected == 0 && !corrections.factor) {
    simulation.result = uncorrected_;
    return simulation;
  }
  SimulationOptions corrected = options_;
  corrected.fixed_durations = &durations;
  ASSIGN_OR_RETURN(simulation.result, Simulate(*workload_, *network_, *system_, corrected));
  return simulation;
}

}  // namespace meridian
