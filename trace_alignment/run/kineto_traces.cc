#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "trace_alignment/aligner/kineto_aligner.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/combine/kineto_merger.h"
#include "trace_alignment/run/combine_run.h"
#include "trace_alignment/run/combine_state.h"
#include "trace_alignment/run/run_traces.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/tar_writer.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/kineto/kineto_xspace.h"

namespace meridian {
namespace {

// The year 2001: earlier times do not count from 1970. Tables whose times count from 0 are shown
// from 1e18 on, and what launched their work a little before.
constexpr int64_t kFirstUnixNs = 999'000'000'000'000'000;
constexpr int64_t kLastUnixNs = 9'000'000'000'000'000'000;

// Returns the host that TensorBoard's handler of PyTorch names its files after:
// <host>_<process>.<time>.pt.trace.json, where the process is one of the trace. Empty for other
// names: users' own look alike (worker0_step_12).
std::string HostOfKinetoFile(absl::string_view path, const EventTable& table) {
  absl::string_view name = path.substr(path.rfind('/') + 1);
  absl::ConsumeSuffix(&name, ".gz");
  if (!absl::ConsumeSuffix(&name, ".pt.trace.json")) return "";
  name = name.substr(0, name.rfind('.'));
  const size_t underscore = name.rfind('_');
  if (underscore == absl::string_view::npos) return "";
  const absl::string_view process = name.substr(underscore + 1);
  const bool is_there = absl::c_any_of(table.tracks(), [&](const Track& track) {
    return track.kind == TrackKind::kHost && track.process == process;
  });
  return is_there ? std::string(name.substr(0, underscore)) : "";
}

// Returns the first start of an event, Unix time; nullopt when there is none.
std::optional<int64_t> FirstStartNs(const EventTable& table) {
  std::optional<int64_t> first_ps;
  for (EventRow row = 0; row < table.size(); ++row) {
    first_ps = std::min(first_ps.value_or(table.start_ps(row)), table.start_ps(row));
  }
  if (!first_ps.has_value()) return std::nullopt;
  return table.base_ns() + FloorToNs(*first_ps);
}

// Returns the last end of an event, Unix time.
int64_t LastEndNs(const EventTable& table) {
  int64_t last_ps = 0;
  for (EventRow row = 0; row < table.size(); ++row) {
    last_ps = std::max(last_ps, table.start_ps(row) + table.duration_ps(row));
  }
  return table.base_ns() + last_ps / kPsPerNs;
}

// Visits arrows between the kernels of one collective, from the last to start, for which the others
// wait, to each of them. `inputs` has the position of each node's input.
absl::Status VisitArrows(const CombineState& state, const std::vector<size_t>& inputs,
                         VisitArrow visit) {
  const CollectiveTable& table = state.alignment.table;
  // Returns nullopt when the profile does not tell which device ran the kernel.
  const auto end_of = [&](const CollectiveMember& member) -> std::optional<KinetoArrow::End> {
    const uint32_t node = table.NodeOf(member);
    const ProfileCollectives& profile = state.run.profiles[node];
    const CollectiveEvent& event = profile.events[member.event];
    KinetoArrow::End end = {inputs[node], 0, event.line_id};
    absl::string_view device = profile.devices[event.local_device].name;
    absl::ConsumePrefix(&device, "GPU ");
    if (!absl::SimpleAtoi(device, &end.device)) return std::nullopt;
    return end;
  };
  for (const CollectiveInstance& instance : table.instances()) {
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    const CollectiveMember& last = *absl::c_max_element(
        members, [](const auto& a, const auto& b) { return a.start_ps < b.start_ps; });
    const std::optional<KinetoArrow::End> from = end_of(last);
    for (const CollectiveMember& member : members) {
      const std::optional<KinetoArrow::End> to = end_of(member);
      // A message may have been sent, and its sender gone, before its receiver came.
      if (&member == &last || member.end_ps <= last.start_ps || !from || !to) continue;
      RETURN_IF_ERROR(visit({*from, *to, last.start_ps, member.end_ps,
                             CollectiveKindName(table.OpOf(instance).kind)}));
    }
  }
  return absl::OkStatus();
}

class KinetoTraces : public RunTraces {
 public:
  KinetoTraces(FileSystem& file_system, const TraceFiles& files, const CombineRequest& request)
      : file_system_(file_system), files_(files), request_(request), traces_(files.size()) {}

