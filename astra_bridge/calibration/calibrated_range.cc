#include "astra_bridge/calibration/calibrated_range.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/util/json_util.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Of the calibrated sizes around these bytes, or of these bytes where they were calibrated. There
// is at least one size.
std::set<std::string> ProtocolsNear(int64_t bytes,
                                    const std::map<int64_t, std::set<std::string>>& by_bytes) {
  const auto above = by_bytes.lower_bound(bytes);
  if (above != by_bytes.end() && above->first == bytes) return above->second;
  std::set<std::string> near;
  if (above != by_bytes.end()) near = above->second;
  if (above != by_bytes.begin()) {
    const std::set<std::string>& below = std::prev(above)->second;
    near.insert(below.begin(), below.end());
  }
  return near;
}

// Parsers append lines that point into the text.
std::string FirstLine(absl::string_view message) {
  absl::ConsumePrefix(&message, ": ");
  return Printable(message.substr(0, message.find('\n')));
}

}  // namespace

std::vector<std::string> CalibratedRange::Beyond(
    const TransferCell& cell, const std::set<std::string>& cell_device_kinds) const {
  std::vector<std::string> reasons;
  const auto found = sizes.find(cell.kind);
  if (found == sizes.end()) {
    reasons.push_back("kind not in the calibration");
  } else if (cell.bytes < found->second.smallest || cell.bytes > found->second.largest) {
    reasons.push_back("size outside the calibration");
  }
  if (cell.kind == CollectiveKind::kPointToPoint) {
    if (found != sizes.end() && pairs.count(cell.pairs) == 0) {
      reasons.push_back("number of pairs at once not in the calibration");
    }
  } else if (group_sizes.count(static_cast<int64_t>(cell.participants.size())) == 0) {
    reasons.push_back("group size not in the calibration");
  }
  if (LargestHop(cell) > largest_hop) {
    reasons.push_back("members further apart than in the calibration");
  }
  const auto named = protocols.find(cell.kind);
  if (!cell.protocol.empty() && named != protocols.end() &&
      ProtocolsNear(cell.bytes, named->second).count(cell.protocol) == 0) {
    reasons.push_back("another protocol than in the calibration");
  }
  if (!device_kinds.empty() && !std::includes(device_kinds.begin(), device_kinds.end(),
                                              cell_device_kinds.begin(), cell_device_kinds.end())) {
    reasons.push_back(absl::StrCat("on ", absl::StrJoin(cell_device_kinds, " and "),
                                   ", calibrated on ", absl::StrJoin(device_kinds, " and ")));
  }
  return reasons;
}

absl::StatusOr<CalibratedRange> RangeOf(const CalibrationReport& report) {
  CalibratedRange range;
  for (const CalibratedCell& cell : report.cells()) {
    if (!cell.fitted()) continue;
    const std::optional<CollectiveKind> kind = TimedKindFromName(cell.kind());
    if (!kind.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the calibration has a cell of kind ", Printable(cell.kind())));
    }
    const auto [found, is_new] = range.sizes.insert({*kind, {cell.bytes(), cell.bytes()}});
    found->second.smallest = std::min(found->second.smallest, cell.bytes());
    found->second.largest = std::max(found->second.largest, cell.bytes());
    const bool is_permute = *kind == CollectiveKind::kPointToPoint;
    const int64_t size = is_permute ? cell.pairs() : cell.group_size();
    if (size <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the calibration does not say how many ",
                       is_permute ? "pairs a permute" : "ranks a group",
                       " has; write its report anew with astra_calibrate"));
    }
    (is_permute ? range.pairs : range.group_sizes).insert(size);
    if (cell.largest_hop() <= 0) {
      return absl::InvalidArgumentError(
          "the calibration does not say how far apart the members of a group are; write its report "
          "anew with astra_calibrate");
    }
    range.largest_hop = std::max(range.largest_hop, cell.largest_hop());
    if (!cell.protocol().empty()) range.protocols[*kind][cell.bytes()].insert(cell.protocol());
  }
  if (range.sizes.empty()) {
    return absl::InvalidArgumentError(
        "nothing was fitted in this calibration, so that it cannot say what it had seen; give the "
        "file that astra_calibrate --report has written");
  }
  for (const CalibratedRun& run : report.runs()) {
    for (const std::string& kind : run.device_kinds()) range.device_kinds.insert(Printable(kind));
  }
  return range;
}

absl::StatusOr<CalibrationReport> ParseCalibrationReport(absl::string_view json,
                                                         absl::string_view source) {
  CalibrationReport report;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &report);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source,
                     ": this is no report of astra_calibrate, or one of another version; give the "
                     "file that astra_calibrate --report has written (",
                     FirstLine(std::string(status.message())), ")"));
  }
  return report;
}

}  // namespace meridian
