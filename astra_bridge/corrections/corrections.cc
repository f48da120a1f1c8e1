#include "astra_bridge/corrections/corrections.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Beyond these no measurement lies, but a slip of the unit does.
constexpr double kMaxRatio = 1e9;
constexpr double kMaxRanks = 1e9;

constexpr absl::string_view kOverheadName = "overhead_ns";
constexpr double kMaxOverheadNs = 1e12;

// A curve has a say about sizes up to this factor beyond its own.
constexpr double kNearSizes = 2;

constexpr char kExample[] =
    R"({"all-reduce":[{"bytes":1024,"ratio":1.31},{"bytes":65536,"ratio":0.94}]})";
constexpr size_t kShownCharacters = 40;

class Place {
 public:
  explicit Place(absl::string_view source) : text_(source) {}

  Place Inside(absl::string_view part) const { return Place(absl::StrCat(text_, ": ", part)); }

  absl::Status Error(absl::string_view reason) const {
    return InvalidArgument(text_, ": ", reason, "; expected e.g. ", kExample);
  }

  absl::Status WrongValue(absl::string_view key, const JsonValue& value,
                          absl::string_view wanted) const {
    return Error(absl::StrCat(
        key, " is ", FirstCharacters(Printable(value.text()), kShownCharacters), ", not ", wanted));
  }

 private:
  std::string text_;
};

absl::StatusOr<CorrectionPoint> ParsePoint(absl::string_view json, const Place& place) {
  std::optional<int64_t> bytes;
  std::optional<double> ratio;
  double ranks = 1;
  JsonCutter cutter(json);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const JsonValue value(cutter.CutValue());
    if (key == "bytes") {
      bytes = value.AsInt64();
      if (bytes.value_or(0) <= 0) return place.WrongValue(key, value, "a positive number of bytes");
    } else if (key == "ratio") {
      ratio = value.AsDouble();
      if (!ratio.has_value() || !std::isfinite(*ratio)) {
        return place.WrongValue(key, value, "a number");
      }
      if (*ratio < 1 / kMaxRatio || *ratio > kMaxRatio) {
        return place.WrongValue(key, value, "from a billionth to a billion");
      }
    } else if (key == "ranks") {
      ranks = value.AsDouble().value_or(0);
      if (!(ranks >= 1 && ranks <= kMaxRanks)) {
        return place.WrongValue(key, value, "a number of ranks from 1 to a billion");
      }
    } else if (key == "up_to_bytes") {
      return place.Error(
          "segments with up_to_bytes are of an older version; write the corrections anew with "
          "astra_calibrate");
    } else {
      return place.Error(absl::StrCat("the key ", Printable(key), " is not known"));
    }
  }
  if (!cutter.status().ok()) return place.Error("this is no object");
  if (!bytes.has_value()) return place.Error("bytes is missing");
  if (!ratio.has_value()) return place.Error("ratio is missing");
  return CorrectionPoint{*bytes, *ratio, ranks};
}

absl::StatusOr<std::vector<CorrectionPoint>> ParsePoints(absl::string_view json,
                                                         const Place& place) {
  std::vector<CorrectionPoint> points;
  JsonCutter cutter(json);
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const Place inside = place.Inside(absl::StrCat("point ", points.size() + 1));
    ASSIGN_OR_RETURN(const CorrectionPoint point, ParsePoint(cutter.CutValue(), inside));
    if (!points.empty() && !IsBefore(points.back(), point)) {
      return inside.Error("points are to be in ascending order of ranks, then of bytes");
    }
    points.push_back(point);
  }
  if (!cutter.status().ok()) return place.Error("this is no array");
  if (points.empty()) return place.Error("there are no points");
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
  const Place place(source);
  Corrections corrections;
  JsonCutter cutter(json);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    if (key == kOverheadName) {
      const JsonValue value(cutter.CutValue());
      corrections.overhead_ns = value.AsDouble().value_or(-1);
      if (!(corrections.overhead_ns >= 0 && corrections.overhead_ns <= kMaxOverheadNs)) {
        return place.WrongValue(key, value, "a time of up to a thousand seconds");
      }
      continue;
    }
    const std::optional<CollectiveKind> kind = TimedKindFromName(key);
    if (!kind.has_value() && key != kOneWayName) {
      return place.Error(absl::StrCat(
          Printable(key), " is neither ", kOverheadName,
          " nor a kind; kinds are all-reduce, all-gather, reduce-scatter, all-to-all, p2p and ",
          kOneWayName));
    }
    std::vector<CorrectionPoint>& points =
        kind.has_value() ? corrections.points[static_cast<size_t>(*kind)] : corrections.one_way;
    if (!points.empty()) return place.Error(absl::StrCat(key, " occurs twice"));
    ASSIGN_OR_RETURN(points, ParsePoints(cutter.CutValue(), place.Inside(key)));
  }
  if (!cutter.status().ok()) return place.Error(cutter.status().message());
  if (!cutter.AtEnd()) return place.Error("text follows the object");
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
