#include "workload_model/control_flow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "workload_model/curve_fit.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Where the run ends.
constexpr int64_t kEnd = 0;
constexpr int kMaxContext = 3;
constexpr size_t kMaxDestinations = 16;
constexpr double kMaxVisits = 1e12;
// Of two explanations, one is not better by this.
constexpr double kSameCost = 1e-9;

// How often each destination was taken.
using Counts = std::map<int64_t, int64_t>;
using CountsByCell = std::map<WorkloadCell, Counts>;

int64_t Sum(const Counts& counts) {
  int64_t sum = 0;
  for (const auto& [destination, count] : counts) sum += count;
  return sum;
}

Counts Merged(Counts a, const Counts& b) {
  for (const auto& [destination, count] : b) a[destination] += count;
  return a;
}

// How many nats it takes to say which destinations were taken when the shares are known.
double DrawCost(const Counts& counts) {
  const double sum = static_cast<double>(Sum(counts));
  double cost = 0;
  for (const auto& [destination, count] : counts) {
    cost -= static_cast<double>(count) * std::log(static_cast<double>(count) / sum);
  }
  return cost;
}

// Visits of a branch that go on alike.
struct Segment {
  int64_t visits = 0;
  Counts counts;
};

// What a number more costs, among so many observations.
double NumberCost(int64_t observations) {
  return 0.5 * std::log(static_cast<double>(std::max<int64_t>(2, observations)));
}

// The length and the shares of a segment, and which of all destinations it leads to.
double SegmentCost(const Counts& counts, double of_number, double of_name) {
  return DrawCost(counts) + (of_number + of_name) * static_cast<double>(counts.size());
}

// Puts visits together that differ by less than it costs to tell them apart. by_visit[i] is what the
// (i + 1)-th visits did.
std::vector<Segment> FindSegments(const std::vector<Counts>& by_visit, double of_number,
                                  double of_name, double* cost) {
  std::vector<Segment> segments;
  for (const Counts& counts : by_visit) {
    if (!segments.empty()) {
      const Counts merged = Merged(segments.back().counts, counts);
      if (SegmentCost(merged, of_number, of_name) <=
          SegmentCost(segments.back().counts, of_number, of_name) +
              SegmentCost(counts, of_number, of_name)) {
        ++segments.back().visits;
        segments.back().counts = merged;
        continue;
      }
    }
    segments.push_back({1, counts});
  }
  for (const Segment& segment : segments) *cost += SegmentCost(segment.counts, of_number, of_name);
  return segments;
}

std::set<int64_t> DestinationsOf(const Counts& counts) {
  std::set<int64_t> destinations;
  for (const auto& [destination, count] : counts) destinations.insert(destination);
  return destinations;
}

// One explanation of a branch.
struct Explanation {
  double cost = std::numeric_limits<double>::max();
  FlowBranch branch;
};

// Returns the choices that these counts mean, with shares that change from cell to cell where that
// is worth its coefficients.
void AddChoices(const CountsByCell& by_cell, FlowSegment* segment) {
  Counts all;
  for (const auto& [cell, counts] : by_cell) all = Merged(all, counts);
  for (const auto& [destination, count] : all) {
    FlowChoice& choice = *segment->add_choices();
    choice.set_destination(destination);
    std::vector<MeasuredShare> points;
    for (const auto& [cell, counts] : by_cell) {
      const auto taken = counts.find(destination);
      points.push_back({cell, static_cast<double>(taken == counts.end() ? 0 : taken->second),
                        static_cast<double>(Sum(counts))});
    }
    *choice.mutable_share() = FitShare(points);
  }
}

class FlowLearner {
 public:
  explicit FlowLearner(const CallSequences& sequences) {
    for (const auto& [cell, of_cell] : sequences) {
      for (const std::vector<int64_t>& sequence : of_cell) {
        Run& run = runs_.emplace_back();
        run.cell = cell;
        run.sequence = &sequence;
        for (size_t i = 0; i < sequence.size(); ++i) {
          run.positions[sequence[i]].push_back(i);
          callsites_.insert(sequence[i]);
        }
      }
    }
  }

