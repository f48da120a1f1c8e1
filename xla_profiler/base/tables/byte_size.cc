#include "xla_profiler/base/tables/text_table.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace meridian {
namespace {

struct Unit {
  absl::string_view name;
  int64_t bytes;
};

// Binary ones first, from the largest down.
constexpr Unit kUnits[] = {{"TiB", int64_t{1} << 40},
                           {"GiB", int64_t{1} << 30},
                           {"MiB", int64_t{1} << 20},
                           {"KiB", int64_t{1} << 10},
                           {"B", 1},
                           {"TB", 1000000000000},
                           {"GB", 1000000000},
                           {"MB", 1000000},
                           {"kB", 1000},
                           {"", 1}};

// Returns 0 when there is no such unit.
int64_t BytesOfUnit(absl::string_view name) {
  for (const Unit& unit : kUnits) {
    if (absl::EqualsIgnoreCase(name, unit.name)) return unit.bytes;
  }
  return 0;
}

}  // namespace

absl::StatusOr<int64_t> ParseByteSize(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  const int64_t unit_bytes = BytesOfUnit(text.substr(digits));
  int64_t number = 0;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number) || unit_bytes == 0 ||
      number > std::numeric_limits<int64_t>::max() / unit_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no size; expected e.g. 4096, 64KiB or 10MB"));
  }
  return number * unit_bytes;
}

std::string FormatByteSize(int64_t bytes) {
  const Unit* unit = kUnits;
  while (unit->bytes > 1 && (bytes % unit->bytes != 0 || bytes == 0)) ++unit;
  return absl::StrCat(bytes / unit->bytes, unit->name);
}

}  // namespace meridian
