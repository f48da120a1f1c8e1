#include "pipeline/combine_run.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "pipeline/node_bytes.h"
#include "pipeline/waiting_summary.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/aligner/kineto_aligner.h"
#include "trace_alignment/aligner/xspace_aligner.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/skew.h"
#include "trace_alignment/combine/kineto_merger.h"
#include "trace_alignment/combine/viewer_planes.h"
#include "trace_alignment/probes/probe_offsets.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/files/unfinished_files.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/base/wire/packed_bytes.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/kineto/kineto_xspace.h"
#include "xla_profiler/trace_export/trace_export.h"
#include "xla_profiler/trace_kind/trace_kind.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/node_ids.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

// The year 2001: earlier times do not count from 1970.
constexpr int64_t kFirstUnixNs = 1'000'000'000'000'000'000;
constexpr int64_t kLastUnixNs = 9'000'000'000'000'000'000;

// The largest by magnitude.
int64_t LargestCorrectionNs(const AlignmentStats& stats) {
  return std::abs(stats.min_correction_ns()) > std::abs(stats.max_correction_ns())
             ? stats.min_correction_ns()
             : stats.max_correction_ns();
}

// Returns the host that TensorBoard's handler of PyTorch names its files after:
// <host>_<process>.<time>.pt.trace.json; or NCCL Inspector its logs, <host>-pid<process>.log. Empty
// for other names.
std::string HostOfKinetoFile(absl::string_view path) {
  absl::string_view name = path.substr(path.rfind('/') + 1);
  absl::ConsumeSuffix(&name, ".gz");
  if (absl::ConsumeSuffix(&name, ".log")) {
    const size_t pid = name.rfind("-pid");
    return pid == absl::string_view::npos ? "" : std::string(name.substr(0, pid));
  }
  if (!absl::ConsumeSuffix(&name, ".pt.trace.json")) return "";
  name = name.substr(0, name.rfind('.'));
  const size_t underscore = name.rfind('_');
  return underscore == absl::string_view::npos ? "" : std::string(name.substr(0, underscore));
}

// Returns the last end of an event, Unix time.
int64_t LastEndNs(const EventTable& table) {
  int64_t last_ps = 0;
  for (EventRow row = 0; row < table.size(); ++row) {
    last_ps = std::max(last_ps, table.start_ps(row) + table.duration_ps(row));
  }
  return table.base_ns() + last_ps / kPsPerNs;
}

// Appends to a file that has no name.
class FileSink : public ByteSink {
 public:
  // The file must outlive this object.
  explicit FileSink(WritableFile& file) : file_(file) {}

  absl::Status Append(absl::string_view data) override { return file_.Append(data); }

 private:
  WritableFile& file_;
};

class CombinePipeline {
 public:
  CombinePipeline(FileSystem& file_system, const CombineRequest& request, RunProcesses& processes,
                  OutputFiles& outputs)
      : file_system_(file_system), request_(request), processes_(processes), outputs_(outputs) {}

  absl::StatusOr<CombineReport> Run() {
    RETURN_IF_ERROR(processes_.Agree(ReadOwn()));
    RETURN_IF_ERROR(GatherNodes());
    RETURN_IF_ERROR(processes_.Agree(processes_.is_first() ? FindClocks() : absl::OkStatus()));
    RETURN_IF_ERROR(ScatterClocks());
    if (!processes_.is_alone()) return WriteTogether();
    if (!request_.output_dir.empty()) RETURN_IF_ERROR(WriteAligned(AlignedFolder()));
    // Without any output it is still done, to see that it can be.
    if (!request_.output.empty() || request_.output_dir.empty() || HasExports()) {
      RETURN_IF_ERROR(WriteCombined());
    }
    RETURN_IF_ERROR(Export("trace_json", request_.trace_json, ExportTraceJson));
    RETURN_IF_ERROR(Export("perfetto", request_.perfetto, ExportPerfetto));
    Describe();
    if (request_.validate) RETURN_IF_ERROR(CheckWritten());
    return std::move(report_);
  }

 private:
  // A node's profile; in the order of the traces.
  struct Node {
    explicit Node(SessionClock start) : clock(std::move(start)) {}

    // Of an XSpace of this process.
    std::optional<XSpaceReader> reader;
    // Of a Kineto trace of this process, and what its times count from (Unix time).
    std::optional<InputFile> kineto;
    int64_t kineto_base_ns = 0;
    // What its events that could not be read have; empty when all could.
    std::string unread_events;
    SessionInfo session;
    SessionClock clock;
    std::optional<SnapshotPairs> snapshots;
    int64_t id = 0;
    AlignmentStats stats;
    // Of the aligned file, where several processes write them.
    uint64_t aligned_bytes = 0;
  };

  // Reads what there is to know of this process's traces.
  absl::Status ReadOwn() {
    std::vector<std::string> own;
    for (size_t n = 0; n < request_.files.traces.size(); ++n) {
      if (processes_.Has(n)) own.push_back(request_.files.traces[n]);
    }
    if (own.empty()) own.push_back(request_.files.traces[0]);
    ASSIGN_OR_RETURN(const TraceKind kind,
                     TellOneTraceKind(file_system_, own, {TraceKind::kXSpace, TraceKind::kKineto}));
    is_kineto_ = kind == TraceKind::kKineto;
    for (const std::string& note : request_.files.notes) report_.add_notes(note);
    RETURN_IF_ERROR(CheckOutputKind());
    if (processes_.is_first()) RETURN_IF_ERROR(CheckPaths());
    RETURN_IF_ERROR(Open());
    RETURN_IF_ERROR(LoadSnapshots());
    return ReadCollectives();
  }