  absl::StatusOr<ControlFlow> Learn() {
    ControlFlow flow;
    flow.set_first(runs_[0].sequence->front());
    for (const Run& run : runs_) {
      if (run.sequence->front() == flow.first()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("runs begin at callsites ", flow.first(), " and ", run.sequence->front(),
                       ": they are no runs of one code, or callsites are not numbered alike"));
    }
    FindIterations(&flow);
    for (int64_t callsite : callsites_) *flow.add_branches() = Explain(callsite);
    return flow;
  }

 private:
  struct Run {
    WorkloadCell cell;
    const std::vector<int64_t>* sequence = nullptr;
    std::map<int64_t, std::vector<size_t>> positions;

    // Where the run goes at its end: to the next iteration, if it were not the last.
    int64_t after_end = kEnd;

    int64_t After(size_t position) const {
      return position + 1 < sequence->size() ? (*sequence)[position + 1] : after_end;
    }
  };

  int64_t VisitsOf(int64_t callsite) const {
    int64_t visits = 0;
    for (const Run& run : runs_) {
      const auto found = run.positions.find(callsite);
      if (found != run.positions.end()) visits += static_cast<int64_t>(found->second.size());
    }
    return visits;
  }

  FlowBranch Explain(int64_t callsite) const {
    CountsByCell by_cell;
    Counts all;
    for (const Run& run : runs_) {
      ForEachVisit(run, callsite, kEnd, [&](int64_t, size_t position) {
        ++by_cell[run.cell][run.After(position)];
        ++all[run.After(position)];
      });
    }
    Explanation best;
    best.branch.set_callsite(callsite);
    if (all.size() == 1) {
      AddChoices(by_cell, best.branch.add_segments());
      return best.branch;
    }
    const double of_number = NumberCost(Sum(all));
    const double of_name = std::log(static_cast<double>(all.size()));
    const auto consider = [&](Explanation other) {
      if (other.cost < best.cost - kSameCost) best = std::move(other);
    };
    // Drawn each time.
    Explanation drawn;
    drawn.cost = SegmentCost(all, of_number, of_name);
    drawn.branch.set_callsite(callsite);
    AddChoices(by_cell, drawn.branch.add_segments());
    consider(std::move(drawn));
    consider(ByVisits(callsite, kEnd, of_number, of_name));
    // What leads to very many is no loop. And only what is visited less often sets a count back.
    if (all.size() <= kMaxDestinations) {
      const int64_t visits = Sum(all);
      for (int64_t since : callsites_) {
        if (since != callsite && VisitsOf(since) < visits) {
          consider(ByVisits(callsite, since, of_number, of_name));
        }
      }
    }
    for (int length = 1; length <= kMaxContext; ++length) {
      consider(ByContext(callsite, length, of_number, of_name));
    }
    return best.branch;
  }

  // Calls visit(number, position) for each visit of the callsite; the number counts from 1 after
  // each visit of `since`.
  template <typename Visit>
  static void ForEachVisit(const Run& run, int64_t callsite, int64_t since, const Visit& visit) {
    const auto found = run.positions.find(callsite);
    if (found == run.positions.end()) return;
    const auto resets = run.positions.find(since);
    size_t next_reset = 0;
    int64_t number = 0;
    for (size_t position : found->second) {
      while (resets != run.positions.end() && next_reset < resets->second.size() &&
             resets->second[next_reset] < position) {
        number = 0;
        ++next_reset;
      }
      visit(++number, position);
    }
  }

