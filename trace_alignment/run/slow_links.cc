#include "trace_alignment/run/slow_links.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {
namespace {

// A link is slow when its transfers take so many times what others' take: repeats of a transfer
// differ by a quarter, their quickest tenth by a few percent.
constexpr double kNotablySlower = 1.4;
constexpr double kQuickest = 0.1;
// A group with fewer transfers tells nothing.
constexpr size_t kFewestTransfers = 5;
// So much of the time in which a rank transfers must have something to be compared with.
constexpr double kComparedShare = 0.1;
// A rank's link is slow though so much of its transfers, by the time that they usually take, are as
// fast as others': of few bytes the time does not depend on the link's speed.
constexpr double kUnaffectedShare = 0.1;
// So many ranks of groups are told; more would make reports large.
constexpr size_t kMostToldRanks = 100000;

using Group = std::vector<uint32_t>;
// Transfers that can be compared: of one kind, so many bytes, and so many ranks on so many hosts.
using Key = std::tuple<CollectiveKind, int64_t, size_t, size_t>;
using TimesByGroup = std::map<Group, std::vector<double>>;

Group SortedRanks(const std::vector<CollectiveMember>& members) {
  Group group;
  for (const CollectiveMember& member : members) group.push_back(member.rank);
  std::sort(group.begin(), group.end());
  group.erase(std::unique(group.begin(), group.end()), group.end());
  return group;
}

std::map<Key, TimesByGroup> ReadTransfers(const CollectiveTable& table,
                                          const std::vector<std::string>& hosts) {
  std::map<Key, TimesByGroup> transfers;
  const auto add = [&](const MatchedOp& op, Group group, int64_t time_ps) {
    // Bytes that are not known may be any.
    if (op.operand_bytes <= 0 || time_ps <= 0 || group.size() < 2) return;
    std::set<absl::string_view> used;
    for (const uint32_t rank : group) {
      if (rank < hosts.size()) used.insert(hosts[rank]);
    }
    const Key key(op.kind, op.operand_bytes, group.size(), used.size());
    transfers[key][std::move(group)].push_back(static_cast<double>(time_ps));
  };
  for (const CollectiveInstance& instance : table.instances()) {
    if (instance.missing > 0) continue;
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    const MatchedOp& op = table.OpOf(instance);
    if (IsSynchronising(op.kind)) {
      int64_t shortest_ps = std::numeric_limits<int64_t>::max();
      for (const CollectiveMember& member : members) {
        shortest_ps = std::min(shortest_ps, member.end_ps - member.start_ps);
      }
      add(op, SortedRanks({members.begin(), members.end()}), shortest_ps);
      continue;
    }
    for (const MemberPair& pair : table.PairsOf(instance)) {
      const CollectiveMember &source = members[pair.source], &target = members[pair.target];
      // What comes to receive later than it was sent finds the data there.
      if (source.start_ps < target.start_ps) continue;
      add(op, SortedRanks({source, target}), PairTransferPs(table, instance, pair));
    }
  }
  return transfers;
}

double Sum(const std::vector<double>& times) {
  double sum = 0;
  for (const double time : times) sum += time;
  return sum;
}

// What one group did again and again, beside what others did alike.
struct Comparison {
  Group group;
  // How many times longer than usual it took.
  double ratio = 1;
  // What its transfers would usually take together, and what they took, in ps.
  double weight = 0;
  double took = 0;
  int64_t transfers = 0;
  int64_t compared_with = 0;
};

std::vector<Comparison> Compare(const std::map<Key, TimesByGroup>& transfers,
                                std::optional<int64_t> clock_uncertainty_ps) {
  std::vector<Comparison> comparisons;
  for (const auto& [key, groups] : transfers) {
    std::vector<double> sorted;
    int64_t count = 0;
    for (const auto& [group, times] : groups) {
      if (times.size() < kFewestTransfers) continue;
      sorted.push_back(Quantile(times, kQuickest));
      count += static_cast<int64_t>(times.size());
    }
    if (sorted.size() < 2) continue;
    // What is usual: three of four groups may have a slow member.
    std::sort(sorted.begin(), sorted.end());
    const double usual = sorted[(sorted.size() - 1) / 4];
    if (!IsSynchronising(std::get<0>(key)) &&
        (!clock_uncertainty_ps.has_value() ||
         usual * (kNotablySlower - 1) < static_cast<double>(*clock_uncertainty_ps))) {
      continue;
    }
    for (const auto& [group, times] : groups) {
      if (times.size() < kFewestTransfers) continue;
      const auto own = static_cast<int64_t>(times.size());
      comparisons.push_back({group, Quantile(times, kQuickest) / usual,
                             usual * static_cast<double>(own), Sum(times), own, count - own});
    }
  }
  return comparisons;
}

// Returns the ratio below which that share of the weight lies.
double WeightedQuantile(std::vector<const Comparison*> comparisons, double share) {
  std::sort(comparisons.begin(), comparisons.end(),
            [](const Comparison* a, const Comparison* b) { return a->ratio < b->ratio; });
  double whole = 0, sum = 0;
  for (const Comparison* comparison : comparisons) whole += comparison->weight;
  for (const Comparison* comparison : comparisons) {
    sum += comparison->weight;
    if (sum >= share * whole) return comparison->ratio;
  }
  return comparisons.back()->ratio;
}

// The comparisons that a rank takes part in, by rank.
using OfRank = std::map<uint32_t, std::vector<const Comparison*>>;

double LeastRatio(const std::vector<const Comparison*>& comparisons) {
  double least = comparisons[0]->ratio;
  for (const Comparison* comparison : comparisons) least = std::min(least, comparison->ratio);
  return least;
}

// Returns the rank that explains most of what is slow; nullopt when nothing is.
std::optional<uint32_t> FindSlowest(const OfRank& ranks) {
  std::optional<uint32_t> slowest;
  for (const auto& [rank, comparisons] : ranks) {
    if (WeightedQuantile(comparisons, kUnaffectedShare) < kNotablySlower) continue;
    if (slowest.has_value() && LeastRatio(comparisons) <= LeastRatio(ranks.at(*slowest))) continue;
    slowest = rank;
  }
  return slowest;
}

// Tells what each group transferred, as far as there is something to compare it with.
void ListGroups(const std::map<Key, TimesByGroup>& transfers, CombineReport* report) {
  size_t told = 0;
  for (const auto& [key, groups] : transfers) {
    if (groups.size() < 2) continue;
    const auto& [kind, bytes, ranks, hosts] = key;
    double fastest_ps = std::numeric_limits<double>::max();
    for (const auto& [group, times] : groups) {
      fastest_ps = std::min(fastest_ps, Quantile(times, kQuickest));
    }
    for (const auto& [group, times] : groups) {
      if ((told += group.size()) > kMostToldRanks) return;
      CombinedGroup& row = *report->add_groups();
      for (const uint32_t rank : group) row.add_ranks(rank);
      row.set_kind(std::string(CollectiveKindName(kind)));
      row.set_bytes(bytes);
      row.set_count(static_cast<int64_t>(times.size()));
      const double time_ps = Quantile(times, kQuickest);
      row.set_transfer_ms(time_ps * kMsPerPs);
      row.set_relative_speed(fastest_ps / time_ps);
      row.set_bus_gb_per_s(static_cast<double>(bytes) *
                           BusFactor(kind, static_cast<double>(ranks)) / (row.transfer_ms() * 1e6));
    }
  }
}

}  // namespace

