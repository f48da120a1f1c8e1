// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_STRING_POOL_H_
#define XLA_PROFILER_BASE_STRING_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Keeps each distinct string once and gives it a small number. Ids count up from 0 in the order of
// first use.
class StringPool {
 public:
  StringPool() = default;
  // The index points into the strings, whose addresses a move keeps and a copy does not.
  StringPool(const StringPool& other) {
    for (const std::string& text : other.strings_) Intern(text);
  }
  StringPool(StringPool&&) = default;
  StringPool& operator=(StringPool&&) = default;

  // Returns the string's id, new or known.
  uint32_t Intern(absl::string_view text) {
    const uintptr_t place = reinterpret_cast<uintptr_t>(text.data()) / 8 + text.size();
    uint32_t& recent = recent_[place % recent_.size()];
    if (recent < strings_.size() && strings_[recent] == text) return recent;
    const auto it = ids_.find(text);
    if (it != ids_.end()) return recent = it->second;
    recent = static_cast<uint32_t>(strings_.size());
    strings_.emplace_back(text);
    ids_.emplace(strings_.back(), recent);
    return recent;
  }

  absl::string_view Get(uint32_t id) const { return strings_[id]; }
  size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;
  absl::flat_hash_map<absl::string_view, uint32_t> ids_;
  // Ids by where a text stood that was asked for: mostly that of the next text which stands there.
  std::array<uint32_t, 64> recent_ = {};
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_STRING_POOL_H_
