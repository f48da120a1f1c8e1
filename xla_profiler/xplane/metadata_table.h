// SPDX-License-Identifier: Apache-2.0
// Entries of metadata by id, for all that looks ids up in a hurry.
#ifndef XLA_PROFILER_XPLANE_METADATA_TABLE_H_
#define XLA_PROFILER_XPLANE_METADATA_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace meridian {

// Entries by id. Ids are small and dense in most planes (looked up in an array) but may be 64-bit
// fingerprints (looked up in a hash map). Entries keep their address once Reserve was called with
// enough room.
template <typename Entry>
class MetadataTable {
 public:
  MetadataTable() = default;
  // The index points into the entries: these move, but are not copied.
  MetadataTable(MetadataTable&&) = default;
  MetadataTable& operator=(MetadataTable&&) = default;

  void Reserve(size_t count) {
    entries_.reserve(count);
    // Ids beyond a few times the count are not dense.
    by_small_id_.assign(2 * count + 64, nullptr);
  }

  // Returns the new entry, or nullptr when the id is taken.
  Entry* Add(int64_t id) {
    const bool small = IsSmall(id);
    if (small ? by_small_id_[id] != nullptr : by_large_id_.contains(id)) return nullptr;
    entries_.emplace_back();
    Entry* entry = &entries_.back();
    if (small) {
      by_small_id_[id] = entry;
    } else {
      by_large_id_.emplace(id, entry);
    }
    return entry;
  }

  // Returns nullptr when there is none.
  const Entry* Find(int64_t id) const {
    if (IsSmall(id)) return by_small_id_[id];
    const auto it = by_large_id_.find(id);
    return it == by_large_id_.end() ? nullptr : it->second;
  }

  // In the order they were added.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  bool IsSmall(int64_t id) const {
    return static_cast<uint64_t>(id) < static_cast<uint64_t>(by_small_id_.size());
  }

  std::vector<Entry> entries_;
  std::vector<Entry*> by_small_id_;
  absl::flat_hash_map<int64_t, Entry*> by_large_id_;
};

// What the metadata ids of one plane are in another, by kind of metadata.
struct MetadataIds {
  MetadataTable<int64_t> events;
  MetadataTable<int64_t> stats;
};

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_METADATA_TABLE_H_
