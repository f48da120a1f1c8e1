#include "xla_profiler/collectives/communication_kernel.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace meridian {
namespace {

// "COLLNET_DIRECT_SIMPLE" has 21; what is longer is no name of NCCL or RCCL.
constexpr size_t kMaxProtocolText = 32;

// "RING" and "LL128", but not "f32", "Sum" or "4".
bool IsInCapitals(absl::string_view word) {
  return std::all_of(word.begin(), word.end(),
                     [](char c) { return absl::ascii_isupper(c) || absl::ascii_isdigit(c); }) &&
         std::any_of(word.begin(), word.end(), absl::ascii_isupper);
}

}  // namespace

bool IsCommunicationKernel(absl::string_view kernel_name) {
  return absl::StartsWithIgnoreCase(kernel_name, "nccl") ||
         absl::StartsWithIgnoreCase(kernel_name, "rccl");
}

std::optional<CollectiveKind> KindOfKernel(absl::string_view kernel_name, bool has_groups) {
  // ncclDevKernel_AllReduce_Sum_f32_RING_LL(...): the word after the first "_".
  const std::vector<absl::string_view> words = absl::StrSplit(kernel_name, absl::MaxSplits('_', 2));
  if (words.size() < 2) return std::nullopt;
  const std::string library = absl::AsciiStrToLower(words[0]);
  if (library != "nccldevkernel" && library != "ncclkernel" && library != "rccldevkernel" &&
      library != "rcclkernel") {
    return std::nullopt;
  }
  const absl::string_view function = words[1].substr(0, words[1].find('('));
  if (function == "AllReduce") return CollectiveKind::kAllReduce;
  if (function == "AllGather") return CollectiveKind::kAllGather;
  if (function == "ReduceScatter") return CollectiveKind::kReduceScatter;
  if (function == "Broadcast") return CollectiveKind::kCollectiveBroadcast;
  if (function == "Reduce") return CollectiveKind::kCollectiveReduce;
  if (function == "SendRecv") {
    return has_groups ? CollectiveKind::kAllToAll : CollectiveKind::kCollectivePermute;
  }
  return std::nullopt;
}

std::string ProtocolOfKernel(absl::string_view kernel_name) {
  if (!IsCommunicationKernel(kernel_name)) return "";
  const std::vector<absl::string_view> words =
      absl::StrSplit(kernel_name.substr(0, kernel_name.find_first_of("(<")), '_');
  if (words.size() < 2 || words[1] == "SendRecv") return "";
  std::vector<absl::string_view> capitals;
  std::copy_if(words.begin() + 1, words.end(), std::back_inserter(capitals), IsInCapitals);
  std::string protocol = absl::StrJoin(capitals, "_");
  if (protocol.size() > kMaxProtocolText) protocol.clear();
  return protocol;
}

}  // namespace meridian
