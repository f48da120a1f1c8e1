#include "trace_alignment/aligner/alignment_record.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

constexpr absl::string_view kNodeIdStat = "alignment_node_id";
constexpr absl::string_view kMethodStat = "alignment_method";
constexpr absl::string_view kOffsetStat = "alignment_offset_ns";
constexpr absl::string_view kUncertaintyStat = "alignment_uncertainty_ns";
constexpr absl::string_view kDriftStat = "alignment_drift_ppm";

}  // namespace

void AddTo(PlaneAdditions* plane, const AlignmentRecord& record, absl::string_view prefix) {
  const auto named = [&](absl::string_view name) { return absl::StrCat(prefix, name); };
  plane->AddInt64(named(kNodeIdStat), record.node_id);
  plane->AddString(named(kMethodStat), record.method);
  if (record.offset_ns.has_value()) plane->AddInt64(named(kOffsetStat), *record.offset_ns);
  if (record.uncertainty_ns.has_value()) {
    plane->AddInt64(named(kUncertaintyStat), *record.uncertainty_ns);
  }
  if (record.drift_ppm.has_value()) plane->AddDouble(named(kDriftStat), *record.drift_ppm);
}

absl::StatusOr<bool> IsAligned(const XSpaceReader& reader) {
  bool aligned = false;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    for (const XStatVisitor& stat : plane.Stats()) {
      aligned |= absl::EndsWith(stat.Name(), kMethodStat);
    }
  }));
  return aligned;
}

}  // namespace meridian
