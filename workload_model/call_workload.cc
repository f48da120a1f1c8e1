#include "workload_model/call_workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/generate/generate_report.pb.h"
#include "chakra_export/generate/workload_writer.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/graph_replay.h"
#include "third_party/chakra/et_def.pb.h"
#include "workload_model/control_flow.h"
#include "workload_model/evaluated_flow.h"
#include "workload_model/rank_classes.h"
#include "workload_model/rank_patterns.h"
#include "workload_model/workload.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// The whole workload is in memory while it is checked.
constexpr int64_t kMaxTraceNodes = 20000000;
// Of one rank.
constexpr int64_t kMaxCalls = 5000000;
// A simulator has no barriers: an all-reduce of so many bytes takes as long as its messages need to go
// round.
constexpr int64_t kBarrierBytes = 64;
// 11 days: all ranks' times in nanoseconds must fit into 64 bits.
constexpr double kMaxTotalUs = 1e12;
// Of bytes.
constexpr double kNotableError = 0.2;
constexpr double kNotableCalls = 0.02;
// Of one call, for each of its members: a terabyte.
constexpr int64_t kMaxBytes = int64_t{1} << 40;

using Kind = CallOperation::Kind;

// One call of a class of ranks.
struct Visit {
  const CallsiteModel* callsite = nullptr;
  CallOperation operation;
  int64_t compute_ns = 0;
  int64_t bytes = 0;
  // How often the callsite was visited, as its rule of peers counts.
  int64_t number = 0;
};

std::string NodeName(const CallsiteModel& callsite) {
  return absl::StrCat(callsite.operation(), " at ", callsite.callsite());
}

// The calls of one class of ranks, in one cell.
class ClassCalls {
 public:
  static absl::StatusOr<ClassCalls> Make(const WorkloadModel& model, const ControlFlow& flow,
                                         const WorkloadCell& cell, uint64_t seed) {
    ClassCalls result;
    ASSIGN_OR_RETURN(EvaluatedFlow evaluated, EvaluateFlow(model, flow, cell));
    ASSIGN_OR_RETURN(const std::vector<int64_t> path,
                     WalkControlFlow(flow, CellOfRanks(cell), seed, kMaxCalls));
    int64_t source = 0;
    std::map<int64_t, std::vector<int64_t>> numbers;
    std::set<Transition> seen;
    for (size_t i = 0; i < path.size(); ++i) {
      const auto found = evaluated.callsites.find(path[i]);
      if (found == evaluated.callsites.end()) {
        return absl::FailedPreconditionError(
            absl::StrCat("the model does not say what callsite ", path[i], " does"));
      }
      Visit& visit = result.visits_.emplace_back();
      visit.callsite = found->second;
      visit.operation = OperationOf(visit.callsite->operation());
      if (const auto bytes = evaluated.bytes.find(path[i]); bytes != evaluated.bytes.end()) {
        visit.bytes = bytes->second;
      }
      if (visit.callsite->has_peer() && visit.callsite->peer().by_visit() != 0) {
        std::vector<int64_t>& of_callsite = numbers[path[i]];
        if (of_callsite.empty()) {
          of_callsite = VisitsSince(path, path[i], visit.callsite->peer().since());
        }
        visit.number = of_callsite[i];
      }
      if (const auto time = evaluated.times.find({source, path[i]});
          time != evaluated.times.end()) {
        const bool is_first = seen.insert(time->first).second;
        visit.compute_ns = is_first ? time->second.first_ns : time->second.steady_ns;
      }
      source = path[i];
    }
    result.evaluated_ = std::move(evaluated);
    return result;
  }

  const std::vector<Visit>& visits() const { return visits_; }
  const EvaluatedFlow& evaluated() const { return evaluated_; }

  double ComputeUs() const {
    double sum = 0;
    for (const Visit& visit : visits_) sum += static_cast<double>(visit.compute_ns) / kNsPerUs;
    return sum;
  }

 private:
  std::vector<Visit> visits_;
  EvaluatedFlow evaluated_;
};