  absl::Status CheckRequest() const override {
    if (!request_.output.empty() && !MergesInOwnForm() && !OutputEndsIn(".pb")) {
      return InvalidArgument(
          "--output=", request_.output,
          ": Kineto traces are combined to one Kineto trace (.json or .json.gz), "
          "to an archive of all for Perfetto (.tar or .tar.gz) or to an XSpace "
          "(.xplane.pb or .xplane.pb.gz)");
    }
    // Times of a Kineto trace are all of its host's clock.
    if (!request_.files.snapshots.empty()) {
      return InvalidArgument(
          "--snapshots tie a device's clock to its host's; Kineto traces have host times alone");
    }
    return absl::OkStatus();
  }

  bool HaveOneRankEach() const override { return true; }

  absl::StatusOr<OpenedTrace> Open(size_t n) override {
    const std::string& path = files_.paths()[n];
    ASSIGN_OR_RETURN(InputFile file, files_.Open(n));
    ASSIGN_OR_RETURN(const TraceJsonTable trace, LoadTraceJson(file.bytes(), path));
    RETURN_IF_ERROR(CheckOneRank(trace, path));
    if (trace.header.Find(kAlignedClockKey).exists() &&
        request_.alignment.method != AlignmentMethod::kNone) {
      return InvalidArgument(
          path, ": is aligned already; give the original, or --method=none to combine it as it is");
    }
    if (trace.table.base_ns() < kFirstUnixNs || trace.table.base_ns() > kLastUnixNs) {
      return InvalidArgument(
          path,
          ": its times do not count from 1970, and it has no baseTimeNanoseconds that says from "
          "when; record it with a newer version of PyTorch");
    }
    SessionInfo session;
    session.profile_start_ns = trace.table.base_ns();
    session.profile_stop_ns = LastEndNs(trace.table);
    std::string host = HostOfKinetoFile(path, trace.table);
    if (host.empty()) host = trace.header.Find(kHostNameKey).AsString().value_or("");
    if (!host.empty()) session.hostnames.push_back(host);
    ASSIGN_OR_RETURN(SessionClock clock, SessionClock::Create(path, session, request_.StartOf(n)));
    OpenedTrace node(std::move(clock));
    node.session = std::move(session);
    node.collectives = ReadKinetoCollectives(trace, file.bytes(), path);
    node.unread_events = trace.problems.ToString();
    traces_[n].base_ns = trace.header.base_time_ns.value_or(0);
    traces_[n].first_ns = FirstStartNs(trace.table);
    ForgetMapped(file.bytes());
    traces_[n].file.emplace(std::move(file));
    return node;
  }

