#include "trace_alignment/run/waiting_summary.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "trace_alignment/collectives/skew.h"
#include "trace_alignment/collectives/slow_links.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {
namespace {

// Returns the bytes that cross the bus for each byte of a rank's buffer, as nccl-tests count; of an
// all-gather for each byte of its share. 0 for kinds that they do not count.
double BusFactor(CollectiveKind kind, double ranks) {
  using Kind = CollectiveKind;
  if (ranks < 2) return 0;
  if (kind == Kind::kAllReduce) return 2 * (ranks - 1) / ranks;
  if (kind == Kind::kAllGather) return ranks - 1;
  if (kind == Kind::kReduceScatter || kind == Kind::kAllToAll) return (ranks - 1) / ranks;
  return kind == Kind::kCollectiveBroadcast || kind == Kind::kCollectiveReduce ? 1 : 0;
}

class WaitingSummary {
 public:
  WaitingSummary(const CollectiveTable& table, const CollectiveRun& run, CombineReport* report)
      : table_(table), run_(run), report_(report) {}

  void Describe() {
    DescribeRun();
    DescribeCoverage();
    DescribeKinds();
    DescribeRanks();
    DescribeSteps();
    DescribeTransfers();
    DescribeLinks();
  }

 private:
  std::optional<int64_t> StepOf(const CollectiveMember& member) const {
    const uint32_t node = table_.node_of_rank()[member.rank];
    if (node == CollectiveTable::kNoNode) return std::nullopt;
    return run_.profiles[node].events[member.event].step;
  }

  // How long each rank waited in each step.
  void DescribeSteps() {
    std::map<std::pair<std::optional<int64_t>, uint32_t>, CombinedStep> steps;
    for (const CollectiveInstance& instance : table_.instances()) {
      if (instance.missing > 0) continue;
      const std::optional<GroupTiming> timing = TimingOf(table_, instance);
      // Of messages: how long data moved, by the position of either end.
      const absl::Span<const CollectiveMember> members = table_.MembersOf(instance);
      std::map<int64_t, int64_t> moved_ps;
      for (const MemberPair& pair : table_.PairsOf(instance)) {
        const int64_t pair_ps = PairTransferPs(table_, instance, pair);
        for (const int64_t end : {int64_t{pair.source}, int64_t{pair.target}}) {
          moved_ps[end] = std::max(moved_ps[end], pair_ps);
        }
      }
      for (const CollectiveMember& member : members) {
        const std::optional<int64_t> step = StepOf(member);
        const double start_ms = static_cast<double>(member.start_ps) * kMsPerPs;
        const double end_ms = static_cast<double>(member.end_ps) * kMsPerPs;
        const auto [known, is_new] = steps.insert({{step, member.rank}, CombinedStep()});
        CombinedStep& row = known->second;
        if (step.has_value()) row.set_step(*step);
        row.set_rank(member.rank);
        row.set_start_ms(is_new ? start_ms : std::min(row.start_ms(), start_ms));
        row.set_end_ms(is_new ? end_ms : std::max(row.end_ms(), end_ms));
        double waited_ms =
            timing.has_value() ? static_cast<double>(timing->SkewPs(member)) * kMsPerPs : 0;
        if (const auto moved = moved_ps.find(&member - members.data()); moved != moved_ps.end()) {
          waited_ms =
              std::max(0.0, end_ms - start_ms - static_cast<double>(moved->second) * kMsPerPs);
        }
        row.set_waited_ms(row.waited_ms() + waited_ms);
        row.set_transfer_ms(row.transfer_ms() + std::max(0.0, end_ms - start_ms - waited_ms));
        if (waited_ms <= row.worst_ms()) continue;
        row.set_worst_ms(waited_ms);
        row.set_worst_op(table_.OpOf(instance).instruction);
      }
    }
    for (auto& [key, row] : steps) *report_->add_step_waits() = std::move(row);
  }

  void DescribeTransfers() {
    struct Times {
      CollectiveKind kind;
      std::vector<double> transfer_ms, wait_ms;
    };
    std::map<std::tuple<std::string, int64_t, int64_t>, Times> cells;
    for (const CollectiveInstance& instance : table_.instances()) {
      if (instance.missing > 0) continue;
      const std::optional<GroupTiming> timing = TimingOf(table_, instance);
      if (!timing.has_value()) continue;
      const MatchedOp& op = table_.OpOf(instance);
      double wait_ms = 0;
      for (const CollectiveMember& member : table_.MembersOf(instance)) {
        wait_ms += static_cast<double>(timing->SkewPs(member)) * kMsPerPs;
      }
      Times& times = cells[{std::string(CollectiveKindName(op.kind)), op.operand_bytes,
                            instance.member_count}];
      times.kind = op.kind;
      times.transfer_ms.push_back(static_cast<double>(timing->transfer_ps) * kMsPerPs);
      times.wait_ms.push_back(wait_ms / instance.member_count);
    }
    for (const auto& [key, times] : cells) {
      CombinedTransfer& cell = *report_->add_transfers();
      std::string kind;
      int64_t bytes = 0, ranks = 0;
      std::tie(kind, bytes, ranks) = key;
      cell.set_kind(kind);
      cell.set_bytes(bytes);
      cell.set_ranks(ranks);
      cell.set_count(static_cast<int64_t>(times.transfer_ms.size()));
      cell.set_transfer_ms(Median(times.transfer_ms));
      cell.set_wait_ms(Median(times.wait_ms));
      if (cell.transfer_ms() > 0) {
        cell.set_bus_gb_per_s(static_cast<double>(bytes) *
                              BusFactor(times.kind, static_cast<double>(ranks)) /
                              (cell.transfer_ms() * 1e6));
      }
    }
  }

