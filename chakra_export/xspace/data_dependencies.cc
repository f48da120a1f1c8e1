#include "chakra_export/xspace/data_dependencies.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "chakra_export/xspace/hlo_data_flow.h"

namespace meridian {
namespace {

constexpr int64_t kNoPlace = -1;

// A program, and where its entry computation's instructions stand in the schedule.
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

  // Returns the position of an instruction in the schedule; of a collective that is wrapped, that
  // of its start. kNoPlace for instructions of other computations.
  int64_t PlaceOf(const HloInstruction* instruction) const {
    const HloCollective* collective = collectives_.Find(instruction->name());
    if (collective != nullptr && collective->start != nullptr) instruction = collective->start;
    const auto it = places_.find(instruction);
    return it == places_.end() ? kNoPlace : it->second;
  }

  // The entry computation's instructions in the order of the schedule.
  const std::vector<const HloInstruction*>& scheduled() const { return scheduled_; }

 private:
  Program(const HloModule& module, const HloCollectives& collectives)
      : collectives_(collectives), flow_(module, collectives) {
    if (module.entry() == nullptr) return;
    const HloInstructionList schedule = module.entry()->schedule();
    scheduled_.assign(schedule.begin(), schedule.end());
    if (scheduled_.empty()) {
      for (const HloInstruction& instruction : module.entry()->instructions()) {
        scheduled_.push_back(&instruction);
      }
    }
    for (size_t i = 0; i < scheduled_.size(); ++i) {
      places_.emplace(scheduled_[i], static_cast<int64_t>(i));
    }
  }

  const HloCollectives& collectives_;
  HloDataFlow flow_;
  std::vector<const HloInstruction*> scheduled_;
  absl::flat_hash_map<const HloInstruction*, int64_t> places_;
};

// A command buffer of a run. It covers the places of the schedule between `after` and `before`,
// both excluded.
struct CommandBuffer {
  int64_t after = kNoPlace;
  int64_t before = std::numeric_limits<int64_t>::max();
  // In the order of starts.
  std::vector<NodeIndex> nodes;

  bool Covers(int64_t place) const { return place != kNoPlace && place > after && place < before; }
};

// One execution of a program on one rank.
class Execution {
 public:
  Execution(WorkGraph* graph, Program* program) : graph_(graph), program_(program) {}

  void Add(NodeIndex node) { nodes_.push_back(node); }

  void Connect() {
    FindCommandBuffers();
    for (const NodeIndex node : nodes_) {
      const HloInstruction* instruction = graph_->nodes[node].work->instruction;
      if (instruction != nullptr) {
        by_instruction_[instruction].push_back(node);
      }
    }
    for (const NodeIndex node : nodes_) {
      const HloInstruction* instruction = graph_->nodes[node].work->instruction;
      if (instruction != nullptr) AddSources(node, *instruction, nullptr);
    }
    for (const CommandBuffer& buffer : buffers_) ConnectCommandBuffer(buffer);
  }

 private:
  static bool IsHidden(const DeviceWork& work) {
    return work.in_command_buffer && work.instruction == nullptr;
  }

  // The order of launches tells between which instructions a buffer lies.
  void FindCommandBuffers() {
    std::vector<NodeIndex> launched = nodes_;
    const auto launch = [this](NodeIndex node) {
      const DeviceWork& work = *graph_->nodes[node].work;
      return std::make_tuple(work.launch_ps.value_or(work.start_ps), node);
    };
    std::sort(launched.begin(), launched.end(),
              [&](NodeIndex a, NodeIndex b) { return launch(a) < launch(b); });
    int64_t place = kNoPlace;
    std::map<std::optional<uint64_t>, size_t> known;
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
      if (work.instruction == nullptr) continue;
      const int64_t next = program_->PlaceOf(work.instruction);
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
    absl::flat_hash_set<const HloInstruction*> seen;
    const HloSources sources = program_->flow().SourcesOf(instruction);
    for (const HloInstruction* source : sources.data) {
      AddEdges(node, source, EdgeKind::kData, within, &seen);
    }
    seen.clear();
    for (const HloInstruction* source : sources.control) {
      AddEdges(node, source, EdgeKind::kControl, within, &seen);
    }
  }

  void AddEdges(NodeIndex node, const HloInstruction* first, EdgeKind kind,
                const CommandBuffer* within, absl::flat_hash_set<const HloInstruction*>* seen) {
    std::vector<const HloInstruction*> open = {first};
    while (!open.empty()) {
      const HloInstruction* source = open.back();
      open.pop_back();
      if (!seen->insert(source).second) continue;
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
        open.push_back(next);
      }
    }
  }

  // Lets the node wait for the last of the candidates that it can have waited for; where that is a
  // kernel of several messages, for all of them.
  void AddLatest(NodeIndex node, const std::vector<NodeIndex>& candidates, EdgeKind kind) {
    const WorkNode& work = graph_->nodes[node];
    const DeviceWork* latest = nullptr;
    auto candidate = std::lower_bound(candidates.begin(), candidates.end(), node);
    while (candidate != candidates.begin()) {
      --candidate;
      const WorkNode& source = graph_->nodes[*candidate];
      if (latest != nullptr && source.work != latest) break;
      if (source.work == work.work) continue;
      // Kernels of one stream may be launched early and overlap; others would not have waited.
      if (!(source.resource == work.resource) && source.end_ns > work.start_ns) continue;
      latest = source.work;
      graph_->edges.push_back({node, *candidate, kind});
    }
  }

  WorkGraph* graph_;
  Program* program_;
  // In the order of starts.
  std::vector<NodeIndex> nodes_;
  std::vector<CommandBuffer> buffers_;
  absl::flat_hash_map<const HloInstruction*, std::vector<NodeIndex>> by_instruction_;
};

}  // namespace

void AddDataDependencies(WorkGraph* graph) {
  absl::flat_hash_map<const HloProgram*, std::unique_ptr<Program>> programs;
  // Executions by rank, program and run id.
  std::map<std::tuple<int64_t, const HloProgram*, std::optional<int64_t>>, Execution> executions;
  for (NodeIndex node = 0; node < graph->nodes.size(); ++node) {
    const WorkNode& work = graph->nodes[node];
    if (work.work == nullptr || work.work->program == nullptr) continue;
    const auto [program, is_new] = programs.try_emplace(work.work->program);
    if (is_new) program->second = Program::Create(*work.work->program);
    if (program->second == nullptr) continue;
    executions
        .try_emplace(std::make_tuple(work.resource.rank, work.work->program, work.work->run_id),
                     graph, program->second.get())
        .first->second.Add(node);
  }
  for (auto& [key, execution] : executions) execution.Connect();
}

}  // namespace meridian
