// How collectives of XLA are said in Chakra.
#ifndef CHAKRA_EXPORT_XSPACE_COMM_VOCABULARY_H_
#define CHAKRA_EXPORT_XSPACE_COMM_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/hlo/hlo_collective.h"

namespace meridian {

// ASTRA-sim takes tags modulo this.
inline constexpr uint32_t kCommTagLimit = 500000000;

// The groups of a run. The first is that of all ranks, which has no name; others are "1", "2", ...
class ProcessGroupList {
 public:
  explicit ProcessGroupList(int64_t rank_count);

  // Returns the group of these ranks, new or known.
  GroupIndex Add(const std::vector<int64_t>& ranks);

  const std::vector<ProcessGroup>& groups() const { return groups_; }

  // InvalidArgument when there are more than ASTRA-sim can tell apart.
  absl::Status Check() const;

 private:
  std::vector<ProcessGroup> groups_;
  std::map<std::vector<int64_t>, GroupIndex> known_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_COMM_VOCABULARY_H_
