// SPDX-License-Identifier: Apache-2.0
// Reads a Chakra execution trace record by record:
//
//   | length | GlobalMetadata | length | Node | length | Node | ...      lengths are varints
//
// The format has no footer, so a file that was cut between two records is whole as far as anybody
// can tell; one that was cut anywhere else is an error here, never a shorter trace. A record of
// length zero is a node of defaults. Fields the schema does not know stay in the messages.
//
//   ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, "w.0.et"));
//   RETURN_IF_ERROR(reader.ForEachNode([&](const ChakraProtoMsg::Node& node) { ... }));
#ifndef CHAKRA_EXPORT_ET_ET_READER_H_
#define CHAKRA_EXPORT_ET_ET_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace ChakraProtoMsg {
class GlobalMetadata;
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

// Longer records are neither read nor written: decoded, one can take thirty times its bytes.
inline constexpr uint64_t kMaxEtRecordBytes = uint64_t{64} << 20;

// Is called now and then with the number of bytes read since the last call, so that readers of
// several files can share it.
using EtProgress = std::function<void(uint64_t bytes)>;

struct EtReaderOptions {
  InputFileOptions input;
  // Called as reading proceeds; may be null.
  EtProgress progress;
};

// Holds one node at a time: the file is mapped, a gzip file (told by content) is inflated on disk.
// All errors are "PATH: offset N: reason", where N counts bytes of the inflated file.
class EtReader {
 public:
  // Reads the metadata. A file that ends within a record is DataLoss, here and in Next.
  static absl::StatusOr<EtReader> Open(FileSystem& file_system, const std::string& path,
                                       const EtReaderOptions& options = {});

  // Reads bytes that outlive the reader; errors name them by `path`.
  static absl::StatusOr<EtReader> OverBytes(absl::string_view bytes, const std::string& path,
                                            EtProgress progress = nullptr);

  EtReader(EtReader&&);
  ~EtReader();

  const ChakraProtoMsg::GlobalMetadata& metadata() const { return *metadata_; }

  // Replaces *node by the next one; false at the end of the file. To hand in the same object each
  // time saves allocations. After an error nothing more may be read.
  absl::StatusOr<bool> Next(ChakraProtoMsg::Node* node);

  // Calls fn for each node from here to the end of the file. InvalidArgument from fn is completed
  // with the node's id and offset; any other error of fn is passed on.
  absl::Status ForEachNode(absl::FunctionRef<absl::Status(const ChakraProtoMsg::Node& node)> fn);

  // Goes back to the first node.
  void Rewind() { offset_ = first_node_offset_; }

  // Where the record of the node that Next returned last begins, its length included.
  uint64_t node_offset() const { return node_offset_; }

  const std::string& path() const { return path_; }

  // Whether the file is gzip on disk.
  bool was_compressed() const { return file_.has_value() && file_->was_compressed(); }

  // Returns an error about the node that Next returned last.
  absl::Status NodeError(absl::string_view reason) const { return Error(node_offset_, reason); }

  // Returns an error about the node at a position, from 0. It reads the file up to there, so that a
  // caller who keeps no offsets can still name one.
  absl::Status NodeErrorAt(uint64_t position, absl::string_view reason);

 private:
  EtReader();

  absl::Status ReadMetadata();
  void ReportProgress();
  // Returns the bytes of the next message and moves past them.
  absl::StatusOr<absl::string_view> NextRecord();
  absl::Status Error(uint64_t offset, absl::string_view reason) const;

  std::string path_;
  // Absent for a reader over bytes.
  std::optional<InputFile> file_;
  absl::string_view bytes_;
  uint64_t offset_ = 0;
  uint64_t first_node_offset_ = 0;
  uint64_t node_offset_ = 0;
  EtProgress progress_;
  // Bytes read since progress_ was called last.
  uint64_t unreported_bytes_ = 0;
  std::unique_ptr<ChakraProtoMsg::GlobalMetadata> metadata_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_READER_H_
