#include "astra_bridge/engine/corrections.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/trace_json/json_cutter.h"
#include "xla_profiler/trace_json/json_value.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/status_util.h"
#include "xla_profiler/util/text_table.h"

namespace meridian {
namespace {

// Bounds within which corrected times fit into 64 bits.
constexpr double kMaxOverheadNs = 1e15;
constexpr double kMinEfficiency = 1e-3;
constexpr double kMaxEfficiency = 1e3;

absl::StatusOr<CorrectionSegment> ParseSegment(const JsonValue& value) {
  CorrectionSegment segment;
  const JsonValue up_to = value.Find("up_to_bytes");
  if (!up_to.exists()) return absl::InvalidArgumentError("up_to_bytes: missing");
  if (up_to.text() != "null") {
    const std::optional<int64_t> bytes = up_to.AsInt64();
    if (!bytes.has_value() || *bytes < 0) {
      return absl::InvalidArgumentError("up_to_bytes: expected a number of bytes, or null");
    }
    segment.up_to_bytes = *bytes;
  }
  const std::optional<double> overhead = value.Find("overhead_ns").AsDouble();
  // Written so that NaN fails too.
  if (!overhead.has_value() || !(std::fabs(*overhead) <= kMaxOverheadNs)) {
    return absl::InvalidArgumentError("overhead_ns: expected nanoseconds");
  }
  segment.overhead_ns = *overhead;
  const std::optional<double> efficiency = value.Find("efficiency").AsDouble();
  if (!efficiency.has_value() ||
      !(*efficiency >= kMinEfficiency && *efficiency <= kMaxEfficiency)) {
    return absl::InvalidArgumentError(absl::StrCat("efficiency: expected a number from ",
                                                   kMinEfficiency, " to ", kMaxEfficiency));
  }
  segment.efficiency = *efficiency;
  return segment;
}

absl::StatusOr<std::vector<CorrectionSegment>> ParseSegments(absl::string_view json) {
  std::vector<CorrectionSegment> segments;
  JsonCutter cutter(json);
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const JsonValue value(cutter.CutValue());
    absl::StatusOr<CorrectionSegment> segment = ParseSegment(value);
    const std::string place = absl::StrCat("[", segments.size(), "]");
    if (!segment.ok()) return Annotate(segment.status(), place);
    if (!segments.empty() && segment->up_to_bytes <= segments.back().up_to_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": up_to_bytes: must be more than in the segment before"));
    }
    segments.push_back(*segment);
  }
  RETURN_IF_ERROR(cutter.status());
  return segments;
}

}  // namespace

const CorrectionSegment* Corrections::Find(CollectiveOp op, int64_t bytes) const {
  const size_t index = static_cast<size_t>(op);
  if (index >= segments.size()) return nullptr;
  for (const CorrectionSegment& segment : segments[index]) {
    if (bytes <= segment.up_to_bytes) return &segment;
  }
  return nullptr;
}

int64_t Corrections::CorrectedNs(CollectiveOp op, int64_t bytes, int64_t engine_ns) const {
  const CorrectionSegment* const segment = Find(op, bytes);
  if (segment == nullptr) return engine_ns;
  const double corrected =
      segment->overhead_ns + static_cast<double>(engine_ns) / segment->efficiency;
  return std::max<int64_t>(0, std::llround(corrected));
}

absl::StatusOr<Corrections> ParseCorrections(absl::string_view json, absl::string_view source) {
  Corrections corrections;
  JsonCutter cutter(json);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    std::optional<size_t> op;
    for (size_t i = 0; i < corrections.segments.size(); ++i) {
      if (CollectiveOpName(static_cast<CollectiveOp>(i)) == key) op = i;
    }
    if (!op.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          source, ": ", Printable(key),
          ": unknown kind; expected all-reduce, all-gather, reduce-scatter or all-to-all"));
    }
    absl::StatusOr<std::vector<CorrectionSegment>> segments = ParseSegments(cutter.CutValue());
    if (!segments.ok()) return Annotate(segments.status(), absl::StrCat(source, ": ", key));
    corrections.segments[*op] = *std::move(segments);
  }
  if (cutter.status().ok() && !cutter.AtEnd()) cutter.Fail("text after the end of the object");
  RETURN_IF_ERROR(Annotate(cutter.status(), source));
  return corrections;
}

}  // namespace meridian