// A message on its way to a rank.
struct Arrival {
  int64_t sender = 0;
  int64_t bytes = 0;
  int32_t tag = 0;
};

class CallWorkload final : public GeneratedWorkload {
 public:
  static absl::StatusOr<std::unique_ptr<CallWorkload>> Make(const WorkloadModel& model,
                                                            const GenerateOptions& options) {
    auto workload = std::make_unique<CallWorkload>();
    const double ranks = options.cell.Ranks();
    if (ranks != std::floor(ranks) || ranks > static_cast<double>(kMaxGeneratedRanks)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--nodes makes ", ranks, " ranks; expected a whole number up to ", kMaxGeneratedRanks));
    }
    workload->ranks_ = static_cast<int64_t>(ranks);
    for (int64_t rank = 0; rank < workload->ranks_; ++rank) {
      const std::optional<std::string> name =
          RankClassOf(model.rank_classes(), rank, workload->ranks_);
      if (!name.has_value()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "ranks of this code are a square: ", workload->ranks_, " ranks are none; try ",
            std::llround(
                std::pow(std::round(std::sqrt(static_cast<double>(workload->ranks_))), 2))));
      }
      RETURN_IF_ERROR(workload->AddClass(model, *name, options));
      workload->class_of_.push_back(workload->numbers_.at(*name));
    }
    RETURN_IF_ERROR(workload->FindGroups());
    RETURN_IF_ERROR(workload->FindArrivals());
    return workload;
  }

  int64_t rank_count() const override { return ranks_; }

  int64_t node_count() const override {
    int64_t nodes = 0;
    for (const size_t number : class_of_) {
      // A computation, and at most a send and a receive.
      nodes += 3 * static_cast<int64_t>(classes_[number].visits().size());
    }
    return nodes;
  }

  void AddRank(int64_t rank, RankProgram* program) const override {
    size_t next_arrival = 0;
    std::vector<NodeIndex> last, begun;
    for (const Visit& visit : classes_[class_of_[static_cast<size_t>(rank)]].visits()) {
      if (visit.operation.kind == Kind::kWait) {
        last.insert(last.end(), begun.begin(), begun.end());
        begun.clear();
      }
      if (visit.compute_ns > 0 || last.size() > 1) {
        last = {program->Compute(absl::StrCat("to ", visit.callsite->callsite()), {},
                                 visit.compute_ns, last)};
      }
      const std::vector<NodeIndex> nodes = AddCall(rank, visit, last, &next_arrival, program);
      if (nodes.empty()) continue;
      if (visit.operation.is_asynchronous) {
        begun.insert(begun.end(), nodes.begin(), nodes.end());
      } else {
        last = nodes;
      }
    }
  }

  const std::vector<ClassCalls>& classes() const { return classes_; }
  const std::set<std::string>& notes() const { return notes_; }

 private:
  // The group of a rank: its name and members.
  using GroupKey = std::pair<std::string, std::string>;
  static GroupKey KeyOf(const CallsiteModel& callsite) {
    return {callsite.stride(), callsite.length()};
  }

  absl::Status AddClass(const WorkloadModel& model, const std::string& name,
                        const GenerateOptions& options) {
    if (numbers_.count(name) > 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ControlFlow* flow, FlowOf(model, name));
    ASSIGN_OR_RETURN(ClassCalls calls, ClassCalls::Make(model, *flow, options.cell, options.seed));
    numbers_[name] = classes_.size();
    classes_.push_back(std::move(calls));
    return absl::OkStatus();
  }

  // Groups of one rule are numbered by their first rank.
  absl::Status FindGroups() {
    for (const ClassCalls& calls : classes_) {
      for (const Visit& visit : calls.visits()) {
        if (visit.operation.kind != Kind::kCollective) continue;
        const GroupKey key = KeyOf(*visit.callsite);
        if (groups_.count(key) > 0) continue;
        std::map<int64_t, int64_t>& by_first_rank = groups_[key];
        for (int64_t rank = 0; rank < ranks_; ++rank) {
          const std::optional<std::vector<int64_t>> members =
              GroupOf(*visit.callsite, rank, ranks_);
          if (!members.has_value()) {
            return absl::FailedPreconditionError(
                absl::StrCat("callsite ", visit.callsite->callsite(), " communicates in groups of ",
                             visit.callsite->length(), " ranks, every ", visit.callsite->stride(),
                             ": there are none of ", ranks_, " ranks (n)"));
          }
          if (static_cast<int64_t>(members->size()) == ranks_) break;
          if (by_first_rank.insert({members->front(), next_group_}).second) ++next_group_;
        }
      }
    }
    return CheckGroupCount(next_group_ - 1, "predict for fewer nodes");
  }

  // Which message each receive gets, where receives do not say from whom: ranks are run together, each
  // until it waits for something that was not sent yet. Of what has come, those of different senders and
  // callsites come first: a neighbour that is an iteration ahead has sent twice.
  absl::Status FindArrivals() {
    arrivals_.resize(static_cast<size_t>(ranks_));
    std::vector<MailBox> boxes(static_cast<size_t>(ranks_));
    bool takes_twice = false;
    while (true) {
      bool moved = false, is_done = true;
      for (int64_t rank = 0; rank < ranks_; ++rank) {
        ASSIGN_OR_RETURN(const bool went_on, Advance(rank, takes_twice, &boxes));
        moved |= went_on;
        is_done &= boxes[static_cast<size_t>(rank)].next == VisitsOf(rank).size();
      }
      if (is_done) return absl::OkStatus();
      if (moved) {
        takes_twice = false;
      } else if (!takes_twice) {
        takes_twice = true;
      } else {
        break;
      }
    }
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      const MailBox& box = boxes[static_cast<size_t>(rank)];
      if (box.next == VisitsOf(rank).size()) continue;
      const CallsiteModel& callsite = *VisitsOf(rank)[box.next].callsite;
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " would wait for ever at callsite ", callsite.callsite(),
                       " (", Printable(callsite.operation()), "): nobody sends what it receives"));
    }
    return absl::OkStatus();
  }

  // What was sent to a rank and not received, and how far it has come.
  struct MailBox {
    size_t next = 0;
    // Whether the next call has sent what it sends.
    bool is_begun = false;
    // How many receives were begun, and which of them have nothing yet.
    size_t receives = 0;
    std::vector<size_t> open;
    std::vector<Arrival> arrived;
  };

  const std::vector<Visit>& VisitsOf(int64_t rank) const {
    return classes_[class_of_[static_cast<size_t>(rank)]].visits();
  }

  // Runs a rank until it waits; returns whether it went on.
  absl::StatusOr<bool> Advance(int64_t rank, bool takes_twice, std::vector<MailBox>* boxes) {
    MailBox& box = (*boxes)[static_cast<size_t>(rank)];
    const std::vector<Visit>& visits = VisitsOf(rank);
    bool moved = false;
    while (box.next < visits.size()) {
      const Visit& visit = visits[box.next];
      const Kind kind = visit.operation.kind;
      if (!box.is_begun) {
        RETURN_IF_ERROR(Begin(rank, visit, boxes));
        box.is_begun = true;
        moved = true;
      }
      const bool blocks = kind == Kind::kReceive && !visit.operation.is_asynchronous;
      const bool waits = kind == Kind::kWait || box.next + 1 == visits.size();
      if (blocks && !TakeArrivals(rank, takes_twice, {box.receives - 1}, &box)) return moved;
      if (waits && !box.open.empty() && !TakeArrivals(rank, takes_twice, box.open, &box)) {
        return moved;
      }
      if (waits) box.open.clear();
      ++box.next;
      box.is_begun = false;
      moved = true;
    }
    return moved;
  }

  // Sends what the call sends, and counts what it wants to receive.
  absl::Status Begin(int64_t rank, const Visit& visit, std::vector<MailBox>* boxes) const {
    const Kind kind = visit.operation.kind;
    MailBox& own = (*boxes)[static_cast<size_t>(rank)];
    if (kind == Kind::kReceive) {
      if (visit.operation.is_asynchronous) own.open.push_back(own.receives);
      ++own.receives;
    }
    const bool sends = kind == Kind::kSend || kind == Kind::kSendReceive;
    if (!sends || !visit.callsite->has_peer()) return absl::OkStatus();
    const PeerRule& rule = visit.callsite->peer();
    const Peer target = TargetOf(rule, rank, ranks_, visit.number);
    const bool is_paired =
        kind == Kind::kSend || SourceOf(rule, rank, ranks_, visit.number).is_known;
    if (!target.is_known || !is_paired) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the rule of callsite ", visit.callsite->callsite(), " does not tell whom rank ", rank,
          " of ", ranks_, " exchanges messages with"));
    }
    if (kind == Kind::kSend && target.rank.has_value()) {
      (*boxes)[static_cast<size_t>(*target.rank)].arrived.push_back(
          {rank, MessageBytes(visit), TagOf(visit)});
    }
    return absl::OkStatus();
  }

  // Gives these receives what has come; false when that is too little.
  bool TakeArrivals(int64_t rank, bool takes_twice, const std::vector<size_t>& receives,
                    MailBox* box) {
    std::set<std::pair<int64_t, int32_t>> seen;
    std::vector<size_t> taken;
    for (size_t i = 0; i < box->arrived.size() && taken.size() < receives.size(); ++i) {
      const bool is_new = seen.insert({box->arrived[i].sender, box->arrived[i].tag}).second;
      if (is_new || takes_twice) taken.push_back(i);
    }
    if (taken.size() < receives.size()) return false;
    std::vector<Arrival>& given = arrivals_[static_cast<size_t>(rank)];
    given.resize(std::max(given.size(), box->receives));
    for (size_t i = 0; i < taken.size(); ++i) given[receives[i]] = box->arrived[taken[i]];
    for (size_t i = taken.size(); i-- > 0;) {
      box->arrived.erase(box->arrived.begin() + static_cast<int64_t>(taken[i]));
    }
    return true;
  }

  static int64_t MessageBytes(const Visit& visit) { return std::max<int64_t>(1, visit.bytes); }
  static int32_t TagOf(const Visit& visit) {
    return static_cast<int32_t>(visit.callsite->callsite() % (1 << 20));
  }

  std::vector<NodeIndex> AddCall(int64_t rank, const Visit& visit,
                                 const std::vector<NodeIndex>& after, size_t* next_arrival,
                                 RankProgram* program) const {
    const std::string name = NodeName(*visit.callsite);
    std::vector<NodeIndex> nodes;
    switch (visit.operation.kind) {
      case Kind::kCollective:
        return AddCollective(rank, visit, name, after, program);
      case Kind::kReceive: {
        const std::vector<Arrival>& arrivals = arrivals_[static_cast<size_t>(rank)];
        // What nobody sends is told by the check of the whole.
        if (*next_arrival >= arrivals.size()) break;
        const Arrival& arrival = arrivals[(*next_arrival)++];
        if (arrival.sender == rank) break;
        nodes.push_back(
            program->Receive(name, {arrival.sender, arrival.bytes, arrival.tag}, after));
        break;
      }
      case Kind::kSend:
      case Kind::kSendReceive: {
        if (!visit.callsite->has_peer()) break;
        const PeerRule& rule = visit.callsite->peer();
        const Peer target = TargetOf(rule, rank, ranks_, visit.number);
        if (target.rank.has_value() && *target.rank != rank) {
          nodes.push_back(
              program->Send(name, {*target.rank, MessageBytes(visit), TagOf(visit)}, after));
        }
        if (visit.operation.kind == Kind::kSend) break;
        const Peer source = SourceOf(rule, rank, ranks_, visit.number);
        if (source.rank.has_value() && *source.rank != rank) {
          nodes.push_back(
              program->Receive(name, {*source.rank, MessageBytes(visit), TagOf(visit)}, after));
        }
        break;
      }
      case Kind::kLocal:
      case Kind::kWait:
      case Kind::kUnknown:
        break;
    }
    return nodes;
  }

  std::vector<NodeIndex> AddCollective(int64_t rank, const Visit& visit, const std::string& name,
                                       const std::vector<NodeIndex>& after,
                                       RankProgram* program) const {
    const std::vector<int64_t> members = *GroupOf(*visit.callsite, rank, ranks_);
    if (members.size() < 2) return {};
    const bool is_barrier = visit.operation.collective == CollectiveKind::kBarrier;
    int64_t bytes = is_barrier ? kBarrierBytes : std::max<int64_t>(1, visit.bytes);
    if (visit.operation.is_per_member) {
      bytes = std::min(bytes, kMaxBytes) * static_cast<int64_t>(members.size());
    }
    const ChakraProtoMsg::CollectiveCommType type =
        SimulatedCommTypeOf(visit.operation.collective).value_or(ChakraProtoMsg::ALL_REDUCE);
    if (type == ChakraProtoMsg::ALL_GATHER && bytes < kMinAllGatherBytes) {
      bytes = kMinAllGatherBytes;
      notes_.insert(absl::StrCat("all-gathers of fewer than ", kMinAllGatherBytes,
                                 " bytes have that many, which simulators need"));
    }
    if (is_barrier) {
      notes_.insert(absl::StrCat("barriers are all-reduces of ", kBarrierBytes, " bytes"));
    } else if (IsApproximated(visit.operation.collective)) {
      notes_.insert(absl::StrCat(visit.callsite->operation(), " is written as ",
                                 ChakraProtoMsg::CollectiveCommType_Name(type),
                                 ", the nearest that simulators have"));
    }
    ProcessGroup group;
    group.ranks = members;
    if (static_cast<int64_t>(members.size()) < ranks_) {
      group.name = absl::StrCat(groups_.at(KeyOf(*visit.callsite)).at(members.front()));
    }
    return {program->Collective(name, type, bytes, program->AddGroup(group), after)};
  }

  int64_t ranks_ = 0;
  std::vector<ClassCalls> classes_;
  // By the name of a class, and by rank.
  std::map<std::string, size_t> numbers_;
  std::vector<size_t> class_of_;
  // By rule, by first rank: the number of the group.
  std::map<GroupKey, std::map<int64_t, int64_t>> groups_;
  int64_t next_group_ = 1;
  // By receiver.
  std::vector<std::vector<Arrival>> arrivals_;
  mutable std::set<std::string> notes_;
};

