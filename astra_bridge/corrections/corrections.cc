#include "astra_bridge/corrections/corrections.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "xla_profiler/base/config/config_value.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {
namespace {

// Beyond these no measurement lies, but a slip of the unit does.
constexpr double kMaxRatio = 1e9;
constexpr double kMaxRanks = 1e9;

constexpr absl::string_view kOverheadName = "overhead_ns";
constexpr double kMaxOverheadNs = 1e12;

// A curve has a say about sizes up to this factor beyond its own.
constexpr double kNearSizes = 2;

// The YAML library takes some 250 bytes of memory for each byte of a list.
constexpr size_t kMaxFileBytes = size_t{4} << 20;

// Returns a reader of a number between bounds.
ConfigValue::Reader NumberReader(double least, double most, absl::string_view expected,
                                 double* result) {
  return [=](const ConfigValue& value) -> absl::Status {
    ASSIGN_OR_RETURN(*result, value.Number(expected));
    // Written so that NaN fails too.
    return *result >= least && *result <= most ? absl::OkStatus() : value.Error(expected);
  };
}

absl::StatusOr<std::vector<CorrectionPoint>> ReadPoints(const ConfigValue& list) {
  std::vector<CorrectionPoint> points;
  RETURN_IF_ERROR(list.ForEachElement([&](const ConfigValue& value) -> absl::Status {
    CorrectionPoint point = {0, 0, 1};
    RETURN_IF_ERROR(value.ReadMembers(
        {{"bytes", ReadInto(&point.bytes,
                            [](const ConfigValue& bytes) {
                              return bytes.Integer("expected a positive number of bytes", 1);
                            })},
         {"ratio", NumberReader(1 / kMaxRatio, kMaxRatio,
                                "expected a number from a billionth to a billion", &point.ratio)},
         {"ranks", NumberReader(1, kMaxRanks, "expected a number of ranks from 1 to a billion",
                                &point.ranks)}}));
    if (point.bytes == 0) return value.Error("bytes is missing");
    if (point.ratio == 0) return value.Error("ratio is missing");
    if (!points.empty() && !IsBefore(points.back(), point)) {
      return value.Error("points are to be in ascending order of ranks, then of bytes");
    }
    points.push_back(point);
    return absl::OkStatus();
  }));
  if (points.empty()) return list.Error("there are no points");
  return points;
}

// Returns the ratio at x on the line through two points of logarithms.
double BetweenLogarithms(double x0, double ratio0, double x1, double ratio1, double x) {
  return ratio0 * std::pow(ratio1 / ratio0, std::log(x / x0) / std::log(x1 / x0));
}

// Returns the points of the first number of ranks. There is at least one point.
absl::Span<const CorrectionPoint> FirstCurve(absl::Span<const CorrectionPoint> points) {
  const auto end =
      absl::c_upper_bound(points, points[0].ranks,
                          [](double ranks, const CorrectionPoint& p) { return ranks < p.ranks; });
  return points.subspan(0, end - points.begin());
}

bool IsNear(absl::Span<const CorrectionPoint> curve, int64_t bytes) {
  const double size = static_cast<double>(bytes);
  return size * kNearSizes >= static_cast<double>(curve.front().bytes) &&
         size <= kNearSizes * static_cast<double>(curve.back().bytes);
}

double RatioOn(absl::Span<const CorrectionPoint> curve, int64_t bytes) {
  const auto above = absl::c_lower_bound(
      curve, bytes, [](const CorrectionPoint& point, int64_t b) { return point.bytes < b; });
  if (above == curve.begin()) return above->ratio;
  const CorrectionPoint& below = *(above - 1);
  if (above == curve.end()) return below.ratio;
  return BetweenLogarithms(static_cast<double>(below.bytes), below.ratio,
                           static_cast<double>(above->bytes), above->ratio,
                           static_cast<double>(bytes));
}

}  // namespace

bool IsBefore(const CorrectionPoint& a, const CorrectionPoint& b) {
  return std::tie(a.ranks, a.bytes) < std::tie(b.ranks, b.bytes);
}

