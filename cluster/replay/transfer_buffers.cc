#include "cluster/replay/transfer_buffers.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

absl::Status NodeError(const ExecutionGraph& graph, NodeIndex node, absl::string_view reason) {
  return InvalidArgument(graph.Describe(node), " ", reason);
}

absl::Status CheckMessage(const ExecutionGraph& graph, NodeIndex node) {
  const Communication& of = *graph.communication(node);
  if (of.source == kNoRank || of.target == kNoRank) {
    return NodeError(graph, node, "does not name the other rank");
  }
  if (of.source == of.target) return NodeError(graph, node, "is a message to its own rank");
  if (of.tag < 0) return NodeError(graph, node, absl::StrCat("has the tag ", of.tag));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TransferShape> ShapeOf(const ExecutionGraph& graph, NodeIndex node) {
  const Communication& of = *graph.communication(node);
  TransferShape shape;
  shape.element_bytes = of.bytes % 4 == 0 ? 4 : 1;
  const int64_t elements = of.bytes / shape.element_bytes;
  int64_t count = elements;
  // How many counts each buffer holds.
  int64_t sent = 1;
  int64_t received = 1;
  if (graph.type(node) != ChakraProtoMsg::COMM_COLL_NODE) {
    RETURN_IF_ERROR(CheckMessage(graph, node));
    const bool sends = graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
    sent = sends ? 1 : 0;
    received = sends ? 0 : 1;
  } else {
    const auto members = static_cast<int64_t>(graph.groups()[of.group].ranks.size());
    const int64_t share = elements / members + (elements % members == 0 ? 0 : 1);
    switch (of.type) {
      case ChakraProtoMsg::ALL_GATHER:
      case ChakraProtoMsg::GATHER:
        received = members;
        break;
      case ChakraProtoMsg::REDUCE_SCATTER:
      case ChakraProtoMsg::REDUCE_SCATTER_BLOCK:
      case ChakraProtoMsg::SCATTER:
        count = share;
        sent = members;
        break;
      case ChakraProtoMsg::ALL_TO_ALL:
        count = share;
        sent = received = members;
        break;
      case ChakraProtoMsg::BROADCAST:
        received = 0;
        break;
      case ChakraProtoMsg::BARRIER:
        count = 0;
        break;
      default:
        break;
    }
  }
  if (count > std::numeric_limits<int>::max()) {
    return NodeError(graph, node,
                     absl::StrCat("moves ", count, " elements; a replay counts to ",
                                  std::numeric_limits<int>::max()));
  }
  shape.count = static_cast<int>(count);
  shape.send_bytes = count * shape.element_bytes * sent;
  shape.receive_bytes = count * shape.element_bytes * received;
  return shape;
}

absl::StatusOr<BufferPool::Buffer> BufferPool::Take(int64_t bytes) {
  if (bytes == 0) return Buffer();
  size_t size = 64;
  while (size < static_cast<size_t>(bytes)) size *= 2;
  std::vector<Buffer>& free = free_[size];
  if (free.empty()) {
    // Not by new, whose failure would end the program without saying what was asked for.
    std::unique_ptr<char[], Free> made(static_cast<char*>(std::calloc(size, 1)));
    if (made == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there is no memory for a buffer of ", FormatByteSize(size), ", beside ",
                       FormatByteSize(allocated_bytes_), " of buffers"));
    }
    allocated_bytes_ += static_cast<int64_t>(size);
    return Buffer{std::move(made), size};
  }
  Buffer buffer = std::move(free.back());
  free.pop_back();
  return buffer;
}

void BufferPool::GiveBack(Buffer buffer) {
  if (buffer.size > 0) free_[buffer.size].push_back(std::move(buffer));
}

}  // namespace meridian