// Runs the workload, so that nothing is written that would wait for ever, with what calls took when
// they were measured.
absl::StatusOr<GraphReplay> Replay(const CallWorkload& workload) {
  ASSIGN_OR_RETURN(ExecutionGraph graph, BuildWorkloadGraph(workload));
  std::map<std::string, int64_t> durations;
  for (const ClassCalls& calls : workload.classes()) {
    for (const Visit& visit : calls.visits()) {
      const auto found = calls.evaluated().call_ns.find(visit.callsite->callsite());
      if (found != calls.evaluated().call_ns.end())
        durations[NodeName(*visit.callsite)] = found->second;
    }
  }
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) == nullptr) continue;
    const auto found = durations.find(std::string(graph.name(node)));
    if (found != durations.end()) graph.set_duration_ns(node, found->second);
  }
  const CommunicationMatch match(graph);
  if (!match.problems().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("ranks would not communicate alike: ", match.problems().front().text,
                     "; the classes of ranks, or their branches, do not fit together"));
  }
  return ReplayAsSimulator(graph, match);
}

// Generates the largest measured cell of each class again.
absl::Status AddSelfChecks(const WorkloadModel& model, uint64_t seed, CallWorkloadReport* report) {
  for (const ControlFlow& flow : model.flows()) {
    const MeasuredCell* largest = nullptr;
    for (const MeasuredCell& cell : model.measured()) {
      if (cell.rank_class() != flow.rank_class() || !(cell.calls() > 0)) continue;
      if (largest == nullptr || std::make_pair(cell.nodes(), cell.size()) >
                                    std::make_pair(largest->nodes(), largest->size())) {
        largest = &cell;
      }
    }
    if (largest == nullptr) continue;
    WorkloadCell cell;
    cell.nodes = largest->nodes();
    cell.size = largest->size();
    cell.kind = {largest->threads(), largest->ranks_per_node(), largest->rank_class()};
    ASSIGN_OR_RETURN(const ClassCalls calls, ClassCalls::Make(model, flow, cell, seed));
    SelfCheck& check = *report->add_self_check();
    check.set_nodes(cell.nodes);
    check.set_size(cell.size);
    check.set_rank_class(flow.rank_class());
    check.set_measured_calls(largest->calls());
    check.set_measured_bytes(largest->bytes());
    check.set_measured_us(largest->total_us());
    check.set_calls(static_cast<double>(calls.visits().size()));
    double us = calls.ComputeUs();
    bool is_first = true;
    for (const Visit& visit : calls.visits()) {
      check.set_bytes(check.bytes() + static_cast<double>(visit.bytes));
      const auto call = calls.evaluated().call_ns.find(visit.callsite->callsite());
      // The first call has no transition that it ends.
      if (!is_first && call != calls.evaluated().call_ns.end()) {
        us += static_cast<double>(call->second) / kNsPerUs;
      }
      is_first = false;
    }
    check.set_us(us);
    if (std::abs(check.calls() / check.measured_calls() - 1) > kNotableCalls) {
      report->add_notes(absl::StrFormat(
          "generated again, ranks '%s' of the largest measured run make %.0f calls, not %.0f: the "
          "control flow is drawn where it is not understood",
          Printable(flow.rank_class()), check.calls(), check.measured_calls()));
    }
  }
  return absl::OkStatus();
}

