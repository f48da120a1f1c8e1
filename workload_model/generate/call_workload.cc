#include "workload_model/generate/call_workload.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/run/workload_report.pb.h"
#include "third_party/chakra/et_def.pb.h"
#include "workload_model/calls/call_operation.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/calls/rank_patterns.h"
#include "workload_model/generate/evaluated_flow.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// The whole workload is in memory while it is checked.
constexpr int64_t kMaxTraceNodes = 20000000;
// A simulator has no barriers: an all-reduce of so many bytes takes as long as its messages need to go
// round.
constexpr int64_t kBarrierBytes = 64;
// 11 days: all ranks' times in nanoseconds must fit into 64 bits.
constexpr double kMaxTotalUs = 1e12;
// A call moves at most so much for each member of its group: a terabyte.
constexpr int64_t kMaxBytes = int64_t{1} << 40;

using Kind = CallOperation::Kind;

std::string NodeName(const CallsiteModel& callsite) {
  return absl::StrCat(callsite.operation(), " at ", callsite.callsite());
}

// Returns the message that a call sends to that rank, or receives from it.
PeerMessage MessageOf(const Visit& visit, int64_t peer) {
  return {peer, std::max<int64_t>(1, visit.bytes),
          static_cast<int32_t>(visit.callsite->callsite() % (1 << 20))};
}

// A rank on its way through its calls, and what was sent to it.
struct RunningRank {
  const std::vector<Visit>* visits = nullptr;
  size_t next = 0;
  // Whether the next call has sent what it sends.
  bool is_begun = false;
  // How many receives were begun, and which of them have nothing yet and are waited for later.
  size_t receives = 0;
  std::vector<size_t> open;
  // What was sent to it and not received.
  std::vector<PeerMessage> arrived;
  std::vector<PeerMessage> given;

  bool is_done() const { return next == visits->size(); }

  // Gives these receives what has come; false when that is too little.
  bool Take(const std::vector<size_t>& receivers, bool takes_twice) {
    std::set<std::pair<int64_t, int32_t>> seen;
    std::vector<size_t> taken;
    for (size_t i = 0; i < arrived.size() && taken.size() < receivers.size(); ++i) {
      const bool is_new = seen.insert({arrived[i].peer, arrived[i].tag}).second;
      if (is_new || takes_twice) taken.push_back(i);
    }
    if (taken.size() < receivers.size()) return false;
    given.resize(std::max(given.size(), receives));
    for (size_t i = 0; i < taken.size(); ++i) given[receivers[i]] = arrived[taken[i]];
    for (size_t i = taken.size(); i-- > 0;) {
      arrived.erase(arrived.begin() + static_cast<int64_t>(taken[i]));
    }
    return true;
  }
};

// Finds which message each receive gets, where receives do not say from whom: ranks are run together,
// each until it waits for something that was not sent yet. Of what has come, messages of different
// senders and callsites come first: a neighbour that is an iteration ahead has sent twice.
class RunningRanks {
 public:
  explicit RunningRanks(const std::vector<const std::vector<Visit>*>& visits) {
    for (const std::vector<Visit>* of_rank : visits) ranks_.emplace_back().visits = of_rank;
  }

  // Returns for each rank what its receives get, in the order in which they begin; peers are the
  // senders. FailedPrecondition when a rule does not tell whom a rank sends to, and when a rank would
  // wait for ever.
  absl::StatusOr<std::vector<std::vector<PeerMessage>>> FindArrivals() {
    RETURN_IF_ERROR(Run());
    std::vector<std::vector<PeerMessage>> arrivals;
    for (RunningRank& rank : ranks_) arrivals.push_back(std::move(rank.given));
    return arrivals;
  }

 private:
  absl::Status Run() {
    // Whether a receive may take a second message of one sender and callsite: only where nobody goes
    // on otherwise.
    bool takes_twice = false;
    while (true) {
      bool moved = false;
      for (int64_t rank = 0; rank < count(); ++rank) {
        ASSIGN_OR_RETURN(const bool went_on, Advance(rank, takes_twice));
        moved |= went_on;
      }
      const auto waits = std::find_if(ranks_.begin(), ranks_.end(),
                                      [](const RunningRank& rank) { return !rank.is_done(); });
      if (waits == ranks_.end()) return absl::OkStatus();
      if (!moved && takes_twice) {
        const CallsiteModel& callsite = *(*waits->visits)[waits->next].callsite;
        return FailedPrecondition("rank ", waits - ranks_.begin(),
                                  " would wait for ever at callsite ", callsite.callsite(), " (",
                                  Printable(callsite.operation()),
                                  "): nobody sends what it receives");
      }
      takes_twice = !moved;
    }
  }

