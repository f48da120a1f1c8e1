#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "workload_model/calls/call_operation.h"
#include "workload_model/calls/control_flow.h"
#include "workload_model/calls/rank_patterns.h"
#include "workload_model/generate/call_workload.h"
#include "workload_model/generate/evaluated_flow.h"
#include "workload_model/measurements/rank_classes.h"
#include "workload_model/models/rank_mesh.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Kind = CallOperation::Kind;

// Counts of Ember are of 31 bits.
constexpr int64_t kMaxCount = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxRanks = 100000;

// What does not depend on the workload; $WORDS$ are replaced.
constexpr char kSource[] =
    R"(// Motif $NAME$: $NODES$ nodes, size $SIZE$, $RANKS$ ranks. Made by workload_model generate.
#include <sst_config.h>

#include <cstdint>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "mpi/embermpigen.h"
#include <sst/core/rng/mersenne.h>

namespace SST {
namespace Ember {

class Ember$NAME$Generator : public EmberMessagePassingGenerator {
 public:
  SST_ELI_REGISTER_SUBCOMPONENT(Ember$NAME$Generator, "ember", "$NAME$Motif",
                                SST_ELI_ELEMENT_VERSION(1, 0, 0), "Generated from measured calls",
                                SST::Ember::EmberGenerator)
  SST_ELI_DOCUMENT_PARAMS({"arg.seed", "Seed of the branches, the same on all ranks", "$SEED$"})

  Ember$NAME$Generator(SST::ComponentId_t id, Params& params)
      : EmberMessagePassingGenerator(id, params, "$NAME$"),
        random_(params.find<uint32_t>("arg.seed", $SEED$)) {
    if (size() != $RANKS$) fatal(CALL_INFO, -1, "$NAME$ is for $RANKS$ ranks, not %d\n", size());
$CLASSES$$GROUPS$  }

  // One callsite at a time: its call, then the computation until the next.
  bool generate(std::queue<EmberEvent*>& evQ) override {
    if (made_ < groups_.size()) {
      enQ_commCreate(evQ, GroupWorld, groups_[made_], &communicators_[made_]);
      ++made_;
      return false;
    }
    switch (class_) {
$DISPATCH$    }
    // A call that enqueues nothing would end the motif.
    if (evQ.empty()) enQ_compute(evQ, 0);
    return state_ == 0;
  }

 private:
  struct Times {
    uint64_t first_ns;
    uint64_t steady_ns;
  };

$FLOWS$
  void AddRow(int stride, int length) {
    std::vector<int> ranks;
    const int first = rank() - rank() / stride % length * stride;
    for (int i = 0; i < length; ++i) ranks.push_back(first + i * stride);
    groups_.push_back(ranks);
    communicators_.push_back(GroupWorld);
  }

  // Goes on to another callsite, 0 for the end, and computes on the way.
  void Go(std::queue<EmberEvent*>& evQ, int next, Times times) {
    const bool is_first = ++taken_[std::make_pair(state_, next)] == 1;
    enQ_compute(evQ, is_first ? times.first_ns : times.steady_ns);
    before_[2] = before_[1];
    before_[1] = before_[0];
    before_[0] = state_;
    state_ = next;
  }

  // The rank so many steps along a row; -1 for none.
  int Shifted(int stride, int length, bool wraps, int64_t step) {
    const int64_t place = rank() / stride % length + step;
    if (!wraps && (place < 0 || place >= length)) return -1;
    return static_cast<int>(rank() + ((place % length + length) % length - rank() / stride % length) * stride);
  }
  int Transposed(int root) { return rank() % root * root + rank() / root; }
  int Exchanged(int64_t step) {
    const int64_t other = rank() ^ (int64_t{1} << step);
    return other < size() ? static_cast<int>(other) : -1;
  }

