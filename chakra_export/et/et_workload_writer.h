// SPDX-License-Identifier: Apache-2.0
// Writes the Chakra execution traces of one workload, the same messages as the same bytes on every
// machine, and puts the files in their places, so that a prefix never holds files of two:
//
//   PREFIX.<rank>.et         of each rank
//   PREFIX.comm_groups.json  the ranks of groups, if there are any beside that of all ranks
//
//   EtWorkloadWriter writer(file_system, prefix);
//   for (...) {
//     ASSIGN_OR_RETURN(EtTrace trace, writer.Begin(rank, metadata));
//     RETURN_IF_ERROR(trace.Add(node));
//     RETURN_IF_ERROR(writer.Finish(std::move(trace)));
//   }
//   ASSIGN_OR_RETURN(const ChakraWorkloadReport report, writer.Commit(rank_count));
#ifndef CHAKRA_EXPORT_ET_ET_WORKLOAD_WRITER_H_
#define CHAKRA_EXPORT_ET_ET_WORKLOAD_WRITER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/run/workload_report.pb.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/file_system.h"

namespace google::protobuf {
class MessageLite;
}

namespace ChakraProtoMsg {
class GlobalMetadata;
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

// `version` of the metadata in files made here.
inline constexpr char kEtSchemaVersion[] = "1.0.0";

// Appends the length and bytes of metadata or a node to *out: one record.
void AppendEtRecord(const google::protobuf::MessageLite& message, std::string* out);

// The trace of one rank while it is being written.
class EtTrace {
 public:
  // Adds a node, whose further fields may be given as they are written. One of more than
  // kMaxEtRecordBytes is InvalidArgument.
  absl::Status Add(const ChakraProtoMsg::Node& node, absl::string_view fields = "");

 private:
  friend class EtWorkloadWriter;

  ChakraWorkloadRank described_;
  std::unique_ptr<AtomicFileWriter> file_;
  // The record being written; a member so that it is allocated once.
  std::string buffer_;
};

// Until the workload is committed its files keep what they had; a writer that is not committed leaves
// no trace. Traces may be begun and finished from several threads.
class EtWorkloadWriter {
 public:
  EtWorkloadWriter(FileSystem& file_system, std::string prefix)
      : file_system_(file_system), prefix_(std::move(prefix)), finished_(file_system) {}

  // Begins the trace of a rank, in a file that has no name yet.
  absl::StatusOr<EtTrace> Begin(int64_t rank, const ChakraProtoMsg::GlobalMetadata& metadata) const;

  // Takes a trace to which nothing will be added any more. The report has them by rank.
  absl::Status Finish(EtTrace trace);

  // A group of a name that is known already must have the same ranks.
  void AddGroups(CommGroups groups) {
    const std::lock_guard<std::mutex> lock(mutex_);
    groups_.merge(groups);
  }

  // Gives the traces their names and writes the groups, if there are any; no file is replaced
  // before all are on the disk. Then removes what an earlier workload left under the prefix and
  // readers would take for part of this one: traces of other ranks from `rank_count` on (smaller
  // ones may have been written by another run), a rank's trace in the other form (.et or .et.gz),
  // and the groups when this workload has none. Without a count these are some ranks of a workload
  // that may have others: only other forms of theirs are removed. The report says which files there are,
  // with how many nodes, and which are gone. Nothing may be called afterwards.
  absl::StatusOr<ChakraWorkloadReport> Commit(std::optional<int64_t> rank_count);

 private:
  // Returns the traces under the prefix that this workload leaves behind.
  absl::StatusOr<std::vector<std::string>> StaleTraces(std::optional<int64_t> rank_count) const;

  FileSystem& file_system_;
  const std::string prefix_;
  // Of what follows.
  std::mutex mutex_;
  CommGroups groups_;
  // Its ranks are the traces that are finished.
  ChakraWorkloadReport report_;
  AtomicFileBatch finished_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_WORKLOAD_WRITER_H_
