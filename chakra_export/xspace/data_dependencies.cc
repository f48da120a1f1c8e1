#include "chakra_export/xspace/data_dependencies.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "chakra_export/xspace/device_work.h"
#include "chakra_export/xspace/hlo_data_flow.h"
#include "xla_profiler/base/optional_number.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/sorted.h"
#include "xla_profiler/dependencies/inferred_waits.h"

namespace meridian {
namespace {

constexpr int64_t kNoPlace = -1;
// Place of an instruction of which nobody knows from where it was called.
constexpr int64_t kUnknownPlace = -2;

// Where an asynchronous instruction starts and is done in the schedule of a computation.
struct AsyncSpan {
  const HloComputation* computation = nullptr;
  int64_t start = kNoPlace;
  int64_t done = kNoPlace;
};

// A program, and where its instructions stand in the schedules of their computations.
class Program {
 public:
  // Returns null when the program cannot be decoded.
  static std::unique_ptr<Program> Create(const HloProgram& program) {
    const absl::StatusOr<const HloModule*> module = program.Module();
    const absl::StatusOr<const HloCollectives*> collectives = program.Collectives();
    if (!module.ok() || !collectives.ok()) return nullptr;
    return std::unique_ptr<Program>(new Program(**module, **collectives));
  }

  HloDataFlow& flow() { return flow_; }

  // Returns the position of an instruction in the entry's schedule; of a collective that is
  // wrapped, that of its start. kNoPlace for instructions of other computations.
  int64_t PlaceOf(const HloInstruction* instruction) const {
    const HloCollective* collective = collectives_.Find(instruction->name());
    if (collective != nullptr && collective->start != nullptr) instruction = collective->start;
    return &instruction->computation() == entry_ ? places_.at(instruction) : kNoPlace;
  }

  // Returns the position of an instruction, or of what calls it, in a computation's schedule;
  // kNoPlace when it runs elsewhere, kUnknownPlace when it may run there and elsewhere.
  int64_t PlaceWithin(const HloComputation& computation, const HloInstruction* instruction) const {
    for (int depth = 0; depth < kMaxCallDepth; ++depth) {
      if (&instruction->computation() == &computation) return places_.at(instruction);
      const absl::Span<const HloInstruction* const> callers =
          flow_.CallersOf(instruction->computation());
      if (callers.empty()) return kNoPlace;
      if (callers.size() > 1) return kUnknownPlace;
      instruction = callers[0];
    }
    return kUnknownPlace;
  }

  // Returns where an instruction starts and is done if it is asynchronous, else null.
  const AsyncSpan* AsyncSpanOf(const HloInstruction* instruction) const {
    const auto it = async_.find(instruction);
    return it == async_.end() ? nullptr : &it->second;
  }

  // The entry computation's instructions in the order of the schedule.
  const std::vector<const HloInstruction*>& scheduled() const { return scheduled_; }

 private:
  static constexpr int kMaxCallDepth = 64;

  Program(const HloModule& module, const HloCollectives& collectives)
      : collectives_(collectives), flow_(module, collectives), entry_(module.entry()) {
    for (const HloComputation& computation : module.computations()) Place(computation);
    for (const HloInstruction& instruction : module.instructions()) {
      if (absl::EndsWith(instruction.opcode(), "-done")) AddAsync(instruction);
    }
  }

  void Place(const HloComputation& computation) {
    std::vector<const HloInstruction*> order = ScheduledInstructions(computation);
    for (size_t i = 0; i < order.size(); ++i) {
      places_.emplace(order[i], static_cast<int64_t>(i));
    }
    // What a schedule leaves out does no work.
    for (const HloInstruction& instruction : computation.instructions()) {
      places_.emplace(&instruction, kNoPlace);
    }
    if (&computation == entry_) scheduled_ = std::move(order);
  }

