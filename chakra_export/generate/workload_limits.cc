#include "chakra_export/generate/workload_limits.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr double kMaxComputeNs = 1e17;
constexpr double kMaxTflops = 1e5;

std::string Number(absl::int128 value) { return WithThousands(SaturateToInt64(value)); }

}  // namespace

absl::Status CheckRange(absl::string_view flag, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, "=", value, ": expected ", low, " to ", high));
}

absl::Status CheckTflops(double tflops) {
  // Written so that NaN is refused.
  if (tflops > 0 && tflops <= kMaxTflops) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--tflops=", tflops, ": expected more than 0 and at most ",
                   static_cast<int64_t>(kMaxTflops), ", e.g. --tflops=300"));
}

absl::Status CheckDivides(absl::string_view flag, int64_t value, absl::string_view divisor_text,
                          int64_t divisor) {
  const int64_t below = value - value % divisor;
  if (value == below) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, "=", value, " does not divide by ", divisor_text, "; ",
      below > 0 ? absl::StrCat(below, " or ") : std::string(), below + divisor, " would"));
}

absl::Status CheckRankCount(absl::int128 ranks) {
  if (ranks <= kMaxGeneratedRanks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the workload would have ", Number(ranks),
                                                 " ranks; at most ", Number(kMaxGeneratedRanks)));
}

absl::Status CheckGroupCount(int64_t groups, absl::string_view remedy) {
  if (groups <= kMaxGroupNumber) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the workload would have ", Number(groups),
                                                 " process groups; from ", kMaxGroupNumber + 1,
                                                 " on ASTRA-sim mixes up messages: ", remedy));
}

absl::Status CheckNodeCount(absl::int128 nodes, absl::string_view remedy) {
  if (nodes <= kMaxGeneratedNodes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the workload would have ", Number(nodes),
                                                 " nodes; at most ", Number(kMaxGeneratedNodes),
                                                 ": ", remedy));
}

absl::Status CheckComputation(absl::int128 operations, double tflops, absl::string_view remedy) {
  if (!NarrowToInt64(operations).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the operations of a rank do not fit into 64 bits: ", remedy));
  }
  if (static_cast<double>(operations) / (tflops * 1000) > kMaxComputeNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("a rank would compute for more than three years: ", remedy));
  }
  return absl::OkStatus();
}

absl::Status CheckAllGatherBytes(int64_t bytes, absl::string_view remedy) {
  if (bytes >= kMinAllGatherBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("an all-gather would have ", bytes,
                                                 " bytes per rank; at least ", kMinAllGatherBytes,
                                                 ", or ASTRA-sim may never end: ", remedy));
}

}  // namespace meridian
