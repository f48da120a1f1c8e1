// SPDX-License-Identifier: Apache-2.0
// Links that are slower than others, found by comparing like with like: what several groups, or
// pairs, of ranks did with the same kind of collective and the same number of bytes.
//
//   all-reduce of 576 KiB    {0,1} 4.9 ms   {2,3} 4.9 ms   {4,5} 11.8 ms   {6,7} 4.9 ms
//   all-reduce of 6.8 MiB    {0,2,4,6} 90 ms               {1,3,5,7} 227 ms
//
// Both slow groups have rank 5, and rank 4 is in a group that is as fast as any: the link of rank 5
// is 2.4 times slower. A rank is suspected when nearly all that it transfers, by the time that it
// would usually take, is slow; what one suspect explains is no reason to suspect another.
//
// What counts is how long data moved when nothing else was in the way: the quickest tenth of a
// group's transfers. A group's transfer is the shortest of its members' parts, which that of the
// last to come is, so that no clock has a say; a pair's needs both clocks.
#ifndef TRACE_ALIGNMENT_RUN_SLOW_LINKS_H_
#define TRACE_ALIGNMENT_RUN_SLOW_LINKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/combine/combine_report.pb.h"

namespace meridian {

// Fills in the report's slow links, the slowest first, of how many ranks the links could be compared,
// and how many transfer anything. Of the rest nothing is known.
//
// `hosts` has the name of each rank's host; groups on different numbers of hosts are not compared.
// The table's times are those of the common clock, which is known within `clock_uncertainty_ps`:
// pairs whose slowness that could hide are not compared, and none are when it is absent, since
// nobody knows.
void FindSlowLinks(const CollectiveTable& table, const std::vector<std::string>& hosts,
                   std::optional<int64_t> clock_uncertainty_ps, CombineReport* report);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_RUN_SLOW_LINKS_H_