  void Exchange(std::queue<EmberEvent*>& evQ, int to, int from, uint32_t bytes, uint32_t tag) {
    if (to == rank() && from == rank()) return;
    if (to >= 0 && from >= 0) {
      enQ_sendrecv(evQ, nullptr, bytes, CHAR, static_cast<RankID>(to), tag, nullptr, bytes, CHAR,
                   static_cast<RankID>(from), tag, GroupWorld, &response_);
    } else if (to >= 0) {
      enQ_send(evQ, nullptr, bytes, CHAR, static_cast<RankID>(to), tag, GroupWorld);
    } else if (from >= 0) {
      enQ_recv(evQ, nullptr, bytes, CHAR, static_cast<RankID>(from), tag, GroupWorld);
    }
  }

  SST::RNG::MersenneRNG random_;
  int class_ = 0;
  int state_ = 0;
  int before_[3] = {0, 0, 0};
  size_t made_ = 0;
  // Events hold references to both.
  std::vector<std::vector<int>> groups_;
  std::vector<Communicator> communicators_;
  int64_t heads_ = 0;
  std::map<int, int64_t> visits_;
  std::map<int, int64_t> peer_visits_;
  std::map<std::pair<int, int>, int64_t> taken_;
  MessageResponse response_;
};

}  // namespace Ember
}  // namespace SST
)";

constexpr char kSdl[] = R"(# Runs the motif $NAME$ on $NODES$ nodes: sst $NAME$.py
import sst
from sst.merlin.base import *
from sst.merlin.interface import *
from sst.merlin.topology import *
from sst.ember import *

PlatformDefinition.setCurrentPlatform("firefly-defaults")

# The network is yours to choose; this one is a single switch.
router = hr_router()
router.link_bw = "12.5GB/s"
router.flit_size = "8B"
router.xbar_bw = "18GB/s"
router.input_latency = "20ns"
router.output_latency = "20ns"
router.input_buf_size = "16kB"
router.output_buf_size = "16kB"
router.num_vns = 1
router.xbar_arb = "merlin.xbar_arb_lru"

topology = topoSingle()
topology.router = router
topology.num_ports = $NODES$
topology.link_latency = "500ns"

network = ReorderLinkControl()
network.link_bw = "12.5GB/s"
network.input_buf_size = "16kB"
network.output_buf_size = "16kB"

job = EmberMPIJob(0, $NODES$, $RANKS_PER_NODE$)
job.network_interface = network
job.addMotif("Init")
job.addMotif("$NAME$ seed=$SEED$")
job.addMotif("Fini")

system = System()
system.setTopology(topology)
system.allocateNodes(job, "linear")
system.build()
)";

// In a comment of code: nothing that could end it, or go on behind it.
std::string NameText(absl::string_view name) {
  std::string text;
  for (char c : name) text += absl::ascii_isalnum(c) || c == '_' || c == '-' ? c : '?';
  return text;
}

class MotifWriter {
 public:
  explicit MotifWriter(const EvaluatedRanks& ranks)
      : ranks_(ranks), count_(static_cast<int64_t>(ranks.class_of.size())) {}

  absl::Status Write() {
    for (size_t number = 0; number < ranks_.classes.size(); ++number) {
      flow_ = &ranks_.flows[number];
      absl::StrAppend(&dispatch_, "      case ", number, ":\n        Flow", number,
                      "(evQ);\n        break;\n");
      absl::StrAppend(&first_states_, "    if (class_ == ", number,
                      ") state_ = ", flow_->flow->first(), ";\n");
      absl::StrAppend(&flows_, "  // Ranks '", NameText(ranks_.classes[number]), "'.\n  void Flow",
                      number, "(std::queue<EmberEvent*>& evQ) {\n    switch (state_) {\n");
      for (const FlowBranch& branch : flow_->flow->branches()) RETURN_IF_ERROR(WriteCase(branch));
      absl::StrAppend(&flows_, "    }\n  }\n\n");
    }
    return absl::OkStatus();
  }

  std::string Classes() const {
    std::string text = "    static const char kClasses[] = \"";
    for (const size_t number : ranks_.class_of) text += static_cast<char>('a' + number);
    return absl::StrCat(text, "\";\n    class_ = kClasses[rank()] - 'a';\n", first_states_);
  }

  std::string Groups() const {
    std::string text;
    for (const RankRow& row : rows_) {
      absl::StrAppend(&text, "    AddRow(", row.stride, ", ", row.length, ");\n");
    }
    return text;
  }

