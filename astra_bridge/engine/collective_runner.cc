#include "astra_bridge/engine/collective_runner.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
// What a stream's state machine asks for. Phases end after the machine has returned.
class CollectiveRunner::StreamHost : public AlgorithmHost {
 public:
  StreamHost(CollectiveRunner& runner, uint32_t number)
      : runner_(runner),
        number_(number),
        stream_(runner.streams_[number]),
        phase_(runner.PhaseOf(stream_)) {}

  void Prepare(int64_t reduce_bytes) override {
    EventKind kind = EventKind::kPrepared;
    if (reduce_bytes > 0) {
      stream_.reduction_ns = ReductionNs(reduce_bytes, runner_.system_.local_memory_bandwidth);
      kind = EventKind::kReduce;
    }
    runner_.events_.ScheduleOnRank(runner_.RankOf(stream_),
                                   runner_.events_.now_ns() + phase_.endpoint_delay_ns, kind,
                                   number_);
  }

  void Send(int32_t to_position, uint32_t sequence, int64_t bytes) override {
    const Collective& collective = *runner_.collectives_[stream_.collective];
    const int32_t receiver = stream_.member + (phase_.stride == 0 ? 1 : phase_.stride) *
                                                  (to_position - stream_.position);
    const uint32_t message =
        runner_.network_.Send(runner_.RankOf(collective, stream_.member),
                              runner_.RankOf(collective, receiver), bytes, stream_.collective);
    if (message >= runner_.mail_.size()) runner_.mail_.resize(message + 1);
    runner_.mail_[message] = {stream_.collective, receiver, stream_.chunk, stream_.phase, sequence};
  }

  void Expect(uint32_t sequence) override {
    if (stream_.early.erase(sequence) == 0) return;
    runner_.events_.Schedule(runner_.events_.now_ns(), EventKind::kTaken, number_);
  }

  void Finish() override { finished_ = true; }

  const CollectivePhase& phase() const { return phase_; }
  bool finished() const { return finished_; }

 private:
  CollectiveRunner& runner_;
  const uint32_t number_;
  Stream& stream_;
  const CollectivePhase& phase_;
  bool finished_ = false;
};

CollectiveRunner::CollectiveRunner(const Workload& workload, const GroupTable& groups,
                                   const Topology& topology, const SystemConfig& system,
                                   const SimulationOptions& options, OrderWatch* order,
                                   LinkNetwork& network, EventQueue& events,
                                   std::function<void(int32_t rank, uint32_t node)> on_done,
                                   std::function<void(int32_t rank, uint32_t operation)> issue)
    : workload_(workload),
      groups_(groups),
      topology_(topology),
      system_(system),
      options_(options),
      order_(order),
      network_(network),
      events_(events),
      on_done_(std::move(on_done)),
      issue_(std::move(issue)),
      open_groups_(groups.groups().size()),
      trees_taken_(kSimulatedCollectives * topology.dimension_count()),
      phase_finished_ns_(topology.npus(), -1) {
  const size_t comm_streams = static_cast<size_t>(topology.npus()) * options.comm_streams;
  queues_.resize(comm_streams * topology.dimension_count());
  current_.resize(comm_streams);
}

CollectiveRunner::~CollectiveRunner() = default;

absl::Status CollectiveRunner::Join(int32_t rank, uint32_t node, int32_t comm_stream) {
  const WorkloadNode& joining = workload_.ranks[rank].nodes()[node];
  ASSIGN_OR_RETURN(const Membership membership, groups_.Find(rank, joining.group));
  if (groups_.size(membership.group) == 1) {
    // There is nobody to exchange anything with.
    events_.Schedule(events_.now_ns(), EventKind::kNodeDone, static_cast<uint32_t>(rank), node);
    return absl::OkStatus();
  }
  const CollectiveShape shape = {joining.op, joining.bytes, membership.group, joining.algorithms,
                                 joining.involved_dimensions};
  const int32_t index = membership.member;
  ASSIGN_OR_RETURN(const uint32_t number, FindCollective(shape, index, rank, node));
  Collective& collective = *collectives_[number];
  Member& member = collective.members[index];
  member.node = node;
  member.comm_stream = comm_stream;
  member.joined_ns = events_.now_ns();
  collective.join_order.push_back(index);
  CurrentOf(rank, comm_stream) = {number, index};
  if (collective.fixed_ns == kSimulated) {
    StartWaiting(rank, comm_stream, collective.planned->plan.phases[0].dimension);
  }
  if (collective.join_order.size() == collective.members.size()) OnComplete(number);
  return absl::OkStatus();
}

