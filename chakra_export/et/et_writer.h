// SPDX-License-Identifier: Apache-2.0
// Writes a Chakra execution trace. The same messages give the same bytes on every machine.
//
//   ASSIGN_OR_RETURN(auto writer, EtWriter::Create(file_system, "w.0.et", metadata));
//   RETURN_IF_ERROR(writer->Add(node));
//   RETURN_IF_ERROR(writer->Commit());
#ifndef CHAKRA_EXPORT_ET_ET_WRITER_H_
#define CHAKRA_EXPORT_ET_ET_WRITER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/file_system.h"

namespace ChakraProtoMsg {
class GlobalMetadata;
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

// `version` of the metadata in files made here.
inline constexpr char kEtSchemaVersion[] = "1.0.0";

// Until Commit the file keeps what it had; an uncommitted writer leaves no trace. Not thread safe.
class EtWriter {
 public:
  static absl::StatusOr<std::unique_ptr<EtWriter>> Create(
      FileSystem& file_system, const std::string& path,
      const ChakraProtoMsg::GlobalMetadata& metadata);

  EtWriter(const EtWriter&) = delete;
  EtWriter& operator=(const EtWriter&) = delete;

  // A node of more than kMaxEtRecordBytes is InvalidArgument.
  absl::Status Add(const ChakraProtoMsg::Node& node);

  // Puts all nodes on the disk, in a file that has no name yet. Nothing but Commit may be called
  // afterwards.
  absl::Status Prepare();

  // Gives the file its name. Nothing may be called afterwards.
  absl::Status Commit();

 private:
  explicit EtWriter(std::unique_ptr<AtomicFileWriter> file) : file_(std::move(file)) {}

  std::unique_ptr<AtomicFileWriter> file_;
  // The record being written; a member so that it is allocated once.
  std::string buffer_;
};

// Appends the message's length and bytes to *out: one record. An empty record would be the end of
// the file to Python's reader, so a node of defaults is written with an explicit id 0.
void AppendEtRecord(const ChakraProtoMsg::GlobalMetadata& metadata, std::string* out);
void AppendEtRecord(const ChakraProtoMsg::Node& node, std::string* out);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_WRITER_H_