  // Explains a branch by its visits since those of another callsite: with the same numbers in all
  // cells, or with numbers that are models of nodes and size.
  Explanation ByVisits(int64_t callsite, int64_t since, double of_number, double of_name) const {
    std::map<WorkloadCell, std::vector<Counts>> by_cell;
    std::vector<Counts> pooled;
    for (const Run& run : runs_) {
      std::vector<Counts>& of_cell = by_cell[run.cell];
      ForEachVisit(run, callsite, since, [&](int64_t number, size_t position) {
        for (std::vector<Counts>* counts : {&of_cell, &pooled}) {
          if (counts->size() < static_cast<size_t>(number)) counts->emplace_back();
          ++(*counts)[static_cast<size_t>(number) - 1][run.After(position)];
        }
      });
    }
    Explanation same = ByPooledVisits(by_cell, pooled, of_number, of_name);
    const Explanation own = ByVisitsOfCells(by_cell, of_number, of_name);
    if (own.cost < same.cost - kSameCost) same = own;
    same.branch.set_callsite(callsite);
    same.branch.set_since(since);
    return same;
  }

  static Explanation ByPooledVisits(const std::map<WorkloadCell, std::vector<Counts>>& by_cell,
                                    const std::vector<Counts>& pooled, double of_number,
                                    double of_name) {
    Explanation result;
    result.cost = 0;
    const std::vector<Segment> segments = FindSegments(pooled, of_number, of_name, &result.cost);
    size_t begin = 0;
    for (const Segment& segment : segments) {
      FlowSegment& written = *result.branch.add_segments();
      const size_t end = begin + static_cast<size_t>(segment.visits);
      if (&segment != &segments.back()) {
        *written.mutable_visits() = ConstantModel(static_cast<double>(segment.visits));
      }
      CountsByCell counts;
      for (const auto& [cell, visits] : by_cell) {
        for (size_t i = begin; i < std::min(end, visits.size()); ++i) {
          counts[cell] = Merged(counts[cell], visits[i]);
        }
      }
      AddChoices(counts, &written);
      begin = end;
    }
    return result;
  }

  // Cells have the same segments, one after the other, but not equally long ones; one of length 0 is
  // missing.
  static Explanation ByVisitsOfCells(const std::map<WorkloadCell, std::vector<Counts>>& by_cell,
                                     double of_number, double of_name) {
    Explanation result;
    result.cost = 0;
    std::map<WorkloadCell, std::vector<Segment>> segments;
    const std::vector<Segment>* most = nullptr;
    for (const auto& [cell, visits] : by_cell) {
      std::vector<Segment>& of_cell = segments[cell];
      double unused = 0;
      of_cell = FindSegments(visits, of_number, of_name, &unused);
      for (const Segment& segment : of_cell) result.cost += DrawCost(segment.counts);
      if (most == nullptr || of_cell.size() > most->size()) most = &of_cell;
    }
    std::vector<std::vector<MeasuredPoint>> lengths(most->size());
    std::vector<CountsByCell> counts(most->size());
    for (const auto& [cell, of_cell] : segments) {
      size_t next = 0;
      for (size_t i = 0; i < most->size(); ++i) {
        const bool is_there = next < of_cell.size() && DestinationsOf(of_cell[next].counts) ==
                                                           DestinationsOf((*most)[i].counts);
        lengths[i].push_back({cell, is_there ? static_cast<double>(of_cell[next].visits) : 0.0});
        if (is_there) counts[i][cell] = of_cell[next++].counts;
      }
      if (next < of_cell.size()) return Explanation();
    }
    for (size_t i = 0; i < most->size(); ++i) {
      FlowSegment& written = *result.branch.add_segments();
      AddChoices(counts[i], &written);
      // The shares, and two numbers for the length: the same in all cells.
      result.cost +=
          of_number + (of_number + of_name) * static_cast<double>((*most)[i].counts.size());
      if (i + 1 == most->size()) break;
      const std::optional<TripCount> trips = FitTrips(lengths[i]);
      // Lengths that no model explains are no rule.
      if (!trips.has_value()) return Explanation();
      *written.mutable_visits() = trips->model;
      written.set_also(trips->also);
    }
    return result;
  }

