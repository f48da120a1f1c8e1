// SPDX-License-Identifier: Apache-2.0
// A measured job that can be run again with its communication on another network: the graph of what
// waited for what (critical_path) says when transfers begin, the network how long they last.
//
//   measured graph --> transfers, when their members came, how long they lasted
//   edited graph, transfers as long as the network says --> when members come --> ... until settled
#ifndef FORECAST_JOB_ON_NETWORK_H_
#define FORECAST_JOB_ON_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/prediction/shared_transfers.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/what_if/what_if_graph.h"

namespace meridian {

class JobOnNetwork {
 public:
  // Returns how long each transfer lasts in a schedule, in nanoseconds.
  using Network = std::function<absl::StatusOr<std::vector<double>>(const EdgeSchedule&)>;

  // Errors are those of FindLongestPath; InvalidArgument when no transfer is known.
  static absl::StatusOr<JobOnNetwork> Create(PathGraph measured);

  // Transfers of two and more ranks that a network can time, in the order of the graph's meetings.
  const std::vector<CommEdge>& transfers() const { return transfers_; }
  // How long each lasted after its last member came, and when members came.
  const std::vector<double>& measured_ns() const { return measured_ns_; }
  const EdgeSchedule& measured_schedule() const { return measured_schedule_; }
  // Ranks that the graph has, from 0 on.
  int32_t ranks() const { return ranks_; }
  // Work of devices that communicates, but of which it is not known what it moves: it lasts what it
  // lasted.
  int64_t unknown_events() const { return unknown_events_; }
  // Returns which transfer an event takes part in; transfers().size() for none.
  size_t TransferOf(GraphEventId event) const { return transfer_of_event_[event]; }

  // Returns the graph, ready for edits.
  const WhatIfGraph& graph() const { return graph_; }

  // Returns whether the ranks of a transfer become more when the job gets more ranks: they are all
  // ranks, or every n-th of all.
  bool Grows(const CommEdge& transfer) const;
  // Returns how many neighbouring ranks are in no group that grows: the inner part of the mesh.
  int32_t inner_ranks() const;

  struct RunAgain {
    WhatIfGraph graph;
    CriticalPath path;
    // How much the run's length still changed in the last round, as a fraction.
    double last_change = 0;
  };
  // Runs an edited graph, which has the measured times of transfers, on the network. Errors are the
  // network's, and OutOfRange for a run of over 13 days.
  absl::StatusOr<RunAgain> Run(WhatIfGraph edited, const Network& network) const;

 private:
  // An edge of the graph that stands for time of a transfer.
  struct TimedEdge {
    EdgeId edge = 0;
    size_t transfer = 0;
  };
  // A member that comes to a transfer.
  struct Arrival {
    InstantId instant = 0;
    size_t transfer = 0;
    int32_t rank = 0;
  };

  // Counts events that communicate without being part of a transfer, and gives all that are part of
  // none the number behind the last.
  void CountUnknownEvents();
  // Lets the sender of a message wait for its receiver, as NCCL's do, and send as long as it did.
  void AddSender(InstantId meeting, GraphEventId sender, size_t transfer,
                 const EdgesByInstant& incoming);
  EdgeSchedule ScheduleAt(const std::vector<int64_t>& times_ps,
                          const std::vector<double>& lasts_ns) const;

  WhatIfGraph graph_;
  // That of the graph. Edits change times, not what waits for what.
  std::optional<PathOrder> order_;
  std::vector<CommEdge> transfers_;
  std::vector<double> measured_ns_;
  EdgeSchedule measured_schedule_;
  int32_t ranks_ = 0;
  int64_t unknown_events_ = 0;
  std::vector<size_t> transfer_of_event_;
  std::vector<TimedEdge> timed_edges_;
  std::vector<Arrival> arrivals_;
};

}  // namespace meridian

#endif  // FORECAST_JOB_ON_NETWORK_H_