  void AddAsync(const HloInstruction& done) {
    const HloInstruction* start = &done;
    for (int updates = 0; updates < kMaxCallDepth && !start->operands().empty(); ++updates) {
      start = start->operands()[0];
      if (start->opcode() != "async-update") break;
    }
    if (start == &done || &start->computation() != &done.computation()) return;
    const AsyncSpan span{&done.computation(), places_.at(start), places_.at(&done)};
    if (span.start == kNoPlace || span.done <= span.start) return;
    if (!async_.emplace(start, span).second) return;
    for (const HloComputation* called : start->called_computations()) {
      // One that several call is none that this wraps.
      if (called->root() == nullptr || async_.contains(called->root())) continue;
      for (const HloInstruction& wrapped : called->instructions()) async_.emplace(&wrapped, span);
    }
  }

  const HloCollectives& collectives_;
  HloDataFlow flow_;
  const HloComputation* entry_;
  std::vector<const HloInstruction*> scheduled_;
  // The place of each instruction in the schedule of its computation.
  absl::flat_hash_map<const HloInstruction*, int64_t> places_;
  absl::flat_hash_map<const HloInstruction*, AsyncSpan> async_;
};

void SortByLaunch(const RunGraph& graph, std::vector<NodeIndex>* nodes) {
  const auto launch = [&](NodeIndex node) {
    const DeviceWork& work = *graph.nodes[node].work;
    return std::make_tuple(work.LaunchPs(), node);
  };
  StableSortUnlessSorted(nodes, [&](NodeIndex a, NodeIndex b) { return launch(a) < launch(b); });
}

// A command buffer of a run. It covers the places of the schedule between `after` and `before`,
// both excluded.
struct CommandBuffer {
  int64_t after = kNoPlace;
  int64_t before = std::numeric_limits<int64_t>::max();
  // The nodes that it ran as, in the order of their starts.
  std::vector<NodeIndex> nodes;

  bool Covers(int64_t place) const { return place != kNoPlace && place > after && place < before; }
};

// One execution of a program on one rank.
class Execution {
 public:
  Execution(RunGraph* graph, Program* program) : graph_(graph), program_(program) {}

  void Add(NodeIndex node) { nodes_.push_back(node); }

  void Connect() {
    FindCommandBuffers();
    for (const NodeIndex node : nodes_) {
      const HloInstruction* instruction = graph_->nodes[node].work->op->instruction;
      if (instruction != nullptr) {
        by_instruction_[instruction].push_back(node);
      }
    }
    for (const NodeIndex node : nodes_) {
      const HloInstruction* instruction = graph_->nodes[node].work->op->instruction;
      if (instruction != nullptr) AddSources(node, *instruction, nullptr);
    }
    for (const CommandBuffer& buffer : buffers_) ConnectCommandBuffer(buffer);
  }

 private:
  static bool IsHidden(const DeviceWork& work) {
    return work.op->in_command_buffer && work.op->instruction == nullptr;
  }

  // The order of launches tells between which instructions a buffer lies.
  void FindCommandBuffers() {
    std::vector<NodeIndex> launched = nodes_;
    SortByLaunch(*graph_, &launched);
    int64_t place = kNoPlace;
    std::map<uint32_t, size_t> known;
    size_t first_open = 0;
    for (const NodeIndex node : launched) {
      const DeviceWork& work = *graph_->nodes[node].work;
      if (IsHidden(work)) {
        const auto [it, is_new] = known.emplace(work.correlation, buffers_.size());
        if (is_new) {
          buffers_.emplace_back();
          buffers_.back().after = place;
        }
        buffers_[it->second].nodes.push_back(node);
        continue;
      }
      if (work.op->instruction == nullptr) continue;
      const int64_t next = program_->PlaceOf(work.op->instruction);
      if (next == kNoPlace) continue;
      place = next;
      for (; first_open < buffers_.size(); ++first_open) buffers_[first_open].before = next;
    }
    for (CommandBuffer& buffer : buffers_) std::sort(buffer.nodes.begin(), buffer.nodes.end());
  }