// Returns a workload that is not too large, of a cell that models say something about.
absl::StatusOr<std::unique_ptr<CallWorkload>> MakeChecked(const WorkloadModel& model,
                                                          const GenerateOptions& options) {
  WorkloadCell all_classes = options.cell;
  all_classes.kind.rank_class = "";
  ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, all_classes));
  if (evaluation.total_us() > kMaxTotalUs) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%g nodes and size %g would take %g s, longer than anything that can be simulated",
        options.cell.nodes, options.cell.size, evaluation.total_us() * 1e-6));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<CallWorkload> workload, CallWorkload::Make(model, options));
  if (workload->node_count() > kMaxTraceNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the workload would have up to ", WithThousands(workload->node_count()),
                     " nodes; at most ", WithThousands(kMaxTraceNodes),
                     ": generate for fewer nodes, or fit a trace of fewer iterations"));
  }
  return workload;
}

void AddModelNotes(const WorkloadModel& model, CallWorkloadReport* report) {
  for (const CallModel& call : model.messages()) {
    if (call.varies_in_runs()) {
      report->add_notes(absl::StrCat("bytes of callsite ", call.source(),
                                     " differ from call to call, or from rank to rank; all are "
                                     "written with their mean"));
    } else if (call.left_out_error() > kNotableError) {
      report->add_notes(absl::StrFormat("bytes of callsite %d are predicted within %.0f %% only",
                                        call.source(), 100 * call.left_out_error()));
    }
  }
  for (const std::string& note : model.notes()) report->add_notes(note);
}

}  // namespace

