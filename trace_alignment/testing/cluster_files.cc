#include "trace_alignment/testing/cluster_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {
namespace {

std::string TracePath(const std::string& folder, int64_t node) {
  return absl::StrCat(folder, "/node", node, ".xplane.pb");
}

// The same bytes for the same message, always: maps in the order of their keys.
std::string Serialize(const XSpaceProto& profile) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  MERIDIAN_CHECK(profile.SerializeToCodedStream(&output));
  output.Trim();
  return bytes;
}

// Writes the profile plane by plane: the concatenated parts are the message.
absl::Status WriteProfile(FileSystem& file_system, const SyntheticCluster& cluster, int64_t node,
                          const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, AtomicFileWriter::Create(file_system, path));
  absl::Status status;
  ForEachRecordedPlane(cluster, node, [&](XPlaneProto plane) {
    XSpaceProto part;
    *part.add_planes() = std::move(plane);
    if (status.ok()) status = file->Append(Serialize(part));
  });
  RETURN_IF_ERROR(status);
  XSpaceProto rest;
  rest.add_hostnames(ClusterHostName(node));
  RETURN_IF_ERROR(file->Append(Serialize(rest)));
  return file->Commit();
}

// Offsets and rates at true time 0; wander adds to them later.
std::string TruthJson(const SyntheticCluster& cluster) {
  std::string out = absl::StrCat("{\"start_ns\": ", cluster.options().start_ns, ", \"nodes\": [");
  for (int64_t n = 0; n < cluster.options().nodes; ++n) {
    const ClusterNode& node = cluster.node(n);
    absl::StrAppendFormat(&out,
                          "%s\n  {\"node_id\": %d, \"offset_ns\": %d, \"drift_ppm\": %.3f, "
                          "\"tracer_drift_ppm\": %.3f, \"wanders\": %s, "
                          "\"start_walltime_ns\": %d, \"start_gpu_ns\": %d}",
                          n == 0 ? "" : ",", n, node.host.offset_ps / 1000,
                          static_cast<double>(node.host.drift_ppb) * 1e-3,
                          static_cast<double>(node.tracer.drift_ppb) * 1e-3,
                          node.host.wander_ps.empty() ? "false" : "true", node.start_walltime_ns,
                          node.start_gpu_ns);
  }
  absl::StrAppend(&out, "\n]}\n");
  return out;
}

}  // namespace

std::vector<std::string> ClusterTracePaths(const SyntheticCluster& cluster,
                                           const std::string& folder) {
  std::vector<std::string> paths;
  for (int64_t n = 0; n < cluster.options().nodes; ++n) paths.push_back(TracePath(folder, n));
  return paths;
}

std::string SnapshotsPath(const std::string& folder, int64_t node) {
  return absl::StrCat(folder, "/node", node, ".snapshots.jsonl");
}

std::string OffsetsPath(const std::string& folder) {
  return absl::StrCat(folder, "/offsets.jsonl");
}

std::string ProbeWindowsPath(const std::string& folder, int64_t node) {
  return absl::StrCat(folder, "/probe_windows_node", node, ".jsonl");
}

std::string ProbesPath(const std::string& folder) { return absl::StrCat(folder, "/probes.jsonl"); }

std::string TruthPath(const std::string& folder) { return absl::StrCat(folder, "/truth.json"); }

absl::Status WriteCluster(FileSystem& file_system, const SyntheticCluster& cluster,
                          const ClusterFilesOptions& options, const std::string& folder) {
  const auto write = [&](const std::string& path, const std::string& contents) {
    return WriteOutput(file_system, path, contents);
  };
  RETURN_IF_ERROR(file_system.CreateDirectories(folder));
  for (int64_t n = 0; n < cluster.options().nodes; ++n) {
    if (options.progress) options.progress(n);
    RETURN_IF_ERROR(WriteProfile(file_system, cluster, n, TracePath(folder, n)));
    if (options.snapshots.has_value()) {
      RETURN_IF_ERROR(
          write(SnapshotsPath(folder, n), SnapshotPairsJsonl(cluster, n, *options.snapshots)));
    }
    if (options.probe_windows.has_value()) {
      RETURN_IF_ERROR(write(ProbeWindowsPath(folder, n),
                            ProbeWindowsJsonl(cluster, n, *options.probe_windows)));
    }
  }
  if (options.offsets.has_value()) {
    RETURN_IF_ERROR(write(OffsetsPath(folder), OffsetsJsonl(cluster, *options.offsets)));
  }
  if (options.probes.has_value()) {
    RETURN_IF_ERROR(write(ProbesPath(folder), TwoWayProbesJsonl(cluster, *options.probes)));
  }
  return write(TruthPath(folder), TruthJson(cluster));
}

}  // namespace meridian