  void ConnectCommandBuffer(const CommandBuffer& buffer) {
    const auto& scheduled = program_->scheduled();
    const int64_t end = std::min<int64_t>(buffer.before, static_cast<int64_t>(scheduled.size()));
    for (int64_t place = buffer.after + 1; place < end; ++place) {
      const HloInstruction& instruction = *scheduled[static_cast<size_t>(place)];
      if (HloDataFlow::DoesNoWork(instruction) || by_instruction_.contains(&instruction)) continue;
      AddSources(buffer.nodes[0], instruction, &buffer);
    }
  }

  // Adds what `instruction`, which ran as or within the node, waits for outside of the buffer.
  void AddSources(NodeIndex node, const HloInstruction& instruction, const CommandBuffer* within) {
    const HloSources& sources = program_->flow().SourcesOf(instruction);
    seen_.clear();
    for (const HloInstruction* source : sources.data) {
      AddEdges(node, source, EdgeKind::kData, within);
    }
    seen_.clear();
    for (const HloInstruction* source : sources.control) {
      AddEdges(node, source, EdgeKind::kControl, within);
    }
  }

  void AddEdges(NodeIndex node, const HloInstruction* first, EdgeKind kind,
                const CommandBuffer* within) {
    open_.push_back(first);
    while (!open_.empty()) {
      const HloInstruction* source = open_.back();
      open_.pop_back();
      if (!seen_.insert(source).second) continue;
      const auto nodes = by_instruction_.find(source);
      if (nodes != by_instruction_.end()) {
        AddLatest(node, nodes->second, kind);
        continue;
      }
      const int64_t place = program_->PlaceOf(source);
      const auto buffer = std::find_if(buffers_.begin(), buffers_.end(),
                                       [&](const CommandBuffer& b) { return b.Covers(place); });
      if (buffer != buffers_.end()) {
        // Within a buffer the streams' order says enough.
        if (&*buffer != within) AddLatest(node, buffer->nodes, kind);
        continue;
      }
      // It left no trace: the profile began after it, or others do its work.
      for (const HloInstruction* next : program_->flow().SourcesOf(*source).data) {
        open_.push_back(next);
      }
    }
  }

  // Lets the node wait for the last of the candidates that it can have waited for; where that is a
  // kernel of several messages, for all of them.
  void AddLatest(NodeIndex node, const std::vector<NodeIndex>& candidates, EdgeKind kind) {
    const RunNode& work = graph_->nodes[node];
    const DeviceWork* latest = nullptr;
    auto candidate = std::lower_bound(candidates.begin(), candidates.end(), node);
    while (candidate != candidates.begin()) {
      --candidate;
      const RunNode& source = graph_->nodes[*candidate];
      if (latest != nullptr && source.work != latest) break;
      if (source.work == work.work) continue;
      // Kernels of one stream may be launched early and overlap; others would not have waited.
      if (!(source.resource == work.resource) && source.end_ns > work.start_ns) continue;
      latest = source.work;
      graph_->edges.push_back({node, *candidate, kind});
    }
  }

  RunGraph* graph_;
  Program* program_;
  // The nodes of the execution, in the order of their starts.
  std::vector<NodeIndex> nodes_;
  std::vector<CommandBuffer> buffers_;
  absl::flat_hash_map<const HloInstruction*, std::vector<NodeIndex>> by_instruction_;
  // Of the search for sources at hand; members so that they are allocated once.
  absl::flat_hash_set<const HloInstruction*> seen_;
  std::vector<const HloInstruction*> open_;
};

using Programs = absl::flat_hash_map<const HloProgram*, std::unique_ptr<Program>>;

// Follows the launches of one rank: what is launched waits for what the streams were told to wait
// for until then.
class AsyncWaits {
 public:
  AsyncWaits(const Programs& programs, RunGraph* graph) : programs_(programs), graph_(graph) {}