  int64_t count() const { return static_cast<int64_t>(ranks_.size()); }

  // Runs a rank until it waits; returns whether it went on.
  absl::StatusOr<bool> Advance(int64_t number, bool takes_twice) {
    RunningRank& rank = ranks_[static_cast<size_t>(number)];
    bool moved = false;
    while (!rank.is_done()) {
      const Visit& visit = (*rank.visits)[rank.next];
      const Kind kind = visit.operation.kind;
      if (!rank.is_begun) {
        RETURN_IF_ERROR(Begin(number, visit));
        rank.is_begun = true;
        moved = true;
      }
      const bool blocks = kind == Kind::kReceive && !visit.operation.is_asynchronous;
      const bool waits = kind == Kind::kWait || rank.next + 1 == rank.visits->size();
      if (blocks && !rank.Take({rank.receives - 1}, takes_twice)) return moved;
      if (waits && !rank.open.empty() && !rank.Take(rank.open, takes_twice)) return moved;
      if (waits) rank.open.clear();
      ++rank.next;
      rank.is_begun = false;
      moved = true;
    }
    return moved;
  }

  // Sends what the call sends, and counts what it wants to receive.
  absl::Status Begin(int64_t number, const Visit& visit) {
    RunningRank& rank = ranks_[static_cast<size_t>(number)];
    if (visit.operation.kind == Kind::kReceive) {
      if (visit.operation.is_asynchronous) rank.open.push_back(rank.receives);
      ++rank.receives;
    }
    if (!visit.Sends()) return absl::OkStatus();
    const bool receives = visit.operation.kind == Kind::kSendReceive;
    RETURN_IF_ERROR(CheckPeers(*visit.callsite, number, count(), visit.number, receives));
    const Peer target = TargetOf(visit.callsite->peer(), number, count(), visit.number);
    if (!receives && target.rank.has_value()) {
      ranks_[static_cast<size_t>(*target.rank)].arrived.push_back(MessageOf(visit, number));
    }
    return absl::OkStatus();
  }

  std::vector<RunningRank> ranks_;
};

class CallWorkload final : public GeneratedWorkload {
 public:
  static absl::StatusOr<std::unique_ptr<CallWorkload>> Make(const WorkloadModel& model,
                                                            const WorkloadCell& cell) {
    auto workload = std::make_unique<CallWorkload>();
    ASSIGN_OR_RETURN(EvaluatedRanks ranks, EvaluateRanks(model, cell, kMaxGeneratedRanks));
    for (EvaluatedFlow& flow : ranks.flows) {
      ASSIGN_OR_RETURN(ClassCalls calls, WalkClass(std::move(flow)));
      workload->classes_.push_back(std::move(calls));
    }
    for (const size_t number : ranks.class_of) {
      workload->visits_.push_back(&workload->classes_[number].visits);
    }
    RETURN_IF_ERROR(workload->FindGroups());
    ASSIGN_OR_RETURN(workload->arrivals_, RunningRanks(workload->visits_).FindArrivals());
    return workload;
  }

  int64_t rank_count() const override { return static_cast<int64_t>(visits_.size()); }

  int64_t node_count() const {
    size_t nodes = 0;
    // A computation, and at most a send and a receive.
    for (const std::vector<Visit>* visits : visits_) nodes += 3 * visits->size();
    return static_cast<int64_t>(nodes);
  }