  const std::string& dispatch() const { return dispatch_; }
  const std::string& flows() const { return flows_; }

 private:
  absl::Status WriteCase(const FlowBranch& branch) {
    const int64_t at = branch.callsite();
    ASSIGN_OR_RETURN(const CallsiteModel* callsite, flow_->CallsiteOf(at));
    absl::StrAppend(&flows_, "      case ", at, ":  // ", NameText(callsite->operation()), "\n");
    if (at == flow_->flow->head()) absl::StrAppend(&flows_, "        ++heads_;\n");
    for (const FlowBranch& other : flow_->flow->branches()) {
      if (other.since() == at) {
        absl::StrAppend(&flows_, "        visits_[", other.callsite(), "] = 0;\n");
      }
    }
    for (const CallsiteModel& other : flow_->flow->callsites()) {
      if (other.peer().by_visit() != 0 && other.peer().since() == at) {
        absl::StrAppend(&flows_, "        peer_visits_[", other.callsite(), "] = 0;\n");
      }
    }
    RETURN_IF_ERROR(WriteCall(*callsite, flow_->BytesOf(at)));
    WriteBranch(branch);
    absl::StrAppend(&flows_, "        break;\n");
    return absl::OkStatus();
  }

  absl::Status WriteCall(const CallsiteModel& callsite, int64_t bytes) {
    const CallOperation operation = OperationOf(callsite.operation());
    const auto refuse = [&](absl::string_view why) {
      return FailedPrecondition("callsite ", callsite.callsite(), " (",
                                Printable(callsite.operation()), ") ", why,
                                "; --format=chakra can say it");
    };
    if (bytes > kMaxCount) return refuse("sends more than Ember can count");
    switch (operation.kind) {
      case Kind::kLocal:
        return absl::OkStatus();
      case Kind::kWait:
      case Kind::kSend:
      case Kind::kReceive:
        return refuse("is half of a message, and Ember's receives must name their source");
      case Kind::kUnknown:
        return refuse("is not known");
      case Kind::kSendReceive:
        return WriteExchange(callsite, std::max<int64_t>(1, bytes));
      case Kind::kCollective:
        break;
    }
    if (operation.is_asynchronous) return refuse("goes on before it has ended");
    return WriteCollective(callsite, operation, bytes);
  }