  void DescribeLinks() {
    const std::optional<int64_t> uncertainty_ns = ClockUncertaintyNs(*report_);
    std::vector<std::string> hosts(table_.node_of_rank().size());
    for (const CombinedNode& node : report_->nodes()) {
      for (const int64_t rank : node.ranks()) hosts[static_cast<size_t>(rank)] = node.hostname();
    }
    const SlowLinks found = FindSlowLinks(
        table_, hosts,
        uncertainty_ns.has_value() ? std::make_optional(*uncertainty_ns * kPsPerNs) : std::nullopt);
    for (const SlowLink& link : found.links) {
      CombinedLink& row = *report_->add_slow_links();
      row.set_rank(link.rank);
      row.set_times_slower(link.times_slower);
      for (const uint32_t rank : link.or_ranks) row.add_or_ranks(rank);
      row.set_transfers(link.transfers);
      row.set_compared_with(link.compared_with);
    }
    report_->set_link_ranks_compared(found.compared_ranks);
    report_->set_link_ranks(found.ranks);
  }

  // How long it was, and how much of it all ranks have.
  void DescribeRun() {
    int64_t incomplete = 0;
    for (const CollectiveInstance& instance : table_.instances()) {
      incomplete += instance.missing > 0 ? 1 : 0;
    }
    report_->mutable_happens_before()->set_incomplete(incomplete);
    std::optional<int64_t> first_ps, last_ps;
    for (const CollectiveInstance& instance : table_.instances()) {
      if (instance.missing > 0) continue;
      for (const CollectiveMember& member : table_.MembersOf(instance)) {
        first_ps = std::min(member.start_ps, first_ps.value_or(member.start_ps));
        last_ps = std::max(member.end_ps, last_ps.value_or(member.end_ps));
      }
    }
    if (first_ps.has_value()) {
      report_->set_wall_ms(static_cast<double>(*last_ps - *first_ps) * kMsPerPs);
    }
    // How many of the profiles that tell steps have collectives of one.
    std::map<int64_t, size_t> profiles_with;
    size_t profiles = 0;
    for (const ProfileCollectives& profile : run_.profiles) {
      std::set<int64_t> steps;
      for (const CollectiveEvent& event : profile.events) {
        if (event.step.has_value()) steps.insert(*event.step);
      }
      for (int64_t step : steps) ++profiles_with[step];
      profiles += steps.empty() ? 0 : 1;
    }
    report_->set_steps(static_cast<int64_t>(profiles_with.size()));
    report_->set_steps_on_all_ranks(
        std::count_if(profiles_with.begin(), profiles_with.end(),
                      [&](const auto& step) { return step.second == profiles; }));
  }

  // Returns the ranks that should take part: those of the group, or those of the op's pairs.
  std::set<uint32_t> RanksOf(const CollectiveInstance& instance) const {
    std::set<uint32_t> ranks;
    const auto add = [&](int64_t rank) {
      if (rank != kUnknownId) ranks.insert(static_cast<uint32_t>(rank));
    };
    if (instance.group != CollectiveInstance::kNoGroup) {
      for (const int64_t rank : table_.groups()[instance.group]) add(rank);
      return ranks;
    }
    const CollectiveMember& member = table_.MembersOf(instance)[0];
    const ProfileCollectives& profile = run_.profiles[table_.NodeOf(member)];
    for (const SourceTargetPair& pair : profile.ops[profile.events[member.event].op].pairs) {
      add(run_.ranks.RankOf(pair.source));
      add(run_.ranks.RankOf(pair.target));
    }
    return ranks;
  }

