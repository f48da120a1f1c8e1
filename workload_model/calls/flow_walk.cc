#include "workload_model/calls/control_flow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

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
