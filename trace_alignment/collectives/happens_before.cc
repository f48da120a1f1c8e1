#include "trace_alignment/collectives/happens_before.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Sets the violation's members, relative to the instance, and gap: that of the last start and the
// first end. The gap is negative when all is well. `time_ps(member, t)` is what time t of the
// member's node is on the reference clock.
template <typename Time>
void FindWorstOfAll(absl::Span<const CollectiveMember> members, const Time& time_ps,
                    Violation* worst) {
  int64_t last_start_ps = time_ps(members[0], members[0].start_ps);
  int64_t first_end_ps = time_ps(members[0], members[0].end_ps);
  for (uint32_t m = 1; m < members.size(); ++m) {
    const int64_t start_ps = time_ps(members[m], members[m].start_ps);
    const int64_t end_ps = time_ps(members[m], members[m].end_ps);
    if (start_ps > last_start_ps) {
      last_start_ps = start_ps;
      worst->started = m;
    }
    if (end_ps < first_end_ps) {
      first_end_ps = end_ps;
      worst->ended = m;
    }
  }
  worst->gap_ps = last_start_ps - first_end_ps;
}

template <typename Time>
void FindWorstPair(absl::Span<const CollectiveMember> members, absl::Span<const MemberPair> pairs,
                   const Time& time_ps, Violation* worst) {
  for (const MemberPair& pair : pairs) {
    const CollectiveMember& source = members[pair.source];
    const CollectiveMember& target = members[pair.target];
    const int64_t gap_ps = time_ps(source, source.start_ps) - time_ps(target, target.end_ps);
    if (gap_ps > worst->gap_ps) {
      worst->gap_ps = gap_ps;
      worst->started = pair.source;
      worst->ended = pair.target;
    }
  }
}

template <typename Time>
HappensBefore Check(const CollectiveTable& table, const Time& time_ps) {
  HappensBefore result;
  result.instances = static_cast<int64_t>(table.instances().size());
  result.unmatched = table.unplaced_events();
  for (uint32_t i = 0; i < table.instances().size(); ++i) {
    const CollectiveInstance& instance = table.instances()[i];
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    if (instance.missing > 0) result.unmatched += instance.member_count;
    // Nothing follows from collectives of unknown kind.
    if (members.size() < 2 || table.OpOf(instance).kind == CollectiveKind::kUnknown) continue;
    ++result.checked;
    Violation worst;
    worst.instance = i;
    if (IsSynchronising(table.OpOf(instance).kind)) {
      FindWorstOfAll(members, time_ps, &worst);
    } else {
      FindWorstPair(members, table.PairsOf(instance), time_ps, &worst);
    }
    if (worst.gap_ps <= 0) continue;
    worst.started += instance.first_member;
    worst.ended += instance.first_member;
    result.violations.push_back(worst);
  }
  return result;
}

}  // namespace

HappensBefore CheckHappensBefore(const CollectiveTable& table) {
  return Check(table, [](const CollectiveMember&, int64_t time_ps) { return time_ps; });
}

HappensBefore CheckHappensBefore(const CollectiveTable& table, OffsetFunction offset_ps) {
  return Check(table, [&](const CollectiveMember& member, int64_t time_ps) {
    return time_ps - offset_ps(table.NodeOf(member), time_ps);
  });
}

std::string DescribeViolation(const CollectiveTable& table, const Violation& violation) {
  const CollectiveMember& ended = table.members()[violation.ended];
  const CollectiveMember& started = table.members()[violation.started];
  return absl::StrCat(DescribeInstance(table, table.instances()[violation.instance]), ": rank ",
                      ended.rank, " ended ", FormatMicros(violation.gap_ps), " us before rank ",
                      started.rank, " started (correlation ids ", ended.correlation_id, " and ",
                      started.correlation_id, ")");
}

}  // namespace meridian
