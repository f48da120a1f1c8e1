#include "trace_alignment/clocks/offset_samples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/jsonl_row.h"

namespace meridian {
namespace {

constexpr absl::string_view kExample =
    R"({"round_id":3,"window_start_ns":1000,"window_end_ns":2000,"node_id":1,"offset_ns":-750.8,)"
    R"("drift_ppm":0.43,"reachable":true,"converged":true})";

struct OffsetRow {
  // Its line in the file, counted from 1.
  int64_t line = 0;
  OffsetSample sample;
  // Absent in the legacy form, where sample.midpoint_ref_ns is final.
  std::optional<int64_t> round_id;
  bool reachable = true;
  bool converged = true;

  bool usable() const { return reachable && converged; }
};

struct OffsetFile {
  std::string name;
  // What the header says about the nodes' starts, by node id.
  absl::btree_map<int64_t, ClockAnchors> anchors;
  std::vector<OffsetRow> rows;
};

absl::Status ReadHeader(const JsonlRow& row, OffsetFile* file) {
  JsonCutter nodes(row.Find("nodes").text());
  nodes.Enter('[');
  while (nodes.NextElement()) {
    const JsonlRow node = row.Nested(nodes.CutValue());
    ASSIGN_OR_RETURN(const int64_t node_id, node.Int64("node_id"));
    ASSIGN_OR_RETURN(file->anchors[node_id], ReadClockAnchors(node));
  }
  return nodes.status().ok() ? absl::OkStatus() : row.Error("nodes is no array");
}

absl::StatusOr<int64_t> WindowMiddleNs(const JsonlRow& row) {
  ASSIGN_OR_RETURN(const int64_t start_ns, row.Int64("window_start_ns"));
  ASSIGN_OR_RETURN(const int64_t end_ns, row.Int64("window_end_ns"));
  if (end_ns < start_ns) return row.Error("window_end_ns is before window_start_ns");
  return static_cast<int64_t>((absl::int128(start_ns) + end_ns) / 2);
}

absl::StatusOr<OffsetRow> ReadRow(const JsonlRow& row) {
  OffsetRow result;
  OffsetSample& sample = result.sample;
  result.line = row.line();
  ASSIGN_OR_RETURN(sample.node_id, row.Int64("node_id"));
  if (row.Has("midpoint_sys_ns")) {
    ASSIGN_OR_RETURN(sample.midpoint_ref_ns, row.Int64("midpoint_sys_ns"));
  } else {
    ASSIGN_OR_RETURN(result.round_id, row.Int64("round_id"));
    ASSIGN_OR_RETURN(sample.midpoint_ref_ns, WindowMiddleNs(row));
  }
  ASSIGN_OR_RETURN(result.reachable, row.Bool("reachable", true));
  ASSIGN_OR_RETURN(result.converged, row.Bool("converged", true));
  // What an unusable row says beside may be anything.
  if (!result.usable()) return result;
  ASSIGN_OR_RETURN(sample.offset_ps, row.NanosAsPicos("offset_ns"));
  const absl::string_view drift_key = row.Has("drift_ppm") ? "drift_ppm" : "slope_ppm";
  if (row.Has(drift_key)) {
    ASSIGN_OR_RETURN(sample.drift_ppm, row.FiniteDouble(drift_key));
    if (*sample.drift_ppm <= -1e6) return row.Error("the node's clock runs backwards");
  }
  if (row.Has("residual")) RETURN_IF_ERROR(row.FiniteDouble("residual").status());
  return result;
}

absl::StatusOr<OffsetFile> ReadFile(absl::string_view contents, const std::string& name) {
  OffsetFile file;
  file.name = name;
  bool first = true;
  RETURN_IF_ERROR(
      ForEachJsonlRow(contents, name, kExample, [&](const JsonlRow& row) -> absl::Status {
        ASSIGN_OR_RETURN(const bool is_header, row.Bool("meta", false));
        if (is_header && !first) return row.Error("the header is not the first line");
        first = false;
        if (is_header) return ReadHeader(row, &file);
        ASSIGN_OR_RETURN(OffsetRow offset, ReadRow(row));
        file.rows.push_back(std::move(offset));
        return absl::OkStatus();
      }));
  if (file.rows.empty()) {
    return InvalidArgument(name, ": no offsets; expected lines like ", kExample);
  }
  return file;
}

absl::Status Contradiction(const OffsetFile& file, const OffsetRow& first,
                           const OffsetRow& second) {
  return InvalidArgument(file.name, ":", second.line, ": contradicts line ", first.line,
                         ": both are for node ", first.sample.node_id,
                         " at the same time, with different values");
}

// The given node must have the offset 0 in all its rows; when none is given, the lowest such node.
absl::StatusOr<std::optional<int64_t>> FindReference(const OffsetFile& file,
                                                     std::optional<int64_t> given) {
  absl::btree_map<int64_t, const OffsetRow*> first_nonzero;
  for (const OffsetRow& row : file.rows) {
    if (!row.usable()) continue;
    const OffsetRow*& nonzero = first_nonzero[row.sample.node_id];
    if (nonzero == nullptr && row.sample.offset_ps != 0) nonzero = &row;
  }
  if (given.has_value()) {
    const auto node = first_nonzero.find(*given);
    if (node == first_nonzero.end() || node->second == nullptr) return given;
    return InvalidArgument(file.name, ":", node->second->line, ": node ", *given,
                           " is said to be the reference, but its offset is not 0 here: these "
                           "offsets are relative to another node");
  }
  for (const auto& [node_id, nonzero] : first_nonzero) {
    if (nonzero == nullptr) return node_id;
  }
  return std::nullopt;
}

// Returns the reference node's row of each round, by round id: its window is what ties the round to
// reference time. That the row is not reachable or not converged does not matter for that.
absl::StatusOr<absl::btree_map<int64_t, const OffsetRow*>> ReferenceRows(
    const OffsetFile& file, std::optional<int64_t> reference) {
  absl::btree_map<int64_t, const OffsetRow*> rounds;
  for (const OffsetRow& row : file.rows) {
    if (row.sample.node_id != reference || !row.round_id.has_value()) continue;
    const auto [known, inserted] = rounds.emplace(*row.round_id, &row);
    if (!inserted && known->second->sample.midpoint_ref_ns != row.sample.midpoint_ref_ns) {
      return Contradiction(file, *known->second, row);
    }
  }
  return rounds;
}

// Keeps the usable rows, on reference time and once each.
absl::StatusOr<std::vector<OffsetSample>> UsableSamples(const OffsetFile& file,
                                                        std::optional<int64_t> reference,
                                                        OffsetRowsNotUsed* not_used) {
  ASSIGN_OR_RETURN(const auto rounds, ReferenceRows(file, reference));
  absl::btree_map<std::pair<int64_t, int64_t>, std::pair<const OffsetRow*, OffsetSample>> kept;
  for (const OffsetRow& row : file.rows) {
    if (!row.usable()) {
      ++(row.reachable ? not_used->not_converged : not_used->unreachable);
      continue;
    }
    OffsetSample sample = row.sample;
    if (row.round_id.has_value() && !rounds.empty()) {
      const auto round = rounds.find(*row.round_id);
      if (round == rounds.end()) {
        ++not_used->without_reference;
        continue;
      }
      sample.midpoint_ref_ns = round->second->sample.midpoint_ref_ns;
    }
    const auto [known, inserted] =
        kept.try_emplace({sample.node_id, sample.midpoint_ref_ns}, &row, sample);
    if (inserted) continue;
    const OffsetSample& first = known->second.second;
    if (first.offset_ps != sample.offset_ps || first.drift_ppm != sample.drift_ppm) {
      return Contradiction(file, *known->second.first, row);
    }
    ++not_used->identical;
  }
  std::vector<OffsetSample> samples;
  for (const auto& [key, value] : kept) samples.push_back(value.second);
  return samples;
}

constexpr double kMostOffsetPs = 9e18;

// Returns the first and the last time of the samples that are of a round: half the way to its
// neighbours, beyond the first and the last round as far as on the other side.
std::pair<absl::int128, absl::int128> RoundSpan(const std::vector<OffsetSample>& rounds, size_t i) {
  const absl::int128 middle_ns = rounds[i].midpoint_ref_ns;
  absl::int128 before_ns = i == 0 ? 0 : (middle_ns - rounds[i - 1].midpoint_ref_ns) / 2;
  absl::int128 after_ns =
      i + 1 == rounds.size() ? before_ns : (rounds[i + 1].midpoint_ref_ns - middle_ns) / 2;
  if (i == 0) before_ns = after_ns;
  return {middle_ns - before_ns, middle_ns + after_ns};
}

// Returns how far the line of sample i reaches to either side: a quarter of the way to the nearer
// neighbour.
int64_t LineReachPs(const std::vector<ClockKnot>& knots, size_t i) {
  if (knots.size() == 1) return kEndSlopeSpanPs;
  const int64_t before_ps = i == 0 ? 0 : knots[i].to_ps / 4 - knots[i - 1].to_ps / 4;
  const int64_t after_ps = i + 1 == knots.size() ? 0 : knots[i + 1].to_ps / 4 - knots[i].to_ps / 4;
  return before_ps == 0 ? after_ps : after_ps == 0 ? before_ps : std::min(before_ps, after_ps);
}

// Returns two knots on the line of each sample's drift, in place of the sample's own knot.
absl::StatusOr<std::vector<ClockKnot>> KnotsOnLines(const std::vector<OffsetSample>& samples,
                                                    const std::vector<ClockKnot>& knots) {
  std::vector<ClockKnot> ends;
  for (size_t i = 0; i < knots.size(); ++i) {
    if (!samples[i].drift_ppm.has_value()) {
      return InvalidArgument(
          "an offset of node ", samples[i].node_id,
          " comes without drift_ppm, which the slope by drift_ppm needs; interpolate instead");
    }
    const int64_t reach_ps = LineReachPs(knots, i);
    const int64_t drift_ps =
        std::llround(static_cast<double>(reach_ps) * *samples[i].drift_ppm * 1e-6);
    ends.push_back({knots[i].from_ps - reach_ps - drift_ps, knots[i].to_ps - reach_ps});
    ends.push_back({knots[i].from_ps + reach_ps + drift_ps, knots[i].to_ps + reach_ps});
  }
  return ends;
}

}  // namespace

absl::StatusOr<OffsetSamples::Slope> OffsetSamples::ParseSlope(absl::string_view name) {
  if (name == "interpolate") return Slope::kInterpolate;
  if (name == "drift_ppm") return Slope::kDriftPpm;
  return InvalidArgument("--offset_slope=", name, " is none of interpolate, drift_ppm");
}

absl::StatusOr<OffsetSamples> OffsetSamples::Load(FileSystem& file_system, const std::string& path,
                                                  std::optional<int64_t> reference_node) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return Parse(file.bytes(), path, reference_node);
}