absl::Status CheckCallWorkload(const WorkloadModel& model, const GenerateOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CallWorkload> workload, MakeChecked(model, options));
  return Replay(*workload).status();
}

absl::StatusOr<CallWorkloadReport> GenerateWorkload(FileSystem& file_system,
                                                    const WorkloadModel& model,
                                                    const std::string& prefix,
                                                    const GenerateOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CallWorkload> workload, MakeChecked(model, options));
  ASSIGN_OR_RETURN(const GraphReplay replay, Replay(*workload));
  CallWorkloadReport report;
  RETURN_IF_ERROR(AddSelfChecks(model, options.seed, &report));
  ASSIGN_OR_RETURN(const ChakraGenerateReport written,
                   WriteGeneratedWorkload(file_system, *workload, prefix, options.progress));
  report.set_nodes(options.cell.nodes);
  report.set_size(options.cell.size);
  report.set_ranks(workload->rank_count());
  report.set_trace_nodes(written.nodes());
  bool has_call_times = true;
  for (const ClassCalls& calls : workload->classes()) {
    report.set_calls(std::max(report.calls(), static_cast<int64_t>(calls.visits().size())));
    report.set_compute_us(std::max(report.compute_us(), calls.ComputeUs()));
    has_call_times &= calls.evaluated().has_call_times;
  }
  if (has_call_times) {
    report.set_replayed_us(static_cast<double>(replay.makespan_ns) / kNsPerUs);
  } else {
    report.add_notes(
        "nobody measured how long calls took, so that computation contains them, and a simulator "
        "adds its own: give the report of mpiP that was written with the traces to fit, as "
        "--callsites");
  }
  std::map<std::string, ScaledTraffic> traffic;
  for (const GeneratedCommunication& entry : written.communication()) {
    ScaledTraffic& of_kind = traffic[entry.kind()];
    of_kind.set_kind(entry.kind());
    of_kind.set_nodes(of_kind.nodes() + entry.nodes());
    of_kind.set_bytes(SaturateToInt64(absl::int128(of_kind.bytes()) +
                                      absl::int128(entry.nodes()) * entry.bytes()));
  }
  for (const auto& [kind, of_kind] : traffic) *report.add_traffic() = of_kind;
  for (const GeneratedRank& rank : written.ranks()) report.add_files(rank.path());
  if (!written.comm_groups().empty()) report.add_files(written.comm_groups());
  for (const std::string& note : workload->notes()) report.add_notes(note);
  AddModelNotes(model, &report);
  return report;
}

