#include "xla_profiler/base/content_hash.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "xxhash.h"

namespace meridian {
namespace {

// Longer texts are not copied: their hash stands for them.
constexpr size_t kMaxCopiedBytes = 256;

}  // namespace

void ContentHash::AddNumber(uint64_t number) {
  // The lowest byte first, on every machine.
  for (int i = 0; i < 8; ++i) content_.push_back(static_cast<char>(number >> (8 * i)));
}

void ContentHash::AddHash(absl::uint128 hash) {
  AddNumber(absl::Uint128Low64(hash));
  AddNumber(absl::Uint128High64(hash));
}

void ContentHash::AddText(absl::string_view text) {
  AddNumber(text.size());
  if (text.size() > kMaxCopiedBytes) {
    AddHash(HashOfText(text));
  } else {
    content_.append(text.data(), text.size());
  }
}

absl::uint128 ContentHash::value() const { return HashOfText(content_); }

absl::uint128 HashOfText(absl::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return absl::MakeUint128(hash.high64, hash.low64);
}

std::string HashDigits(absl::uint128 hash) {
  return absl::StrCat(absl::Hex(absl::Uint128High64(hash), absl::kZeroPad16),
                      absl::Hex(absl::Uint128Low64(hash), absl::kZeroPad16));
}

}  // namespace meridian
