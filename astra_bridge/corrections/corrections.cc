#include "astra_bridge/corrections/corrections.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Beyond these no measurement lies, but a slip of the unit does.
constexpr double kMaxOverheadNs = 3.6e12;
constexpr double kMinEfficiency = 1e-6;

constexpr char kExample[] =
    R"({"all-reduce":[{"up_to_bytes":null,"overhead_ns":41000,"efficiency":0.71}]})";
constexpr size_t kShownCharacters = 40;

// Where in the document the reader is, for messages.
class Place {
 public:
  explicit Place(absl::string_view source) : text_(source) {}

  Place Inside(absl::string_view part) const { return Place(absl::StrCat(text_, ": ", part)); }

  absl::Status Error(absl::string_view reason) const {
    return absl::InvalidArgumentError(
        absl::StrCat(text_, ": ", reason, "; expected e.g. ", kExample));
  }

  absl::Status WrongValue(absl::string_view key, absl::string_view text,
                          absl::string_view kind) const {
    return Error(absl::StrCat(key, " is ", FirstCharacters(Printable(text), kShownCharacters),
                              ", not ", kind));
  }

 private:
  std::string text_;
};

absl::StatusOr<double> FiniteNumber(absl::string_view key, const JsonValue& value,
                                    const Place& place) {
  const std::optional<double> number = value.AsDouble();
  if (!number.has_value() || !std::isfinite(*number)) {
    return place.WrongValue(key, value.text(), "a number");
  }
  return *number;
}

absl::StatusOr<int64_t> UpToBytes(const JsonValue& value, const Place& place) {
  if (value.text() == "null") return std::numeric_limits<int64_t>::max();
  const std::optional<int64_t> bytes = value.AsInt64();
  if (!bytes.has_value() || *bytes < 0) {
    return place.WrongValue("up_to_bytes", value.text(), "a number of bytes or null");
  }
  return *bytes;
}

absl::StatusOr<CorrectionSegment> ParseSegment(absl::string_view json, const Place& place) {
  CorrectionSegment segment;
  bool has_up_to_bytes = false, has_overhead_ns = false, has_efficiency = false;
  JsonCutter cutter(json);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const JsonValue value(cutter.CutValue());
    if (key == "up_to_bytes") {
      ASSIGN_OR_RETURN(segment.up_to_bytes, UpToBytes(value, place));
      has_up_to_bytes = true;
    } else if (key == "overhead_ns") {
      ASSIGN_OR_RETURN(segment.overhead_ns, FiniteNumber(key, value, place));
      if (std::abs(segment.overhead_ns) > kMaxOverheadNs) {
        return place.WrongValue(key, value.text(), "within an hour either way");
      }
      has_overhead_ns = true;
    } else if (key == "efficiency") {
      ASSIGN_OR_RETURN(segment.efficiency, FiniteNumber(key, value, place));
      if (segment.efficiency <= 0) return place.WrongValue(key, value.text(), "above 0");
      if (segment.efficiency < kMinEfficiency || segment.efficiency > 1 / kMinEfficiency) {
        return place.WrongValue(key, value.text(), "from a millionth to a million");
      }
      has_efficiency = true;
    } else {
      return place.Error(absl::StrCat("the key ", Printable(key), " is not known"));
    }
  }
  if (!cutter.status().ok()) return place.Error("this is no object");
  if (!has_up_to_bytes) return place.Error("up_to_bytes is missing");
  if (!has_overhead_ns) return place.Error("overhead_ns is missing");
  if (!has_efficiency) return place.Error("efficiency is missing");
  return segment;
}

absl::StatusOr<std::vector<CorrectionSegment>> ParseSegments(absl::string_view json,
                                                             const Place& place) {
  std::vector<CorrectionSegment> segments;
  JsonCutter cutter(json);
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const Place inside = place.Inside(absl::StrCat("segment ", segments.size() + 1));
    ASSIGN_OR_RETURN(const CorrectionSegment segment, ParseSegment(cutter.CutValue(), inside));
    if (!segments.empty() && segment.up_to_bytes <= segments.back().up_to_bytes) {
      return inside.Error("up_to_bytes is not above that of the segment before");
    }
    segments.push_back(segment);
  }
  if (!cutter.status().ok()) return place.Error("this is no array");
  if (segments.empty()) return place.Error("there are no segments");
  if (segments.back().up_to_bytes != std::numeric_limits<int64_t>::max()) {
    return place.Error("the last segment ends; its up_to_bytes must be null");
  }
  return segments;
}

}  // namespace

double Corrections::CorrectedNs(CollectiveKind kind, int64_t bytes, double engine_ns) const {
  const std::vector<CorrectionSegment>& candidates = segments[static_cast<size_t>(kind)];
  const auto segment = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const auto& s) { return bytes <= s.up_to_bytes; });
  if (segment == candidates.end()) return engine_ns;
  const double ns = std::round(segment->overhead_ns + engine_ns / segment->efficiency);
  // Huge values of both signs may have made NaN.
  return ns >= 0 ? std::min(ns, kMaxCorrectedNs) : 0;
}

absl::StatusOr<Corrections> ParseCorrections(absl::string_view json, absl::string_view source) {
  const Place place(source);
  Corrections corrections;
  JsonCutter cutter(json);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const std::optional<CollectiveKind> kind = TimedKindFromName(key);
    if (!kind.has_value()) {
      return place.Error(absl::StrCat(
          Printable(key),
          " is no kind; kinds are all-reduce, all-gather, reduce-scatter, all-to-all and p2p"));
    }
    std::vector<CorrectionSegment>& segments = corrections.segments[static_cast<size_t>(*kind)];
    if (!segments.empty()) return place.Error(absl::StrCat(key, " occurs twice"));
    ASSIGN_OR_RETURN(segments, ParseSegments(cutter.CutValue(), place.Inside(key)));
  }
  if (!cutter.status().ok()) return place.Error(cutter.status().message());
  if (!cutter.AtEnd()) return place.Error("text follows the object");
  return corrections;
}

std::string CorrectionsToJson(const Corrections& corrections) {
  std::vector<std::string> kinds;
  for (size_t kind = 0; kind < corrections.segments.size(); ++kind) {
    std::vector<std::string> segments;
    for (const CorrectionSegment& segment : corrections.segments[kind]) {
      const bool has_end = segment.up_to_bytes != std::numeric_limits<int64_t>::max();
      segments.push_back(absl::StrFormat(
          "    {\"up_to_bytes\": %s, \"overhead_ns\": %.17g, \"efficiency\": %.17g}",
          has_end ? absl::StrCat(segment.up_to_bytes) : "null", segment.overhead_ns,
          segment.efficiency));
    }
    if (segments.empty()) continue;
    kinds.push_back(absl::StrCat("  \"", CollectiveKindName(static_cast<CollectiveKind>(kind)),
                                 "\": [\n", absl::StrJoin(segments, ",\n"), "\n  ]"));
  }
  return absl::StrCat("{\n", absl::StrJoin(kinds, ",\n"), "\n}\n");
}

absl::StatusOr<Corrections> ReadCorrections(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseCorrections(file.bytes(), path);
}

}  // namespace meridian
