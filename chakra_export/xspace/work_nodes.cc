#include "chakra_export/xspace/work_nodes.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/xspace/run_agreement.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

constexpr uint32_t kNoEvent = std::numeric_limits<uint32_t>::max();

// RunByRank makes nodes of at most so much work at the same time, but of at least one rank. With what
// is made of them they take a third of a kilobyte each.
constexpr size_t kWorkAtOnce = size_t{1} << 19;

// Finds the collective execution that a kernel is a piece of.
class CollectiveEventIndex {
 public:
  CollectiveEventIndex(const ProfileCollectives& profile, uint32_t local_device)
      : profile_(profile) {
    for (uint32_t i = 0; i < profile.events.size(); ++i) {
      const CollectiveEvent& event = profile.events[i];
      if (event.local_device != local_device) continue;
      const CollectiveOp& op = profile.ops[event.op];
      // Events come by start.
      events_[{op.module, op.instruction}].push_back(i);
    }
  }

  // Returns the position of the event in the profile; kNoEvent when the work is of no collective.
  uint32_t Find(const DeviceWork& work) {
    const auto [known, is_new] = events_of_op_.try_emplace(work.op, nullptr);
    if (is_new) known->second = EventsOf(*work.op);
    if (known->second == nullptr) return kNoEvent;
    const std::vector<uint32_t>& events = *known->second;
    auto event = std::upper_bound(events.begin(), events.end(), work.start_ps,
                                  [&](int64_t time_ps, uint32_t candidate) {
                                    return time_ps < profile_.events[candidate].start_ps;
                                  });
    if (event == events.begin()) return kNoEvent;
    --event;
    return work.end_ps <= profile_.events[*event].end_ps ? *event : kNoEvent;
  }

 private:
  // Returns null for what is no collective.
  const std::vector<uint32_t>* EventsOf(const DeviceOp& op) const {
    if (op.kind == WorkKind::kMemcpy || op.kind == WorkKind::kMemset) return nullptr;
    if (op.program != nullptr && op.collective == nullptr) return nullptr;
    const absl::string_view instruction =
        op.collective != nullptr ? op.collective->instruction->name() : op.hlo_op;
    const auto it = events_.find({op.module, instruction});
    return it == events_.end() ? nullptr : &it->second;
  }

  const ProfileCollectives& profile_;
  std::map<std::pair<absl::string_view, absl::string_view>, std::vector<uint32_t>> events_;
  absl::flat_hash_map<const DeviceOp*, const std::vector<uint32_t>*> events_of_op_;
};

// Where an event of a profile stands in the table.
struct MemberPlace {
  uint32_t instance = 0;
  uint32_t member = 0;
};

class NodeMaker {
 public:
  NodeMaker(const std::vector<std::unique_ptr<ProfileWork>>& profiles, const CollectiveRun& run,
            const WorkNodesOptions& options)
      : profiles_(profiles), run_(run), table_(run.table), options_(options) {}

  absl::StatusOr<WorkNodes> Run() {
    RETURN_IF_ERROR(Prepare());
    size_t room = 0;
    for (const Place& place : places_) room += WorkOf(place);
    out_.graph.nodes.reserve(room);
    for (int64_t rank = 0; rank < out_.graph.rank_count; ++rank) AddRank(rank, &out_);
    for (size_t p = 0; p < profiles_.size(); ++p) EventsOf(p, &out_);
    outline_.Add(out_.graph);
    RETURN_IF_ERROR(CheckSomethingRan());
    unmatched_ = TakeApartIncomplete(&out_.graph);
    Describe();
    return std::move(out_);
  }