void FindSlowLinks(const CollectiveTable& table, const std::vector<std::string>& hosts,
                   std::optional<int64_t> clock_uncertainty_ps, CombineReport* report) {
  const std::map<Key, TimesByGroup> transfers = ReadTransfers(table, hosts);
  ListGroups(transfers, report);
  const std::vector<Comparison> comparisons = Compare(transfers, clock_uncertainty_ps);
  // By rank: how long it transferred, and how much of that can be compared.
  std::map<uint32_t, double> transferred, compared;
  for (const auto& [key, groups] : transfers) {
    for (const auto& [group, times] : groups) {
      for (const uint32_t rank : group) transferred[rank] += Sum(times);
    }
  }
  OfRank ranks;
  for (const Comparison& comparison : comparisons) {
    for (const uint32_t rank : comparison.group) {
      ranks[rank].push_back(&comparison);
      compared[rank] += comparison.took;
    }
  }
  for (const auto& [rank, took] : transferred) {
    if (compared[rank] < kComparedShare * took) ranks.erase(rank);
  }
  report->set_link_ranks(static_cast<int64_t>(transferred.size()));
  report->set_link_ranks_compared(static_cast<int64_t>(ranks.size()));
  // What one slow link explains is no reason to suspect another.
  while (const std::optional<uint32_t> slowest = FindSlowest(ranks)) {
    const std::vector<const Comparison*> own = ranks[*slowest];
    CombinedLink& link = *report->add_slow_links();
    link.set_rank(*slowest);
    link.set_times_slower(WeightedQuantile(own, 0.5));
    for (const Comparison* comparison : own) {
      link.set_transfers(link.transfers() + comparison->transfers);
      link.set_compared_with(link.compared_with() + comparison->compared_with);
    }
    for (const auto& [rank, others] : ranks) {
      if (rank != *slowest && others == own) link.add_or_ranks(rank);
    }
    for (auto it = ranks.begin(); it != ranks.end();) {
      std::vector<const Comparison*>& of_rank = it->second;
      of_rank.erase(std::remove_if(of_rank.begin(), of_rank.end(),
                                   [&](const Comparison* comparison) {
                                     return absl::c_linear_search(comparison->group, *slowest);
                                   }),
                    of_rank.end());
      it = of_rank.empty() ? ranks.erase(it) : std::next(it);
    }
  }
  absl::c_stable_sort(*report->mutable_slow_links(),
                      [](const CombinedLink& a, const CombinedLink& b) {
                        return a.times_slower() > b.times_slower();
                      });
}

}  // namespace meridian