  // Tells the first process of the others' nodes.
  absl::Status GatherNodes() {
    CollectivesPacker packer;
    const auto pack = [&](PackedBytes& bytes, Node& node, ProfileCollectives& profile) {
      bytes(node.kineto_base_ns, node.unread_events, node.session, node.snapshots);
      packer.Pack(bytes, profile);
    };
    const auto make = [&](size_t n) {
      PackedBytes bytes;
      bytes(is_kineto_);
      pack(bytes, nodes_[n], profiles_[n]);
      profiles_[n] = {};
      return bytes.bytes();
    };
    const auto take = [&](size_t n, absl::string_view packed) -> absl::Status {
      PackedBytes bytes(packed);
      bool is_kineto = false;
      bytes(is_kineto);
      const std::vector<std::string>& traces = request_.files.traces;
      if (is_kineto != is_kineto_) {
        return TellOneTraceKind(file_system_, {traces[0], traces[n]},
                                {TraceKind::kXSpace, TraceKind::kKineto})
            .status();
      }
      pack(bytes, nodes_[n], profiles_[n]);
      RETURN_IF_ERROR(bytes.Finish());
      ASSIGN_OR_RETURN(nodes_[n].clock,
                       SessionClock::Create(traces[n], nodes_[n].session, StartOf(n)));
      return absl::OkStatus();
    };
    return processes_.Gather(nodes_.size(), make, take);
  }

  // Finds them in the first process, from what all have read.
  absl::Status FindClocks() {
    RETURN_IF_ERROR(AssignIds());
    RETURN_IF_ERROR(Match());
    return Align();
  }

  // Tells the other processes the clocks of their nodes.
  absl::Status ScatterClocks() {
    if (!processes_.is_first()) alignment_.nodes.assign(nodes_.size(), AlignedNode(RunClock(0)));
    const auto make = [&](size_t n) {
      PackedBytes bytes;
      bytes(nodes_[n].id, alignment_.nodes[n]);
      return bytes.bytes();
    };
    const auto take = [&](size_t n, absl::string_view packed) {
      PackedBytes bytes(packed);
      bytes(nodes_[n].id, alignment_.nodes[n]);
      return bytes.Finish();
    };
    return processes_.Scatter(nodes_.size(), make, take);
  }

  // Several processes write into a folder that the first one renames when all have succeeded.
  // Should one be lost, the others remove the folder with all that it had written.
  absl::StatusOr<CombineReport> WriteTogether() {
    std::string folder = absl::StrCat(request_.output_dir, "/.combine.", getpid(), ".",
                                      nodes_[0].clock.start_ns(), ".tmp/");
    processes_.Broadcast(&folder);
    const UnfinishedFile unfinished(folder);
    absl::Status status = processes_.Agree(WriteAligned(folder));
    if (status.ok()) status = GatherStats();
    // The first alone, since it is its moment that counts.
    if (status.ok()) {
      status = processes_.Agree(processes_.is_first() ? Publish(folder) : absl::OkStatus());
    }
    std::error_code ignored;
    if (processes_.is_first()) std::filesystem::remove_all(folder, ignored);
    RETURN_IF_ERROR(status);
    if (processes_.is_first()) Describe();
    return std::move(report_);
  }

  absl::Status GatherStats() {
    const auto make = [&](size_t n) {
      PackedBytes bytes;
      std::string stats = nodes_[n].stats.SerializeAsString();
      bytes(nodes_[n].aligned_bytes, stats);
      return bytes.bytes();
    };
    const auto take = [&](size_t n, absl::string_view packed) {
      PackedBytes bytes(packed);
      std::string stats;
      bytes(nodes_[n].aligned_bytes, stats);
      nodes_[n].stats.ParseFromString(stats);
      return bytes.Finish();
    };
    return processes_.Gather(nodes_.size(), make, take);
  }

  // Puts the files of all processes in their place: at once, unless there are some already.
  absl::Status Publish(const std::string& folder) {
    if (is_kineto_) {
      RETURN_IF_ERROR(outputs_.WriteText("perfetto_manifest", absl::StrCat(folder, kManifest),
                                         PerfettoManifest(AlignedNames())));
      RETURN_IF_ERROR(outputs_.Commit());
    }
    const std::string target = AlignedFolder();
    const std::string parent = target.substr(0, target.rfind('/'));
    RETURN_IF_ERROR(file_system_.CreateDirectories(parent));
    if (!file_system_.Kind(target).ok()) {
      RETURN_IF_ERROR(file_system_.Rename(folder.substr(0, folder.size() - 1), target));
      return file_system_.SyncDirectory(parent);
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(folder));
    for (const std::string& name : names) {
      RETURN_IF_ERROR(
          file_system_.Rename(absl::StrCat(folder, name), absl::StrCat(target, "/", name)));
    }
    return file_system_.SyncDirectory(target);
  }

