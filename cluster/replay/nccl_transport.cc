#include "cluster/replay/nccl_transport.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// One thread that watches the GPU's clock until so many nanoseconds have passed since it started, or
// since the kernel before it should have ended: what launches take is made up for. It writes down
// its KernelTimes, since events around each kernel would take longer than short kernels do.
constexpr char kWaitingKernel[] = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry wait_ns(.param .u64 ends, .param .u64 times, .param .u64 duration,
                        .param .u32 follows)
{
  .reg .u64 %end, %now, %duration, %ends, %times;
  .reg .u32 %follows;
  .reg .pred %before;
  mov.u64 %now, %globaltimer;
  mov.u64 %end, %now;
  ld.param.u64 %ends, [ends];
  cvta.to.global.u64 %ends, %ends;
  ld.param.u64 %times, [times];
  cvta.to.global.u64 %times, %times;
  ld.param.u64 %duration, [duration];
  ld.param.u32 %follows, [follows];
  setp.ne.u32 %before, %follows, 0;
  @%before ld.global.u64 %end, [%ends];
  add.u64 %end, %end, %duration;
  st.global.u64 [%ends], %end;
  st.volatile.global.u64 [%times], %now;
  st.volatile.global.u64 [%times+8], %end;
again:
  mov.u64 %now, %globaltimer;
  setp.lt.u64 %before, %now, %end;
  @%before bra again;
  membar.sys;
  st.volatile.global.u64 [%times+16], %now;
  ret;
}
)";

constexpr unsigned kNonBlocking = 1;
constexpr unsigned kMappedForAll = 3;
// How often the clocks of host and GPU are read together, the closest pair counts.
constexpr int kClockReadings = 5;
// How long before its kernel starts a host calls NCCL, about: the call and the launch take that.
constexpr int64_t kCallNs = 20'000;
// How long the host sleeps when all is with the GPU.
constexpr long kPauseNs = 20'000;  // NOLINT: the type of tv_nsec
// Polls that find nothing between two looks for errors of NCCL.
constexpr int64_t kPollsPerCheck = 1000;

int64_t UnixNs() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

// An address of the GPU as NCCL takes it.
char* Pointer(GpuAddress address) { return reinterpret_cast<char*>(address); }  // NOLINT

bool IsSend(const ExecutionGraph& graph, NodeIndex node) {
  return graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
}

bool IsReceive(const ExecutionGraph& graph, NodeIndex node) {
  return graph.type(node) == ChakraProtoMsg::COMM_RECV_NODE;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclTransport>> NcclTransport::Create(const ExecutionGraph& graph,
                                                                     int64_t device,
                                                                     Transport* host) {
  ASSIGN_OR_RETURN(const CudaDriver cuda, LoadCudaDriver());
  ASSIGN_OR_RETURN(const Nccl nccl, LoadNccl());
  std::unique_ptr<NcclTransport> transport(new NcclTransport(graph, cuda, nccl, host));
  RETURN_IF_ERROR(transport->ListCommunicators());
  RETURN_IF_ERROR(transport->OpenDevice(device));
  RETURN_IF_ERROR(transport->MakeStreamsAndBuffers());
  RETURN_IF_ERROR(transport->MeasureOverhead());
  return transport;
}

NcclTransport::~NcclTransport() {
  for (const Communicator& communicator : communicators_) {
    if (communicator.handle != nullptr) nccl_.CommDestroy(communicator.handle);
  }
  // With it go streams, events and memory.
  if (opened_.has_value()) cuda_.DevicePrimaryCtxRelease(*opened_);
}

absl::Status NcclTransport::ListCommunicators() {
  for (const ProcessGroup& group : graph_.groups()) {
    communicators_.push_back({group.ranks, nullptr});
  }
  // Of each pair the tags by id, as the sender and as the receiver has them.
  std::map<std::pair<int64_t, int64_t>, std::map<bool, std::map<uint64_t, int32_t>>> tags;
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    if (!IsMessage(graph_.type(node))) continue;
    const Communication& of = *graph_.communication(node);
    tags[{of.source, of.target}][IsSend(graph_, node)][graph_.id(node)] = of.tag;
  }
  for (auto& [pair, ends] : tags) {
    const auto has_same_tag = [](const auto& a, const auto& b) { return a.second == b.second; };
    const auto& sent = ends[true];
    const auto& received = ends[false];
    if (!std::equal(sent.begin(), sent.end(), received.begin(), received.end(), has_same_tag)) {
      return InvalidArgument("rank ", pair.second, " receives the messages of rank ", pair.first,
                             " in another order than they are sent; NCCL has no tags");
    }
    pairs_[pair] = communicators_.size();
    communicators_.push_back({{pair.first, pair.second}, nullptr});
  }
  return absl::OkStatus();
}

