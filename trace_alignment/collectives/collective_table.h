// SPDX-License-Identifier: Apache-2.0
// The collectives of a run, matched across its profiles.
//
//   instance  one execution of a collective by one replica group; a permute: by all its pairs
//   member    one device's part in it, timed by the clock of its node
//   pair      two members of which the target cannot end before the source has started
//
//   instances  | all-reduce.2 {0,1} | all-reduce.2 {2,3} | ppermute.3 |   by their first start
//   members    | 0 1                | 2 3                | 0 1 2 3    |
//   pairs                                                | 0>1 2>3    |
//
// In synchronising kinds everybody waits for everybody and there are no pairs. Broadcast and reduce
// have a pair for each member other than the root, which is the first of its group; collectives of
// unknown kind have none. A node is a profile: one process, one clock, any number of devices. 32
// bytes per member.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_COLLECTIVE_TABLE_H_
#define TRACE_ALIGNMENT_COLLECTIVES_COLLECTIVE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

// Times lie within this of the run base: 40 hours, so that sums of a few cannot overflow.
inline constexpr int64_t kMaxRunTimePs = int64_t{1} << 57;

// An instruction, the same on all ranks. A send and its receive are one, named by the send.
struct MatchedOp {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string module;
  std::string instruction;
  int64_t operand_bytes = 0;
  int64_t output_bytes = 0;
};

// True when no member can end before every member has started.
bool IsSynchronising(CollectiveKind kind);

struct CollectiveMember {
  // Times of the node's own clock, in ps from the run base.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  uint64_t correlation_id = 0;
  uint32_t rank = 0;
  // Position among the events of its node's profile.
  uint32_t event = 0;
};

// Two members, by their positions among the members of the instance.
struct MemberPair {
  uint32_t source = 0;
  uint32_t target = 0;
};

struct CollectiveInstance {
  static constexpr uint32_t kNoGroup = std::numeric_limits<uint32_t>::max();

  // Positions in the table's ops and groups.
  uint32_t op = 0;
  uint32_t group = kNoGroup;
  // Ranges of the table's members and pairs.
  uint32_t first_member = 0;
  uint32_t member_count = 0;
  uint32_t first_pair = 0;
  uint32_t pair_count = 0;
  // Ranks that should take part, but whose profile does not show it.
  uint32_t missing = 0;
};

class CollectiveTable {
 public:
  static constexpr uint32_t kNoNode = std::numeric_limits<uint32_t>::max();

  // The run base, Unix time: the earliest start of a session. What is computed from the table
  // counts from it, too.
  int64_t base_ns() const { return base_ns_; }

  size_t node_count() const { return node_count_; }
  // The node of each rank; kNoNode for ranks that are in no profile.
  const std::vector<uint32_t>& node_of_rank() const { return node_of_rank_; }
  uint32_t NodeOf(const CollectiveMember& member) const { return node_of_rank_[member.rank]; }

  const std::vector<MatchedOp>& ops() const { return ops_; }
  const MatchedOp& OpOf(const CollectiveInstance& instance) const { return ops_[instance.op]; }
  // Groups of ranks, as the program orders them; kUnknownId for a device that is no rank.
  const IdGroups& groups() const { return groups_; }

  const std::vector<CollectiveInstance>& instances() const { return instances_; }
  const std::vector<CollectiveMember>& members() const { return members_; }
  absl::Span<const CollectiveMember> MembersOf(const CollectiveInstance& instance) const {
    return absl::MakeConstSpan(members_).subspan(instance.first_member, instance.member_count);
  }
  absl::Span<const MemberPair> PairsOf(const CollectiveInstance& instance) const {
    return absl::MakeConstSpan(pairs_).subspan(instance.first_pair, instance.pair_count);
  }

  // Events that no instance has: their execution or their participants are not known.
  int64_t unplaced_events() const { return unplaced_events_; }

  // Replaces every time of every member: fn(node, time_ps) returns what to put in its place.
  template <typename Fn>
  void MapTimes(Fn fn) {
    for (CollectiveMember& member : members_) {
      member.start_ps = fn(NodeOf(member), member.start_ps);
      member.end_ps = fn(NodeOf(member), member.end_ps);
    }
  }

  // Where times are only bounds (CollectiveEvent::ran_ps), lets the members of an instance end
  // together, as late as the bounds and what follows on their ranks allow, each after as long as it
  // ran. When that is not known of one, all end with the last start: they transfer for no time.
  // Takes the profiles that the table was built from. Align the table first.
  void PlaceByDurations(absl::Span<const ProfileCollectives> profiles);

 private:
  friend class CollectiveTableBuilder;

  int64_t base_ns_ = 0;
  size_t node_count_ = 0;
  std::vector<uint32_t> node_of_rank_;
  std::vector<MatchedOp> ops_;
  IdGroups groups_;
  std::vector<CollectiveInstance> instances_;
  std::vector<CollectiveMember> members_;
  std::vector<MemberPair> pairs_;
  int64_t unplaced_events_ = 0;
};

// Matches the profiles' events; ranks and runs are those resolved for the same profiles. Here the
// run base is fixed: the earliest of the profiles' bases. OutOfRange for an event that lies more
// than kMaxRunTimePs from it, ResourceExhausted for more than 2^32 events.
absl::StatusOr<CollectiveTable> BuildCollectiveTable(absl::Span<const ProfileCollectives> profiles,
                                                     const RankResolution& ranks,
                                                     const RunResolution& runs);

// Returns e.g. "{0,1}", of large groups the first; empty when the instance has no group.
std::string DescribeGroup(const CollectiveTable& table, const CollectiveInstance& instance);

// Returns e.g. "all-reduce psum.7 of jit_step {0,1}".
std::string DescribeInstance(const CollectiveTable& table, const CollectiveInstance& instance);

// Waiting and moving data, told apart. For a synchronising instance:
//
//   rank 0   |--------------------|
//   rank 1             |----------|
//   rank 2       |-----------------|
//            <- skew ->               of rank 0: last start - its start
//                       <----------> transfer:  last end - last start
//
// A pair transfers from when both have started to the target's end.
//
// When a complete synchronising instance waited and when it moved data. Times are the table's, so
// align it first.
struct GroupTiming {
  // Position, among the instance's members, of the last to start; the first of several.
  uint32_t last_member = 0;
  // When the last member started, in ps from the run base.
  int64_t last_start_ps = 0;
  int64_t transfer_ps = 0;

  int64_t SkewPs(const CollectiveMember& member) const { return last_start_ps - member.start_ps; }
};

// Returns nullopt for instances that do not synchronise or lack members: who was last is not known.
std::optional<GroupTiming> TimingOf(const CollectiveTable& table,
                                    const CollectiveInstance& instance);

// Returns how long a pair of the instance moved data.
int64_t PairTransferPs(const CollectiveTable& table, const CollectiveInstance& instance,
                       const MemberPair& pair);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_COLLECTIVE_TABLE_H_
