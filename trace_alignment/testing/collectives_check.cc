#include "trace_alignment/testing/collectives_check.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/collectives/testing/aligned_check.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

// Returns Internal naming the condition from the calling function when it does not hold.
#define EXPECT_TRUE_OF(what, condition)                                       \
  if (!(condition)) {                                                         \
    return absl::InternalError(absl::StrCat(what, " violates ", #condition)); \
  }

absl::StatusOr<ProfileCollectives> Read(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "profile"));
  return ReadXSpaceCollectives(reader);
}

const ProfileCollectives& GoodProfile() {
  static const auto* const kProfile = [] {
    absl::StatusOr<ProfileCollectives> profile = Read(SyntheticRun({})[1].SerializeAsString());
    MERIDIAN_CHECK(profile.ok());
    return new ProfileCollectives(*std::move(profile));
  }();
  return *kProfile;
}

absl::Status CheckProfile(const ProfileCollectives& profile) {
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const CollectiveEvent& event = profile.events[i];
    EXPECT_TRUE_OF("event", event.op < profile.ops.size());
    EXPECT_TRUE_OF("event", event.local_device < profile.devices.size());
    EXPECT_TRUE_OF("event", event.start_ps <= event.end_ps);
    EXPECT_TRUE_OF("event", event.kernels > 0);
    EXPECT_TRUE_OF("event", event.group >= kUnknownId);
    EXPECT_TRUE_OF("event", event.group == kUnknownId || static_cast<size_t>(event.group) <
                                                             profile.ops[event.op].groups.size());
    EXPECT_TRUE_OF("event", i == 0 || profile.events[i - 1].start_ps <= event.start_ps);
  }
  return absl::OkStatus();
}

absl::Status CheckTable(const CollectiveTable& table, size_t events) {
  size_t members = 0;
  for (const CollectiveInstance& instance : table.instances()) {
    EXPECT_TRUE_OF("instance", instance.op < table.ops().size());
    EXPECT_TRUE_OF("instance", instance.group == CollectiveInstance::kNoGroup ||
                                   instance.group < table.groups().size());
    EXPECT_TRUE_OF("instance", instance.first_member == members && instance.member_count > 0);
    members += instance.member_count;
    EXPECT_TRUE_OF("instance", members <= table.members().size());
    for (const MemberPair& pair : table.PairsOf(instance)) {
      EXPECT_TRUE_OF("pair", pair.source < instance.member_count);
      EXPECT_TRUE_OF("pair", pair.target < instance.member_count);
    }
    for (const CollectiveMember& member : table.MembersOf(instance)) {
      EXPECT_TRUE_OF("member", member.rank < table.node_of_rank().size());
      EXPECT_TRUE_OF("member", table.NodeOf(member) < table.node_count());
      EXPECT_TRUE_OF("member", member.start_ps <= member.end_ps);
    }
  }
  EXPECT_TRUE_OF("table", members == table.members().size());
  EXPECT_TRUE_OF("table", members + table.unplaced_events() == events);
  return absl::OkStatus();
}

// Contradictions are what damage may well look like.
absl::Status CheckAlignment(const CollectiveTable& table) {
  const absl::StatusOr<ClockAlignment> alignment = AlignByCollectives(table, {});
  if (!alignment.ok()) return absl::OkStatus();
  const HappensBefore result = CheckAligned(table, *alignment);
  for (const Violation& violation : result.violations) {
    const auto is_reachable = [&](uint32_t member) {
      return alignment->nodes[table.NodeOf(table.members()[member])].reachable;
    };
    EXPECT_TRUE_OF(DescribeViolation(table, violation),
                   !is_reachable(violation.ended) || !is_reachable(violation.started));
  }
  for (const NodeOffset& node : alignment->nodes) {
    EXPECT_TRUE_OF("offset", node.uncertainty_ps >= 0);
    EXPECT_TRUE_OF("offset", node.uncertainty_ps <= node.uncertainty_max_ps);
    EXPECT_TRUE_OF("offset", node.uncertainty_ps <= node.certified_uncertainty_ps);
  }
  return absl::OkStatus();
}

#undef EXPECT_TRUE_OF

}  // namespace

absl::Status CheckCollectives(absl::string_view bytes, CollectivesVerdict* verdict) {
  *verdict = CollectivesVerdict::kRefused;
  absl::StatusOr<ProfileCollectives> profile = Read(bytes);
  if (!profile.ok()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckProfile(*profile));
  std::vector<ProfileCollectives> profiles = {*std::move(profile), GoodProfile()};
  const absl::StatusOr<RankResolution> ranks = ResolveRanks(absl::MakeSpan(profiles));
  if (!ranks.ok()) return absl::OkStatus();
  const absl::StatusOr<CollectiveTable> table =
      BuildCollectiveTable(profiles, *ranks, ResolveRuns(profiles));
  if (!table.ok()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckTable(*table, profiles[0].events.size() + profiles[1].events.size()));
  *verdict = CheckHappensBefore(*table).checked > 0 ? CollectivesVerdict::kMatched
                                                    : CollectivesVerdict::kApart;
  return CheckAlignment(*table);
}

}  // namespace meridian
