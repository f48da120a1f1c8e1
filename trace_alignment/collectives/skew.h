// SPDX-License-Identifier: Apache-2.0
// Waiting and moving data, told apart. For a synchronising instance:
//
//   rank 0   |--------------------|
//   rank 1             |----------|
//   rank 2       |-----------------|
//            <- skew ->               of rank 0: last start - its start
//                       <----------> transfer:  last end - last start
//
// A pair transfers from when both have started to the target's end.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_SKEW_H_
#define TRACE_ALIGNMENT_COLLECTIVES_SKEW_H_

#include <cstdint>
#include <optional>

#include "trace_alignment/collectives/collective_table.h"

namespace meridian {

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

#endif  // TRACE_ALIGNMENT_COLLECTIVES_SKEW_H_
