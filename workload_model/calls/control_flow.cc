#include "workload_model/calls/control_flow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/string_view.h"
#include "workload_model/models/curve_fit.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// What leads to more destinations is no loop.
constexpr size_t kMaxDestinations = 16;
// An explanation is not better than another by this cost.
constexpr double kSameCost = 1e-9;

using Counts = std::map<int64_t, int64_t>;

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

// What it costs to write down explanations of a branch, in nats.
struct Prices {
  // `all` is where the branch led, how often.
  explicit Prices(const Counts& all)
      : of_number(0.5 * std::log(static_cast<double>(std::max<int64_t>(2, Sum(all))))),
        of_name(std::log(static_cast<double>(all.size()))) {}

  // The shares of a segment, and which of all destinations it leads to.
  double OfShares(const Counts& counts) const {
    return (of_number + of_name) * static_cast<double>(counts.size());
  }
  double OfSegment(const Counts& counts) const { return DrawCost(counts) + OfShares(counts); }

  // A number more among so many observations, and the name of one of so many destinations.
  double of_number;
  double of_name;
};

// Puts visits together that differ by less than it costs to tell them apart. by_visit[i] is what the
// (i + 1)-th visits did.
std::vector<Segment> FindSegments(const std::vector<Counts>& by_visit, const Prices& prices) {
  std::vector<Segment> segments;
  for (const Counts& counts : by_visit) {
    if (!segments.empty()) {
      const Counts merged = Merged(segments.back().counts, counts);
      if (prices.OfSegment(merged) <=
          prices.OfSegment(segments.back().counts) + prices.OfSegment(counts)) {
        ++segments.back().visits;
        segments.back().counts = merged;
        continue;
      }
    }
    segments.push_back({1, counts});
  }
  return segments;
}