  void AddRank(int64_t rank, RankProgram* program) const override {
    size_t next_arrival = 0;
    std::vector<NodeIndex> last, begun;
    for (const Visit& visit : *visits_[static_cast<size_t>(rank)]) {
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
  // What tells the rule of a callsite's groups: their stride and length.
  using GroupKey = std::pair<std::string, std::string>;
  static GroupKey KeyOf(const CallsiteModel& callsite) {
    return {callsite.stride(), callsite.length()};
  }

  // Groups of one rule are numbered by their first rank.
  absl::Status FindGroups() {
    int64_t next_group = 1;
    for (const ClassCalls& calls : classes_) {
      for (const Visit& visit : calls.visits) {
        if (visit.operation.kind != Kind::kCollective) continue;
        const GroupKey key = KeyOf(*visit.callsite);
        if (groups_.count(key) > 0) continue;
        std::map<int64_t, int64_t>& by_first_rank = groups_[key];
        for (int64_t rank = 0; rank < rank_count(); ++rank) {
          ASSIGN_OR_RETURN(const std::vector<int64_t> members,
                           GroupOf(*visit.callsite, rank, rank_count()));
          if (static_cast<int64_t>(members.size()) == rank_count()) break;
          if (by_first_rank.insert({members.front(), next_group}).second) ++next_group;
        }
      }
    }
    return CheckCount(next_group - 1, "process groups", kMaxGroupNumber, "predict for fewer nodes");
  }

  std::vector<NodeIndex> AddCall(int64_t rank, const Visit& visit,
                                 const std::vector<NodeIndex>& after, size_t* next_arrival,
                                 RankProgram* program) const {
    const std::string name = NodeName(*visit.callsite);
    if (visit.operation.kind == Kind::kCollective) {
      return AddCollective(rank, visit, name, after, program);
    }
    std::vector<NodeIndex> nodes;
    if (visit.operation.kind == Kind::kReceive) {
      const std::vector<PeerMessage>& arrivals = arrivals_[static_cast<size_t>(rank)];
      // What nobody sends is told by the check of the whole.
      if (*next_arrival >= arrivals.size()) return {};
      const PeerMessage& arrival = arrivals[(*next_arrival)++];
      if (arrival.peer != rank) nodes.push_back(program->Receive(name, arrival, after));
    } else if (visit.Sends()) {
      const PeerRule& rule = visit.callsite->peer();
      const Peer target = TargetOf(rule, rank, rank_count(), visit.number);
      if (target.rank.value_or(rank) != rank) {
        nodes.push_back(program->Send(name, MessageOf(visit, *target.rank), after));
      }
      if (visit.operation.kind == Kind::kSend) return nodes;
      const Peer source = SourceOf(rule, rank, rank_count(), visit.number);
      if (source.rank.value_or(rank) != rank) {
        nodes.push_back(program->Receive(name, MessageOf(visit, *source.rank), after));
      }
    }
    return nodes;
  }

  std::vector<NodeIndex> AddCollective(int64_t rank, const Visit& visit, const std::string& name,
                                       const std::vector<NodeIndex>& after,
                                       RankProgram* program) const {
    const std::vector<int64_t> members = *GroupOf(*visit.callsite, rank, rank_count());
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
    if (static_cast<int64_t>(members.size()) < rank_count()) {
      group.name = absl::StrCat(groups_.at(KeyOf(*visit.callsite)).at(members.front()));
    }
    return {program->Collective(name, type, bytes, program->AddGroup(group), after)};
  }

  std::vector<ClassCalls> classes_;
  // The calls of each rank, which are those of its class.
  std::vector<const std::vector<Visit>*> visits_;
  // The numbers of groups, by their rule and their first rank.
  std::map<GroupKey, std::map<int64_t, int64_t>> groups_;
  // What the receives of each rank get.
  std::vector<std::vector<PeerMessage>> arrivals_;
  mutable std::set<std::string> notes_;
};

// Runs the workload, so that nothing is written that would wait for ever, with what calls took when
// they were measured.
absl::StatusOr<GraphReplay> Replay(const CallWorkload& workload) {
  ASSIGN_OR_RETURN(ExecutionGraph graph, BuildWorkloadGraph(workload));
  std::map<std::string, int64_t> durations;
  for (const ClassCalls& calls : workload.classes()) {
    for (const Visit& visit : calls.visits) {
      const auto found = calls.evaluated.call_ns.find(visit.callsite->callsite());
      if (found == calls.evaluated.call_ns.end()) continue;
      // Where classes differ, those that took longer have waited for the others.
      const auto [known, is_new] = durations.insert({NodeName(*visit.callsite), found->second});
      if (!is_new) known->second = std::min(known->second, found->second);
    }
  }
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) == nullptr) continue;
    const auto found = durations.find(std::string(graph.name(node)));
    if (found != durations.end()) graph.set_duration_ns(node, found->second);
  }
  const CommunicationMatch match(graph);
  if (!match.problems().empty()) {
    return FailedPrecondition("ranks would not communicate alike: ", match.problems().front().text,
                              "; the classes of ranks, or their branches, do not fit together");
  }
  return ReplayAsSimulator(graph, match);
}

