#include "astra_bridge/calibration/check_reasons.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "google/protobuf/util/json_util.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// A rank that computes for more than this share of a collective's time slows it down.
constexpr double kNotableComputeShare = 0.1;
// Middle halves of repeats that span more than this factor have another cause than the network.
constexpr double kUnsteadyFactor = 1.5;
// Slices are not exactly alike.
constexpr double kSliceMargin = 0.97;

// Times within this factor of the shortest are alike.
constexpr double kAlike = 1.03;
// Fewer are alike by chance.
constexpr size_t kEnoughAlike = 3;
// Times this many times as long as simulated have another cause than the network.
constexpr double kFarMore = 2;
// Devices are handed over every few milliseconds; what takes less is a collective's overhead.
constexpr double kLeastSliceNs = 500'000;
// Collectives are unlike whose simulated times differ by more than this factor, and by so much of
// what they took that it would show if it were added to an overhead that all have.
constexpr double kUnlike = 2;
constexpr double kShows = 0.1;
// What is simulated to take half as long, but took less than a quarter, shows that the network is
// not the cause.
constexpr double kComparable = 0.5;
constexpr double kFarLess = 0.25;

// Returns the protocols of the calibrated sizes around these bytes, or of these bytes where they
// were calibrated. There is at least one size.
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

// Returns the message without the lines that parsers append to point into the text.
std::string FirstLine(absl::string_view message) {
  absl::ConsumePrefix(&message, ": ");
  return Printable(message.substr(0, message.find('\n')));
}

// Returns the path without what says nothing: "./run" and "run/" are "run".
std::string Normal(const std::string& folder) {
  return (std::filesystem::path(folder) / "").lexically_normal().string();
}

bool IsSame(const CalibratedRun& calibrated, const CalibrationRun& run) {
  return calibrated.ranks() == run.transfers.ranks &&
         calibrated.transfers() == static_cast<int64_t>(run.transfers.samples.size()) &&
         Normal(calibrated.folder()) == Normal(run.folder);
}

// Files may have been written with fewer digits.
bool IsNear(double a, double b) {
  constexpr double kMargin = 1e-6;
  return std::abs(a - b) <= kMargin * std::max(std::abs(a), std::abs(b));
}

bool AreThoseOf(const CalibrationReport& calibration, const Corrections& corrections) {
  CalibrationReport given;
  ListCorrections(corrections, &given);
  return std::equal(calibration.corrections().begin(), calibration.corrections().end(),
                    given.corrections().begin(), given.corrections().end(),
                    [](const CalibratedCorrection& a, const CalibratedCorrection& b) {
                      return a.kind() == b.kind() && a.bytes() == b.bytes() &&
                             IsNear(a.ratio(), b.ratio());
                    });
}

// The medians of a kind and size over all groups.
struct Timed {
  double measured_ns = 0;
  double simulated_ns = 0;

  bool may_be_sliced() const {
    return measured_ns >= kLeastSliceNs && measured_ns >= kFarMore * simulated_ns;
  }
};

// Collectives that take about the same time.
struct Alike {
  // The shortest of their times.
  double measured_ns = 0;
  std::multiset<double> simulated_ns;
};

// `quick_ns` is the longest simulated time of what took far less, 0 when nothing did.
bool IsSlice(const Alike& alike, double quick_ns) {
  if (alike.simulated_ns.size() < kEnoughAlike) return false;
  const double least_ns = *alike.simulated_ns.begin();
  const double most_ns = *alike.simulated_ns.rbegin();
  const bool unlike =
      most_ns > kUnlike * least_ns && most_ns - least_ns > kShows * alike.measured_ns;
  return unlike || (quick_ns > 0 && quick_ns >= kComparable * least_ns);
}