  // Kineto traces are combined to one like them, or to an XSpace when the name says so; XSpaces to
  // an XSpace.
  absl::Status CheckOutputKind() const {
    const absl::string_view output = absl::StripSuffix(request_.output, ".gz");
    if (!is_kineto_ && absl::EndsWith(output, ".json")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--output=", request_.output,
          ": XSpaces are combined to an XSpace (.xplane.pb or .xplane.pb.gz); name JSON "
          "with --trace_json"));
    }
    if (!is_kineto_) return absl::OkStatus();
    if (!output.empty() && !absl::EndsWith(output, ".json") && !absl::EndsWith(output, ".pb")) {
      return absl::InvalidArgumentError(
          absl::StrCat("--output=", request_.output,
                       ": Kineto traces are combined to one Kineto trace (.json or .json.gz) or to "
                       "an XSpace (.xplane.pb or .xplane.pb.gz)"));
    }
    return absl::OkStatus();
  }

  bool WritesKineto() const {
    return is_kineto_ && absl::EndsWith(absl::StripSuffix(request_.output, ".gz"), ".json");
  }

  // Before anything is read, since it may take long.
  absl::Status CheckPaths() const {
    const RunFiles& files = request_.files;
    std::vector<std::string> inputs = files.traces;
    inputs.insert(inputs.end(), files.snapshots.begin(), files.snapshots.end());
    inputs.insert(inputs.end(), files.probes.begin(), files.probes.end());
    inputs.push_back(files.offsets);
    std::vector<std::string> outputs = request_.other_outputs;
    outputs.insert(outputs.end(), {request_.output, request_.trace_json, request_.perfetto});
    if (!request_.output_dir.empty()) {
      for (const std::string& name : AlignedNames()) {
        outputs.push_back(absl::StrCat(AlignedFolder(), "/", name));
      }
      if (is_kineto_) outputs.push_back(ManifestPath());
    }
    RETURN_IF_ERROR(CheckOutputPaths(inputs, outputs));
    RETURN_IF_ERROR(CheckNoOtherProfiles());
    for (const std::string& path : outputs) {
      const bool is_made = absl::StartsWith(path, absl::StrCat(AlignedFolder(), "/"));
      if (path.empty() || is_made) continue;
      const absl::Status status = AtomicFileWriter::Create(file_system_, path).status();
      // Folders are made when there is something to write.
      if (!absl::IsNotFound(status)) RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

  // Whoever takes the folder for the run would take profiles of an earlier one for its nodes.
  absl::Status CheckNoOtherProfiles() const {
    if (request_.output_dir.empty()) return absl::OkStatus();
    const absl::StatusOr<std::vector<std::string>> there = file_system_.List(AlignedFolder());
    if (!there.ok()) return absl::OkStatus();
    const std::vector<std::string> aligned = AlignedNames();
    const std::set<std::string> names(aligned.begin(), aligned.end());
    for (const std::string& name : *there) {
      const absl::string_view stem = absl::StripSuffix(name, ".gz");
      const bool is_profile =
          absl::EndsWith(stem, ".xplane.pb") || (is_kineto_ && absl::EndsWith(stem, ".json"));
      if (!is_profile || name == kManifest || names.count(name) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(AlignedFolder(), "/", name,
                       " is there, but no node of this run; remove the folder, or choose another "
                       "--output_dir"));
    }
    return absl::OkStatus();
  }

  std::string AlignedFolder() const {
    const std::string run = request_.files.name.empty() ? "aligned" : request_.files.name;
    return absl::StrCat(request_.output_dir, "/plugins/profile/", run);
  }

  absl::Status Open() {
    const RunFiles& files = request_.files;
    if (!files.snapshots.empty() && files.snapshots.size() != files.traces.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(files.snapshots.size(), " files of snapshot pairs for ", files.traces.size(),
                       " traces; --snapshots takes one per trace, in the order of the traces"));
    }
    const auto& starts = request_.profile_start_ns;
    if (!starts.empty() && starts.size() != files.traces.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--profile_start_ns has ", starts.size(), " times for ", files.traces.size(),
          " traces; it takes one per trace, empty for those that say themselves: ,,1794701451000"));
    }
    if (!files.offsets.empty()) {
      ASSIGN_OR_RETURN(inputs_.offsets,
                       OffsetSamples::Load(file_system_, files.offsets, request_.reference_node));
    }
    profiles_.resize(files.traces.size());
    for (const std::string& trace : files.traces) {
      ASSIGN_OR_RETURN(SessionClock unknown, SessionClock::Create(trace, {}, 0));
      nodes_.emplace_back(std::move(unknown));
    }
    if (is_kineto_) return OpenKineto();
    XSpaceReaderOptions options;
    options.input = request_.input;
    for (size_t n = 0; n < files.traces.size(); ++n) {
      if (!processes_.Has(n)) continue;
      ASSIGN_OR_RETURN(XSpaceReader reader,
                       XSpaceReader::Open(file_system_, files.traces[n], options));
      RETURN_IF_ERROR(CheckRaw(reader));
      ASSIGN_OR_RETURN(nodes_[n].session, ReadSessionInfo(reader));
      ASSIGN_OR_RETURN(nodes_[n].clock,
                       SessionClock::Create(reader.name(), nodes_[n].session, StartOf(n)));
      nodes_[n].reader.emplace(std::move(reader));
    }
    return absl::OkStatus();
  }

  // Times of a Kineto trace are all of its host's clock: there are no snapshots of another.
  absl::Status OpenKineto() {
    const RunFiles& files = request_.files;
    if (!files.snapshots.empty()) {
      return absl::InvalidArgumentError(
          "--snapshots tie a device's clock to its host's; Kineto traces have host times alone");
    }
    for (size_t n = 0; n < files.traces.size(); ++n) {
      if (!processes_.Has(n)) continue;
      ASSIGN_OR_RETURN(InputFile file,
                       InputFile::Open(file_system_, files.traces[n], request_.input));
      ASSIGN_OR_RETURN(const TraceJsonTable trace, LoadTraceJson(file.bytes(), files.traces[n]));
      RETURN_IF_ERROR(CheckOneRank(trace, files.traces[n]));
      profiles_[n] = ReadKinetoCollectives(trace, file.bytes(), files.traces[n]);
      nodes_[n].unread_events = trace.problems.ToString();
      if (trace.table.base_ns() < kFirstUnixNs || trace.table.base_ns() > kLastUnixNs) {
        return absl::InvalidArgumentError(
            absl::StrCat(files.traces[n],
                         ": its times do not count from 1970, and it has no "
                         "baseTimeNanoseconds that says from when; record it with a newer "
                         "version of PyTorch"));
      }
      SessionInfo& session = nodes_[n].session;
      session.profile_start_ns = trace.table.base_ns();
      session.profile_stop_ns = LastEndNs(trace.table);
      std::string host = HostOfKinetoFile(files.traces[n]);
      if (host.empty()) host = trace.header.Find(kHostNameKey).AsString().value_or("");
      if (!host.empty()) session.hostnames.push_back(host);
      ASSIGN_OR_RETURN(nodes_[n].clock, SessionClock::Create(files.traces[n], session, StartOf(n)));
      nodes_[n].kineto_base_ns = trace.header.base_time_ns.value_or(0);
      nodes_[n].kineto.emplace(std::move(file));
    }
    return absl::OkStatus();
  }

  // What the user said about a profile.
  std::optional<int64_t> StartOf(size_t n) const {
    return request_.profile_start_ns.empty() ? std::nullopt : request_.profile_start_ns[n];
  }

  absl::Status CheckRaw(const XSpaceReader& reader) const {
    ASSIGN_OR_RETURN(const std::vector<NodeProfile> combined, SplitCombinedProfile(reader));
    if (!combined.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.name(), ": is a combined profile; give the nodes' own"));
    }
    ASSIGN_OR_RETURN(const bool aligned, IsAligned(reader));
    if (!aligned || request_.alignment.method == AlignmentMethod::kNone) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        reader.name(),
        ": is aligned already; give the original, or --method=none to combine it as it is"));
  }

  // Snapshots may need what the offsets file says about the node, whose id they give: so names come
  // first where they lack that.
  absl::Status LoadSnapshots() {
    NodeIdInputs ids;
    ids.files = request_.files.traces;
    ids.given = request_.node_ids;
    const absl::StatusOr<std::vector<AssignedNodeId>> assigned = AssignNodeIds(ids);
    if (!ids.given.empty() && !is_kineto_) RETURN_IF_ERROR(assigned.status());
    for (size_t n = 0; n < nodes_.size() && !is_kineto_; ++n) {
      if (!processes_.Has(n)) continue;
      Node& node = nodes_[n];
      SnapshotPairsOptions options;
      if (inputs_.offsets.has_value() && assigned.ok()) {
        options.offsets_header = inputs_.offsets->AnchorsOf((*assigned)[n].id);
      }
      const std::string file = request_.files.snapshots.empty() ? "" : request_.files.snapshots[n];
      ASSIGN_OR_RETURN(node.snapshots,
                       LoadProfileSnapshots(file_system_, *node.reader, node.clock, file, options));
    }
    return absl::OkStatus();
  }

  // The flag, the snapshots' header, the file's name.
  absl::Status AssignIds() {
    NodeIdInputs ids;
    ids.files = request_.files.traces;
    ids.given = request_.node_ids;
    if (is_kineto_ && ids.given.empty()) ids.given = StatedRanks();
    for (size_t n = 0; n < nodes_.size() && !is_kineto_; ++n) {
      const std::optional<SnapshotPairs>& snapshots = nodes_[n].snapshots;
      ids.from_snapshots.push_back(snapshots.has_value() ? snapshots->node_id : std::nullopt);
    }
    ASSIGN_OR_RETURN(const std::vector<AssignedNodeId> final_ids, AssignNodeIds(ids));
    for (size_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n].id = final_ids[n].id;
      if (nodes_[n].unread_events.empty()) continue;
      report_.add_notes(absl::StrCat(
          request_.files.traces[n],
          ": events are written as they are, but taken for nothing: ", nodes_[n].unread_events));
    }
    for (const AssignedNodeId& id : final_ids) {
      if (id.source != AssignedNodeId::Source::kPosition) continue;
      report_.add_notes("node ids are the positions of the traces: their names hold no numbers");
      break;
    }
    return absl::OkStatus();
  }

  // Returns the ranks that the traces state; nothing unless all do, and differently.
  std::vector<int64_t> StatedRanks() const {
    std::vector<int64_t> ranks;
    for (const ProfileCollectives& profile : profiles_) {
      if (profile.devices.empty() || profile.devices[0].global_id == kUnknownId) return {};
      ranks.push_back(profile.devices[0].global_id);
    }
    const std::set<int64_t> different(ranks.begin(), ranks.end());
    return different.size() == ranks.size() ? ranks : std::vector<int64_t>();
  }

  absl::Status ReadCollectives() {
    ProgressBar progress("reading", nodes_.size());
    for (size_t n = 0; n < nodes_.size() && !is_kineto_; ++n) {
      if (!processes_.Has(n)) continue;
      progress.Update(n);
      XSpaceCollectivesOptions options;
      options.profile_start_ns = StartOf(n);
      ASSIGN_OR_RETURN(profiles_[n], ReadXSpaceCollectives(*nodes_[n].reader, options));
    }
    return absl::OkStatus();
  }

  absl::Status Match() {
    RankOptions ranks;
    ranks.given_ranks = request_.ranks;
    ASSIGN_OR_RETURN(run_, MatchCollectives(std::move(profiles_), ranks));
    if (is_kineto_) RETURN_IF_ERROR(CheckKinetoRun());
    for (const std::string& note : run_.ranks.notes) report_.add_notes(note);
    for (const std::string& note : run_.runs.notes) report_.add_notes(note);
    return absl::OkStatus();
  }

  bool HasMeasuredClocks() const {
    return !request_.files.offsets.empty() || !request_.files.probes.empty();
  }

  // Kineto traces that nothing ties together keep their clocks only if that was asked for.
  absl::Status CheckKinetoRun() const {
    RETURN_IF_ERROR(CheckOneRun(run_, HasMeasuredClocks()));
    const bool has_collectives =
        std::any_of(run_.profiles.begin(), run_.profiles.end(),
                    [](const ProfileCollectives& profile) { return !profile.events.empty(); });
    const AlignmentMethod method = request_.alignment.method;
    const bool needs_collectives = method == AlignmentMethod::kCollectives ||
                                   (method == AlignmentMethod::kAuto && !HasMeasuredClocks());
    if (has_collectives || !needs_collectives || nodes_.size() < 2) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(run_.profiles[0].trace,
                     " and the other traces hold no communication kernel of NCCL or RCCL "
                     "(Gloo has none on processors): nothing ties their clocks together; "
                     "profile the devices, give --offsets or --probes, or --method=none"));
  }

  absl::Status Align() {
    for (const Node& node : nodes_) {
      inputs_.nodes.push_back({node.id, node.clock, node.snapshots, node.session.profile_stop_ns});
    }
    inputs_.reference_node = ReferenceNode();
    const bool may_use_probes = request_.alignment.method == AlignmentMethod::kAuto ||
                                request_.alignment.method == AlignmentMethod::kProbes;
    if (may_use_probes && !request_.files.probes.empty()) {
      ASSIGN_OR_RETURN(ProbeOffsets probes,
                       LoadProbeOffsets(file_system_, request_.files.probes, inputs_.reference_node,
                                        request_.alignment.max_drift_ppm));
      inputs_.probes.emplace(std::move(probes.samples));
      for (const std::string& note : probes.notes) report_.add_notes(note);
    }
    ASSIGN_OR_RETURN(alignment_, AlignRun(inputs_, run_, request_.alignment));
    if (is_kineto_) RETURN_IF_ERROR(CheckReachable());
    return absl::OkStatus();
  }

  // Ranks that have collectives, but none that ties them to the reference, are of another job.
  absl::Status CheckReachable() {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (alignment_.nodes[n].method != "unreachable" || run_.profiles[n].events.empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          run_.profiles[n].trace, ": none of its collectives ties it to node ",
          inputs_.reference_node, "; are the traces of one job, and of the same steps?"));
    }
    std::vector<std::string> missing;
    const std::vector<uint32_t>& nodes = run_.table.node_of_rank();
    for (size_t rank = 0; rank < nodes.size(); ++rank) {
      if (nodes[rank] == CollectiveTable::kNoNode) missing.push_back(absl::StrCat(rank));
    }
    if (!missing.empty()) {
      report_.add_notes(absl::StrCat("there is no trace of rank ", absl::StrJoin(missing, ", "),
                                     ": collectives with it are unmatched"));
    }
    return absl::OkStatus();
  }

  // What the user said, the node that the offsets are relative to, the lowest.
  int64_t ReferenceNode() const {
    if (request_.reference_node.has_value()) return *request_.reference_node;
    if (inputs_.offsets.has_value() && inputs_.offsets->reference_node().has_value()) {
      return *inputs_.offsets->reference_node();
    }
    return nodes_[ById()[0]].id;
  }

  // Positions of the nodes, by id.
  std::vector<size_t> ById() const {
    std::vector<size_t> order(nodes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [this](size_t a, size_t b) { return nodes_[a].id < nodes_[b].id; });
    return order;
  }

  AlignmentRecord RecordOf(size_t n) const {
    const AlignedNode& aligned = alignment_.nodes[n];
    AlignmentRecord record;
    record.node_id = nodes_[n].id;
    record.method = aligned.method;
    record.offset_ns = aligned.offset_ns;
    record.uncertainty_ns = aligned.uncertainty_ns;
    record.drift_ppm = aligned.drift_ppm;
    return record;
  }

  // Returns the arrows of all collectives, by node: from the member that started last to each that
  // had waited for it.
  std::vector<std::vector<KinetoFlow>> FindFlows() const {
    std::vector<std::vector<KinetoFlow>> flows(nodes_.size());
    const CollectiveTable& table = alignment_.table;
    int64_t next_id = 1;
    for (const CollectiveInstance& instance : table.instances()) {
      const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
      if (members.size() < 2) continue;
      const CollectiveMember& last = *std::max_element(
          members.begin(), members.end(), [](const CollectiveMember& a, const CollectiveMember& b) {
            return a.start_ps < b.start_ps;
          });
      const std::string name(CollectiveKindName(table.OpOf(instance).kind));
      const auto add = [&](const CollectiveMember& member, bool starts) {
        const uint32_t node = table.NodeOf(member);
        const CollectiveEvent& event = run_.profiles[node].events[member.event];
        KinetoFlow flow;
        flow.time_ps = std::min(last.start_ps, member.end_ps - kPsPerNs);
        absl::string_view device = run_.profiles[node].devices[event.local_device].name;
        absl::ConsumePrefix(&device, "GPU ");
        if (!absl::SimpleAtoi(device, &flow.device)) return;
        flow.stream = event.line_id;
        flow.id = next_id;
        flow.starts = starts;
        flow.name = name;
        flows[node].push_back(std::move(flow));
      };
      for (const CollectiveMember& member : members) {
        // A message may have been sent, and its sender gone, before its receiver came.
        if (&member == &last || member.end_ps <= last.start_ps) continue;
        add(last, /*starts=*/true);
        add(member, /*starts=*/false);
        ++next_id;
      }
    }
    return flows;
  }

  absl::Status MergeKinetoTraces(const std::vector<size_t>& order) {
    std::vector<KinetoMergeInput> inputs;
    std::vector<std::vector<KinetoFlow>> flows = FindFlows();
    uint64_t total_bytes = 0;
    for (size_t n : order) {
      const std::vector<int64_t>& ranks = run_.ranks.ranks[n];
      const SessionInfo& session = nodes_[n].session;
      inputs.push_back({nodes_[n].kineto->bytes(), nodes_[n].kineto_base_ns,
                        &alignment_.nodes[n].clock, ranks.empty() ? nodes_[n].id : ranks[0],
                        session.hostnames.empty() ? "" : session.hostnames[0],
                        std::move(flows[n])});
      total_bytes += nodes_[n].kineto->bytes().size();
    }
    ProgressBar progress("combining", total_bytes);
    const auto merge = [&](ByteSink& sink) -> absl::Status {
      ASSIGN_OR_RETURN(const std::vector<AlignmentStats> stats,
                       MergeKineto(
                           inputs, [&](uint64_t bytes) { progress.Update(bytes); }, sink));
      for (size_t i = 0; i < order.size(); ++i) {
        nodes_[order[i]].stats = stats[i];
        RETURN_IF_ERROR(CheckExtrapolation(stats[i], nodes_[order[i]].kineto->path(),
                                           request_.max_extrapolation_ns));
      }
      return absl::OkStatus();
    };
    if (WritesKineto()) return outputs_.Write("combined", request_.output, merge);
    DiscardingSink nowhere;
    return merge(nowhere);
  }

  // Makes the XSpaces of Kineto traces that are combined and exported as such.
  absl::Status MakeXSpaces() {
    ProgressBar progress("converting", nodes_.size());
    for (size_t n = 0; n < nodes_.size(); ++n) {
      progress.Update(n);
      Node& node = nodes_[n];
      ASSIGN_OR_RETURN(const TraceJsonTable trace,
                       LoadTraceJson(node.kineto->bytes(), node.kineto->path()));
      ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                       file_system_.CreateTemporary(request_.input.temporary_directory));
      FileSink sink(*file);
      const std::string host = node.session.hostnames.empty() ? "" : node.session.hostnames[0];
      RETURN_IF_ERROR(WriteKinetoXSpace(trace, node.kineto->bytes(), host, sink));
      ASSIGN_OR_RETURN(std::unique_ptr<MappedRegion> region, file_system_.MapTemporary(*file));
      ASSIGN_OR_RETURN(XSpaceReader reader,
                       XSpaceReader::FromBytes(region->bytes(), node.kineto->path()));
      node.reader.emplace(std::move(reader));
      ASSIGN_OR_RETURN(const SessionInfo session, ReadSessionInfo(*node.reader));
      ASSIGN_OR_RETURN(node.clock,
                       SessionClock::Create(node.kineto->path(), session, std::nullopt));
      converted_.push_back(std::move(region));
    }
    return absl::OkStatus();
  }

  absl::Status WriteCombined() {
    const std::vector<size_t> order = ById();
    if (is_kineto_) {
      const bool wants_xspace = !request_.output.empty() && !WritesKineto();
      const bool wants_merged = WritesKineto() || (!wants_xspace && !HasExports());
      if (wants_merged) RETURN_IF_ERROR(MergeKinetoTraces(order));
      if (!wants_xspace && !HasExports()) return absl::OkStatus();
      RETURN_IF_ERROR(MakeXSpaces());
    }
    std::vector<CombineInput> inputs;
    uint64_t total_bytes = 0;
    for (size_t n : order) {
      inputs.push_back(
          {&*nodes_[n].reader, &nodes_[n].clock, &alignment_.nodes[n].clock, RecordOf(n)});
      total_bytes += nodes_[n].reader->source().bytes.size();
    }
    ProgressBar progress("combining", total_bytes);
    CombineOptions options;
    options.naming = request_.naming;
    options.max_extrapolation_ns = request_.max_extrapolation_ns;
    options.progress = [&](uint64_t bytes) { progress.Update(bytes); };
    const auto combine = [&](ByteSink& sink) -> absl::Status {
      ASSIGN_OR_RETURN(const std::vector<AlignmentStats> stats,
                       CombineXSpaces(inputs, options, sink));
      // Of Kineto traces, what was merged has more: XSpaces have no instants.
      for (size_t i = 0; i < order.size() && !WritesKineto(); ++i) {
        nodes_[order[i]].stats = stats[i];
      }
      return absl::OkStatus();
    };
    if (!request_.output.empty() && !WritesKineto()) {
      return outputs_.Write("combined", request_.output, combine);
    }
    if (HasExports()) {
      ASSIGN_OR_RETURN(unnamed_, file_system_.CreateTemporary(request_.input.temporary_directory));
      FileSink sink(*unnamed_);
      return combine(sink);
    }
    // Viewers need not show what nobody writes, however many devices there are.
    options.naming = PlaneNaming::kNodePrefix;
    DiscardingSink nowhere;
    return combine(nowhere);
  }

  bool HasExports() const { return !request_.trace_json.empty() || !request_.perfetto.empty(); }

  absl::Status WriteAligned(const std::string& folder) {
    RETURN_IF_ERROR(file_system_.CreateDirectories(folder));
    const std::vector<std::string> names = AlignedNames();
    ProgressBar progress("aligning", nodes_.size());
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!processes_.Has(n)) continue;
      progress.Update(n);
      AlignOptions options;
      options.record = RecordOf(n);
      options.lines.node_id = nodes_[n].id;
      options.lines.max_extrapolation_ns = request_.max_extrapolation_ns;
      RETURN_IF_ERROR(outputs_.Write(
          "aligned", absl::StrCat(folder, "/", names[n]), [&](ByteSink& sink) -> absl::Status {
            const NodeClock& clock = alignment_.nodes[n].clock;
            if (is_kineto_) {
              ASSIGN_OR_RETURN(nodes_[n].stats, AlignKineto(nodes_[n].kineto->bytes(),
                                                            nodes_[n].kineto_base_ns, clock, sink));
              return CheckExtrapolation(nodes_[n].stats, nodes_[n].kineto->path(),
                                        request_.max_extrapolation_ns);
            }
            ASSIGN_OR_RETURN(nodes_[n].stats,
                             AlignXSpace(*nodes_[n].reader, nodes_[n].clock, clock, options, sink));
            return absl::OkStatus();
          }));
      if (processes_.is_alone()) continue;
      // Nobody sees the folder yet.
      RETURN_IF_ERROR(outputs_.Commit());
      nodes_[n].aligned_bytes = outputs_.files().back().bytes;
    }
    if (!is_kineto_ || !processes_.is_alone()) return absl::OkStatus();
    return outputs_.WriteText("perfetto_manifest", ManifestPath(), PerfettoManifest(names));
  }

  // Not *.json, so that nobody takes it for a trace: Perfetto tells by the content.
  static constexpr char kManifest[] = "perfetto_manifest";
  std::string ManifestPath() const { return absl::StrCat(AlignedFolder(), "/", kManifest); }

  // Says how Perfetto is to show an archive of the aligned Kineto traces, whose times each count
  // from a base of its own: https://perfetto.dev/docs/reference/perfetto-manifest.
  std::string PerfettoManifest(const std::vector<std::string>& names) const {
    const size_t first =
        static_cast<size_t>(std::min_element(nodes_.begin(), nodes_.end(),
                                             [](const Node& a, const Node& b) {
                                               return a.kineto_base_ns < b.kineto_base_ns;
                                             }) -
                            nodes_.begin());
    std::string text;
    JsonWriter json(&text, JsonSpacing::kSpaced);
    json.BeginObject(JsonLayout::kIndented);
    json.Key("perfetto_manifest");
    json.BeginObject(JsonLayout::kIndented);
    json.Member("version", 1);
    json.Key("files");
    json.BeginArray(JsonLayout::kIndented);
    for (size_t n : ById()) {
      json.BeginObject();
      json.Member("path", names[n]);
      json.Key("machine");
      json.BeginObject();
      const SessionInfo& session = nodes_[n].session;
      json.Member("name", absl::StrCat("node ", nodes_[n].id, session.hostnames.empty() ? "" : " ",
                                       session.hostnames.empty() ? "" : session.hostnames[0]));
      json.EndObject();
      if (n != first) {
        json.Key("clocks");
        json.BeginObject();
        json.Key("sync_to");
        json.BeginObject();
        json.Member("file", names[first]);
        json.EndObject();
        json.Member("offset_ns", SaturateToInt64(absl::int128(nodes_[n].kineto_base_ns) -
                                                 nodes_[first].kineto_base_ns));
        json.EndObject();
      }
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
    json.EndObject();
    text += "\n";
    return text;
  }

  // Writes the combined file in a viewer's format.
  template <typename ExportFunction>
  absl::Status Export(const std::string& kind, const std::string& path, ExportFunction export_to) {
    if (path.empty()) return absl::OkStatus();
    std::unique_ptr<MappedRegion> region;
    std::optional<XSpaceReader> opened;
    if (unnamed_ != nullptr) {
      ASSIGN_OR_RETURN(region, file_system_.MapTemporary(*unnamed_));
      ASSIGN_OR_RETURN(opened, XSpaceReader::FromBytes(region->bytes(), "the combined profile"));
    } else {
      XSpaceReaderOptions reader_options;
      reader_options.input = request_.input;
      const std::vector<OutputFile>& files = outputs_.files();
      const auto combined = std::find_if(files.begin(), files.end(), [](const OutputFile& file) {
        return file.kind == "combined";
      });
      const std::string written = outputs_.ReadablePath(combined - files.begin());
      ASSIGN_OR_RETURN(opened, XSpaceReader::Open(file_system_, written, reader_options));
    }
    const XSpaceReader& combined = *opened;
    ProgressBar progress(kind, combined.source().bytes.size());
    ExportOptions options;
    std::string planes;
    std::optional<XSpaceReader> additions;
    if (kind == "perfetto") {
      const std::vector<ViewedNode> nodes = ViewedNodes();
      ASSIGN_OR_RETURN(const SessionInfo session, ReadSessionInfo(combined));
      const int64_t start_ns = session.profile_start_ns.value_or(0);
      ASSIGN_OR_RETURN(planes, ViewerPlanes(alignment_.table, nodes, start_ns));
      ASSIGN_OR_RETURN(additions, XSpaceReader::FromBytes(planes, "what was found out"));
      options.additions = &*additions;
      options.clock_readings = ReadClocks(nodes, start_ns);
    }
    options.progress = [&](uint64_t offset) { progress.Update(offset); };
    return outputs_.Write(kind, path, [&](ByteSink& sink) -> absl::Status {
      ASSIGN_OR_RETURN(const ExportStats stats, export_to(combined, options, sink));
      const int64_t left_out = stats.aggregated + stats.negative_durations + stats.out_of_range +
                               stats.too_many_overlaps;
      if (left_out > 0) {
        report_.add_notes(absl::StrCat(kind, ": ", left_out,
                                       " events without a place on a timeline are left out"));
      }
      return absl::OkStatus();
    });
  }

  std::vector<ViewedNode> ViewedNodes() const {
    std::vector<ViewedNode> viewed;
    for (size_t n : ById()) {
      const int64_t begin_ns = nodes_[n].clock.start_ns();
      viewed.push_back({nodes_[n].id, &alignment_.nodes[n].clock, begin_ns,
                        std::max(begin_ns, nodes_[n].session.profile_stop_ns.value_or(0))});
    }
    return viewed;
  }

  // The traces' own names, inflated; with the position where two would be the same.
  std::vector<std::string> AlignedNames() const {
    std::vector<std::string> names;
    std::map<std::string, int> uses;
    for (const std::string& trace : request_.files.traces) {
      absl::string_view stem = trace;
      // Kineto traces keep their names, and are gzip if they were. Logs become such traces.
      if (is_kineto_) {
        stem = stem.substr(stem.rfind('/') + 1);
        const bool was_compressed = absl::ConsumeSuffix(&stem, ".gz");
        const bool is_log = absl::ConsumeSuffix(&stem, ".log");
        names.push_back(absl::StrCat(stem, is_log ? ".json" : "", was_compressed ? ".gz" : ""));
        ++uses[names.back()];
        continue;
      }
      if (!absl::ConsumeSuffix(&stem, ".xplane.pb.gz")) absl::ConsumeSuffix(&stem, ".xplane.pb");
      names.push_back(absl::StrCat(stem.substr(stem.rfind('/') + 1), ".xplane.pb"));
      ++uses[names.back()];
    }
    for (size_t n = 0; n < names.size(); ++n) {
      if (uses[names[n]] > 1) names[n] = absl::StrCat("trace", n, "_", names[n]);
    }
    return names;
  }

  void Describe() {
    report_.set_reference_node(inputs_.reference_node);
    report_.set_method_asked(std::string(AlignmentMethodName(request_.alignment.method)));
    report_.set_method(std::string(AlignmentMethodName(alignment_.method)));
    report_.set_run_method(std::string(RunMethodName(run_.runs.method)));
    for (const OutputFile& file : processes_.is_alone() ? outputs_.files() : FilesOfAll()) {
      CombinedOutput* output = report_.add_outputs();
      output->set_kind(file.kind);
      output->set_path(file.path);
      output->set_bytes(static_cast<int64_t>(file.bytes));
    }
    for (size_t n : ById()) DescribeNode(n, report_.add_nodes());
    HappensBeforeSummary* check = report_.mutable_happens_before();
    check->set_instances(alignment_.after.instances);
    check->set_checked(alignment_.after.checked);
    check->set_unmatched(alignment_.after.unmatched);
    check->set_violations_before(static_cast<int64_t>(alignment_.before.violations.size()));
    check->set_violations_after(static_cast<int64_t>(alignment_.after.violations.size()));
    check->set_checked_on("computed");
    for (const std::string& note : alignment_.notes) report_.add_notes(note);
    DescribeWaiting(alignment_.table, run_, &report_);
    DescribeClocks();
  }

  // Returns what all processes have written together.
  std::vector<OutputFile> FilesOfAll() const {
    std::vector<OutputFile> files;
    const std::vector<std::string> names = AlignedNames();
    for (size_t n = 0; n < nodes_.size(); ++n) {
      files.push_back(
          {"aligned", absl::StrCat(AlignedFolder(), "/", names[n]), nodes_[n].aligned_bytes});
    }
    if (!is_kineto_) return files;
    files.push_back({kManifest, ManifestPath(), outputs_.files().back().bytes});
    return files;
  }

  // What clocks showed more than the common one.
  void DescribeClocks() {
    const int64_t start_ns = alignment_.table.base_ns();
    report_.set_start_ns(start_ns);
    for (const ClockReading& reading : ReadClocks(ViewedNodes(), start_ns)) {
      for (CombinedNode& node : *report_.mutable_nodes()) {
        const auto found = reading.node_times_ns.find(node.node_id());
        if (found == reading.node_times_ns.end()) continue;
        node.add_clock_at_ms(static_cast<double>(reading.time_ns - start_ns) * 1e-6);
        node.add_clock_offset_ns(found->second - reading.time_ns);
      }
    }
  }

  void DescribeNode(size_t n, CombinedNode* out) const {
    const Node& node = nodes_[n];
    const AlignedNode& aligned = alignment_.nodes[n];
    out->set_node_id(node.id);
    if (!node.session.hostnames.empty()) out->set_hostname(node.session.hostnames[0]);
    out->set_trace(request_.files.traces[n]);
    out->set_method(aligned.method);
    if (aligned.offset_at_ns.has_value()) out->set_offset_at_ns(*aligned.offset_at_ns);
    if (aligned.offset_ns.has_value()) out->set_offset_ns(*aligned.offset_ns);
    if (aligned.uncertainty_ns.has_value()) out->set_uncertainty_ns(*aligned.uncertainty_ns);
    if (aligned.uncertainty_max_ns.has_value()) {
      out->set_uncertainty_max_ns(*aligned.uncertainty_max_ns);
    }
    if (aligned.certified_uncertainty_ns.has_value()) {
      out->set_certified_uncertainty_ns(*aligned.certified_uncertainty_ns);
    }
    if (aligned.drift_ppm.has_value()) out->set_drift_ppm(*aligned.drift_ppm);
    if (aligned.drift_uncertainty_ppm.has_value()) {
      out->set_drift_uncertainty_ppm(*aligned.drift_uncertainty_ppm);
    }
    if (node.snapshots.has_value()) {
      const std::optional<int64_t> reading_ns = ReadingUncertaintyNs(*node.snapshots);
      if (reading_ns.has_value()) out->set_tracer_uncertainty_ns(*reading_ns);
    }
    out->set_events(node.stats.events());
    out->set_max_correction_ns(LargestCorrectionNs(node.stats));
    for (int64_t rank : run_.ranks.ranks[n]) out->add_ranks(rank);
    out->set_collectives(static_cast<int64_t>(run_.profiles[n].events.size()));
  }

  // Reads the collectives back from what was written.
  absl::Status CheckWritten() {
    // Ranks of a merged Kineto trace can not be told apart any more: the files of the ranks are
    // checked, or what was computed.
    // XSpaces made of Kineto traces hold no programs, which tell collectives.
    if (!request_.output.empty() && !is_kineto_) RETURN_IF_ERROR(CheckFiles("combined", ById()));
    if (request_.output_dir.empty()) return absl::OkStatus();
    std::vector<size_t> order(nodes_.size());
    std::iota(order.begin(), order.end(), 0);
    return CheckFiles("aligned", order);
  }

  // `order` is that of the nodes in the files.
  absl::Status CheckFiles(absl::string_view kind, const std::vector<size_t>& order) {
    // They are read under other names than they will have.
    std::vector<std::string> files, names;
    for (size_t i = 0; i < outputs_.files().size(); ++i) {
      if (outputs_.files()[i].kind != kind) continue;
      files.push_back(outputs_.ReadablePath(i));
      names.push_back(outputs_.files()[i].path);
    }
    CollectiveRunOptions options;
    options.reader.input = request_.input;
    if (!request_.ranks.empty()) {
      for (size_t n : order) {
        const std::vector<int64_t>& ranks = run_.ranks.ranks[n];
        options.ranks.given_ranks.insert(options.ranks.given_ranks.end(), ranks.begin(),
                                         ranks.end());
      }
    }
    ASSIGN_OR_RETURN(const CollectiveRun written, ReadCollectiveRun(file_system_, files, options));
    const HappensBefore check = CheckHappensBefore(written.table);
    HappensBeforeSummary* summary = report_.mutable_happens_before();
    if (check.checked != summary->checked() || check.unmatched != summary->unmatched()) {
      return absl::InternalError(absl::StrCat(
          names[0], ": ", check.checked, " collectives were found in what was written, ",
          summary->checked(), " in what was read; please report this with your profiles"));
    }
    const int64_t violations = static_cast<int64_t>(check.violations.size());
    const bool is_first = summary->checked_on() == "computed";
    summary->set_violations_after(is_first ? violations
                                           : std::max(summary->violations_after(), violations));
    summary->set_checked_on("written file");
    for (size_t i = 0; i < std::min<size_t>(check.violations.size(), 3); ++i) {
      report_.add_notes(DescribeViolation(written.table, check.violations[i]));
    }
    return absl::OkStatus();
  }

  FileSystem& file_system_;
  const CombineRequest& request_;
  RunProcesses& processes_;
  // The traces are Kineto's, not XSpaces.
  bool is_kineto_ = false;
  // One per node, until they are matched; empty for those of other processes, until the first has
  // gathered them.
  std::vector<ProfileCollectives> profiles_;
  OutputFiles& outputs_;
  // The combined XSpace where only exports of it are wanted; else null.
  std::unique_ptr<WritableFile> unnamed_;
  // XSpaces made of Kineto traces.
  std::vector<std::unique_ptr<MappedRegion>> converted_;
  std::vector<Node> nodes_;
  AlignmentInputs inputs_;
  CollectiveRun run_;
  RunAlignment alignment_;
  CombineReport report_;
};

absl::Status RefuseNoProfiles(const CombineRequest& request) {
  if (!request.files.traces.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("there are no profiles to combine");
}

}  // namespace

absl::StatusOr<CombineReport> CombineRun(FileSystem& file_system, const CombineRequest& request) {
  OutputFiles outputs(file_system);
  ASSIGN_OR_RETURN(CombineReport report, CombineRun(file_system, request, outputs));
  RETURN_IF_ERROR(outputs.Commit());
  return report;
}

absl::StatusOr<CombineReport> CombineRun(FileSystem& file_system, const CombineRequest& request,
                                         OutputFiles& outputs) {
  RETURN_IF_ERROR(RefuseNoProfiles(request));
  RunProcesses alone;
  return CombinePipeline(file_system, request, alone, outputs).Run();
}

absl::StatusOr<CombineReport> CombineRun(FileSystem& file_system, const CombineRequest& request,
                                         RunProcesses& processes) {
  RETURN_IF_ERROR(RefuseNoProfiles(request));
  OutputFiles outputs(file_system);
  return CombinePipeline(file_system, request, processes, outputs).Run();
}

}  // namespace meridian