// Returns a workload that is not too large, of a cell that models say something about.
absl::StatusOr<std::unique_ptr<CallWorkload>> MakeChecked(const WorkloadModel& model,
                                                          const WorkloadCell& cell) {
  WorkloadCell all_classes = cell;
  all_classes.kind.rank_class = "";
  ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, all_classes));
  if (evaluation.total_us() > kMaxTotalUs) {
    return InvalidArgument(NodesText(cell.machines), " and size ", PlainNumber(cell.size),
                           " would take ", evaluation.total_us() * 1e-6,
                           " s, longer than anything that can be simulated");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<CallWorkload> workload, CallWorkload::Make(model, cell));
  if (workload->node_count() > kMaxTraceNodes) {
    return InvalidArgument("the workload would have up to ", WithThousands(workload->node_count()),
                           " nodes; at most ", WithThousands(kMaxTraceNodes),
                           ": generate for fewer nodes, or fit a trace of fewer iterations");
  }
  return workload;
}

}  // namespace

absl::Status CheckArrivals(const WorkloadModel& model, const WorkloadCell& cell) {
  return CallWorkload::Make(model, cell).status();
}

absl::StatusOr<CallWorkloadReport> GenerateWorkload(FileSystem& file_system,
                                                    const WorkloadModel& model,
                                                    const std::string& prefix,
                                                    const GenerateOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CallWorkload> workload, MakeChecked(model, options.cell));
  ASSIGN_OR_RETURN(const GraphReplay replay, Replay(*workload));
  CallWorkloadReport report;
  ASSIGN_OR_RETURN(const ChakraWorkloadReport written,
                   WriteGeneratedWorkload(file_system, *workload, prefix, options.progress));
  report.set_nodes(options.cell.machines);
  report.set_size(options.cell.size);
  report.set_ranks(workload->rank_count());
  report.set_trace_nodes(written.nodes());
  bool has_call_times = true;
  for (const ClassCalls& calls : workload->classes()) {
    report.set_calls(std::max(report.calls(), static_cast<int64_t>(calls.visits.size())));
    report.set_compute_us(std::max(report.compute_us(), calls.ComputeUs()));
    has_call_times &= calls.evaluated.has_call_times;
  }
  if (has_call_times) {
    report.set_replayed_us(static_cast<double>(replay.makespan_ns) / kNsPerUs);
  } else {
    report.add_notes(
        "nobody measured how long calls took, so that computation contains them, and a simulator "
        "adds its own: give the report of mpiP that was written with the traces to fit, as "
        "--callsites");
  }
  for (const ChakraWorkloadRank& rank : written.ranks()) report.add_files(rank.path());
  if (!written.comm_groups().empty()) report.add_files(written.comm_groups());
  for (const std::string& note : workload->notes()) report.add_notes(note);
  for (const std::string& note : model.notes()) report.add_notes(note);
  return report;
}

std::string FormatCallWorkload(const CallWorkloadReport& report) {
  std::string text = absl::StrCat(NodesText(report.nodes()), ", size ", PlainNumber(report.size()));
  // About a motif only the files are known.
  if (report.trace_nodes() == 0) {
    absl::StrAppend(&text, ", ", report.ranks(), " ranks\n");
    for (const std::string& file : report.files()) absl::StrAppend(&text, file, "\n");
  } else {
    absl::StrAppend(&text, ": ", report.ranks(), " ranks of up to ", WithThousands(report.calls()),
                    " calls, ", WithThousands(report.trace_nodes()), " trace nodes\n",
                    absl::StrFormat("computation of a rank %.3f ms", report.compute_us() / 1000));
    if (report.has_replayed_us()) {
      absl::StrAppend(&text, absl::StrFormat("; with calls as they were measured %.3f ms",
                                             report.replayed_us() / 1000));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const std::string& note : report.notes()) {
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  }
  return text;
}

}  // namespace meridian