absl::Status NcclTransport::OpenDevice(int64_t device) {
  RETURN_IF_ERROR(cuda_.Check(cuda_.Init(0), "cuInit"));
  int count = 0;
  RETURN_IF_ERROR(cuda_.Check(cuda_.DeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0) return absl::UnavailableError("--backend=nccl: there is no GPU");
  int opened = 0;
  RETURN_IF_ERROR(
      cuda_.Check(cuda_.DeviceGet(&opened, static_cast<int>(device % count)), "cuDeviceGet"));
  GpuHandle context = nullptr;
  RETURN_IF_ERROR(
      cuda_.Check(cuda_.DevicePrimaryCtxRetain(&context, opened), "cuDevicePrimaryCtxRetain"));
  opened_ = opened;
  RETURN_IF_ERROR(cuda_.Check(cuda_.CtxSetCurrent(context), "cuCtxSetCurrent"));
  GpuHandle module = nullptr;
  RETURN_IF_ERROR(cuda_.Check(cuda_.ModuleLoadData(&module, kWaitingKernel), "cuModuleLoadData"));
  return cuda_.Check(cuda_.ModuleGetFunction(&kernel_, module, "wait_ns"), "cuModuleGetFunction");
}

absl::Status NcclTransport::MakeStreamsAndBuffers() {
  // Barriers move something, too.
  int64_t sent = sizeof(float);
  int64_t received = sizeof(float);
  needs_event_.assign(graph_.node_count(), false);
  first_node_ = kNoNodeIndex;
  size_t node_count = 0;
  for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
    if (graph_.rank(node) != rank()) continue;
    first_node_ = std::min(first_node_, node);
    ++node_count;
    if (!IsQueued(node)) {
      host_computes_ = true;
      continue;
    }
    streams_[StreamOf(node)];
    for (const NodeIndex source : graph_.dependencies(node)) {
      if (IsQueued(source) && StreamOf(source) != StreamOf(node)) needs_event_[source] = true;
    }
    if (graph_.communication(node) == nullptr) continue;
    ASSIGN_OR_RETURN(const TransferShape shape, ShapeOf(graph_, node));
    sent = std::max(sent, shape.send_bytes);
    received = std::max(received, shape.receive_bytes);
  }
  // The first one, for what is no node's.
  streams_[{false, -1}];
  for (auto& [key, stream] : streams_) {
    RETURN_IF_ERROR(
        cuda_.Check(cuda_.StreamCreate(&stream.handle, kNonBlocking), "cuStreamCreate"));
    RETURN_IF_ERROR(cuda_.Check(cuda_.MemAlloc(&stream.last_end, sizeof(uint64_t)), "cuMemAlloc"));
  }
  void* times = nullptr;
  RETURN_IF_ERROR(
      cuda_.Check(cuda_.MemHostAlloc(&times, (node_count + 1) * sizeof(KernelTimes), kMappedForAll),
                  "cuMemHostAlloc"));
  kernel_times_ = absl::MakeSpan(static_cast<KernelTimes*>(times), node_count + 1);
  std::uninitialized_value_construct_n(kernel_times_.data(), kernel_times_.size());
  for (const auto& [address, bytes] : {std::pair(&sent_, sent), std::pair(&received_, received)}) {
    RETURN_IF_ERROR(cuda_.Check(cuda_.MemAlloc(address, bytes),
                                absl::StrCat("a buffer of ", bytes, " bytes on the GPU")));
    RETURN_IF_ERROR(cuda_.Check(cuda_.MemsetD8(*address, 0, bytes), "cuMemsetD8"));
  }
  return absl::OkStatus();
}

absl::Status NcclTransport::MeasureOverhead() {
  constexpr int kKernels = 100;
  constexpr int64_t kKernelNs = 20'000;
  const Stream& stream = streams_.begin()->second;
  ASSIGN_OR_RETURN(GpuHandle begin, TakeEvent());
  ASSIGN_OR_RETURN(GpuHandle end, TakeEvent());
  // The least counts: the GPU may have to wake up, and others may use it. Behind a long kernel no
  // other waits for its launch.
  int64_t least_ns = std::numeric_limits<int64_t>::max();
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto compute = [&](int64_t compute_ns) {
      return Compute(compute_ns, /*follows=*/false, &kernel_times_.back(), stream);
    };
    RETURN_IF_ERROR(compute(kKernels * kKernelNs));
    RETURN_IF_ERROR(Record(begin, stream));
    for (int i = 0; i < kKernels; ++i) RETURN_IF_ERROR(compute(kKernelNs));
    RETURN_IF_ERROR(Record(end, stream));
    RETURN_IF_ERROR(cuda_.Check(cuda_.EventSynchronize(end), "cuEventSynchronize"));
    ASSIGN_OR_RETURN(const int64_t took_ns, ElapsedNs(begin, end));
    least_ns = std::min(least_ns, took_ns / kKernels - kKernelNs);
  }
  overhead_ns_ = std::max<int64_t>(0, least_ns);
  free_events_ = {begin, end};
  return absl::OkStatus();
}

