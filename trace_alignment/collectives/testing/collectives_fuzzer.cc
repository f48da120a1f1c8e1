// Feeds arbitrary bytes to the reader and matcher of collectives; see collectives_check.h for what
// must hold. Profiles to begin with: make_synthetic_run --output=corpus.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/testing/collectives_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  meridian::CollectivesVerdict verdict;
  const absl::Status status = meridian::CheckCollectives(
      absl::string_view(reinterpret_cast<const char*>(data), size), &verdict);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}