absl::StatusOr<OffsetSamples> OffsetSamples::Parse(absl::string_view contents,
                                                   const std::string& name,
                                                   std::optional<int64_t> reference_node) {
  ASSIGN_OR_RETURN(OffsetFile file, ReadFile(contents, name));
  ASSIGN_OR_RETURN(const std::optional<int64_t> reference, FindReference(file, reference_node));
  OffsetRowsNotUsed not_used;
  ASSIGN_OR_RETURN(const std::vector<OffsetSample> usable,
                   UsableSamples(file, reference, &not_used));
  OffsetSamples samples(name, reference, usable);
  samples.anchors_ = std::move(file.anchors);
  samples.rows_not_used_ = not_used;
  return samples;
}

OffsetSamples::OffsetSamples(std::string name, std::optional<int64_t> reference_node,
                             const std::vector<OffsetSample>& samples)
    : name_(std::move(name)), reference_node_(reference_node) {
  for (const OffsetSample& sample : samples) samples_[sample.node_id].push_back(sample);
  for (auto& [node_id, of_node] : samples_) {
    std::stable_sort(of_node.begin(), of_node.end(),
                     [](const OffsetSample& a, const OffsetSample& b) {
                       return a.midpoint_ref_ns < b.midpoint_ref_ns;
                     });
  }
}