  Explanation ByContext(int64_t callsite, int length, double of_number, double of_name) const {
    std::map<std::vector<int64_t>, CountsByCell> contexts;
    for (const Run& run : runs_) {
      ForEachVisit(run, callsite, kEnd, [&](int64_t, size_t position) {
        std::vector<int64_t> before;
        for (size_t i = 1; i <= static_cast<size_t>(length); ++i) {
          before.push_back(position >= i ? (*run.sequence)[position - i] : kEnd);
        }
        ++contexts[before][run.cell][run.After(position)];
      });
    }
    Explanation result;
    result.cost = 0;
    result.branch.set_callsite(callsite);
    for (const auto& [before, by_cell] : contexts) {
      Counts all;
      for (const auto& [cell, counts] : by_cell) all = Merged(all, counts);
      result.cost += SegmentCost(all, of_number, of_name);
      FlowSegment& segment = *result.branch.add_segments();
      segment.mutable_before()->Add(before.begin(), before.end());
      AddChoices(by_cell, &segment);
    }
    return result;
  }

  // The last callsite of a run is also that of each iteration: where else it leads, the next begins.
  void FindIterations(ControlFlow* flow) {
    const int64_t last = runs_[0].sequence->back();
    Counts after;
    for (const Run& run : runs_) {
      if (run.sequence->back() != last) return;
      ForEachVisit(run, last, kEnd,
                   [&](int64_t, size_t position) { ++after[run.After(position)]; });
    }
    after.erase(kEnd);
    if (after.empty()) return;
    // Of loops within loops the outermost: where the run began, or what is gone to least often.
    const auto least =
        std::min_element(after.begin(), after.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    flow->set_head(after.count(flow->first()) > 0 ? flow->first() : least->first);
    flow->set_last(last);
    std::vector<MeasuredPoint> visits;
    for (Run& run : runs_) {
      run.after_end = flow->head();
      visits.push_back({run.cell, static_cast<double>(run.positions[flow->head()].size())});
    }
    const std::optional<TripCount> trips = FitTrips(visits);
    *flow->mutable_iterations() = trips.has_value() ? trips->model : FitCount(visits, FitOptions());
  }

  std::vector<Run> runs_;
  std::set<int64_t> callsites_;
};

// Where a walk is.
class FlowWalker {
 public:
  FlowWalker(const ControlFlow& flow, const WorkloadCell& cell, uint64_t seed)
      : flow_(flow), cell_(cell), random_(seed) {
    for (const FlowBranch& branch : flow.branches()) {
      State& state = states_[branch.callsite()];
      state.branch = &branch;
      int64_t end = 0;
      for (const FlowSegment& segment : branch.segments()) {
        if (segment.has_visits()) {
          end += std::llround(std::min(kMaxVisits, EvaluateModel(segment.visits(), cell)));
        }
        state.ends.push_back(segment.has_visits() ? end : std::numeric_limits<int64_t>::max());
      }
      if (branch.since() != kEnd) resets_[branch.since()].push_back(&state);
    }
  }

  absl::StatusOr<std::vector<int64_t>> Walk(int64_t most) {
    std::vector<int64_t> path;
    int64_t at = flow_.first(), heads = 0;
    const int64_t iterations =
        flow_.has_iterations()
            ? std::llround(std::min(kMaxVisits, EvaluateModel(flow_.iterations(), cell_)))
            : 0;
    while (at != kEnd) {
      if (static_cast<int64_t>(path.size()) == most) {
        return absl::FailedPreconditionError(
            absl::StrCat("the control flow has not come to an end after ", most,
                         " calls of a rank; predict for fewer nodes or a smaller size"));
      }
      path.push_back(at);
      heads += at == flow_.head() ? 1 : 0;
      const bool may_end = flow_.head() != kEnd && at == flow_.last() && heads >= iterations;
      ASSIGN_OR_RETURN(at, Next(at, path));
      if (may_end && at == flow_.head()) break;
    }
    return path;
  }

 private:
  struct State {
    const FlowBranch* branch = nullptr;
    // By segment: the number of visits with which it ends.
    std::vector<int64_t> ends;
    int64_t visits = 0;
  };

