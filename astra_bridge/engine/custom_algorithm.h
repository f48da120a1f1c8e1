// SPDX-License-Identifier: Apache-2.0
// A collective algorithm that is given as execution traces, one per member of the group: AstraSim's
// custom collectives.
//
//   member 0   send 0 (to 1) --> receive 1 (from 1) --> compute 2
//   member 1   send 0 (to 0) --> receive 1 (from 0) --> compute 2
//
// A member runs every operation as soon as all that it depends on is over, any number at once. The
// bytes are those of the traces, whatever the collective's; a computation lasts its duration, at least
// 1 ns. A send is over when its message has arrived. Messages have the tags of the traces and meet
// receives as all sends do.
#ifndef ASTRA_BRIDGE_ENGINE_CUSTOM_ALGORITHM_H_
#define ASTRA_BRIDGE_ENGINE_CUSTOM_ALGORITHM_H_

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/dependency_graph.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// What one member does.
//
// AstraSim keeps what is ready in a std::unordered_set of ids and issues it in the order in which the
// set happens to have it. Which of two messages is first on a link depends on that, so that the same
// sets are filled here in the same order.
struct CustomMember {
  const RankWorkload* nodes = nullptr;
  DependencyGraph graph;
  // Ids of the nodes that depend on nothing.
  std::unordered_set<uint64_t> roots;
  // How many others each node depends on.
  std::vector<uint32_t> dependency_counts;
  // Those that depend on each node, each once, in the order in which they become ready.
  std::vector<std::vector<uint32_t>> dependents;
};

class CustomAlgorithm {
 public:
  // The members must outlive the result, and their nodes be in range (workload_check.h). Fails, naming
  // the trace, on circles, on sends and receives without each other, on collectives and memory nodes.
  static absl::StatusOr<CustomAlgorithm> Create(absl::Span<const RankWorkload> members);

  const std::vector<CustomMember>& members() const { return members_; }

 private:
  std::vector<CustomMember> members_;
};

// How far a member has come.
class CustomState {
 public:
  explicit CustomState(const CustomMember& member);

  // Returns the nodes that are ready, in the order in which they are issued. They are then under way.
  std::vector<uint32_t> TakeReady();
  // Ends a node that is under way.
  void Finish(uint32_t node);
  // Returns whether all nodes are over.
  bool done() const { return done_ == member_->graph.size(); }

 private:
  const CustomMember* member_;
  std::unordered_set<uint64_t> ready_;
  std::vector<uint32_t> waits_for_;
  uint32_t done_ = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_CUSTOM_ALGORITHM_H_