std::vector<int64_t> OffsetSamples::NodeIds() const {
  std::vector<int64_t> ids;
  for (const auto& [node_id, samples] : samples_) ids.push_back(node_id);
  return ids;
}

const std::vector<OffsetSample>& OffsetSamples::SamplesOf(int64_t node_id) const {
  static const auto* const kNone = new std::vector<OffsetSample>();
  const auto node = samples_.find(node_id);
  return node == samples_.end() ? *kNone : node->second;
}

ClockAnchors OffsetSamples::AnchorsOf(int64_t node_id) const {
  const auto node = anchors_.find(node_id);
  return node == anchors_.end() ? ClockAnchors() : node->second;
}

OffsetSamples OffsetSamples::WithLastHeld(absl::Span<const int64_t> node_ids, Slope slope,
                                          double max_drift_ppm) const {
  OffsetSamples result = *this;
  if (!reference_node_.has_value()) return result;
  const std::vector<OffsetSample>& rounds = SamplesOf(*reference_node_);
  for (const int64_t node_id : node_ids) {
    const auto of_node = result.samples_.find(node_id);
    if (of_node == result.samples_.end()) continue;
    std::vector<OffsetSample>& samples = of_node->second;
    std::vector<OffsetSample> held;
    auto next = samples.begin();
    for (size_t i = 0; i < rounds.size(); ++i) {
      const auto [first_ns, last_ns] = RoundSpan(rounds, i);
      while (next != samples.end() && next->midpoint_ref_ns <= last_ns) held.push_back(*next++);
      if (held.empty() || held.back().midpoint_ref_ns >= first_ns) continue;
      const int64_t round_ns = rounds[i].midpoint_ref_ns;
      const double elapsed_ns =
          static_cast<double>(round_ns) - static_cast<double>(held.back().midpoint_ref_ns);
      OffsetSample last = held.back();
      if (slope == Slope::kDriftPpm) {
        const double moved_ps = elapsed_ns * last.drift_ppm.value_or(0) * 1e-3;
        // What is farther off is no clock's, and no integer's.
        if (std::abs(static_cast<double>(last.offset_ps) + moved_ps) > kMostOffsetPs) continue;
        last.offset_ps += std::llround(moved_ps);
      }
      if (last.uncertainty_ns.has_value())
        *last.uncertainty_ns += elapsed_ns * max_drift_ppm * 1e-6;
      last.midpoint_ref_ns = round_ns;
      held.push_back(last);
    }
    held.insert(held.end(), next, samples.end());
    samples = std::move(held);
  }
  return result;
}