  // Kineto traces keep their names, and are gzip if they were; what was converted becomes one, named
  // after its part of the file: "run.csv (rank 3)" becomes run.rank_3.json.
  std::string AlignedName(size_t n) const override {
    absl::string_view trace = files_.FileOf(n);
    trace = trace.substr(trace.rfind('/') + 1);
    const bool was_compressed = absl::ConsumeSuffix(&trace, ".gz");
    absl::string_view stem = trace;
    for (const absl::string_view suffix : files_.source().suffixes()) {
      if (absl::ConsumeSuffix(&stem, suffix)) break;
    }
    const bool is_converted = files_.source().NeedsConversion();
    std::string part = files_.PartOf(n).empty() ? "" : absl::StrCat(".", files_.PartOf(n));
    for (char& c : part) {
      if (c != '.' && !absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    return absl::StrCat(is_converted ? stem : trace, part, is_converted ? ".json" : "",
                        was_compressed ? ".gz" : "");
  }

  bool IsTraceName(absl::string_view name) const override {
    const absl::string_view stem = absl::StripSuffix(name, ".gz");
    return absl::EndsWith(stem, ".xplane.pb") || absl::EndsWith(stem, ".json");
  }

  absl::StatusOr<AlignmentStats> WriteAligned(size_t n, const OpenedTrace&, const NodeClock& clock,
                                              const AlignOptions&, ByteSink& sink) override {
    ASSIGN_OR_RETURN(const AlignmentStats stats,
                     AlignKineto(traces_[n].file->bytes(), traces_[n].base_ns, clock, sink));
    RETURN_IF_ERROR(CheckExtrapolation(stats, files_.paths()[n], request_.max_extrapolation_ns));
    return stats;
  }

  bool MergesInOwnForm() const override {
    if (request_.output.empty()) return request_.trace_json.empty() && request_.perfetto.empty();
    return OutputEndsIn(".json") || OutputEndsIn(".tar");
  }

  absl::Status Merge(const std::vector<size_t>& order, CombineState* state,
                     ByteSink& sink) override {
    std::vector<KinetoMergeInput> inputs;
    std::vector<size_t> input_of_node(order.size());
    uint64_t total_bytes = 0;
    for (const size_t n : order) {
      input_of_node[n] = inputs.size();
      const OpenedTrace& node = state->nodes[n];
      const std::vector<int64_t>& ranks = state->run.ranks.ranks[n];
      inputs.push_back({traces_[n].file->bytes(), traces_[n].base_ns,
                        &state->alignment.nodes[n].clock, ranks.empty() ? node.id : ranks[0],
                        HostOf(node), traces_[n].first_ns});
      total_bytes += inputs.back().text.size();
    }
    ProgressBar progress("combining", total_bytes);
    const auto arrows = [&](VisitArrow visit) { return VisitArrows(*state, input_of_node, visit); };
    ASSIGN_OR_RETURN(const std::vector<AlignmentStats> stats,
                     OutputEndsIn(".tar")
                         ? WriteArchive(inputs, sink)
                         : MergeKineto(
                               inputs, arrows, EarliestBase(inputs),
                               [&](uint64_t bytes) { progress.Update(bytes); }, sink));
    for (size_t i = 0; i < order.size(); ++i) {
      state->nodes[order[i]].stats = stats[i];
      RETURN_IF_ERROR(
          CheckExtrapolation(stats[i], files_.paths()[order[i]], request_.max_extrapolation_ns));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<const XSpaceReader*> AsXSpace(size_t n, OpenedTrace* node) override {
    const std::string& path = files_.paths()[n];
    Trace& opened = traces_[n];
    ASSIGN_OR_RETURN(const TraceJsonTable trace, LoadTraceJson(opened.file->bytes(), path));
    ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                     file_system_.CreateTemporary(request_.input.temporary_directory));
    WritableFileSink sink(*file);
    RETURN_IF_ERROR(WriteKinetoXSpace(trace, opened.file->bytes(), HostOf(*node), sink));
    ASSIGN_OR_RETURN(opened.converted, file_system_.MapTemporary(*file));
    ASSIGN_OR_RETURN(opened.xspace, XSpaceReader::FromBytes(opened.converted->bytes(), path));
    ASSIGN_OR_RETURN(const SessionInfo session, ReadSessionInfo(*opened.xspace));
    ASSIGN_OR_RETURN(node->clock, SessionClock::Create(path, session, std::nullopt));
    return &*opened.xspace;
  }

 private:
  struct Trace {
    std::optional<InputFile> file;
    // What times in the file count from, Unix time.
    int64_t base_ns = 0;
    // When its first slice starts, Unix time; absent when it has none.
    std::optional<int64_t> first_ns;
    // The trace as an XSpace, once it was asked for.
    std::unique_ptr<MappedRegion> converted;
    std::optional<XSpaceReader> xspace;
  };

  // Gzip or not.
  bool OutputEndsIn(absl::string_view suffix) const {
    return absl::EndsWith(absl::StripSuffix(request_.output, ".gz"), suffix);
  }

  // Writes a file for each rank. Perfetto refuses members that are compressed, and takes only those
  // for meant whose names are exactly the manifest's.
  absl::StatusOr<std::vector<AlignmentStats>> WriteArchive(
      absl::Span<const KinetoMergeInput> inputs, ByteSink& sink) {
    std::vector<ArchivedTrace> members;
    for (const KinetoMergeInput& input : inputs) {
      members.push_back(
          {absl::StrCat("rank", input.rank, ".json"),
           absl::StrCat("rank ", input.rank, input.hostname.empty() ? "" : " ", input.hostname)});
    }
    RETURN_IF_ERROR(AppendTarMember("perfetto_manifest.json", PerfettoManifest(members), sink));
    std::vector<AlignmentStats> stats;
    const int64_t base_ns = EarliestBase(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      // Its size comes before it in the archive.
      ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                       file_system_.CreateTemporary(request_.input.temporary_directory));
      WritableFileSink member(*file);
      ASSIGN_OR_RETURN(std::vector<AlignmentStats> one,
                       MergeKineto(inputs.subspan(i, 1), NoArrows, base_ns, nullptr, member));
      stats.push_back(std::move(one[0]));
      ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> bytes, file_system_.MapTemporary(*file));
      RETURN_IF_ERROR(AppendTarMember(members[i].name, bytes->bytes(), sink));
    }
    RETURN_IF_ERROR(FinishTar(sink));
    return stats;
  }

  static std::string HostOf(const OpenedTrace& node) {
    return node.session.hostnames.empty() ? "" : node.session.hostnames[0];
  }

  FileSystem& file_system_;
  const TraceFiles& files_;
  const CombineRequest& request_;
  // By node.
  std::vector<Trace> traces_;
};

}  // namespace

std::unique_ptr<RunTraces> MakeKinetoTraces(FileSystem& file_system, const TraceFiles& files,
                                            const CombineRequest& request) {
  return std::make_unique<KinetoTraces>(file_system, files, request);
}

}  // namespace meridian
