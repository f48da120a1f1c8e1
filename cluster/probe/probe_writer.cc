#include "cluster/probe/probe_writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "trace_alignment/probes/two_way_probes.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr absl::string_view kSuffix = ".jsonl";

std::string NodeFile(absl::string_view kind, int64_t node_id) {
  return absl::StrCat(kind, "_node", node_id);
}

void AppendProbe(const TwoWayProbe& probe, std::string* lines) {
  absl::StrAppend(lines, "{\"src\":", probe.src, ",\"dst\":", probe.dst,
                  ",\"t1\":", probe.src_sent_ns, ",\"t2\":", probe.dst_received_ns,
                  ",\"t3\":", probe.dst_sent_ns, ",\"t4\":", probe.src_received_ns, "}\n");
}

// Returns the neighbour's part of a line of windows: alpha = beta = 0 where nothing can be fitted.
std::string WindowEdge(const NeighbourWindow& window, int64_t dst, int64_t start_ns) {
  double alpha = 0;
  int64_t beta_ns = 0;
  // The estimator turns edges so that they begin at the lower node; here that is who asked.
  std::vector<TwoWayProbe> probes = window.probes;
  for (TwoWayProbe& probe : probes) {
    probe.src = 0;
    probe.dst = 1;
  }
  TwoWayOptions options;
  // All are of one window.
  options.window_ns = int64_t{1} << 62;
  const TwoWayEstimates estimates = EstimateEdges(probes, options);
  if (!estimates.edges.empty()) {
    const ProbeEdge& edge = estimates.edges[0];
    alpha = edge.rate;
    beta_ns = std::llround(static_cast<double>(edge.offset_ps) / 1000 -
                           alpha * static_cast<double>(edge.midpoint_src_ns - start_ns));
    // Two zeros would say that there is no fit; this is a ten-thousandth of a ppm.
    constexpr double kSmallestAlpha = 1e-10;
    if (beta_ns == 0 && std::abs(alpha) < kSmallestAlpha) alpha = kSmallestAlpha;
  }
  return absl::StrFormat("{\"dst\":%d,\"alpha\":%.10f,\"beta\":%d,\"pairs\":%d,\"lost\":%d}", dst,
                         alpha, beta_ns, probes.size(), window.lost);
}

}  // namespace

RotatingFile::RotatingFile(FileSystem& file_system, std::string folder, std::string name,
                           std::string header, const RotationOptions& options)
    : file_system_(file_system),
      folder_(std::move(folder)),
      name_(std::move(name)),
      header_(std::move(header)),
      options_(options) {}

std::string RotatingFile::Path(absl::string_view middle) const {
  return absl::StrCat(folder_, "/", name_, middle, kSuffix);
}

absl::Status RotatingFile::Append(absl::string_view lines) {
  if (lines.empty()) return absl::OkStatus();
  const auto size = static_cast<int64_t>(lines.size());
  if (file_ != nullptr && bytes_ + size > options_.max_file_bytes) {
    RETURN_IF_ERROR(file_->Close());
    file_ = nullptr;
  }
  std::string with_header;
  if (file_ == nullptr) {
    RETURN_IF_ERROR(MakeRoom());
    ASSIGN_OR_RETURN(file_, file_system_.CreateFile(Path("")));
    bytes_ = 0;
    with_header = absl::StrCat(header_, lines);
    lines = with_header;
  }
  bytes_ += static_cast<int64_t>(lines.size());
  return file_->Append(lines);
}

absl::Status RotatingFile::MakeRoom() {
  std::vector<int64_t> numbers;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(folder_));
  bool is_taken = false;
  for (absl::string_view name : names) {
    int64_t number = 0;
    if (!absl::ConsumePrefix(&name, name_) || !absl::ConsumeSuffix(&name, kSuffix)) continue;
    is_taken |= name.empty();
    if (absl::ConsumePrefix(&name, ".") && absl::SimpleAtoi(name, &number) && number > 0) {
      numbers.push_back(number);
    }
  }
  if (!is_taken) return absl::OkStatus();
  std::sort(numbers.begin(), numbers.end());
  const int64_t next = numbers.empty() ? 1 : numbers.back() + 1;
  RETURN_IF_ERROR(file_system_.Rename(Path(""), Path(absl::StrCat(".", next))));
  numbers.push_back(next);
  for (size_t i = 0; i + static_cast<size_t>(options_.kept_files) < numbers.size(); ++i) {
    RETURN_IF_ERROR(file_system_.Delete(Path(absl::StrCat(".", numbers[i]))));
  }
  return absl::OkStatus();
}

SnapshotWriter::SnapshotWriter(FileSystem& file_system, const std::string& folder,
                               const std::string& name, int64_t node_id, absl::string_view header,
                               const RotationOptions& options)
    : file_(
          file_system, folder, name,
          absl::StrCat("{\"meta\":true,\"node_id\":", node_id, ",\"absolute\":true", header, "}\n"),
          options) {}

absl::Status SnapshotWriter::Write(const ClockReading& reading) {
  const int64_t middle_ns = reading.before_ns + (reading.after_ns - reading.before_ns) / 2;
  return file_.Append(absl::StrCat("{\"sys_ns\":", middle_ns, ",\"tracer_ns\":", reading.second_ns,
                                   ",\"sys_before_ns\":", reading.before_ns,
                                   ",\"sys_after_ns\":", reading.after_ns, "}\n"));
}

ProbeWriter::ProbeWriter(FileSystem& file_system, const std::string& folder, ProbeHost host,
                         std::vector<ProbeHost> neighbours, int64_t window_ns,
                         const RotationOptions& options)
    : host_(std::move(host)),
      neighbours_(std::move(neighbours)),
      window_ns_(window_ns),
      probes_(file_system, folder, NodeFile("probes", host_.first_node), "", options),
      windows_(file_system, folder, NodeFile("probe_windows", host_.first_node),
               absl::StrCat("{\"meta\":true,\"node_id\":", host_.first_node, "}\n"), options) {}

absl::Status ProbeWriter::Write(const ProbeWindow& window) {
  const int64_t start_ns = window.window_id * window_ns_;
  const int64_t end_ns = start_ns + window_ns_;
  std::string lines, edges;
  for (size_t i = 0; i < window.neighbours.size(); ++i) {
    for (const TwoWayProbe& probe : window.neighbours[i].probes) AppendProbe(probe, &lines);
    absl::StrAppend(&edges, i > 0 ? "," : "",
                    WindowEdge(window.neighbours[i], neighbours_[i].first_node, start_ns));
  }
  for (int64_t node = 1; node < host_.nodes; ++node) {
    // Twice, so that their rates are known to be equal too.
    for (const int64_t time_ns : {start_ns, end_ns - 1}) {
      AppendProbe({host_.first_node, host_.first_node + node, time_ns, time_ns, time_ns, time_ns},
                  &lines);
    }
  }
  RETURN_IF_ERROR(probes_.Append(lines));
  return windows_.Append(
      absl::StrCat("{\"window_start_ns\":", start_ns, ",\"window_end_ns\":", end_ns,
                   ",\"window_id\":", window.window_id, ",\"round_id\":", window.window_id,
                   ",\"node_id\":", host_.first_node, ",\"edges\":[", edges, "]}\n"));
}

}  // namespace meridian