absl::StatusOr<ClockMap> OffsetSamples::OffsetMap(int64_t node_id, const RunClock& clock,
                                                  Slope slope) const {
  if (node_id == reference_node_) return ClockMap::Identity();
  const std::vector<OffsetSample>& samples = SamplesOf(node_id);
  if (samples.empty()) return NoSamples(node_id);
  std::vector<ClockKnot> knots;
  for (const OffsetSample& sample : samples) {
    ASSIGN_OR_RETURN(const int64_t from_ps,
                     Annotate(clock.ToRunPs(sample.midpoint_ref_ns, sample.offset_ps), name_));
    ASSIGN_OR_RETURN(const int64_t to_ps,
                     Annotate(clock.ToRunPs(sample.midpoint_ref_ns, 0), name_));
    knots.push_back({from_ps, to_ps});
  }
  if (slope == Slope::kDriftPpm) {
    ASSIGN_OR_RETURN(knots, KnotsOnLines(samples, knots));
  }
  return ClockMap::Create(std::move(knots), ClockMap::OnDisorder::kRepair);
}

absl::Status OffsetSamples::NoSamples(int64_t node_id) const {
  const std::string found = samples_.empty() ? "none" : absl::StrJoin(NodeIds(), ", ");
  return NotFound(name_, ": no usable offset for node ", node_id, ", which is not the reference",
                  reference_node_.has_value() ? absl::StrCat(" (node ", *reference_node_, ")") : "",
                  "; nodes with usable offsets: ", found,
                  "; rows not used: ", rows_not_used_.unreachable, " unreachable, ",
                  rows_not_used_.not_converged, " not converged, ",
                  rows_not_used_.without_reference, " of rounds without the reference");
}

}  // namespace meridian