  absl::StatusOr<WorkNodes> RunByRank(absl::FunctionRef<absl::Status(int64_t, WorkNodes*)> take) {
    RETURN_IF_ERROR(Prepare());
    const WorkNodes none = out_;
    std::mutex mutex;
    size_t most_work = 1;
    for (const Place& place : places_) most_work = std::max(most_work, WorkOf(place));
    const size_t at_once = std::clamp<size_t>(kWorkAtOnce / most_work, 1, kMostThreads);
    const auto for_each_rank = [&](absl::FunctionRef<absl::Status(int64_t, WorkNodes*)> visit) {
      const auto make = [&](size_t index) {
        const int64_t rank = static_cast<int64_t>(index);
        WorkNodes nodes = none;
        nodes.graph.nodes.reserve(WorkOf(places_[index]));
        AddRank(rank, &nodes);
        const absl::Status status = visit(rank, &nodes);
        if (places_[index].device != nullptr) profiles_[places_[index].profile]->Forget();
        return status;
      };
      return ParallelFor(places_.size(), make, nullptr, at_once);
    };
    RETURN_IF_ERROR(for_each_rank([&](int64_t, WorkNodes* nodes) {
      const std::lock_guard<std::mutex> lock(mutex);
      outline_.Add(nodes->graph);
      out_.dropped.merge(nodes->dropped);
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(CheckSomethingRan());
    RETURN_IF_ERROR(for_each_rank([&](int64_t rank, WorkNodes* nodes) {
      nodes->graph.outline = &outline_;
      unmatched_ += TakeApartIncomplete(&nodes->graph);
      return take(rank, nodes);
    }));
    Describe();
    return std::move(out_);
  }

 private:
  absl::Status Prepare() {
    RETURN_IF_ERROR(PlaceDevices());
    RETURN_IF_ERROR(CheckCollectivesAgree(run_));
    IndexMembers();
    ListGroups();
    out_.node_of_event.resize(profiles_.size());
    return absl::OkStatus();
  }

  struct Place {
    size_t profile = 0;
    const WorkingDevice* device = nullptr;
    // Position among the devices of the profile's collectives; nullopt for a device without any.
    std::optional<uint32_t> local_device;
  };

  absl::Status CheckSomethingRan() const {
    if (outline_.begin_ns != std::numeric_limits<int64_t>::max()) return absl::OkStatus();
    if (!options_.steps.has_value()) {
      return InvalidArgument(
          "the profiles hold no device work; expected kernels on streams, TPU ops or XLA:CPU "
          "thunks");
    }
    std::set<int64_t> steps;
    for (const auto& profile : profiles_) {
      for (const StepEvent& step : profile->steps) steps.insert(step.number);
    }
    return InvalidArgument(
        "--steps=", options_.steps->first, "..", options_.steps->last, " selects no work; ",
        steps.empty()
            ? std::string("the profiles mark no steps")
            : absl::StrCat("the profiles have steps ", *steps.begin(), " to ", *steps.rbegin()));
  }

  // Reads "/device:GPU:7", of a device that is one of so many ranks.
  static bool OrdinalOf(absl::string_view name, int64_t ranks, int64_t* ordinal) {
    return absl::SimpleAtoi(name.substr(name.rfind(':') + 1), ordinal) && *ordinal >= 0 &&
           *ordinal < ranks;
  }

  // Returns whether the profile of all ranks has the rank's device, without work. Who meets others in
  // collectives has worked, and then it is another process that has the device.
  bool IsIdle(int64_t rank, int64_t ranks) const {
    return profiles_.size() == 1 && !absl::c_linear_search(table_.groups().ids(), rank) &&
           absl::c_any_of(profiles_[0]->idle_devices, [&](const std::string& name) {
             int64_t ordinal = 0;
             return OrdinalOf(name, ranks, &ordinal) && ordinal == rank;
           });
  }

  // Devices with collectives have their rank from them; others take those that are left.
  absl::Status PlaceDevices() {
    int64_t ranks = static_cast<int64_t>(run_.ranks.device_of_rank.size());
    std::vector<Place> unplaced;
    std::map<int64_t, Place> places;
    for (size_t p = 0; p < profiles_.size(); ++p) {
      for (const WorkingDevice& device : profiles_[p]->devices) {
        Place place{p, &device, std::nullopt};
        int64_t rank = kUnknownId;
        const std::vector<LocalDevice>& known = run_.profiles[p].devices;
        for (uint32_t d = 0; d < known.size(); ++d) {
          if (known[d].name != device.name) continue;
          place.local_device = d;
          rank = run_.ranks.ranks[p][d];
        }
        if (rank == kUnknownId) {
          unplaced.push_back(place);
        } else {
          places.emplace(rank, place);
        }
      }
    }
    int64_t next = 0;
    for (const Place& place : unplaced) {
      while (places.count(next) > 0) ++next;
      int64_t rank = next;
      // The devices of one process are numbered as its ranks are, with gaps where one did nothing.
      const bool is_numbered = profiles_.size() == 1 &&
                               OrdinalOf(place.device->name, ranks, &rank) &&
                               places.count(rank) == 0;
      if (!is_numbered) rank = next;
      out_.notes.push_back(
          absl::StrCat(run_.profiles[place.profile].trace, ": ", place.device->name,
                       " ran no collective that tells its rank; rank ", rank, " by ",
                       is_numbered ? "its number" : "the order of the files"));
      places.emplace(rank, place);
    }
    if (!places.empty()) ranks = std::max(ranks, places.rbegin()->first + 1);
    std::vector<int64_t> missing, idle;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Place& place = places_.emplace_back(places[rank]);
      const bool is_missing = place.device == nullptr;
      if (is_missing) (IsIdle(rank, ranks) ? idle : missing).push_back(rank);
      out_.profile_of_rank.push_back(is_missing ? nullptr : profiles_[place.profile].get());
    }
    if (!missing.empty() && !options_.allow_missing_ranks) {
      return InvalidArgument(
          "no profile has the work of rank ", absl::StrJoin(missing, ", "), " of ", ranks,
          "; a simulation needs every rank: pass the profiles of all nodes to --traces");
    }
    if (!idle.empty() && !options_.allow_missing_ranks) {
      out_.notes.push_back(absl::StrCat("rank ", absl::StrJoin(idle, ", "), " of ", ranks,
                                        " did nothing: no event is on its device"));
    }
    out_.graph.rank_count = ranks;
    return absl::OkStatus();
  }

  void IndexMembers() {
    members_.resize(profiles_.size());
    for (size_t p = 0; p < profiles_.size(); ++p) {
      members_[p].resize(run_.profiles[p].events.size());
    }
    const std::vector<CollectiveInstance>& instances = table_.instances();
    last_starts_ps_.resize(instances.size(), std::numeric_limits<int64_t>::min());
    for (uint32_t i = 0; i < instances.size(); ++i) {
      for (uint32_t m = 0; m < instances[i].member_count; ++m) {
        const CollectiveMember& member = table_.members()[instances[i].first_member + m];
        members_[table_.NodeOf(member)][member.event] = MemberPlace{i, m};
        last_starts_ps_[i] = std::max(last_starts_ps_[i], member.start_ps);
      }
      if (!HasPairs(table_.OpOf(instances[i]).kind)) continue;
      const absl::Span<const MemberPair> pairs = table_.PairsOf(instances[i]);
      for (uint32_t pair = 0; pair < pairs.size(); ++pair) {
        // A rank that sends to itself does not communicate.
        if (pairs[pair].source == pairs[pair].target) continue;
        pairs_of_[instances[i].first_member + pairs[pair].source].push_back(pair);
        pairs_of_[instances[i].first_member + pairs[pair].target].push_back(pair);
      }
    }
  }

  // Numbers the groups in the order of their ranks, so that times do not matter.
  void ListGroups() {
    std::map<std::vector<int64_t>, std::vector<uint32_t>> by_ranks;
    for (const CollectiveInstance& instance : table_.instances()) {
      if (instance.group == CollectiveInstance::kNoGroup) continue;
      const absl::Span<const int64_t> ranks = table_.groups()[instance.group];
      if (ranks.size() > 1 && group_of_.emplace(instance.group, 0).second) {
        by_ranks[{ranks.begin(), ranks.end()}].push_back(instance.group);
      }
    }
    ProcessGroupList list(out_.graph.rank_count);
    for (const auto& [ranks, groups] : by_ranks) {
      for (const uint32_t group : groups) group_of_[group] = list.Add(ranks);
    }
    out_.graph.groups = list.groups();
  }

  int64_t UnixNs(size_t profile, int64_t time_ps) const {
    return RunClock(profiles_[profile]->base_ns).ToUnixNs(time_ps);
  }

  bool IsSelected(const DeviceWork& work) const {
    if (!options_.steps.has_value()) return true;
    return work.step.has_value() && options_.steps->Contains(*work.step);
  }

  WorkRange RangeOf(const Place& place) const {
    if (options_.window == nullptr) return {0, place.device->work.size()};
    const size_t device = place.device - profiles_[place.profile]->devices.data();
    return (*options_.window)[place.profile][device];
  }

  // Returns how many pieces of work become nodes.
  size_t WorkOf(const Place& place) const {
    if (place.device == nullptr) return 0;
    const WorkRange range = RangeOf(place);
    if (!options_.steps.has_value()) return range.last - range.first;
    size_t count = 0;
    VisitWork(*place.device, range, [&](const DeviceWork& work) { count += IsSelected(work); });
    return count;
  }

  // Visits work in order; what is stored in a file leaves memory behind the walk.
  template <typename Fn>
  static void VisitWork(const WorkingDevice& device, const WorkRange& range, Fn visit) {
    const auto address = [](const DeviceWork& work) {
      return reinterpret_cast<const char*>(&work);
    };
    const auto all = device.work.view().subspan(range.first, range.last - range.first);
    if (all.empty()) return;
    ForgettingWalk walk(absl::string_view(address(all[0]), all.size() * sizeof(DeviceWork)));
    for (const DeviceWork& work : all) {
      walk.Reach(address(work));
      visit(work);
    }
  }

  // Returns the first node of each event of a profile.
  std::vector<NodeIndex>& EventsOf(size_t profile, WorkNodes* out) const {
    std::vector<NodeIndex>& nodes = out->node_of_event[profile];
    nodes.resize(run_.profiles[profile].events.size(), kNoNodeIndex);
    return nodes;
  }

  void AddRank(int64_t rank, WorkNodes* out) const {
    const Place& place = places_[rank];
    std::vector<RunNode>& nodes = out->graph.nodes;
    if (place.device == nullptr) {
      if (!options_.allow_missing_ranks) AddIdleNode(rank, &nodes);
      return;
    }
    std::map<std::string, int64_t>& dropped = out->dropped[rank];
    std::vector<NodeIndex>& node_of_event = EventsOf(place.profile, out);
    // Counted once for a profile of several devices.
    if (place.device == &profiles_[place.profile]->devices[0]) {
      dropped = profiles_[place.profile]->dropped;
    }
    std::optional<CollectiveEventIndex> index;
    if (place.local_device.has_value()) {
      index.emplace(run_.profiles[place.profile], *place.local_device);
    }
    const size_t first = nodes.size();
    const WorkRange range = RangeOf(place);
    const absl::Span<const DeviceWork> all = place.device->work.view();
    const auto is_beside = [&](const DeviceWork& work) {
      const size_t position = &work - all.data();
      return position < range.own_first || position >= range.own_last;
    };
    VisitWork(*place.device, range, [&](const DeviceWork& work) {
      if (!IsSelected(work)) {
        ++dropped["outside the chosen steps"];
        return;
      }
      const uint32_t event = index.has_value() ? index->Find(work) : kNoEvent;
      const size_t before = nodes.size();
      if (event == kNoEvent) {
        AddComputation(rank, place, work, &nodes);
      } else if (NodeIndex& node = node_of_event[event]; node == kNoNodeIndex) {
        // The first kernel of an execution stands for all of them.
        node = static_cast<NodeIndex>(before);
        AddCommunication(rank, place, work, event, &nodes);
      }
      for (size_t i = before; i < nodes.size(); ++i) nodes[i].is_beside = is_beside(work);
    });
    if (nodes.size() == first && !options_.allow_missing_ranks) AddIdleNode(rank, &nodes);
  }

  RunNode NewNode(int64_t rank, const Place& place, const DeviceWork& work, size_t number) const {
    RunNode node;
    node.name = work.op->name;
    node.resource = {rank, ResourceKind::kStream, work.op->stream};
    node.start_ns = UnixNs(place.profile, work.start_ps);
    node.end_ns = UnixNs(place.profile, work.end_ps);
    node.duration_ns = node.end_ns - node.start_ns;
    node.kernel = static_cast<uint32_t>(number);
    node.is_launched = work.call != nullptr;
    node.step = work.step;
    node.work = &work;
    node.instruction = work.op->instruction;
    return node;
  }

  void AddComputation(int64_t rank, const Place& place, const DeviceWork& work,
                      std::vector<RunNode>* nodes) const {
    RunNode node = NewNode(rank, place, work, nodes->size());
    if (work.op->kind == WorkKind::kMemcpy) node.op_kind = kMemcpyOpKind;
    if (work.op->kind == WorkKind::kMemset) node.op_kind = kMemsetOpKind;
    nodes->push_back(node);
  }

  // A simulator wants at least one node of every rank.
  static void AddIdleNode(int64_t rank, std::vector<RunNode>* nodes) {
    RunNode node;
    node.name = "idle";
    node.resource = {rank, ResourceKind::kStream, 0};
    node.op_kind = kHostGapOpKind;
    nodes->push_back(node);
  }

  // Adds the nodes of one execution on one rank.
  void AddCommunication(int64_t rank, const Place& place, const DeviceWork& work,
                        uint32_t event_index, std::vector<RunNode>* nodes) const {
    const CollectiveEvent& event = run_.profiles[place.profile].events[event_index];
    RunNode node = NewNode(rank, place, work, nodes->size());
    node.end_ns = UnixNs(place.profile, event.end_ps);
    node.duration_ns = node.end_ns - node.start_ns;
    node.name = run_.profiles[place.profile].ops[event.op].instruction;
    const std::optional<MemberPlace>& member = members_[place.profile][event_index];
    std::vector<RunNode> made;
    absl::string_view reason = kUnmatchedOpKind;
    if (member.has_value() && table_.instances()[member->instance].missing == 0) {
      made = CommunicationNodes(node, *member);
      reason = kLocalOpKind;
    }
    if (made.empty()) {
      node.op_kind = reason;
      made.push_back(node);
    }
    nodes->insert(nodes->end(), made.begin(), made.end());
  }

  // Returns the nodes of an execution on one rank; none when the rank does not communicate in it.
  std::vector<RunNode> CommunicationNodes(const RunNode& base, const MemberPlace& place) const {
    const CollectiveInstance& instance = table_.instances()[place.instance];
    const MatchedOp& op = table_.OpOf(instance);
    if (op.operand_bytes <= 0) return {};
    if (HasPairs(op.kind)) return MessageNodes(base, place, op);
    const std::optional<ChakraProtoMsg::CollectiveCommType> type = SimulatedCommTypeOf(op.kind);
    if (!type.has_value() || instance.group == CollectiveInstance::kNoGroup) return {};
    if (table_.groups()[instance.group].size() < 2) return {};
    RunNode node = base;
    node.SetCollective(op.operand_bytes, *type, group_of_.at(instance.group));
    node.instance = place.instance;
    SetTransfer(last_starts_ps_[place.instance], &node);
    return {node};
  }

  // All that the members of an instance have in common begins when the last of them has started.
  void SetTransfer(int64_t last_start_ps, RunNode* node) const {
    node->instance_start_ns = RunClock(table_.base_ns()).ToUnixNs(last_start_ps);
    node->duration_ns =
        std::max<int64_t>(0, node->end_ns - std::max(node->start_ns, node->instance_start_ns));
  }

  std::vector<RunNode> MessageNodes(const RunNode& base, const MemberPlace& place,
                                    const MatchedOp& op) const {
    const CollectiveInstance& instance = table_.instances()[place.instance];
    const absl::Span<const CollectiveMember> members = table_.MembersOf(instance);
    std::vector<RunNode> nodes;
    const absl::Span<const MemberPair> pairs = table_.PairsOf(instance);
    const auto mine = pairs_of_.find(instance.first_member + place.member);
    if (mine == pairs_of_.end()) return nodes;
    for (const uint32_t i : mine->second) {
      const MemberPair& pair = pairs[i];
      const CollectiveMember& source = members[pair.source];
      const CollectiveMember& target = members[pair.target];
      RunNode node = base;
      node.SetMessage(pair.source == place.member, op.operand_bytes, source.rank, target.rank,
                      static_cast<int32_t>(place.instance % kCommTagLimit));
      // Pairs are numbered after the instances.
      node.instance = static_cast<uint32_t>(table_.instances().size()) + instance.first_pair + i;
      SetTransfer(std::max(source.start_ps, target.start_ps), &node);
      nodes.push_back(node);
    }
    return nodes;
  }

  // Makes computation of executions that the chosen steps cut on some ranks: nobody could run them.
  // Returns how many nodes are unmatched.
  int64_t TakeApartIncomplete(RunGraph* graph) const {
    int64_t unmatched = 0;
    for (RunNode& node : graph->nodes) {
      if (node.IsCommunication()) {
        const size_t expected = node.type == ChakraProtoMsg::COMM_COLL_NODE
                                    ? graph->groups[node.communication->group].ranks.size()
                                    : 2;
        if (outline_.meetings.at(node.instance).nodes == expected) continue;
        node.type = ChakraProtoMsg::COMP_NODE;
        node.communication.reset();
        node.instance = RunNode::kNoInstance;
        node.duration_ns = node.end_ns - node.start_ns;
        node.op_kind = kUnmatchedOpKind;
      }
      if (node.op_kind == kUnmatchedOpKind && !node.is_beside) ++unmatched;
    }
    return unmatched;
  }

  void Describe() {
    for (const auto& [instance, meeting] : outline_.meetings) {
      if (instance >= table_.instances().size() || meeting.own_nodes == 0) continue;
      const CollectiveKind kind = table_.OpOf(table_.instances()[instance]).kind;
      if (!IsApproximated(kind)) continue;
      out_.counts[absl::StrCat(
          " x ", std::string(CollectiveKindName(kind)),
          " became the nearest collective that ASTRA-sim simulates, of the same bytes")] +=
          static_cast<int64_t>(meeting.own_nodes);
    }
    if (unmatched_ > 0) {
      out_.counts[" collective(s) lack members in other profiles: they became computation"] =
          unmatched_;
    }
  }

  const std::vector<std::unique_ptr<ProfileWork>>& profiles_;
  const CollectiveRun& run_;
  const CollectiveTable& table_;
  const WorkNodesOptions& options_;
  WorkNodes out_;
  std::vector<Place> places_;
  // Where each event of each profile stands in the table.
  std::vector<std::vector<std::optional<MemberPlace>>> members_;
  // Last start of the members of each instance, in times of the table.
  std::vector<int64_t> last_starts_ps_;
  // The pairs of each member of the table, as positions among the pairs of its instance.
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> pairs_of_;
  // The graph's group for each group of the table.
  std::map<uint32_t, GroupIndex> group_of_;
  RunOutline outline_;
  // How many nodes stand for collectives that lack members.
  std::atomic<int64_t> unmatched_{0};
};

}  // namespace

absl::StatusOr<WorkNodes> MakeWorkNodes(const std::vector<std::unique_ptr<ProfileWork>>& profiles,
                                        const CollectiveRun& run, const WorkNodesOptions& options) {
  return NodeMaker(profiles, run, options).Run();
}

absl::StatusOr<WorkNodes> MakeWorkNodesByRank(
    const std::vector<std::unique_ptr<ProfileWork>>& profiles, const CollectiveRun& run,
    const WorkNodesOptions& options, absl::FunctionRef<absl::Status(int64_t, WorkNodes*)> take) {
  return NodeMaker(profiles, run, options).RunByRank(take);
}

namespace {

// Made-up nodes, communication and access to memory have no place in a joint node.
bool CanJoin(const RunNode& node) {
  return node.type == ChakraProtoMsg::COMP_NODE && node.work != nullptr;
}

bool IsOneInstruction(const RunNode& a, const RunNode& b) {
  return a.resource == b.resource && a.op_kind == b.op_kind && !a.work->op->hlo_op.empty() &&
         std::tie(a.work->run_id, a.work->op->program, a.work->op->hlo_op) ==
             std::tie(b.work->run_id, b.work->op->program, b.work->op->hlo_op);
}

bool IsOneStep(const RunNode& a, const RunNode& b) {
  return a.resource.rank == b.resource.rank &&
         std::tie(a.work->step, a.work->run_id) == std::tie(b.work->step, b.work->run_id);
}

// (rank, time) of every end of communication.
std::set<std::pair<int64_t, int64_t>> CommunicationEnds(const RunGraph& graph) {
  std::set<std::pair<int64_t, int64_t>> ends;
  for (const RunNode& node : graph.nodes) {
    if (node.IsCommunication()) ends.insert({node.resource.rank, node.end_ns});
  }
  return ends;
}

}  // namespace

void MergeWork(WorkGranularity granularity, RunGraph* graph) {
  if (granularity == WorkGranularity::kKernel) return;
  const std::set<std::pair<int64_t, int64_t>> ends = CommunicationEnds(*graph);
  std::vector<NodeIndex> places(graph->nodes.size());
  std::vector<RunNode> merged;
  // The last piece of the last merged node: like is compared with like.
  const RunNode* last_piece = nullptr;
  for (NodeIndex i = 0; i < graph->nodes.size(); ++i) {
    const RunNode& node = graph->nodes[i];
    bool joins = last_piece != nullptr && CanJoin(*last_piece) && CanJoin(node) &&
                 (granularity == WorkGranularity::kStep ? IsOneStep(*last_piece, node)
                                                        : IsOneInstruction(*last_piece, node));
    if (joins) {
      const auto end = ends.upper_bound({node.resource.rank, merged.back().start_ns});
      joins = end == ends.end() || *end > std::make_pair(node.resource.rank, node.start_ns);
    }
    if (joins) {
      RunNode& joint = merged.back();
      joint.end_ns = std::max(joint.end_ns, node.end_ns);
      joint.duration_ns = joint.end_ns - joint.start_ns;
      joint.operations = SaturateToInt64(absl::int128(joint.operations) + node.operations);
      joint.bytes = SaturateToInt64(absl::int128(joint.bytes) + node.bytes);
      if (granularity == WorkGranularity::kStep) {
        joint.op_kind = kStepOpKind;
        joint.instruction = nullptr;
      }
    } else {
      merged.push_back(node);
    }
    last_piece = &node;
    places[i] = static_cast<NodeIndex>(merged.size() - 1);
  }
  std::vector<DependencyEdge> edges;
  for (const DependencyEdge& edge : graph->edges) {
    const DependencyEdge moved{places[edge.node], places[edge.source], edge.kinds};
    if (moved.node != moved.source) edges.push_back(moved);
  }
  graph->nodes = std::move(merged);
  graph->edges = std::move(edges);
}

}  // namespace meridian