  absl::Status WriteCollective(const CallsiteModel& callsite, const CallOperation& operation,
                               int64_t bytes) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> members, GroupOf(callsite, 0, count_));
    const auto length = static_cast<int64_t>(members.size());
    // Ember's gathers of one rank are undefined.
    if (length < 2) return absl::OkStatus();
    const std::string group =
        length < count_ ? RowText({members[1] - members[0], length}) : "GroupWorld";
    const std::string count = absl::StrCat(bytes);
    // What there is in Ember: gathers, scatters and reductions to one rank go the nearest way.
    std::string call;
    switch (operation.collective) {
      case CollectiveKind::kBarrier:
        call = "enQ_barrier(evQ, $G)";
        break;
      case CollectiveKind::kAllGather:
      case CollectiveKind::kCollectiveGather:
        call = "enQ_allgather(evQ, nullptr, $B, CHAR, nullptr, $B, CHAR, $G)";
        break;
      case CollectiveKind::kAllToAll: {
        const int64_t each = operation.is_per_member ? bytes : (bytes + length - 1) / length;
        call = absl::StrCat("enQ_alltoall(evQ, nullptr, ", each, ", CHAR, nullptr, ", each,
                            ", CHAR, $G)");
        break;
      }
      case CollectiveKind::kCollectiveBroadcast:
      case CollectiveKind::kCollectiveScatter:
        call = "enQ_bcast(evQ, nullptr, $B, CHAR, 0, $G)";
        break;
      case CollectiveKind::kCollectiveReduce:
        call = "enQ_reduce(evQ, nullptr, nullptr, $B, CHAR, MP::SUM, 0, $G)";
        break;
      default:
        call = "enQ_allreduce(evQ, nullptr, nullptr, $B, CHAR, MP::SUM, $G)";
    }
    absl::StrAppend(&flows_, "        ", absl::StrReplaceAll(call, {{"$G", group}, {"$B", count}}),
                    ";\n");
    return absl::OkStatus();
  }

  // Returns the communicator of the rank's row.
  std::string RowText(const RankRow& row) {
    const auto known = std::find_if(rows_.begin(), rows_.end(), [&](const RankRow& other) {
      return other.stride == row.stride && other.length == row.length;
    });
    const auto index = known - rows_.begin();
    if (known == rows_.end()) rows_.push_back(row);
    return absl::StrCat("communicators_[", index, "]");
  }

  absl::Status WriteExchange(const CallsiteModel& callsite, int64_t bytes) {
    if (!callsite.has_peer()) return absl::OkStatus();
    const PeerRule& rule = callsite.peer();
    for (int64_t rank = 0; rank < count_; ++rank) {
      RETURN_IF_ERROR(CheckPeers(callsite, rank, count_, /*visits=*/1, /*receives=*/true));
    }
    std::string step = absl::StrCat(rule.step());
    if (rule.by_visit() != 0) {
      absl::StrAppend(&flows_, "        ++peer_visits_[", callsite.callsite(), "];\n");
      step = absl::StrCat("(", rule.step(), " + ", rule.by_visit(), " * peer_visits_[",
                          callsite.callsite(), "])");
    }
    std::string to, from;
    if (rule.kind() == "transpose") {
      to = from = absl::StrCat("Transposed(", *SquareRoot(count_), ")");
    } else if (rule.kind() == "xor") {
      to = from = absl::StrCat("Exchanged(", step, ")");
    } else {
      const std::string row =
          absl::StrCat("Shifted(", *RanksOf(rule.stride(), count_), ", ",
                       *RanksOf(rule.length(), count_), ", ", rule.wraps() ? "true" : "false");
      to = absl::StrCat(row, ", ", step, ")");
      from = absl::StrCat(row, ", -(", step, "))");
    }
    absl::StrAppend(&flows_, "        Exchange(evQ, ", to, ", ", from, ", ", bytes, ", ",
                    callsite.callsite() % (1 << 20), ");\n");
    return absl::OkStatus();
  }

  // The last iteration does not begin anew.
  std::string GoText(int64_t from, int64_t to) const {
    const EvaluatedFlow::Times times = flow_->TimesOf({from, to});
    const std::string go =
        absl::StrCat("Go(evQ, ", to, ", {", times.first_ns, "u, ", times.steady_ns, "u});");
    const ControlFlow& flow = *flow_->flow;
    if (flow.head() == 0 || from != flow.last() || to != flow.head()) return go;
    return absl::StrCat("if (heads_ >= ", WholeVisits(flow.iterations(), flow_->cell_of_ranks),
                        ") { Go(evQ, 0, {0u, 0u}); } else { ", go, " }");
  }

  void WriteBranch(const FlowBranch& branch) {
    const int64_t at = branch.callsite();
    if (branch.segments_size() == 1) {
      WriteChoices(at, branch.segments(0), "        ");
      return;
    }
    const bool counts = branch.segments(0).before_size() == 0;
    if (counts) absl::StrAppend(&flows_, "        ++visits_[", at, "];\n");
    int64_t end = 0;
    for (int i = 0; i < branch.segments_size(); ++i) {
      const FlowSegment& segment = branch.segments(i);
      std::string condition;
      if (segment.has_visits()) {
        end += WholeVisits(segment.visits(), flow_->cell_of_ranks);
        condition = absl::StrCat("visits_[", at, "] <= ", end);
      }
      for (int j = 0; j < segment.before_size(); ++j) {
        absl::StrAppend(&condition, j > 0 ? " && " : "", "before_[", j, "] == ", segment.before(j));
      }
      const bool is_last = i + 1 == branch.segments_size();
      absl::StrAppend(&flows_, i == 0 ? "        if (" : is_last ? " else {\n" : " else if (");
      if (!is_last || i == 0) absl::StrAppend(&flows_, condition, ") {\n");
      WriteChoices(at, segment, "          ");
      absl::StrAppend(&flows_, "        }");
    }
    absl::StrAppend(&flows_, "\n");
  }

  void WriteChoices(int64_t at, const FlowSegment& segment, const std::string& indent) {
    if (segment.choices_size() == 1) {
      absl::StrAppend(&flows_, indent, GoText(at, segment.choices(0).destination()), "\n");
      return;
    }
    double below = 0;
    absl::StrAppend(&flows_, indent, "{\n", indent,
                    "  const double draw = random_.nextUniform();\n");
    for (int i = 0; i < segment.choices_size(); ++i) {
      below += segment.choices(i).share();
      absl::StrAppend(&flows_, indent, "  ", i == 0 ? "" : "else ");
      if (i + 1 < segment.choices_size()) {
        absl::StrAppend(&flows_, absl::StrFormat("if (draw < %.9g) ", below));
      }
      absl::StrAppend(&flows_, GoText(at, segment.choices(i).destination()), "\n");
    }
    absl::StrAppend(&flows_, indent, "}\n");
  }

  const EvaluatedRanks& ranks_;
  const int64_t count_;
  const EvaluatedFlow* flow_ = nullptr;
  // Rows of ranks that communicate, in the order of their communicators.
  std::vector<RankRow> rows_;
  std::string dispatch_;
  std::string first_states_;
  std::string flows_;
};

}  // namespace