  // Which ranks are there, and how many of their collectives.
  void DescribeCoverage() {
    const std::vector<uint32_t>& nodes = table_.node_of_rank();
    std::vector<int64_t> present(nodes.size()), expected(nodes.size());
    for (const CollectiveInstance& instance : table_.instances()) {
      for (const CollectiveMember& member : table_.MembersOf(instance)) ++present[member.rank];
      for (const uint32_t rank : RanksOf(instance)) ++expected[rank];
    }
    report_->set_job_ranks(static_cast<int64_t>(nodes.size()));
    for (size_t rank = 0; rank < nodes.size(); ++rank) {
      if (nodes[rank] == CollectiveTable::kNoNode) {
        report_->add_missing_ranks(static_cast<int64_t>(rank));
        continue;
      }
      CombinedCoverage& row = *report_->add_coverage();
      row.set_rank(static_cast<int64_t>(rank));
      row.set_collectives(present[rank]);
      row.set_expected(expected[rank]);
    }
  }

  // What the collectives cost, on the common clock.
  void DescribeKinds() {
    std::map<std::string, CombinedKind> kinds;
    for (const CollectiveInstance& instance : table_.instances()) {
      if (instance.missing > 0) continue;
      const MatchedOp& op = table_.OpOf(instance);
      CombinedKind& kind = kinds[std::string(CollectiveKindName(op.kind))];
      kind.set_instances(kind.instances() + 1);
      kind.set_operand_bytes(kind.operand_bytes() + op.operand_bytes);
      int64_t wait_ps = 0, transfer_ps = 0;
      if (const std::optional<GroupTiming> timing = TimingOf(table_, instance)) {
        for (const CollectiveMember& member : table_.MembersOf(instance)) {
          wait_ps += timing->SkewPs(member);
        }
        wait_ps /= instance.member_count;
        transfer_ps = timing->transfer_ps;
      }
      for (const MemberPair& pair : table_.PairsOf(instance)) {
        transfer_ps += PairTransferPs(table_, instance, pair);
      }
      kind.set_wait_ms(kind.wait_ms() + static_cast<double>(wait_ps) * kMsPerPs);
      kind.set_transfer_ms(kind.transfer_ms() + static_cast<double>(transfer_ps) * kMsPerPs);
    }
    std::vector<CombinedKind> sorted;
    for (auto& [name, kind] : kinds) {
      kind.set_kind(name);
      sorted.push_back(kind);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const CombinedKind& a, const CombinedKind& b) {
                       return a.wait_ms() + a.transfer_ms() > b.wait_ms() + b.transfer_ms();
                     });
    for (const CombinedKind& kind : sorted) *report_->add_kinds() = kind;
  }

  void DescribeRanks() {
    const std::vector<RankSkew> ranks = SummariseSkew(table_);
    std::vector<size_t> order(ranks.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return ranks[a].wait_caused_ps > ranks[b].wait_caused_ps;
    });
    for (size_t rank : order) {
      if (ranks[rank].instances == 0) continue;
      const uint32_t node = table_.node_of_rank()[rank];
      CombinedRank* out = report_->add_ranks();
      out->set_rank(static_cast<int64_t>(rank));
      if (node != CollectiveTable::kNoNode) out->set_node_id(NodeIdOf(node));
      out->set_last(ranks[rank].times_last);
      out->set_collectives(ranks[rank].instances);
      out->set_caused_wait_ms(static_cast<double>(ranks[rank].wait_caused_ps) * kMsPerPs);
      out->set_waited_ms(static_cast<double>(ranks[rank].waited_ps) * kMsPerPs);
      out->set_transfer_ms(static_cast<double>(ranks[rank].transfer_ps) * kMsPerPs);
    }
  }

  // Nodes of the report say which ranks they have.
  int64_t NodeIdOf(uint32_t node) const {
    for (const CombinedNode& described : report_->nodes()) {
      for (int64_t rank : described.ranks()) {
        if (table_.node_of_rank()[static_cast<size_t>(rank)] == node) return described.node_id();
      }
    }
    return 0;
  }

  const CollectiveTable& table_;
  const CollectiveRun& run_;
  CombineReport* const report_;
};

}  // namespace

bool HasUnknownClock(const CombineReport& report, const CombinedNode& node) {
  // Where no clock is stated, none is known to be lost.
  const bool is_stated = absl::c_any_of(
      report.nodes(), [](const CombinedNode& any) { return any.has_uncertainty_max_ns(); });
  return node.method() == "unreachable" || (is_stated && !node.has_offset_ns());
}

std::optional<int64_t> ClockUncertaintyNs(const CombineReport& report) {
  if (report.nodes_size() < 2) return 0;
  int64_t most_ns = 0;
  for (const CombinedNode& node : report.nodes()) {
    if (HasUnknownClock(report, node)) continue;
    if (!node.has_uncertainty_max_ns()) return std::nullopt;
    most_ns = std::max(most_ns, node.uncertainty_max_ns());
  }
  return most_ns;
}

void DescribeWaiting(const CollectiveTable& table, const CollectiveRun& run,
                     CombineReport* report) {
  WaitingSummary(table, run, report).Describe();
}

}  // namespace meridian