absl::StatusOr<std::string> NcclTransport::NewIds() const {
  std::string ids;
  for (size_t i = 0; i < communicators_.size(); ++i) {
    Nccl::UniqueId id;
    RETURN_IF_ERROR(nccl_.Check(nccl_.GetUniqueId(&id), "ncclGetUniqueId"));
    ids.append(id.bytes, sizeof(id.bytes));
  }
  return ids;
}

absl::Status NcclTransport::MakeCommunicators(absl::string_view ids) {
  // In the same order on all ranks, so that nobody waits for a rank that is elsewhere.
  for (Communicator& communicator : communicators_) {
    Nccl::UniqueId id;
    std::memcpy(id.bytes, ids.data(), sizeof(id.bytes));
    ids.remove_prefix(sizeof(id.bytes));
    const std::vector<int64_t>& ranks = communicator.ranks;
    const auto self = std::find(ranks.begin(), ranks.end(), rank());
    if (self == ranks.end()) continue;
    RETURN_IF_ERROR(
        nccl_.Check(nccl_.CommInitRank(&communicator.handle, static_cast<int>(ranks.size()), id,
                                       static_cast<int>(self - ranks.begin())),
                    "ncclCommInitRank"));
  }
  return absl::OkStatus();
}

bool NcclTransport::IsQueued(NodeIndex node) const {
  return graph_.communication(node) != nullptr ||
         graph_.resource(node).kind != ResourceKind::kHostThread;
}

NcclTransport::StreamKey NcclTransport::StreamOf(NodeIndex node) const {
  if (IsReceive(graph_, node)) return {true, graph_.communication(node)->source};
  return {false, graph_.resource_index(node)};
}

absl::StatusOr<GpuHandle> NcclTransport::TakeEvent() {
  GpuHandle event = nullptr;
  if (free_events_.empty()) {
    RETURN_IF_ERROR(cuda_.Check(cuda_.EventCreate(&event, 0), "cuEventCreate"));
  } else {
    event = free_events_.back();
    free_events_.pop_back();
  }
  return event;
}

absl::Status NcclTransport::Record(GpuHandle event, const Stream& stream) const {
  return cuda_.Check(cuda_.EventRecord(event, stream.handle), "cuEventRecord");
}

absl::Status NcclTransport::Start(NodeIndex node, int64_t compute_ns) {
  const StreamKey key = StreamOf(node);
  Stream& stream = streams_.at(key);
  // Whether the node begins when the stream's last computation ends.
  bool follows = stream.computes;
  for (const NodeIndex source : graph_.dependencies(node)) {
    if (IsQueued(source) && StreamOf(source) == key) continue;
    follows = false;
    const auto found = under_way_.find(source);
    if (found == under_way_.end()) continue;
    RETURN_IF_ERROR(cuda_.Check(cuda_.StreamWaitEvent(stream.handle, found->second.end, 0),
                                "cuStreamWaitEvent"));
  }
  UnderWay& added = under_way_[node];
  stream.nodes.push_back(node);
  stream.computes = graph_.communication(node) == nullptr;
  absl::Status started;
  if (stream.computes) {
    started = Compute(compute_ns, follows, &kernel_times_[node - first_node_], stream);
  } else {
    ASSIGN_OR_RETURN(added.start, TakeEvent());
    RETURN_IF_ERROR(Record(added.start, stream));
    started = Communicate(node, stream.handle);
  }
  if (!started.ok()) return Annotate(started, graph_.Describe(node));
  if (stream.computes && !needs_event_[node]) return absl::OkStatus();
  ASSIGN_OR_RETURN(added.end, TakeEvent());
  return Record(added.end, stream);
}

absl::Status NcclTransport::Compute(int64_t compute_ns, bool follows, KernelTimes* times,
                                    const Stream& stream) {
  times->due_ns = 0;
  times->end_ns = 0;
  GpuAddress ends = stream.last_end;
  auto duration =
      static_cast<uint64_t>(std::max<int64_t>(0, compute_ns - (follows ? 0 : overhead_ns_)));
  auto follows_last = static_cast<uint32_t>(follows);
  // Such memory has one address for host and GPU.
  void* arguments[] = {&ends, &times, &duration, &follows_last};
  return cuda_.Check(
      cuda_.LaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream.handle, arguments, nullptr),
      "cuLaunchKernel");
}