  absl::StatusOr<int64_t> Next(int64_t at, const std::vector<int64_t>& path) {
    const auto resets = resets_.find(at);
    if (resets != resets_.end()) {
      for (State* state : resets->second) state->visits = 0;
    }
    const auto found = states_.find(at);
    const FlowSegment* segment = found == states_.end() ? nullptr : SegmentAt(&found->second, path);
    if (segment == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("the control flow does not say how to go on at callsite ", at,
                       ", which measured runs never came to in this way"));
    }
    if (segment->choices_size() == 1) return segment->choices(0).destination();
    std::vector<double> shares;
    double sum = 0;
    for (const FlowChoice& choice : segment->choices()) {
      shares.push_back(EvaluateModel(choice.share(), cell_));
      sum += shares.back();
    }
    // 53 bits, the same on all machines.
    double draw = sum * static_cast<double>(random_() >> 11) / 9007199254740992.0;
    for (size_t i = 0; i < shares.size(); ++i) {
      draw -= shares[i];
      if (draw < 0) return segment->choices(static_cast<int>(i)).destination();
    }
    return segment->choices(segment->choices_size() - 1).destination();
  }

  static const FlowSegment* SegmentAt(State* state, const std::vector<int64_t>& path) {
    const FlowBranch& branch = *state->branch;
    ++state->visits;
    for (int i = 0; i < branch.segments_size(); ++i) {
      const FlowSegment& segment = branch.segments(i);
      if (segment.before_size() == 0) {
        if (state->visits <= state->ends[static_cast<size_t>(i)]) return &segment;
        continue;
      }
      bool is_same = true;
      for (int j = 0; j < segment.before_size(); ++j) {
        const size_t back = static_cast<size_t>(j) + 2;
        is_same &= segment.before(j) == (path.size() >= back ? path[path.size() - back] : kEnd);
      }
      if (is_same) return &segment;
    }
    return nullptr;
  }

  const ControlFlow& flow_;
  const WorkloadCell cell_;
  std::mt19937_64 random_;
  std::map<int64_t, State> states_;
  std::map<int64_t, std::vector<State*>> resets_;
};

}  // namespace

WorkloadCell CellOfRanks(const WorkloadCell& cell) { return {cell.Ranks(), cell.size}; }

absl::StatusOr<ControlFlow> LearnControlFlow(const CallSequences& sequences) {
  return FlowLearner(sequences).Learn();
}

absl::Status CheckControlFlow(const ControlFlow& flow) {
  std::set<int64_t> callsites;
  for (const FlowBranch& branch : flow.branches()) {
    const auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat("the control flow after callsite ", branch.callsite(), " ", what));
    };
    if (!callsites.insert(branch.callsite()).second) return wrong("is there twice");
    if (branch.segments_size() == 0) return wrong("has no segments");
    for (const FlowSegment& segment : branch.segments()) {
      if (segment.choices_size() == 0) return wrong("has a segment without choices");
      if (segment.has_visits()) RETURN_IF_ERROR(CheckModel(segment.visits()));
      if (segment.before_size() > kMaxContext) return wrong("looks too far back");
      for (const FlowChoice& choice : segment.choices()) {
        RETURN_IF_ERROR(CheckModel(choice.share()));
        const bool is_share =
            choice.share().type() == kLogistic ||
            (choice.share().type() == kConstant && choice.share().coefficients(0) >= 0);
        if (!is_share) return wrong("has a share that is none");
      }
    }
  }
  if (flow.head() != 0 || flow.has_iterations()) RETURN_IF_ERROR(CheckModel(flow.iterations()));
  if (callsites.count(flow.first()) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the control flow begins at callsite ", flow.first(), ", which it lacks"));
}

absl::StatusOr<std::vector<int64_t>> WalkControlFlow(const ControlFlow& flow,
                                                     const WorkloadCell& cell, uint64_t seed,
                                                     int64_t most) {
  return FlowWalker(flow, cell, seed).Walk(most);
}

}  // namespace meridian