bool LeadAlike(const Counts& a, const Counts& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

struct Explanation {
  double cost = std::numeric_limits<double>::max();
  FlowBranch branch;
};

// Adds the choices that these counts mean.
void AddChoices(const Counts& counts, FlowSegment* segment) {
  for (const auto& [destination, count] : counts) {
    FlowChoice& choice = *segment->add_choices();
    choice.set_destination(destination);
    choice.set_share(static_cast<double>(count) / static_cast<double>(Sum(counts)));
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
      return InvalidArgument("runs begin at callsites ", flow.first(), " and ",
                             run.sequence->front(),
                             ": they are no runs of one code, or callsites are not numbered alike");
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
    int64_t after_end = kNoCallsite;

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
    Counts all;
    for (const Run& run : runs_) {
      ForEachVisit(run, callsite, kNoCallsite,
                   [&](int64_t, size_t position) { ++all[run.After(position)]; });
    }
    const Prices prices(all);
    // Drawn each time, unless something else is better.
    Explanation best = ByContext(callsite, 0, prices);
    const auto consider = [&](Explanation other) {
      if (other.cost < best.cost - kSameCost) best = std::move(other);
    };
    if (all.size() > 1) {
      consider(ByVisits(callsite, kNoCallsite, prices));
      for (int64_t since : callsites_) {
        // Only what is visited less often sets a count back.
        if (all.size() <= kMaxDestinations && since != callsite && VisitsOf(since) < Sum(all)) {
          consider(ByVisits(callsite, since, prices));
        }
      }
      for (int length = 1; length <= kMaxContext; ++length) {
        consider(ByContext(callsite, length, prices));
      }
    }
    best.branch.set_callsite(callsite);
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
  // cells, or with numbers that are models of ranks and size.
  Explanation ByVisits(int64_t callsite, int64_t since, const Prices& prices) const {
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
    Explanation same = ByPooledVisits(pooled, prices);
    const Explanation own = ByVisitsOfCells(by_cell, prices);
    if (own.cost < same.cost - kSameCost) same = own;
    same.branch.set_since(since);
    return same;
  }

  static Explanation ByPooledVisits(const std::vector<Counts>& pooled, const Prices& prices) {
    Explanation result;
    result.cost = 0;
    const std::vector<Segment> segments = FindSegments(pooled, prices);
    for (const Segment& segment : segments) {
      result.cost += prices.OfSegment(segment.counts);
      FlowSegment& written = *result.branch.add_segments();
      if (&segment != &segments.back()) {
        *written.mutable_visits() = ConstantModel(static_cast<double>(segment.visits));
      }
      AddChoices(segment.counts, &written);
    }
    return result;
  }

  // Cells have the same segments, one after the other, but not equally long ones; one of length 0 is
  // missing.
  static Explanation ByVisitsOfCells(const std::map<WorkloadCell, std::vector<Counts>>& by_cell,
                                     const Prices& prices) {
    Explanation result;
    result.cost = 0;
    std::map<WorkloadCell, std::vector<Segment>> segments;
    const std::vector<Segment>* most = nullptr;
    for (const auto& [cell, visits] : by_cell) {
      std::vector<Segment>& of_cell = segments[cell];
      of_cell = FindSegments(visits, prices);
      for (const Segment& segment : of_cell) result.cost += DrawCost(segment.counts);
      if (most == nullptr || of_cell.size() > most->size()) most = &of_cell;
    }
    std::vector<std::vector<MeasuredPoint>> lengths(most->size());
    std::vector<Counts> counts(most->size());
    for (const auto& [cell, of_cell] : segments) {
      size_t next = 0;
      for (size_t i = 0; i < most->size(); ++i) {
        const bool is_there =
            next < of_cell.size() && LeadAlike(of_cell[next].counts, (*most)[i].counts);
        lengths[i].push_back({cell, is_there ? static_cast<double>(of_cell[next].visits) : 0.0});
        if (is_there) counts[i] = Merged(std::move(counts[i]), of_cell[next++].counts);
      }
      if (next < of_cell.size()) return Explanation();
    }
    for (size_t i = 0; i < most->size(); ++i) {
      FlowSegment& written = *result.branch.add_segments();
      AddChoices(counts[i], &written);
      // The shares, and two numbers for the length: the same in all cells.
      result.cost += prices.of_number + prices.OfShares((*most)[i].counts);
      if (i + 1 == most->size()) break;
      const std::optional<Model> trips = FitTrips(lengths[i]);
      // Lengths that no model explains are no rule.
      if (!trips.has_value()) return Explanation();
      *written.mutable_visits() = *trips;
    }
    return result;
  }

  // Explains a branch by so many callsites that came before.
  Explanation ByContext(int64_t callsite, int length, const Prices& prices) const {
    std::map<std::vector<int64_t>, Counts> contexts;
    for (const Run& run : runs_) {
      ForEachVisit(run, callsite, kNoCallsite, [&](int64_t, size_t position) {
        std::vector<int64_t> before;
        for (size_t i = 1; i <= static_cast<size_t>(length); ++i) {
          before.push_back(position >= i ? (*run.sequence)[position - i] : kNoCallsite);
        }
        ++contexts[before][run.After(position)];
      });
    }
    Explanation result;
    result.cost = 0;
    for (const auto& [before, counts] : contexts) {
      result.cost += prices.OfSegment(counts);
      FlowSegment& segment = *result.branch.add_segments();
      segment.mutable_before()->Add(before.begin(), before.end());
      AddChoices(counts, &segment);
    }
    return result;
  }

  // The last callsite of a run is also that of each iteration: where else it leads, the next begins.
  void FindIterations(ControlFlow* flow) {
    const int64_t last = runs_[0].sequence->back();
    Counts after;
    for (const Run& run : runs_) {
      if (run.sequence->back() != last) return;
      ForEachVisit(run, last, kNoCallsite,
                   [&](int64_t, size_t position) { ++after[run.After(position)]; });
    }
    after.erase(kNoCallsite);
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
    const std::optional<Model> trips = FitTrips(visits);
    *flow->mutable_iterations() = trips.has_value() ? *trips : FitCount(visits, false);
  }

  std::vector<Run> runs_;
  std::set<int64_t> callsites_;
};

// Numbers of visits and iterations are taken for this where they are more.
constexpr double kMaxVisits = 1e12;

class FlowWalker {
 public:
  FlowWalker(const ControlFlow& flow, const WorkloadCell& cell, uint64_t seed)
      : flow_(flow), cell_(cell), random_(seed) {
    for (const FlowBranch& branch : flow.branches()) {
      State& state = states_[branch.callsite()];
      state.branch = &branch;
      int64_t end = 0;
      for (const FlowSegment& segment : branch.segments()) {
        if (segment.has_visits()) end += WholeVisits(segment.visits(), cell);
        state.ends.push_back(segment.has_visits() ? end : std::numeric_limits<int64_t>::max());
      }
      if (branch.since() != kNoCallsite) resets_[branch.since()].push_back(&state);
    }
  }

  absl::StatusOr<std::vector<int64_t>> Walk(int64_t most) {
    std::vector<int64_t> path;
    int64_t at = flow_.first(), heads = 0;
    const int64_t iterations = flow_.has_iterations() ? WholeVisits(flow_.iterations(), cell_) : 0;
    while (at != kNoCallsite) {
      if (static_cast<int64_t>(path.size()) == most) {
        return FailedPrecondition("the control flow has not come to an end after ", most,
                                  " calls of a rank; predict for fewer nodes or a smaller size");
      }
      path.push_back(at);
      heads += at == flow_.head() ? 1 : 0;
      const bool may_end = flow_.head() != kNoCallsite && at == flow_.last() && heads >= iterations;
      ASSIGN_OR_RETURN(at, Next(at, path));
      if (may_end && at == flow_.head()) break;
    }
    return path;
  }

 private:
  struct State {
    const FlowBranch* branch = nullptr;
    // The number of visits with which each segment ends.
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
      return FailedPrecondition("the control flow does not say how to go on at callsite ", at,
                                ", which measured runs never came to in this way");
    }
    if (segment->choices_size() == 1) return segment->choices(0).destination();
    // 53 bits, the same on all machines.
    double draw = static_cast<double>(random_() >> 11) / 9007199254740992.0;
    for (const FlowChoice& choice : segment->choices()) {
      draw -= choice.share();
      if (draw < 0) return choice.destination();
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
        is_same &=
            segment.before(j) == (path.size() >= back ? path[path.size() - back] : kNoCallsite);
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

absl::StatusOr<ControlFlow> LearnControlFlow(const CallSequences& sequences) {
  return FlowLearner(sequences).Learn();
}

int64_t WholeVisits(const Model& model, const WorkloadCell& cell) {
  return std::llround(std::min(kMaxVisits, EvaluateModel(model, cell)));
}

absl::Status CheckControlFlow(const ControlFlow& flow) {
  std::set<int64_t> callsites;
  for (const FlowBranch& branch : flow.branches()) {
    const auto wrong = [&](absl::string_view what) {
      return InvalidArgument("the control flow after callsite ", branch.callsite(), " ", what);
    };
    if (!callsites.insert(branch.callsite()).second) return wrong("is there twice");
    if (branch.segments_size() == 0) return wrong("has no segments");
    for (const FlowSegment& segment : branch.segments()) {
      if (segment.choices_size() == 0) return wrong("has a segment without choices");
      if (segment.has_visits()) RETURN_IF_ERROR(CheckModel(segment.visits()));
      if (segment.before_size() > kMaxContext) return wrong("looks too far back");
      for (const FlowChoice& choice : segment.choices()) {
        const bool is_share = choice.share() >= 0 && choice.share() <= 1;
        if (!is_share) return wrong("has a share that is none");
      }
    }
  }
  if (flow.head() != 0 || flow.has_iterations()) RETURN_IF_ERROR(CheckModel(flow.iterations()));
  if (callsites.count(flow.first()) > 0) return absl::OkStatus();
  return InvalidArgument("the control flow begins at callsite ", flow.first(), ", which it lacks");
}

absl::StatusOr<std::vector<int64_t>> WalkControlFlow(const ControlFlow& flow,
                                                     const WorkloadCell& cell, uint64_t seed,
                                                     int64_t most) {
  return FlowWalker(flow, cell, seed).Walk(most);
}

}  // namespace meridian