absl::Status NcclTransport::Communicate(NodeIndex node, GpuHandle stream) {
  const Communication& of = *graph_.communication(node);
  ASSIGN_OR_RETURN(const TransferShape shape, ShapeOf(graph_, node));
  const auto count = static_cast<size_t>(shape.count);
  const int type = shape.element_bytes == 4 ? Nccl::kFloat32 : Nccl::kUint8;
  const char* sent = Pointer(sent_);
  char* received = Pointer(received_);
  if (IsMessage(graph_.type(node))) {
    GpuHandle pair = communicators_[pairs_.at({of.source, of.target})].handle;
    // NCCL does nothing for nothing. The sender is the first of the pair.
    const size_t elements = std::max<size_t>(1, count);
    return IsReceive(graph_, node)
               ? nccl_.Check(nccl_.Receive(received, elements, type, 0, pair, stream), "ncclRecv")
               : nccl_.Check(nccl_.Send(sent, elements, type, 1, pair, stream), "ncclSend");
  }
  const Communicator& group = communicators_[of.group];
  GpuHandle handle = group.handle;
  // Chakra traces name no root: it is the first of the group.
  const auto all = [](int) { return true; };
  const auto root = [](int member) { return member == 0; };
  const auto from_root = [&](int) { return group.ranks[0] == rank(); };
  if (shape.send_bytes == 0 && shape.receive_bytes == 0) {
    return nccl_.Check(
        nccl_.AllReduce(sent, received, 1, Nccl::kFloat32, Nccl::kSum, handle, stream),
        "ncclAllReduce");
  }
  switch (of.type) {
    case ChakraProtoMsg::REDUCE:
      return nccl_.Check(nccl_.Reduce(sent, received, count, type, Nccl::kSum, 0, handle, stream),
                         "ncclReduce");
    case ChakraProtoMsg::ALL_GATHER:
      return nccl_.Check(nccl_.AllGather(sent, received, count, type, handle, stream),
                         "ncclAllGather");
    case ChakraProtoMsg::GATHER:
      return Exchange(group, shape, root, from_root, stream);
    case ChakraProtoMsg::SCATTER:
      return Exchange(group, shape, from_root, root, stream);
    case ChakraProtoMsg::BROADCAST:
      return nccl_.Check(nccl_.Broadcast(sent, Pointer(sent_), count, type, 0, handle, stream),
                         "ncclBroadcast");
    case ChakraProtoMsg::ALL_TO_ALL:
      return Exchange(group, shape, all, all, stream);
    case ChakraProtoMsg::REDUCE_SCATTER:
    case ChakraProtoMsg::REDUCE_SCATTER_BLOCK:
      return nccl_.Check(
          nccl_.ReduceScatter(sent, received, count, type, Nccl::kSum, handle, stream),
          "ncclReduceScatter");
    default:
      return nccl_.Check(nccl_.AllReduce(sent, received, count, type, Nccl::kSum, handle, stream),
                         "ncclAllReduce");
  }
}

absl::Status NcclTransport::Exchange(const Communicator& communicator, const TransferShape& shape,
                                     absl::FunctionRef<bool(int member)> sends,
                                     absl::FunctionRef<bool(int member)> receives,
                                     GpuHandle stream) {
  const int type = shape.element_bytes == 4 ? Nccl::kFloat32 : Nccl::kUint8;
  const int64_t share_bytes = shape.count * shape.element_bytes;
  RETURN_IF_ERROR(nccl_.Check(nccl_.GroupStart(), "ncclGroupStart"));
  for (int member = 0; member < static_cast<int>(communicator.ranks.size()); ++member) {
    if (sends(member)) {
      RETURN_IF_ERROR(nccl_.Check(nccl_.Send(Pointer(sent_) + member * share_bytes, shape.count,
                                             type, member, communicator.handle, stream),
                                  "ncclSend"));
    }
    if (receives(member)) {
      RETURN_IF_ERROR(
          nccl_.Check(nccl_.Receive(Pointer(received_) + member * share_bytes, shape.count, type,
                                    member, communicator.handle, stream),
                      "ncclRecv"));
    }
  }
  return nccl_.Check(nccl_.GroupEnd(), "ncclGroupEnd");
}