double RatioAt(const std::vector<CorrectionPoint>& points, int64_t bytes, double ranks) {
  const absl::Span<const CorrectionPoint> all = points;
  // The nearest curves below or at the number of ranks, and above it.
  absl::Span<const CorrectionPoint> below, above;
  for (const bool only_near : {true, false}) {
    for (absl::Span<const CorrectionPoint> rest = all; !rest.empty();) {
      const absl::Span<const CorrectionPoint> curve = FirstCurve(rest);
      rest.remove_prefix(curve.size());
      if (only_near && !IsNear(curve, bytes)) continue;
      if (curve[0].ranks <= ranks) {
        below = curve;
      } else {
        above = curve;
        break;
      }
    }
    if (!below.empty() || !above.empty()) break;
  }
  if (above.empty()) return RatioOn(below, bytes);
  if (below.empty()) return RatioOn(above, bytes);
  return BetweenLogarithms(below[0].ranks, RatioOn(below, bytes), above[0].ranks,
                           RatioOn(above, bytes), ranks);
}

double Corrections::CorrectedNs(const TransferTraits& transfer, double engine_ns) const {
  if (!Has(transfer.kind)) return engine_ns;
  const bool takes_one_way = transfer.is_one_way && !one_way.empty();
  const std::vector<CorrectionPoint>& of_kind =
      takes_one_way ? one_way : points[static_cast<size_t>(transfer.kind)];
  const double ratio = of_kind.empty() ? 1 : RatioAt(of_kind, transfer.bytes, transfer.ranks);
  return std::min(std::round(ratio * (std::max(engine_ns, kLeastEngineNs) + overhead_ns)),
                  kMaxCorrectedNs);
}

absl::StatusOr<Corrections> ParseCorrections(absl::string_view json, absl::string_view source) {
  ASSIGN_OR_RETURN(const ConfigValue document,
                   ConfigValue::FromYaml(json, source, kMaxFileBytes, "a file of corrections"));
  Corrections corrections;
  std::map<std::string, ConfigValue::Reader> readers = {
      {std::string(kOverheadName),
       NumberReader(0, kMaxOverheadNs, "expected a time of up to a thousand seconds",
                    &corrections.overhead_ns)},
      {std::string(kOneWayName), ReadInto(&corrections.one_way, ReadPoints)}};
  for (size_t kind = 0; kind < corrections.points.size(); ++kind) {
    readers[std::string(CollectiveKindName(static_cast<CollectiveKind>(kind)))] =
        ReadInto(&corrections.points[kind], ReadPoints);
  }
  RETURN_IF_ERROR(document.ReadMembers(readers));
  return corrections;
}

std::string CorrectionsToJson(const Corrections& corrections) {
  std::vector<std::string> kinds;
  if (corrections.overhead_ns > 0) {
    kinds.push_back(absl::StrFormat("  \"%s\": %.17g", kOverheadName, corrections.overhead_ns));
  }
  const auto add = [&](absl::string_view key, const std::vector<CorrectionPoint>& all) {
    std::vector<std::string> points;
    for (const CorrectionPoint& point : all) {
      points.push_back(absl::StrFormat("    {\"bytes\": %d, \"ratio\": %.17g, \"ranks\": %.17g}",
                                       point.bytes, point.ratio, point.ranks));
    }
    if (points.empty()) return;
    kinds.push_back(absl::StrCat("  \"", key, "\": [\n", absl::StrJoin(points, ",\n"), "\n  ]"));
  };
  for (size_t kind = 0; kind < corrections.points.size(); ++kind) {
    add(CollectiveKindName(static_cast<CollectiveKind>(kind)), corrections.points[kind]);
  }
  add(kOneWayName, corrections.one_way);
  return absl::StrCat("{\n", absl::StrJoin(kinds, ",\n"), "\n}\n");
}

absl::StatusOr<Corrections> ReadCorrections(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseCorrections(file.bytes(), path);
}

}  // namespace meridian