  // Must be called in the order of launches.
  void Launch(NodeIndex node) {
    const DeviceWork& work = *graph_->nodes[node].work;
    const HloInstruction* instruction = work.op->instruction;
    const auto found = programs_.find(work.op->program);
    const Program* program = found == programs_.end() ? nullptr : found->second.get();
    const AsyncSpan* span =
        program == nullptr || instruction == nullptr ? nullptr : program->AsyncSpanOf(instruction);
    PassDone(work, program);
    for (const auto& [stream, awaited] : awaited_) Wait(node, awaited);
    if (span == nullptr) {
      awaited_.clear();
      computation_ = node;
      return;
    }
    if (computation_ != kNoNodeIndex) Wait(node, computation_);
    // Of work that one instruction started on one stream the last stands for all.
    const auto is_same = [&](const Running& running) {
      return running.span == span &&
             graph_->nodes[running.node].resource.number == graph_->nodes[node].resource.number;
    };
    const auto same = std::find_if(running_.begin(), running_.end(), is_same);
    if (same != running_.end()) {
      same->node = node;
    } else if (running_.size() < kMaxRunning) {
      running_.push_back({node, span, span->start});
    }
  }

 private:
  // No program has more under way; a profile that pretends so loses edges, not time.
  static constexpr size_t kMaxRunning = 64;

  struct Running {
    NodeIndex node = kNoNodeIndex;
    const AsyncSpan* span = nullptr;
    // The place of what was launched last in the computation that started it.
    int64_t last_place = kNoPlace;
  };

  // Moves to awaited_ what is done when the work is launched. Of work that no instruction is known
  // of, nobody can say.
  void PassDone(const DeviceWork& work, const Program* program) {
    const auto is_done = [&](Running& running) {
      const DeviceWork& asynchronous = *graph_->nodes[running.node].work;
      if (std::tie(asynchronous.op->program, asynchronous.run_id) !=
          std::tie(work.op->program, work.run_id)) {
        return true;
      }
      if (program == nullptr || work.op->instruction == nullptr) return false;
      const int64_t place = program->PlaceWithin(*running.span->computation, work.op->instruction);
      if (place == kUnknownPlace) return false;
      // Behind the done, outside, or in the next iteration of the loop.
      if (place > running.span->done || place < running.last_place) return true;
      running.last_place = place;
      return false;
    };
    size_t kept = 0;
    for (Running& running : running_) {
      if (is_done(running)) {
        awaited_[graph_->nodes[running.node].resource.number] = running.node;
      } else {
        running_[kept++] = running;
      }
    }
    running_.resize(kept);
  }

  // Times that contradict the programs, as those of a wait that was not needed, are believed.
  void Wait(NodeIndex node, NodeIndex source) {
    const RunNode& waiting = graph_->nodes[node];
    const RunNode& awaited = graph_->nodes[source];
    if (source >= node || awaited.resource == waiting.resource ||
        awaited.end_ns > waiting.start_ns) {
      return;
    }
    graph_->edges.push_back({node, source, EdgeKind::kSync});
  }

