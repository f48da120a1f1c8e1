// The name that a program has in "/host:metadata": "jit_step(1989)".
#ifndef XLA_PROFILER_HLO_PROGRAM_NAME_H_
#define XLA_PROFILER_HLO_PROGRAM_NAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace meridian {

struct ProgramName {
  absl::string_view module;
  std::optional<uint64_t> program_id;
};

// Splits it. A name without a number in parentheses at its end is all module.
inline ProgramName ParseProgramName(absl::string_view name) {
  const size_t open = name.rfind('(');
  absl::string_view number = name.substr(open == absl::string_view::npos ? name.size() : open);
  uint64_t program_id = 0;
  if (absl::ConsumePrefix(&number, "(") && absl::ConsumeSuffix(&number, ")") &&
      absl::SimpleAtoi(number, &program_id)) {
    return {name.substr(0, open), program_id};
  }
  return {name, std::nullopt};
}

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_PROGRAM_NAME_H_
