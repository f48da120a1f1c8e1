#include "cluster/replay/mpi_transport.h"

#include <algorithm>
#include <functional>

#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

absl::StatusOr<std::unique_ptr<MpiTransport>> MpiTransport::Create(const MpiProcesses& processes,
                                                                   const ExecutionGraph& graph) {
  int* largest_tag = nullptr;
  int is_known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &is_known);
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const Communication* of = graph.communication(node);
    if (of == nullptr) continue;
    RETURN_IF_ERROR(ShapeOf(graph, node).status());
    const bool is_send = graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
    if (!is_send && graph.type(node) != ChakraProtoMsg::COMM_RECV_NODE) continue;
    if (is_known != 0 && of->tag > *largest_tag) {
      return InvalidArgument(graph.Describe(node), " has the tag ", of->tag,
                             "; this MPI has tags up to ", *largest_tag);
    }
    const int64_t other = is_send ? of->target : of->source;
    if (other >= 0 && other < processes.rank_count()) continue;
    return InvalidArgument("node ", graph.id(node), " of rank ", graph.rank(node),
                           " is a message with rank ", other, ", which does not exist");
  }
  return std::unique_ptr<MpiTransport>(new MpiTransport(processes, graph));
}

void MpiTransport::MakeCommunicators() {
  MPI_Comm_dup(MPI_COMM_WORLD, &messages_);
  MPI_Comm_dup(MPI_COMM_WORLD, &barriers_);
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  // Groups come in the same order on all ranks, so that nobody waits for a rank that is elsewhere.
  for (const ProcessGroup& group : graph_.groups()) {
    MPI_Comm& communicator = groups_.emplace_back(MPI_COMM_NULL);
    const std::vector<int> members(group.ranks.begin(), group.ranks.end());
    if (std::find(members.begin(), members.end(), rank_) == members.end()) continue;
    MPI_Group of_members;
    MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &of_members);
    MPI_Comm_create_group(MPI_COMM_WORLD, of_members, static_cast<int>(groups_.size()),
                          &communicator);
    MPI_Group_free(&of_members);
  }
  MPI_Group_free(&world);
}

absl::Status MpiTransport::Start(NodeIndex node, int64_t /*compute_ns*/) {
  const Communication& of = *graph_.communication(node);
  ASSIGN_OR_RETURN(const TransferShape shape, ShapeOf(graph_, node));
  absl::StatusOr<BufferPool::Buffer> sent = buffers_.Take(shape.send_bytes);
  if (!sent.ok()) return Annotate(sent.status(), graph_.Describe(node));
  absl::StatusOr<BufferPool::Buffer> received = buffers_.Take(shape.receive_bytes);
  if (!received.ok()) return Annotate(received.status(), graph_.Describe(node));
  const Transfer& transfer =
      transfers_.emplace_back(Transfer{node, *std::move(sent), *std::move(received)});
  MPI_Request* request = &requests_.emplace_back(MPI_REQUEST_NULL);
  void* out = transfer.sent.bytes.get();
  void* in = transfer.received.bytes.get();
  const int count = shape.count;
  const MPI_Datatype type = shape.element_bytes == 4 ? MPI_FLOAT : MPI_UINT8_T;
  if (graph_.type(node) == ChakraProtoMsg::COMM_SEND_NODE) {
    MPI_Isend(out, count, type, static_cast<int>(of.target), of.tag, messages_, request);
    return absl::OkStatus();
  }
  if (graph_.type(node) == ChakraProtoMsg::COMM_RECV_NODE) {
    MPI_Irecv(in, count, type, static_cast<int>(of.source), of.tag, messages_, request);
    return absl::OkStatus();
  }
  const MPI_Comm group = groups_[of.group];
  // MPI does nothing for nothing, and ranks would not wait for each other.
  if (shape.send_bytes == 0 && shape.receive_bytes == 0) {
    MPI_Ibarrier(group, request);
    return absl::OkStatus();
  }
  // Chakra traces name no root: it is the first of the group.
  switch (of.type) {
    case ChakraProtoMsg::ALL_REDUCE:
      MPI_Iallreduce(out, in, count, type, MPI_SUM, group, request);
      break;
    case ChakraProtoMsg::REDUCE:
      MPI_Ireduce(out, in, count, type, MPI_SUM, 0, group, request);
      break;
    case ChakraProtoMsg::ALL_GATHER:
      MPI_Iallgather(out, count, type, in, count, type, group, request);
      break;
    case ChakraProtoMsg::GATHER:
      MPI_Igather(out, count, type, in, count, type, 0, group, request);
      break;
    case ChakraProtoMsg::SCATTER:
      MPI_Iscatter(out, count, type, in, count, type, 0, group, request);
      break;
    case ChakraProtoMsg::BROADCAST:
      MPI_Ibcast(out, count, type, 0, group, request);
      break;
    case ChakraProtoMsg::ALL_TO_ALL:
      MPI_Ialltoall(out, count, type, in, count, type, group, request);
      break;
    case ChakraProtoMsg::REDUCE_SCATTER:
    case ChakraProtoMsg::REDUCE_SCATTER_BLOCK:
      MPI_Ireduce_scatter_block(out, in, count, type, MPI_SUM, group, request);
      break;
    default:
      MPI_Ibarrier(group, request);
  }
  return absl::OkStatus();
}

absl::Status MpiTransport::Poll(std::vector<Finished>* finished) {
  int count = 0;
  done_.resize(requests_.size());
  MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(),
               MPI_STATUSES_IGNORE);
  if (count <= 0) return absl::OkStatus();
  // From the back, since the last takes the place of what is removed.
  std::sort(done_.begin(), done_.begin() + count, std::greater<int>());
  for (int i = 0; i < count; ++i) {
    Transfer& transfer = transfers_[done_[i]];
    finished->push_back({transfer.node, std::nullopt});
    buffers_.GiveBack(std::move(transfer.sent));
    buffers_.GiveBack(std::move(transfer.received));
    if (static_cast<size_t>(done_[i]) + 1 < transfers_.size()) {
      transfer = std::move(transfers_.back());
      requests_[done_[i]] = requests_.back();
    }
    transfers_.pop_back();
    requests_.pop_back();
  }
  return absl::OkStatus();
}

void MpiTransport::EnterBarrier() { MPI_Ibarrier(barriers_, &barrier_); }

absl::StatusOr<bool> MpiTransport::Passed() {
  int passed = 0;
  MPI_Test(&barrier_, &passed, MPI_STATUS_IGNORE);
  return passed != 0;
}

}  // namespace meridian