std::optional<double> FindSliceNs(std::vector<Timed> all) {
  std::sort(all.begin(), all.end(),
            [](const Timed& a, const Timed& b) { return a.measured_ns < b.measured_ns; });
  std::vector<Timed> slow;
  std::copy_if(all.begin(), all.end(), std::back_inserter(slow),
               [](const Timed& timed) { return timed.may_be_sliced(); });
  Alike alike;
  auto end_of_alike = slow.begin();
  double quick_ns = 0;
  auto end_of_quick = all.begin();
  for (const Timed& shortest : slow) {
    alike.measured_ns = shortest.measured_ns;
    while (end_of_alike != slow.end() &&
           end_of_alike->measured_ns < kAlike * shortest.measured_ns) {
      alike.simulated_ns.insert(end_of_alike->simulated_ns);
      ++end_of_alike;
    }
    while (end_of_quick->measured_ns <= kFarLess * shortest.measured_ns) {
      quick_ns = std::max(quick_ns, end_of_quick->simulated_ns);
      ++end_of_quick;
    }
    if (IsSlice(alike, quick_ns)) return shortest.measured_ns;
    alike.simulated_ns.erase(alike.simulated_ns.find(shortest.simulated_ns));
  }
  return std::nullopt;
}

bool LastsASlice(const TransferCell& cell, const std::map<int32_t, double>& time_slices_ns) {
  const auto found = time_slices_ns.find(cell.ranks);
  return found != time_slices_ns.end() && cell.median_ns >= kSliceMargin * found->second;
}

}  // namespace

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

std::vector<std::string> NotesOnCalibratedRuns(const CalibrationReport& calibration,
                                               absl::Span<const CalibrationRun> runs) {
  std::vector<std::string> notes;
  for (const CalibrationRun& run : runs) {
    const bool was_used =
        std::any_of(calibration.runs().begin(), calibration.runs().end(),
                    [&](const CalibratedRun& calibrated) { return IsSame(calibrated, run); });
    if (!was_used) continue;
    notes.push_back(absl::StrCat(Printable(run.folder),
                                 " was used for this calibration, whose report names it with as "
                                 "many transfers: its errors are those of the fit, no test"));
  }
  return notes;
}

std::vector<std::string> NotesOnCorrections(const CalibrationReport& calibration,
                                            const Corrections& corrections) {
  if (AreThoseOf(calibration, corrections)) return {};
  return {
      "the corrections are not those of this calibration: what it had seen says nothing about "
      "them; give --corrections and --calibration of the same astra_calibrate"};
}

std::map<int32_t, double> FindTimeSlicesNs(absl::Span<const TransferCell> cells,
                                           absl::Span<const double> simulated_ns) {
  struct Times {
    std::vector<double> measured_ns;
    std::vector<double> simulated_ns;
  };
  std::map<int32_t, std::map<std::pair<CollectiveKind, int64_t>, Times>> runs;
  for (size_t i = 0; i < cells.size(); ++i) {
    Times& times = runs[cells[i].ranks][{cells[i].kind, cells[i].bytes}];
    times.measured_ns.push_back(cells[i].median_ns);
    times.simulated_ns.push_back(simulated_ns[i]);
  }
  std::map<int32_t, double> slices_ns;
  for (const auto& [ranks, sizes] : runs) {
    std::vector<Timed> all;
    for (const auto& [kind_and_bytes, times] : sizes) {
      all.push_back({Median(times.measured_ns), Median(times.simulated_ns)});
    }
    const std::optional<double> slice_ns = FindSliceNs(std::move(all));
    if (slice_ns.has_value()) slices_ns[ranks] = *slice_ns;
  }
  return slices_ns;
}

std::vector<std::string> FindReasons(const TransferCell& cell,
                                     const CellCircumstances& circumstances,
                                     const std::map<int32_t, double>& time_slices_ns,
                                     const std::optional<CalibratedRange>& range) {
  std::vector<std::string> reasons;
  if (range.has_value()) reasons = range->Beyond(cell, circumstances.device_kinds);
  if (2 * circumstances.overlapped > static_cast<int64_t>(cell.transfers_ns.size())) {
    reasons.push_back(kMetOthers);
  }
  if (circumstances.compute_share.value_or(0) > kNotableComputeShare) {
    reasons.push_back("computing beside");
  }
  if (Quantile(cell.transfers_ns, 0.75) > kUnsteadyFactor * Quantile(cell.transfers_ns, 0.25)) {
    reasons.push_back("unsteady repeats (time slicing or other work)");
  }
  if (LastsASlice(cell, time_slices_ns)) reasons.push_back("time slices of the device");
  return reasons;
}

}  // namespace meridian
