#include "xla_profiler/collectives/kernel_protocol.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/collectives/communication_kernel.h"

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