std::string FormatCallWorkload(const CallWorkloadReport& report) {
  using Align = TextTable::Align;
  if (report.trace_nodes() == 0) {
    std::string text = absl::StrFormat("%g nodes, size %g, %d ranks\n", report.nodes(),
                                       report.size(), report.ranks());
    for (const std::string& file : report.files()) absl::StrAppend(&text, file, "\n");
    for (const std::string& note : report.notes()) absl::StrAppend(&text, "note: ", note, "\n");
    return text;
  }
  std::string text = absl::StrFormat(
      "%g nodes, size %g: %d ranks of up to %s calls, %s trace nodes\ncomputation of a rank %.3f "
      "ms",
      report.nodes(), report.size(), report.ranks(), WithThousands(report.calls()),
      WithThousands(report.trace_nodes()), report.compute_us() / 1000);
  if (report.has_replayed_us()) {
    absl::StrAppend(&text, absl::StrFormat("; with calls as they were measured %.3f ms",
                                           report.replayed_us() / 1000));
  }
  TextTable traffic(
      {{"communication", Align::kLeft}, {"nodes", Align::kRight}, {"bytes", Align::kRight}});
  for (const ScaledTraffic& kind : report.traffic()) {
    traffic.AddRow({kind.kind(), WithThousands(kind.nodes()), WithThousands(kind.bytes())});
  }
  absl::StrAppend(&text, "\n\n", traffic.ToString(), "\n");
  TextTable checks({{"generated again", Align::kLeft},
                    {"measured", Align::kRight},
                    {"generated", Align::kRight}});
  for (const SelfCheck& check : report.self_check()) {
    const std::string cell = absl::StrFormat("%g nodes, size %g, ranks '%s': ", check.nodes(),
                                             check.size(), Printable(check.rank_class()));
    const auto row = [&](absl::string_view what, double measured, double generated) {
      checks.AddRow({absl::StrCat(cell, what), absl::StrFormat("%.0f", measured),
                     absl::StrFormat("%.0f", generated)});
    };
    row("calls", check.measured_calls(), check.calls());
    row("bytes", check.measured_bytes(), check.bytes());
    row("us", check.measured_us(), check.us());
  }
  if (report.self_check_size() > 0) absl::StrAppend(&text, checks.ToString(), "\n");
  for (const std::string& note : report.notes()) {
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  }
  return text;
}

}  // namespace meridian
