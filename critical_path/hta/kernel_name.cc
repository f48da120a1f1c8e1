#include "critical_path/hta/kernel_name.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace meridian {
namespace {

bool IsMemoryName(absl::string_view name) {
  for (absl::string_view prefix : {"Memcpy", "hipMemcpy", "Memset", "hipMemset", "dma"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

// Cuts off everything from the last `bracket` on; all of it when there is none.
void CutFromBracket(char bracket, std::string* text) {
  const size_t at = text->rfind(bracket);
  text->resize(at == std::string::npos ? 0 : at);
}

}  // namespace

std::string ShortenKernelName(absl::string_view name) {
  const bool has_brackets = name.find('<') != name.npos || name.find('(') != name.npos;
  if (IsMemoryName(name) || !has_brackets) return std::string(name);
  std::string rest;
  for (char c : absl::StrReplaceAll(name, {{"->", ""}})) {
    if (c == '>') {
      CutFromBracket('<', &rest);
    } else if (c == ')') {
      CutFromBracket('(', &rest);
    } else {
      rest.push_back(c);
    }
  }
  return rest.substr(rest.rfind(' ') + 1);
}

bool IsHtaCommunicationName(absl::string_view short_name) {
  for (absl::string_view prefix : {"nccl", "hip", "hccl"}) {
    if (absl::StartsWith(short_name, prefix)) return true;
  }
  return absl::StrContains(short_name, "ncclKernel");
}

}  // namespace meridian
