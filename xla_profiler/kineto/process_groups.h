// SPDX-License-Identifier: Apache-2.0
// The process groups of a Kineto trace: those that its header lists (distributedInfo.pg_config),
// and those that kernels and calls name in their args.
#ifndef XLA_PROFILER_KINETO_PROCESS_GROUPS_H_
#define XLA_PROFILER_KINETO_PROCESS_GROUPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

// Returns "0 (default_pg)".
std::string ProcessGroupName(const std::string& name, const std::string& description);

// The ranks that a collective of which the trace does not tell them is taken to be of.
struct AssumedGroup {
  std::string name = "all ranks";
  // Without any: all ranks of the run.
  IdGroups ranks;
};

class ProcessGroups {
 public:
  explicit ProcessGroups(const JsonValue& distributed_info);

  // Returns the groups of several ranks that a rank may communicate in, those of equal ranks once;
  // for kUnknownId all of them. Without any, all ranks are one.
  std::vector<AssumedGroup> GroupsOf(int64_t rank) const;

  // Returns the ranks of the group that a kernel names; nullopt when they cannot be told. Lists of
  // more than 30 ranks are cut short; then the header's list is taken, else an arithmetic sequence
  // is continued to the group's size.
  std::optional<std::vector<int64_t>> RanksOf(const JsonValue& args) const;

 private:
  std::optional<std::vector<int64_t>> ListedRanks(const JsonValue& args,
                                                  std::optional<int64_t> size) const;

  // What the header calls the group of these ranks, the first if it has several; no ranks stand for
  // a list that is not complete.
  std::map<std::vector<int64_t>, std::string> names_;
  // The header's complete lists, by name of the group.
  absl::flat_hash_map<std::string, std::vector<int64_t>> header_ranks_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_KINETO_PROCESS_GROUPS_H_
