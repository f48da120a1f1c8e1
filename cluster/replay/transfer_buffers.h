// SPDX-License-Identifier: Apache-2.0
// What a communication of a workload asks of a call of MPI or NCCL: elements and buffers. Buffers are used
// again by later communication, so that a replay needs those of the transfers under way at once.
#ifndef CLUSTER_REPLAY_TRANSFER_BUFFERS_H_
#define CLUSTER_REPLAY_TRANSFER_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

struct TransferShape {
  // 4, which are summed as floats, or 1 for bytes that do not divide by 4.
  int64_t element_bytes = 4;
  // What the call takes as count: of all-gather, reduce-scatter, all-to-all, gather and scatter the
  // share of one member, rounded up; else all elements.
  int count = 0;
  // How large the whole buffers are; 0 where the call has none.
  int64_t send_bytes = 0;
  int64_t receive_bytes = 0;
};

// InvalidArgument names a node that moves more elements than an int counts, a message whose other end
// is its own rank or not named, and a negative tag.
absl::StatusOr<TransferShape> ShapeOf(const ExecutionGraph& graph, NodeIndex node);

// Buffers by size, rounded up to a power of two. Not thread safe.
class BufferPool {
 public:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  struct Buffer {
    std::unique_ptr<char[], Free> bytes;
    size_t size = 0;
  };

  // Returns a buffer of at least that size, of zeros when it is new; an empty one for 0.
  // ResourceExhausted when there is no memory for it.
  absl::StatusOr<Buffer> Take(int64_t bytes);
  void GiveBack(Buffer buffer);

  // Returns the bytes of all buffers that were ever made.
  int64_t allocated_bytes() const { return allocated_bytes_; }

 private:
  std::map<size_t, std::vector<Buffer>> free_;
  int64_t allocated_bytes_ = 0;
};

}  // namespace meridian

#endif  // CLUSTER_REPLAY_TRANSFER_BUFFERS_H_