absl::StatusOr<EmberMotif> MakeEmberMotif(const WorkloadModel& model, const WorkloadCell& cell,
                                          const std::string& name) {
  // The motif is called as its files, by what C++ and Python can.
  if (name.empty() || !absl::ascii_isalpha(name[0]) ||
      !std::all_of(name.begin(), name.end(), absl::ascii_isalnum)) {
    return InvalidArgument(
        "--output: '", name,
        "' is no name of a motif; expected letters and digits, e.g. --output=motif/Bfs");
  }
  ASSIGN_OR_RETURN(const EvaluatedRanks ranks, EvaluateRanks(model, cell, kMaxRanks));
  MotifWriter writer(ranks);
  RETURN_IF_ERROR(writer.Write());
  const std::vector<std::pair<absl::string_view, std::string>> words = {
      {"$NAME$", name},
      {"$NODES$", absl::StrCat(cell.machines)},
      {"$SIZE$", absl::StrCat(cell.size)},
      {"$RANKS$", absl::StrCat(cell.Ranks())},
      {"$RANKS_PER_NODE$", absl::StrCat(cell.kind.ranks_per_machine)},
      {"$SEED$", absl::StrCat(kBranchSeed)},
      {"$CLASSES$", writer.Classes()},
      {"$GROUPS$", writer.Groups()},
      {"$DISPATCH$", writer.dispatch()},
      {"$FLOWS$", writer.flows()}};
  return EmberMotif{absl::StrReplaceAll(kSource, words), absl::StrReplaceAll(kSdl, words)};
}

absl::StatusOr<CallWorkloadReport> WriteEmberMotif(FileSystem& file_system,
                                                   const WorkloadModel& model,
                                                   const WorkloadCell& cell,
                                                   const std::string& prefix) {
  ASSIGN_OR_RETURN(const EmberMotif motif,
                   MakeEmberMotif(model, cell, prefix.substr(prefix.rfind('/') + 1)));
  CallWorkloadReport report;
  report.set_nodes(cell.machines);
  report.set_size(cell.size);
  report.set_ranks(static_cast<int64_t>(cell.Ranks()));
  report.add_files(absl::StrCat(prefix, ".cc"));
  report.add_files(absl::StrCat(prefix, ".py"));
  report.add_notes(
      "put the .cc into ember/mpi/motifs/ of SST's elements and name it in their Makefile");
  OutputFiles outputs(file_system);
  RETURN_IF_ERROR(outputs.WriteText("motif", report.files(0), motif.source));
  RETURN_IF_ERROR(outputs.WriteText("sdl", report.files(1), motif.sdl));
  RETURN_IF_ERROR(outputs.Commit());
  return report;
}

}  // namespace meridian