  const Programs& programs_;
  RunGraph* graph_;
  // The last computation that was launched, which asynchronous work waits for.
  NodeIndex computation_ = kNoNodeIndex;
  // Asynchronous work that is not done.
  std::vector<Running> running_;
  // Work that is done but nothing has waited for, the last of each stream.
  std::map<int64_t, NodeIndex> awaited_;
};

std::map<int64_t, std::vector<NodeIndex>> WorkByRank(const RunGraph& graph) {
  std::map<int64_t, std::vector<NodeIndex>> ranks;
  for (NodeIndex node = 0; node < graph.nodes.size(); ++node) {
    const RunNode& work = graph.nodes[node];
    if (work.work != nullptr) ranks[work.resource.rank].push_back(node);
  }
  return ranks;
}

void AddAsyncWaits(const Programs& programs, RunGraph* graph) {
  std::map<int64_t, std::vector<NodeIndex>> ranks = WorkByRank(*graph);
  for (auto& [rank, nodes] : ranks) {
    SortByLaunch(*graph, &nodes);
    AsyncWaits waits(programs, graph);
    for (const NodeIndex node : nodes) waits.Launch(node);
  }
}

}  // namespace

void AddStreamOrder(RunGraph* graph) {
  // Of a stream: the nodes that share the last start, and those that they wait for.
  struct Stream {
    std::vector<NodeIndex> last;
    std::vector<NodeIndex> before;
  };
  std::map<Resource, Stream> streams;
  for (NodeIndex node = 0; node < graph->nodes.size(); ++node) {
    const RunNode& work = graph->nodes[node];
    Stream& stream = streams[work.resource];
    // A send and its receive are one kernel: they begin together.
    const bool is_same_kernel =
        !stream.last.empty() && work.kernel == graph->nodes[stream.last[0]].kernel;
    if (!is_same_kernel) {
      std::swap(stream.before, stream.last);
      stream.last.clear();
    }
    for (const NodeIndex source : stream.before) {
      graph->edges.push_back({node, source, EdgeKind::kStream});
    }
    stream.last.push_back(node);
  }
}

void AddDataDependencies(RunGraph* graph) {
  Programs programs;
  // Executions by rank, program and run id.
  std::map<std::tuple<int64_t, const HloProgram*, OptionalNumber>, Execution> executions;
  for (NodeIndex node = 0; node < graph->nodes.size(); ++node) {
    const RunNode& work = graph->nodes[node];
    if (work.work == nullptr || work.work->op->program == nullptr) continue;
    const auto [program, is_new] = programs.try_emplace(work.work->op->program);
    if (is_new) program->second = Program::Create(*work.work->op->program);
    if (program->second == nullptr) continue;
    executions
        .try_emplace(std::make_tuple(work.resource.rank, work.work->op->program, work.work->run_id),
                     graph, program->second.get())
        .first->second.Add(node);
  }
  for (auto& [key, execution] : executions) execution.Connect();
  AddAsyncWaits(programs, graph);
}

int64_t AddInferredDependencies(RunGraph* graph) {
  const EdgesByNode sources(graph->edges, graph->nodes.size());
  int64_t added = 0;
  for (const auto& [rank, nodes] : WorkByRank(*graph)) {
    // Times count from the rank's first start; those that do not fit even so are far from all
    // others.
    int64_t base_ns = graph->nodes[nodes[0]].start_ns;
    for (const NodeIndex node : nodes) base_ns = std::min(base_ns, graph->nodes[node].start_ns);
    const auto picoseconds = [&](int64_t time_ns) {
      return SaturateToInt64((absl::int128(time_ns) - base_ns) * kPsPerNs);
    };
    std::vector<DeviceSpan> spans;
    for (const NodeIndex node : nodes) {
      const RunNode& work = graph->nodes[node];
      DeviceSpan& span = spans.emplace_back();
      span.stream = work.resource.number;
      span.start_ps = picoseconds(work.start_ns);
      span.end_ps = picoseconds(work.end_ns);
      // Where nobody knows the launch, it may have come as late as the start.
      span.ready_ps = span.start_ps;
      if (work.work->call == nullptr) continue;
      span.ready_ps = SaturateToInt64(absl::int128(span.start_ps) - work.work->start_ps +
                                      work.work->call->end_ps);
      for (const DependencyEdge& edge : sources.Of(node)) {
        span.ready_ps = std::max(span.ready_ps, picoseconds(graph->nodes[edge.source].end_ns));
      }
    }
    const std::vector<size_t> awaited = InferDeviceWaits(spans);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (awaited[i] == kNoSpan) continue;
      graph->edges.push_back({nodes[i], nodes[awaited[i]], EdgeKind::kInferred});
      if (!graph->nodes[nodes[i]].is_beside) ++added;
    }
  }
  return added;
}

int64_t AddDeviceDependencies(RunGraph* graph) {
  AddStreamOrder(graph);
  AddDataDependencies(graph);
  return AddInferredDependencies(graph);
}

}  // namespace meridian
