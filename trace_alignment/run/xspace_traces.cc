#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "trace_alignment/aligner/xspace_aligner.h"
#include "trace_alignment/run/combine_run.h"
#include "trace_alignment/run/run_traces.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/xplane/combined_profile.h"

namespace meridian {
namespace {

class XSpaceTraces : public RunTraces {
 public:
  XSpaceTraces(FileSystem& file_system, const TraceFiles& files, const CombineRequest& request)
      : file_system_(file_system), files_(files), request_(request), readers_(files.size()) {}

  absl::Status CheckRequest() const override {
    const absl::string_view output = absl::StripSuffix(request_.output, ".gz");
    if (!absl::EndsWith(output, ".json") && !absl::EndsWith(output, ".tar"))
      return absl::OkStatus();
    return InvalidArgument("--output=", request_.output,
                           ": XSpaces are combined to an XSpace (.xplane.pb or .xplane.pb.gz); "
                           "name JSON with --trace_json");
  }

  bool HaveOneRankEach() const override { return false; }

  absl::StatusOr<OpenedTrace> Open(size_t n) override {
    ASSIGN_OR_RETURN(InputFile file, files_.Open(n));
    ASSIGN_OR_RETURN(XSpaceReader reader, XSpaceReader::OfFile(std::move(file)));
    RETURN_IF_ERROR(CheckRaw(reader));
    ASSIGN_OR_RETURN(SessionInfo session, ReadSessionInfo(reader));
    XSpaceCollectivesOptions options;
    options.profile_start_ns = request_.StartOf(n);
    ASSIGN_OR_RETURN(SessionClock clock,
                     SessionClock::Create(reader.name(), session, options.profile_start_ns));
    OpenedTrace node(std::move(clock));
    node.session = std::move(session);
    ASSIGN_OR_RETURN(node.collectives, ReadXSpaceCollectives(reader, options));
    reader.Forget(reader.source().bytes);
    readers_[n].emplace(std::move(reader));
    return node;
  }

  absl::StatusOr<std::optional<SnapshotPairs>> LoadSnapshots(
      size_t n, const OpenedTrace& node, const std::string& file,
      const SnapshotPairsOptions& options) override {
    return LoadProfileSnapshots(file_system_, *readers_[n], node.clock, file, options);
  }

  std::string AlignedName(size_t n) const override {
    absl::string_view trace = files_.FileOf(n);
    if (!absl::ConsumeSuffix(&trace, ".xplane.pb.gz")) absl::ConsumeSuffix(&trace, ".xplane.pb");
    return absl::StrCat(trace.substr(trace.rfind('/') + 1), ".xplane.pb");
  }

  bool IsTraceName(absl::string_view name) const override {
    return absl::EndsWith(absl::StripSuffix(name, ".gz"), ".xplane.pb");
  }

  absl::StatusOr<AlignmentStats> WriteAligned(size_t n, const OpenedTrace& node,
                                              const NodeClock& clock, const AlignOptions& options,
                                              ByteSink& sink) override {
    const XSpaceReader& reader = *readers_[n];
    absl::StatusOr<AlignmentStats> stats = AlignXSpace(reader, node.clock, clock, options, sink);
    reader.Forget(reader.source().bytes);
    return stats;
  }

  absl::StatusOr<const XSpaceReader*> AsXSpace(size_t n, OpenedTrace*) override {
    return &*readers_[n];
  }

 private:
  absl::Status CheckRaw(const XSpaceReader& reader) const {
    ASSIGN_OR_RETURN(const std::vector<NodeProfile> combined, SplitCombinedProfile(reader));
    if (!combined.empty()) {
      return InvalidArgument(reader.name(), ": is a combined profile; give the nodes' own");
    }
    ASSIGN_OR_RETURN(const bool aligned, IsAligned(reader));
    if (!aligned || request_.alignment.method == AlignmentMethod::kNone) return absl::OkStatus();
    return InvalidArgument(
        reader.name(),
        ": is aligned already; give the original, or --method=none to combine it as it is");
  }

  FileSystem& file_system_;
  const TraceFiles& files_;
  const CombineRequest& request_;
  // By node.
  std::vector<std::optional<XSpaceReader>> readers_;
};

}  // namespace

std::unique_ptr<RunTraces> MakeXSpaceTraces(FileSystem& file_system, const TraceFiles& files,
                                            const CombineRequest& request) {
  return std::make_unique<XSpaceTraces>(file_system, files, request);
}

std::unique_ptr<RunTraces> RunTraces::Create(FileSystem& file_system, const TraceFiles& files,
                                             const CombineRequest& request) {
  switch (files.form()) {
    case TraceForm::kKineto:
      return MakeKinetoTraces(file_system, files, request);
    case TraceForm::kXSpace:
      break;
  }
  return MakeXSpaceTraces(file_system, files, request);
}

}  // namespace meridian
