#include "chakra_export/xspace/memory_copy.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace meridian {
namespace {

bool IsKnown(absl::string_view kind) { return !kind.empty() && kind != "unknown"; }

bool IsHostMemory(absl::string_view kind) { return kind == "pageable" || kind == "pinned"; }

CopyDirection DirectionOf(bool from_host, bool to_host) {
  if (from_host == to_host) return CopyDirection::kWithinDevice;
  return from_host ? CopyDirection::kFromHost : CopyDirection::kToHost;
}

}  // namespace

MemoryCopy ParseMemoryCopy(absl::string_view name, absl::string_view details) {
  MemoryCopy copy;
  absl::string_view source, target;
  for (absl::string_view field : absl::StrSplit(details, ' ', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&field, "kind_src:")) {
      source = field;
    } else if (absl::ConsumePrefix(&field, "kind_dst:")) {
      target = field;
    } else if (absl::ConsumePrefix(&field, "size:")) {
      int64_t bytes = 0;
      if (absl::SimpleAtoi(field, &bytes) && bytes > 0) copy.bytes = bytes;
    }
  }
  copy.direction = IsKnown(source) && IsKnown(target)
                       ? DirectionOf(IsHostMemory(source), IsHostMemory(target))
                       : DirectionOf(name == "MemcpyH2D", name == "MemcpyD2H");
  return copy;
}

}  // namespace meridian