absl::StatusOr<std::optional<ReplayedTimes>> NcclTransport::TimesIfOver(
    NodeIndex node, const UnderWay& work) const {
  if (work.start == nullptr) {
    const KernelTimes& times = kernel_times_[node - first_node_];
    const int64_t end_ns = times.end_ns;
    if (end_ns == 0) return std::nullopt;
    return ReplayedTimes{base_ns_ + times.start_ns - base_gpu_ns_,
                         base_ns_ + end_ns - base_gpu_ns_};
  }
  const int state = cuda_.EventQuery(work.end);
  if (state == CudaDriver::kNotReady) return std::nullopt;
  RETURN_IF_ERROR(cuda_.Check(state, "cuEventQuery"));
  ASSIGN_OR_RETURN(const int64_t since_known_ns, ElapsedNs(known_event_, work.end));
  ASSIGN_OR_RETURN(const int64_t took_ns, ElapsedNs(work.start, work.end));
  const int64_t end_ns = known_event_ns_ + since_known_ns;
  return ReplayedTimes{end_ns - took_ns, end_ns};
}

absl::Status NcclTransport::Poll(std::vector<Finished>* finished) {
  const size_t before = finished->size();
  for (auto& [key, stream] : streams_) {
    while (!stream.nodes.empty()) {
      const auto found = under_way_.find(stream.nodes.front());
      ASSIGN_OR_RETURN(const std::optional<ReplayedTimes> times,
                       TimesIfOver(found->first, found->second));
      if (!times.has_value()) break;
      finished->push_back({found->first, *times});
      if (found->second.start != nullptr && times->end_ns > known_event_ns_) {
        std::swap(known_event_, found->second.end);
        known_event_ns_ = times->end_ns;
      }
      for (GpuHandle event : {found->second.start, found->second.end}) {
        if (event != nullptr) free_events_.push_back(event);
      }
      stream.nodes.pop_front();
      under_way_.erase(found);
    }
  }
  if (finished->size() > before) return absl::OkStatus();
  return ++idle_polls_ % kPollsPerCheck == 0 ? CheckCommunicators() : absl::OkStatus();
}

bool NcclTransport::IsAboutToEnd(NodeIndex node) const {
  const int64_t due_ns = kernel_times_[node - first_node_].due_ns;
  return due_ns != 0 && due_ns - base_gpu_ns_ - kCallNs <= UnixNs() - base_ns_;
}

void NcclTransport::Rest() {
  // NCCL's own threads need the processor more.
  const timespec pause = {0, kPauseNs};
  if (host_computes_) {
    Transport::Rest();
  } else {
    nanosleep(&pause, nullptr);
  }
}

absl::Status NcclTransport::CheckCommunicators() const {
  for (const Communicator& communicator : communicators_) {
    if (communicator.handle == nullptr) continue;
    int error = 0;
    RETURN_IF_ERROR(
        nccl_.Check(nccl_.CommGetAsyncError(communicator.handle, &error), "ncclCommGetAsyncError"));
    RETURN_IF_ERROR(nccl_.Check(error, "NCCL while it communicates"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> NcclTransport::ElapsedNs(GpuHandle begin, GpuHandle end) const {
  float ms = 0;
  RETURN_IF_ERROR(cuda_.Check(cuda_.EventElapsedTime(&ms, begin, end), "cuEventElapsedTime"));
  return std::llround(static_cast<double>(ms) * 1e6);
}

absl::StatusOr<bool> NcclTransport::Passed() {
  ASSIGN_OR_RETURN(const bool passed, host_.Passed());
  if (!passed) return false;
  for (auto& [key, stream] : streams_) stream.computes = false;
  const Stream& stream = streams_.begin()->second;
  int64_t best_ns = std::numeric_limits<int64_t>::max();
  KernelTimes& times = kernel_times_.back();
  for (int i = 0; i < kClockReadings; ++i) {
    ASSIGN_OR_RETURN(GpuHandle event, TakeEvent());
    const int64_t begin_ns = UnixNs();
    RETURN_IF_ERROR(Compute(0, /*follows=*/false, &times, stream));
    RETURN_IF_ERROR(Record(event, stream));
    RETURN_IF_ERROR(cuda_.Check(cuda_.EventSynchronize(event), "cuEventSynchronize"));
    const int64_t took_ns = UnixNs() - begin_ns;
    if (took_ns < best_ns) {
      best_ns = took_ns;
      base_ns_ = begin_ns + took_ns / 2;
      base_gpu_ns_ = times.end_ns;
      std::swap(known_event_, event);
    }
    if (event != nullptr) free_events_.push_back(event);
  }
  known_event_ns_ = base_ns_;
  return true;
}

}  // namespace meridian
