// Writes a Chakra execution trace. The same messages give the same bytes on every machine.
//
//   ASSIGN_OR_RETURN(auto writer, EtWriter::Create(file_system, "w.0.et", metadata));
//   RETURN_IF_ERROR(writer->Add(node));
//   RETURN_IF_ERROR(writer->Commit());
#ifndef CHAKRA_EXPORT_ET_ET_WRITER_H_
#define CHAKRA_EXPORT_ET_ET_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/gzip_sink.h"

namespace meridian {

struct EtWriterOptions {
  // ASTRA-sim's own reader seeks in the file and takes no gzip.
  bool gzip = false;
};

// Until Commit the file keeps what it had; an uncommitted writer leaves no trace. Not thread safe.
class EtWriter {
 public:
  static absl::StatusOr<std::unique_ptr<EtWriter>> Create(
      FileSystem& file_system, const std::string& path,
      const ChakraProtoMsg::GlobalMetadata& metadata, const EtWriterOptions& options = {});

  EtWriter(const EtWriter&) = delete;
  EtWriter& operator=(const EtWriter&) = delete;

  // A node of more than kMaxEtRecordBytes is InvalidArgument.
  absl::Status Add(const ChakraProtoMsg::Node& node);

  // Puts all nodes on the disk, under no name yet. Nothing but Commit may be called afterwards.
  absl::Status Prepare();

  // Nothing may be called afterwards.
  absl::Status Commit();

  uint64_t nodes() const { return nodes_; }

 private:
  explicit EtWriter(std::unique_ptr<AtomicFileWriter> file, bool gzip);

  std::unique_ptr<AtomicFileWriter> file_;
  std::unique_ptr<GzipSink> gzip_;
  ByteSink* sink_;
  std::string buffer_;
  uint64_t nodes_ = 0;
};

// Appends the message's length and bytes to *out: one record. An empty record would be the end of
// the file to Python's reader, so a node of defaults is written with an explicit id 0.
void AppendEtRecord(const ChakraProtoMsg::GlobalMetadata& metadata, std::string* out);
void AppendEtRecord(const ChakraProtoMsg::Node& node, std::string* out);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_WRITER_H_
