#include "trace_alignment/run/waiting_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "trace_alignment/run/slow_links.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {
namespace {

double Ms(int64_t ps) { return static_cast<double>(ps) * kMsPerPs; }

class WaitingSummary {
 public:
  WaitingSummary(const CollectiveTable& table, const CollectiveRun& run, CombineReport* report)
      : table_(table), run_(run), report_(report) {}

  void Describe() {
    CountSteps();
    DescribeCoverage();
    int64_t incomplete = 0;
    for (const CollectiveInstance& instance : table_.instances()) {
      if (instance.missing > 0) {
        ++incomplete;
      } else {
        Add(instance);
      }
    }
    report_->mutable_happens_before()->set_incomplete(incomplete);
    if (first_ps_.has_value()) report_->set_wall_ms(Ms(*last_ps_ - *first_ps_));
    for (auto& [step_and_rank, row] : steps_) *report_->add_step_waits() = std::move(row);
    ListKinds();
    ListRanks();
    ListTransfers();
    FindLinks();
  }

 private:
  // What was seen of collectives of one kind, size and number of ranks.
  struct Times {
    CollectiveKind kind;
    std::vector<double> transfer_ms, wait_ms;
  };

  // Adds a collective that all its ranks have.
  void Add(const CollectiveInstance& instance) {
    const MatchedOp& op = table_.OpOf(instance);
    const std::optional<GroupTiming> timing = TimingOf(table_, instance);
    CombinedKind& kind = kinds_[std::string(CollectiveKindName(op.kind))];
    kind.set_instances(kind.instances() + 1);
    kind.set_operand_bytes(kind.operand_bytes() + op.operand_bytes);
    if (timing.has_value()) AddGroup(instance, *timing, &kind);
    // Of messages: how long data moved, by the position of either end.
    const absl::Span<const CollectiveMember> members = table_.MembersOf(instance);
    std::map<int64_t, int64_t> moved_ps;
    for (const MemberPair& pair : table_.PairsOf(instance)) {
      const int64_t pair_ps = PairTransferPs(table_, instance, pair);
      kind.set_transfer_ms(kind.transfer_ms() + Ms(pair_ps));
      for (const int64_t end : {int64_t{pair.source}, int64_t{pair.target}}) {
        moved_ps[end] = std::max(moved_ps[end], pair_ps);
      }
    }
    for (const CollectiveMember& member : members) {
      first_ps_ = std::min(member.start_ps, first_ps_.value_or(member.start_ps));
      last_ps_ = std::max(member.end_ps, last_ps_.value_or(member.end_ps));
      double waited_ms = timing.has_value() ? Ms(timing->SkewPs(member)) : 0;
      if (const auto moved = moved_ps.find(&member - members.data()); moved != moved_ps.end()) {
        waited_ms = std::max(0.0, Ms(member.end_ps - member.start_ps - moved->second));
      }
      AddToStep(member, waited_ms, op);
    }
  }

  // Adds what the members of a group that waits for its last have waited and moved.
  void AddGroup(const CollectiveInstance& instance, const GroupTiming& timing, CombinedKind* kind) {
    const MatchedOp& op = table_.OpOf(instance);
    const absl::Span<const CollectiveMember> members = table_.MembersOf(instance);
    CombinedRank& last = ranks_[members[timing.last_member].rank];
    double wait_ms = 0;
    for (const CollectiveMember& member : members) {
      const double waited_ms = Ms(timing.SkewPs(member));
      wait_ms += waited_ms;
      if (members.size() < 2) continue;
      CombinedRank& rank = ranks_[member.rank];
      rank.set_collectives(rank.collectives() + 1);
      rank.set_waited_ms(rank.waited_ms() + waited_ms);
      rank.set_transfer_ms(rank.transfer_ms() +
                           std::max(0.0, Ms(member.end_ps - timing.last_start_ps)));
    }
    if (members.size() > 1) {
      last.set_last(last.last() + 1);
      last.set_caused_wait_ms(last.caused_wait_ms() + wait_ms);
    }
    wait_ms /= static_cast<double>(members.size());
    kind->set_wait_ms(kind->wait_ms() + wait_ms);
    kind->set_transfer_ms(kind->transfer_ms() + Ms(timing.transfer_ps));
    // How long it took is not known.
    if (timing.transfer_ps == 0) return;
    Times& times =
        transfers_[{std::string(CollectiveKindName(op.kind)), op.operand_bytes, members.size()}];
    times.kind = op.kind;
    times.transfer_ms.push_back(Ms(timing.transfer_ps));
    times.wait_ms.push_back(wait_ms);
  }