absl::StatusOr<CollectiveRunner::PlannedShape*> CollectiveRunner::PlanOf(
    const CollectiveShape& shape) {
  const auto known = plans_.find(shape.key());
  if (known != plans_.end()) return known->second.get();
  CollectiveRequest request;
  request.op = shape.op;
  request.bytes = shape.bytes;
  request.group_size = static_cast<int32_t>(groups_.groups()[shape.group].members.size());
  request.algorithms = shape.algorithms == kSystemAlgorithms
                           ? system_.algorithms_of(shape.op)
                           : workload_.algorithms[shape.algorithms];
  request.involved_dimensions = shape.involved_dimensions;
  auto planned = std::make_unique<PlannedShape>();
  planned->shape = shape;
  if (shape.algorithms == kSystemAlgorithms &&
      !workload_.custom[static_cast<size_t>(shape.op)].empty()) {
    RETURN_IF_ERROR(Annotate(
        PlanCustom(planned.get()),
        absl::StrCat(system_.source, system_.source.empty() ? "" : ": ", CustomKey(shape.op))));
  } else {
    ASSIGN_OR_RETURN(planned->plan, PlanCollective(request, topology_, system_));
  }
  return plans_.emplace(shape.key(), std::move(planned)).first->second.get();
}

absl::Status CollectiveRunner::PlanCustom(PlannedShape* planned) {
  const size_t op = static_cast<size_t>(planned->shape.op);
  const size_t size = groups_.size(planned->shape.group);
  if (workload_.custom[op].size() != size) {
    return InvalidArgument("the algorithm is of ", workload_.custom[op].size(),
                           " ranks, but the collective of ", size);
  }
  if (system_.preferred_dataset_splits != 1) {
    return InvalidArgument("an algorithm runs once, but AstraSim waits for ",
                           system_.preferred_dataset_splits,
                           " chunks; set preferred-dataset-splits to 1");
  }
  const int32_t group = groups_.groups()[planned->shape.group].id;
  if (group != kWorldGroup && !absl::c_is_sorted(workload_.groups.at(group))) {
    return InvalidArgument("the ranks of group ", group,
                           " are not in ascending order; AstraSim then mixes up its positions");
  }
  if (!custom_[op].has_value()) {
    ASSIGN_OR_RETURN(custom_[op], CustomAlgorithm::Create(workload_.custom[op]));
  }
  planned->custom = &*custom_[op];
  size_t nodes = 0;
  for (const CustomMember& member : planned->custom->members()) nodes += member.graph.size();
  // So many may be under way at once.
  if (nodes > kFirstOperation / options_.comm_streams / (topology_.npus() / size)) {
    return InvalidArgument("the algorithm has ", nodes, " nodes, which is too many");
  }
  planned->plan.chunks = 1;
  planned->plan.phases.emplace_back();
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> CollectiveRunner::FindCollective(const CollectiveShape& shape,
                                                          int32_t member, int32_t rank,
                                                          uint32_t node) {
  OpenGroup& open = open_groups_[shape.group];
  if (open.joins.empty()) open.joins.resize(groups_.size(shape.group));
  const int64_t ordinal = open.joins[member];
  const size_t place = static_cast<size_t>(ordinal - open.closed);
  if (place == open.collectives.size()) {
    ASSIGN_OR_RETURN(PlannedShape* const planned, PlanOf(shape));
    open.collectives.push_back(NewCollective(rank, node, ordinal, planned));
  }
  const uint32_t number = open.collectives[place];
  if (collectives_[number]->planned->shape.key() != shape.key()) {
    return NotTheSame(*collectives_[number], shape);
  }
  ++open.joins[member];
  return number;
}

uint32_t CollectiveRunner::NewCollective(int32_t first_rank, uint32_t first_node, int64_t ordinal,
                                         PlannedShape* planned) {
  if (free_collectives_.empty()) {
    free_collectives_.push_back(static_cast<uint32_t>(collectives_.size()));
    collectives_.push_back(std::make_unique<Collective>());
  }
  const uint32_t number = free_collectives_.back();
  free_collectives_.pop_back();
  Collective& collective = *collectives_[number];
  const CollectivePlan& plan = planned->plan;
  const size_t size = groups_.size(planned->shape.group);
  collective.planned = planned;
  collective.group = planned->shape.group;
  collective.ordinal = ordinal;
  collective.members.assign(size, Member());
  collective.join_order.clear();
  collective.join_order.reserve(size);
  collective.members_done = 0;
  collective.lockstep_tried = options_.events_only;
  collective.in_lockstep = false;
  collective.streams.assign(size * plan.chunks, kNone);
  collective.fixed_ns =
      plan.ties_all_members ? workload_.ranks[first_rank].nodes()[first_node].fixed_ns : kSimulated;
  int32_t* const trees =
      &trees_taken_[static_cast<size_t>(planned->shape.op) * topology_.dimension_count()];
  collective.first_tree.assign(trees, trees + topology_.dimension_count());
  bool takes_trees = false;
  for (const CollectivePhase& phase : plan.phases) {
    if (phase.trees_per_chunk == 0) continue;
    trees[phase.dimension] += plan.chunks;
    // Which of two collectives gets which trees is decided by who is first.
    if (order_ != nullptr && tree_taken_ns_ == events_.now_ns()) order_->mattered = true;
    takes_trees = true;
  }
  if (takes_trees) tree_taken_ns_ = events_.now_ns();
  return number;
}

absl::Status CollectiveRunner::NotTheSame(const Collective& collective,
                                          const CollectiveShape& shape) const {
  const CollectiveShape& first = collective.planned->shape;
  const auto describe = [](const CollectiveShape& described) {
    return absl::StrCat(CollectiveKindName(described.op), " of ", described.bytes, " bytes");
  };
  const std::string other = describe(first) == describe(shape)
                                ? "has other involved_dim or algorithms"
                                : absl::StrCat("is ", describe(first));
  const int32_t group = groups_.groups()[shape.group].id;
  const int32_t first_member = collective.join_order[0];
  const int32_t first_rank = RankOf(collective, first_member);
  const uint64_t first_id =
      workload_.ranks[first_rank].nodes()[collective.members[first_member].node].id;
  return InvalidArgument(
      "is ", describe(shape), ", but the same collective (number ", collective.ordinal + 1, " of ",
      group == kWorldGroup ? "all ranks" : absl::StrCat("group ", group), ") ", other, " on rank ",
      first_rank, " (node ", first_id, "); the ranks would wait forever");
}

void CollectiveRunner::OnComplete(uint32_t number) {
  Collective& collective = *collectives_[number];
  OpenGroup& open = open_groups_[collective.group];
  // Members join in order, so this is the oldest.
  open.collectives.pop_front();
  ++open.closed;
  collective.complete_ns = events_.now_ns();
  if (collective.fixed_ns == kSimulated) return;
  for (size_t i = 0; i < collective.members.size(); ++i) {
    const int32_t rank = RankOf(collective, static_cast<int32_t>(i));
    // Ranks that issue their nodes in another order than where the durations come from may bring
    // together a node that has one and a node that has none.
    const int64_t own_ns = workload_.ranks[rank].nodes()[collective.members[i].node].fixed_ns;
    events_.Schedule(events_.now_ns() + (own_ns == kSimulated ? collective.fixed_ns : own_ns),
                     EventKind::kMemberDone, number, static_cast<uint32_t>(i));
  }
}

void CollectiveRunner::StartWaiting(int32_t rank, int32_t comm_stream, int32_t dimension) {
  Queue& queue = QueueOf(rank, comm_stream, dimension);
  const Current current = CurrentOf(rank, comm_stream);
  while (queue.running < system_.active_chunks_per_dimension) {
    uint32_t stream = kNone;
    if (current.collective != kNone) {
      stream = NextChunk(current.collective, current.member, dimension);
    }
    if (stream == kNone) {
      if (queue.first == kNone) return;
      stream = queue.first;
      queue.first = streams_[stream].next;
    }
    ++queue.running;
    StartPhase(stream);
  }
}

uint32_t CollectiveRunner::NextChunk(uint32_t number, int32_t index, int32_t dimension) {
  Collective& collective = *collectives_[number];
  const CollectivePlan& plan = collective.planned->plan;
  Member& member = collective.members[index];
  if (collective.fixed_ns != kSimulated || plan.phases[0].dimension != dimension ||
      member.next_chunk == plan.chunks) {
    return kNone;
  }
  if (free_streams_.empty()) {
    free_streams_.push_back(static_cast<uint32_t>(streams_.size()));
    streams_.emplace_back();
  }
  const uint32_t stream_number = free_streams_.back();
  free_streams_.pop_back();
  Stream& stream = streams_[stream_number];
  stream.collective = number;
  stream.member = index;
  stream.chunk = member.next_chunk++;
  stream.phase = 0;
  StreamOf(collective, index, stream.chunk) = stream_number;
  return stream_number;
}

void CollectiveRunner::FreeStream(uint32_t number) {
  Stream& stream = streams_[number];
  StreamOf(*collectives_[stream.collective], stream.member, stream.chunk) = kNone;
  stream.is_running = false;
  stream.custom.reset();
  free_streams_.push_back(number);
}

void CollectiveRunner::StartPhase(uint32_t number) {
  Stream& stream = streams_[number];
  stream.is_running = true;
  const Collective& collective = *collectives_[stream.collective];
  if (const CustomAlgorithm* const custom = collective.planned->custom; custom != nullptr) {
    stream.custom.emplace(custom->members()[stream.member]);
    IssueOperations(number);
    return;
  }
  const CollectivePhase& phase = PhaseOf(stream);
  stream.position = phase.stride == 0 ? stream.member : stream.member / phase.stride % phase.size;
  stream.packets_to_drop = phase.parallel;
  stream.prepared_ns = -1;
  stream.received_ns = -1;
  stream.early.clear();
  if (!early_.empty()) {
    const auto early =
        early_.find(PhaseKey(stream.collective, stream.member, stream.chunk, stream.phase));
    if (early != early_.end()) {
      stream.early = std::move(early->second);
      early_.erase(early);
    }
  }
  StreamHost host(*this, number);
  const int32_t tree = collective.first_tree[phase.dimension] + phase.tree_offset +
                       stream.chunk * phase.trees_per_chunk;
  stream.state.Start(phase, stream.position, tree, host);
}

void CollectiveRunner::IssueOperations(uint32_t number) {
  Stream& stream = streams_[number];
  const Collective& collective = *collectives_[stream.collective];
  const CustomMember& member = collective.planned->custom->members()[stream.member];
  for (const uint32_t position : stream.custom->TakeReady()) {
    if (free_operations_.empty()) {
      free_operations_.push_back(kFirstOperation + static_cast<uint32_t>(operations_.size()));
      operations_.emplace_back();
    }
    const uint32_t operation = free_operations_.back();
    free_operations_.pop_back();
    WorkloadNode node = member.nodes->nodes()[position];
    if (node.type != WorkloadNodeType::kCompute) node.peer = RankOf(collective, node.peer);
    operations_[operation - kFirstOperation] = {number, position, std::move(node)};
    issue_(RankOf(collective, stream.member), operation);
  }
}

void CollectiveRunner::OnOperationDone(uint32_t number) {
  const Operation& operation = operations_[number - kFirstOperation];
  const uint32_t stream_number = operation.stream;
  CustomState& state = *streams_[stream_number].custom;
  state.Finish(operation.position);
  free_operations_.push_back(number);
  IssueOperations(stream_number);
  if (state.done()) FinishPhase(stream_number);
}

void CollectiveRunner::OnPrepared(uint32_t number) {
  Stream& stream = streams_[number];
  Collective& collective = *collectives_[stream.collective];
  if (!collective.lockstep_tried) TryLockstep(stream.collective);
  if (collective.in_lockstep) {
    if (--stream.packets_to_drop == 0) FreeStream(number);
    return;
  }
  stream.prepared_ns = events_.now_ns();
  CheckOrder(stream);
  StreamHost host(*this, number);
  stream.state.OnPrepared(host.phase(), stream.position, host);
  if (host.finished()) FinishPhase(number);
}

void CollectiveRunner::OnReduce(uint32_t number) {
  const Stream& stream = streams_[number];
  events_.ScheduleOnRank(RankOf(stream), events_.now_ns() + stream.reduction_ns,
                         EventKind::kPrepared, number);
}

void CollectiveRunner::CheckOrder(const Stream& stream) {
  if (order_ == nullptr || stream.prepared_ns != stream.received_ns) return;
  if (PhaseOf(stream).parallel > 1) order_->mattered = true;
}

void CollectiveRunner::OnReceived(uint32_t number) {
  Stream& stream = streams_[number];
  stream.received_ns = events_.now_ns();
  CheckOrder(stream);
  StreamHost host(*this, number);
  stream.state.OnReceived(host.phase(), host);
}

bool CollectiveRunner::Deliver(uint32_t message) {
  if (message >= mail_.size() || mail_[message].collective == kNone) return false;
  const Mail mail = mail_[message];
  mail_[message].collective = kNone;
  const uint32_t number = StreamOf(*collectives_[mail.collective], mail.member, mail.chunk);
  Stream* const stream = number == kNone ? nullptr : &streams_[number];
  if (stream == nullptr || !stream->is_running || stream->phase != mail.phase) {
    early_[PhaseKey(mail.collective, mail.member, mail.chunk, mail.phase)].insert(mail.sequence);
    return true;
  }
  if (stream->state.Expects(mail.sequence)) {
    OnReceived(number);
  } else {
    stream->early.insert(mail.sequence);
  }
  return true;
}

void CollectiveRunner::FinishPhase(uint32_t number) {
  Stream& stream = streams_[number];
  const uint32_t collective_number = stream.collective;
  Collective& collective = *collectives_[collective_number];
  const CollectivePlan& plan = collective.planned->plan;
  const int32_t index = stream.member;
  const int32_t rank = RankOf(collective, index);
  const int32_t comm_stream = collective.members[index].comm_stream;
  const int32_t old_dimension = plan.phases[stream.phase].dimension;
  if (order_ != nullptr && plan.phases.size() > 1) {
    // Chunks queue in the order in which they finish.
    if (phase_finished_ns_[rank] == events_.now_ns()) order_->mattered = true;
    phase_finished_ns_[rank] = events_.now_ns();
  }
  if (stream.phase + 1 == plan.phases.size()) {
    FreeStream(number);
    // The rank may join its next collective here, whose chunks wait until this one has left.
    if (++collective.members[index].chunks_done == plan.chunks) {
      FinishMember(collective_number, index);
    }
    --QueueOf(rank, comm_stream, old_dimension).running;
    StartWaiting(rank, comm_stream, old_dimension);
    return;
  }
  ++stream.phase;
  stream.is_running = false;
  stream.next = kNone;
  const int32_t dimension = plan.phases[stream.phase].dimension;
  Queue& queue = QueueOf(rank, comm_stream, dimension);
  if (queue.first == kNone) {
    queue.first = number;
  } else {
    streams_[queue.last].next = number;
  }
  queue.last = number;
  --QueueOf(rank, comm_stream, old_dimension).running;
  StartWaiting(rank, comm_stream, old_dimension);
  StartWaiting(rank, comm_stream, dimension);
}

void CollectiveRunner::FinishMember(uint32_t number, int32_t index) {
  Collective& collective = *collectives_[number];
  const Member member = collective.members[index];
  const int32_t rank = RankOf(collective, index);
  CurrentOf(rank, member.comm_stream) = Current();
  if (++collective.members_done == static_cast<int32_t>(collective.members.size())) {
    free_collectives_.push_back(number);
  }
  on_done_(rank, member.node);
}

void CollectiveRunner::OnMemberDone(uint32_t number, int32_t index) {
  Collective& collective = *collectives_[number];
  const int32_t rank = RankOf(collective, index);
  const int32_t comm_stream = collective.members[index].comm_stream;
  const int32_t dimension = collective.planned->plan.phases[0].dimension;
  // As if its last chunk were just about to leave.
  QueueOf(rank, comm_stream, dimension).running = 1;
  FinishMember(number, index);
  --QueueOf(rank, comm_stream, dimension).running;
  StartWaiting(rank, comm_stream, dimension);
}

void CollectiveRunner::TryLockstep(uint32_t number) {
  Collective& collective = *collectives_[number];
  const CollectivePlan& plan = collective.planned->plan;
  collective.lockstep_tried = true;
  if (collective.join_order.size() < collective.members.size()) return;
  for (const Member& member : collective.members) {
    if (member.joined_ns != collective.complete_ns) return;
  }
  PlannedShape& planned = *collective.planned;
  if (network_.shares_fairly()) {
    if (options_.comm_streams > 1 || workload_.has_custom()) return;
    if (own_links_.empty()) {
      own_links_ =
          GroupsWithOwnLinks(workload_, groups_, topology_.network(), *options_.paths, system_);
    }
    if (!own_links_[collective.group]) return;
    if (!planned.short_cut_ns.has_value()) {
      planned.short_cut_ns = FairRingNs(plan, groups_, collective.group, network_, system_);
    }
  } else if (order_ == nullptr) {
    return;
  } else if (!planned.short_cut_ns.has_value()) {
    planned.short_cut_ns =
        OrderFreeDurationNs(plan, groups_, collective.group, topology_, network_, system_);
  }
  if (!planned.short_cut_ns->has_value()) return;
  collective.in_lockstep = true;
  for (const int32_t member : collective.join_order) {
    collective.members[member].next_chunk = plan.chunks;
    events_.Schedule(collective.complete_ns + **planned.short_cut_ns, EventKind::kMemberDone,
                     number, static_cast<uint32_t>(member));
  }
}

std::vector<OpenCollective> CollectiveRunner::OpenCollectives() const {
  std::vector<bool> is_free(collectives_.size());
  for (const uint32_t number : free_collectives_) is_free[number] = true;
  std::vector<OpenCollective> result;
  for (size_t number = 0; number < collectives_.size(); ++number) {
    if (is_free[number]) continue;
    const Collective& collective = *collectives_[number];
    if (collective.planned->custom != nullptr) continue;
    OpenCollective& open = result.emplace_back();
    for (size_t i = 0; i < collective.members.size(); ++i) {
      const Member& member = collective.members[i];
      const int32_t rank = RankOf(collective, static_cast<int32_t>(i));
      if (member.joined_ns < 0) {
        open.missing_ranks.push_back(rank);
      } else if (member.chunks_done < collective.planned->plan.chunks) {
        open.waiting_ranks.push_back(rank);
        open.waiting_nodes.push_back(member.node);
      }
    }
  }
  return result;
}

}  // namespace meridian
