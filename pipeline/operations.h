// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run spend their time on, operation by operation, and how long they wait for each
// other in a step, by the run's graph.
#ifndef PIPELINE_OPERATIONS_H_
#define PIPELINE_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/graph/step_times.h"
#include "critical_path/job/job_analysis.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/number_range.h"

namespace meridian {

// Returns the name as pages show it: its beginning, if it is long.
std::string ShownName(absl::string_view name);

// Returns what an event is drawn and counted as. `communicates` is whether time of communication is
// booked on it.
PathKind::Role RoleOfEvent(const PathGraph& graph, const GraphEvent& event, bool communicates);

// Which events communicate.
struct CollectiveEvents {
  explicit CollectiveEvents(const PathGraph& graph);

  // By event: where its rank met the others, or kNoInstant, and whether time of communication is
  // booked on it.
  std::vector<InstantId> meetings;
  std::vector<bool> communicates;
};

// What of a window's graph the window stands for; the rest is beside it (critical_path/job).
class OwnPart {
 public:
  explicit OwnPart(const JobWindow& window);

  // The steps of the graph, and those of them that the window stands for.
  const StepTimes& all_steps() const { return all_; }
  const StepTimes& steps() const { return own_; }

  bool HasStep(int64_t step) const { return !window_.has_value() || window_->Contains(step); }
  bool HasTime(int64_t time_ps) const { return time_ps >= start_ps_ && time_ps < end_ps_; }
  bool HasEvent(const GraphEvent& event) const {
    return event.step == kNoStep ? HasTime(event.start_ps) : HasStep(event.step);
  }
  // Returns the steps that the window stands for of a graph that was made of the window's.
  StepTimes StepsOf(const PathGraph& graph) const;

  // Visits the pieces of a path.
  void VisitPath(const PathGraph& graph, const CriticalPath& path,
                 absl::FunctionRef<void(const PathPiece&)> visit) const;

 private:
  StepTimes OwnOf(StepTimes steps) const;

  std::optional<NumberRange> window_;
  bool is_first_ = true;
  StepTimes all_;
  StepTimes own_;
  // What has no step is told by its time.
  int64_t start_ps_ = std::numeric_limits<int64_t>::min();
  int64_t end_ps_ = std::numeric_limits<int64_t>::max();
};

// The operations of a run: device work, all executions of one name together. Of collectives that of
// one kind and size too, and without waiting for others.
class OperationTable {
 public:
  void Read(const JobWindow& window, const OwnPart& own, const CollectiveEvents& collectives,
            const CriticalPath& path);

  // Adds those of another window; together they have so many steps.
  void Merge(OperationTable other, size_t steps);

  // Fills in the report's operations, the longest first, given the run's steps. The table is of no use
  // afterwards.
  void Report(const std::vector<StepTime>& steps, RunReport* report);

  // Medians of longer runs are of half of the steps, a quarter, ..., at most about so many.
  static constexpr size_t kMostSteps = 4096;

 private:
  // What a rank spends on an operation.
  struct OfRank {
    double whole_ms = 0;
    // Steps that are kept; one may be there several times. There are as many as the rank has work.
    std::vector<std::pair<int64_t, float>> ms_in_steps;
  };
  // All executions of one operation.
  struct Executions {
    Operation row;
    std::map<int64_t, OfRank> by_rank;
    // The rank that was added to last; events mostly follow others of their rank.
    decltype(by_rank)::value_type* last = nullptr;
  };
  // Name, kind and bytes.
  using Key = std::tuple<std::string, std::string, int64_t>;

  Executions& Find(const Operation& row);
  static OfRank& Find(int64_t rank, Executions* executions);
  // Whether the step is one of those that are kept: the same ones in all windows of a run.
  bool Keeps(int64_t step) const;
  void KeepFewer(size_t keeps_one_of);
  void AddStep(int64_t step, float ms, OfRank* rank) const;
  // `places` are those of the steps that are kept, from 0.
  void Summarise(const absl::flat_hash_map<int64_t, size_t>& places, Executions* executions) const;

  // A power of two.
  size_t keeps_one_of_ = 1;
  std::vector<std::unique_ptr<Executions>> all_;
  absl::flat_hash_map<Key, size_t> places_;
  std::set<int64_t> ranks_;
};

// Returns how long each rank waited for others, and moved data, in each of the steps; what lies in none
// has no number.
std::vector<CombinedStep> WaitsInSteps(const PathGraph& graph, const CollectiveEvents& collectives,
                                       const OwnPart& own);

}  // namespace meridian

#endif  // PIPELINE_OPERATIONS_H_