  void AddToStep(const CollectiveMember& member, double waited_ms, const MatchedOp& op) {
    const std::optional<int64_t> step =
        run_.profiles[table_.NodeOf(member)].events[member.event].step;
    const double start_ms = Ms(member.start_ps), end_ms = Ms(member.end_ps);
    const auto [known, is_new] = steps_.insert({{step, member.rank}, CombinedStep()});
    CombinedStep& row = known->second;
    if (step.has_value()) row.set_step(*step);
    row.set_rank(member.rank);
    row.set_start_ms(is_new ? start_ms : std::min(row.start_ms(), start_ms));
    row.set_end_ms(is_new ? end_ms : std::max(row.end_ms(), end_ms));
    row.set_waited_ms(row.waited_ms() + waited_ms);
    row.set_transfer_ms(row.transfer_ms() + std::max(0.0, end_ms - start_ms - waited_ms));
    if (waited_ms <= row.worst_ms()) return;
    row.set_worst_ms(waited_ms);
    row.set_worst_op(op.instruction);
  }

  void ListKinds() {
    for (auto& [name, kind] : kinds_) {
      kind.set_kind(name);
      *report_->add_kinds() = kind;
    }
    absl::c_stable_sort(*report_->mutable_kinds(),
                        [](const CombinedKind& a, const CombinedKind& b) {
                          return a.wait_ms() + a.transfer_ms() > b.wait_ms() + b.transfer_ms();
                        });
  }

  void ListRanks() {
    std::map<int64_t, int64_t> node_ids;
    for (const CombinedNode& node : report_->nodes()) {
      for (const int64_t rank : node.ranks()) node_ids[rank] = node.node_id();
    }
    for (auto& [number, rank] : ranks_) {
      if (rank.collectives() == 0) continue;
      rank.set_rank(number);
      rank.set_node_id(node_ids[number]);
      *report_->add_ranks() = rank;
    }
    absl::c_stable_sort(*report_->mutable_ranks(),
                        [](const CombinedRank& a, const CombinedRank& b) {
                          return a.caused_wait_ms() > b.caused_wait_ms();
                        });
  }

  void ListTransfers() {
    for (const auto& [key, times] : transfers_) {
      const auto& [kind, bytes, ranks] = key;
      CombinedTransfer& cell = *report_->add_transfers();
      cell.set_kind(kind);
      cell.set_bytes(bytes);
      cell.set_ranks(static_cast<int64_t>(ranks));
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

  void FindLinks() {
    const std::optional<int64_t> uncertainty_ns = ClockUncertaintyNs(*report_);
    std::vector<std::string> hosts(table_.node_of_rank().size());
    for (const CombinedNode& node : report_->nodes()) {
      for (const int64_t rank : node.ranks()) hosts[static_cast<size_t>(rank)] = node.hostname();
    }
    FindSlowLinks(
        table_, hosts,
        uncertainty_ns.has_value() ? std::make_optional(*uncertainty_ns * kPsPerNs) : std::nullopt,
        report_);
  }

  // Counts the steps, and those of which all profiles that tell steps have collectives.
  void CountSteps() {
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
        absl::c_count_if(profiles_with, [&](const auto& step) { return step.second == profiles; }));
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
    // Only collectives tell which ranks the profiles are of.
    if (table_.instances().empty()) return;
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

  const CollectiveTable& table_;
  const CollectiveRun& run_;
  CombineReport* const report_;
  // From the first start to the last end, in ps from the run base.
  std::optional<int64_t> first_ps_, last_ps_;
  std::map<std::pair<std::optional<int64_t>, uint32_t>, CombinedStep> steps_;
  std::map<std::string, CombinedKind> kinds_;
  std::map<uint32_t, CombinedRank> ranks_;
  std::map<std::tuple<std::string, int64_t, size_t>, Times> transfers_;
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
