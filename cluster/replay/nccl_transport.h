// SPDX-License-Identifier: Apache-2.0
// Communication over NCCL and computation as kernels that last as long as asked for, all on one
// GPU's streams: work is put there ahead of time, and events let streams wait for each other.
//
//   stream 7    [kernel] [kernel]------+        [kernel]
//                                      v event   ^ event
//   stream 20                         [all-reduce]
//
// Each resource of the rank is a stream, and so are the receives from each rank, which wait without
// holding others up. Each group has a communicator, and each pair of sender and receiver. What waits
// for all ranks outside of NCCL goes over another transport.
#ifndef CLUSTER_REPLAY_NCCL_TRANSPORT_H_
#define CLUSTER_REPLAY_NCCL_TRANSPORT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/graph/execution_graph.h"
#include "cluster/replay/gpu_libraries.h"
#include "cluster/replay/rank_replayer.h"
#include "cluster/replay/transfer_buffers.h"

namespace meridian {

class NcclTransport : public Transport {
 public:
  // The graph and the host's transport, which has accepted it, must outlive the transport. Of the
  // GPUs of this host it takes the one of that number, counted round. InvalidArgument for messages
  // that are received in another order than sent; Unavailable for what the libraries say.
  static absl::StatusOr<std::unique_ptr<NcclTransport>> Create(const ExecutionGraph& graph,
                                                               int64_t device, Transport* host);
  ~NcclTransport() override;

  // Returns what one rank hands to all for MakeCommunicators.
  absl::StatusOr<std::string> NewIds() const;
  // All ranks call this before anything else, with the same ids; it waits for the others.
  absl::Status MakeCommunicators(absl::string_view ids);

  int64_t rank() const override { return host_.rank(); }
  int64_t rank_count() const override { return host_.rank_count(); }
  bool IsQueued(NodeIndex node) const override;
  absl::Status Start(NodeIndex node, int64_t compute_ns) override;
  absl::Status Poll(std::vector<Finished>* finished) override;
  bool IsAboutToEnd(NodeIndex node) const override;
  void Rest() override;
  void EnterBarrier() override { host_.EnterBarrier(); }
  absl::StatusOr<bool> Passed() override;

 private:
  // Whose stream a node runs on: a resource, or the rank that messages come from.
  using StreamKey = std::pair<bool, int64_t>;
  struct Stream {
    GpuHandle handle = nullptr;
    // What is under way, the first one first.
    std::deque<NodeIndex> nodes;
    // Where kernels keep when the last one should end, on the GPU's clock.
    GpuAddress last_end = 0;
    // Whether the last node of this step so far is a computation.
    bool computes = false;
  };
  // Null where a kernel says it.
  struct UnderWay {
    GpuHandle start = nullptr;
    GpuHandle end = nullptr;
  };
  // When a kernel began, should end and ended, on the GPU's clock. The GPU writes it into the host's
  // memory: when it should end once it has begun, the end last; they are 0 until then.
  struct KernelTimes {
    std::atomic<int64_t> start_ns;
    std::atomic<int64_t> due_ns;
    std::atomic<int64_t> end_ns;
  };
  static_assert(sizeof(KernelTimes) == 3 * sizeof(int64_t));
  struct Communicator {
    std::vector<int64_t> ranks;
    // Null on ranks that are no members.
    GpuHandle handle = nullptr;
  };

  NcclTransport(const ExecutionGraph& graph, const CudaDriver& cuda, const Nccl& nccl,
                Transport* host)
      : graph_(graph), cuda_(cuda), nccl_(nccl), host_(*host) {}

  absl::Status ListCommunicators();
  absl::Status OpenDevice(int64_t device);
  // Makes what must not be made while kernels wait for other ranks.
  absl::Status MakeStreamsAndBuffers();
  absl::Status MeasureOverhead();
  StreamKey StreamOf(NodeIndex node) const;
  absl::StatusOr<GpuHandle> TakeEvent();
  absl::Status Record(GpuHandle event, const Stream& stream) const;
  absl::Status Compute(int64_t compute_ns, bool follows, KernelTimes* times, const Stream& stream);
  absl::Status Communicate(NodeIndex node, GpuHandle stream);
  // Sends to and receives from the members for which the functions are true, at once.
  absl::Status Exchange(const Communicator& communicator, const TransferShape& shape,
                        absl::FunctionRef<bool(int member)> sends,
                        absl::FunctionRef<bool(int member)> receives, GpuHandle stream);
  absl::StatusOr<int64_t> ElapsedNs(GpuHandle begin, GpuHandle end) const;
  absl::StatusOr<std::optional<ReplayedTimes>> TimesIfOver(NodeIndex node,
                                                           const UnderWay& work) const;
  absl::Status CheckCommunicators() const;

  const ExecutionGraph& graph_;
  const CudaDriver cuda_;
  const Nccl nccl_;
  Transport& host_;
  // Those of the groups of the graph, then those of the pairs.
  std::vector<Communicator> communicators_;
  std::map<std::pair<int64_t, int64_t>, size_t> pairs_;
  // The GPU whose context is held.
  std::optional<int> opened_;
  GpuHandle kernel_ = nullptr;
  std::map<StreamKey, Stream> streams_;
  // All transfers share them: what is in them does not matter.
  GpuAddress sent_ = 0;
  GpuAddress received_ = 0;
  // The rank's nodes are those from here on; when each one's kernel ran, then one that is no node's.
  NodeIndex first_node_ = kNoNodeIndex;
  absl::Span<KernelTimes> kernel_times_;
  // By node: whether one on another stream waits for it.
  std::vector<bool> needs_event_;
  // What a kernel takes beside its duration.
  int64_t overhead_ns_ = 0;
  std::map<NodeIndex, UnderWay> under_way_;
  std::vector<GpuHandle> free_events_;
  // When the last barrier was in Unix time and on the GPU's clock.
  int64_t base_ns_ = 0;
  int64_t base_gpu_ns_ = 0;
  // The last event whose time is known, and that. Times between events are floats, so coarse ones
  // between distant events.
  GpuHandle known_event_ = nullptr;
  int64_t known_event_ns_ = 0;
  // Whether the host has computation of its own, so that it does not sleep.
  bool host_computes_ = false;
  int64_t idle_polls_ = 0;
};

}  // namespace meridian

#endif  // CLUSTER_REPLAY_NCCL_TRANSPORT_H_
