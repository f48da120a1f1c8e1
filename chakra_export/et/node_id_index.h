// SPDX-License-Identifier: Apache-2.0
// From the ids of the nodes in one trace to their positions in it.
#ifndef CHAKRA_EXPORT_ET_NODE_ID_INDEX_H_
#define CHAKRA_EXPORT_ET_NODE_ID_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_reader.h"

namespace meridian {

class NodeIdIndex {
 public:
  // Appends the id of the next position, from 0. An id may come again.
  void Add(uint64_t id) {
    if (!positions_.emplace(id, ids_.size()).second) repeated_.push_back(ids_.size());
    ids_.push_back(id);
  }

  size_t size() const { return ids_.size(); }
  uint64_t id(size_t position) const { return ids_[position]; }

  // Returns the position of an id, the first if there are several, among those added so far.
  std::optional<size_t> Find(uint64_t id) const {
    const auto it = positions_.find(id);
    return it == positions_.end() ? std::nullopt : std::make_optional(it->second);
  }

  // The positions whose id an earlier position has, in ascending order.
  const std::vector<size_t>& repeated() const { return repeated_; }

  // Returns InvalidArgument that names the first node whose id an earlier one has, if there is one.
  // The ids must be those of all nodes of the reader's file.
  absl::Status CheckAreUnique(EtReader* reader) const {
    if (repeated_.empty()) return absl::OkStatus();
    return reader->NodeErrorAt(repeated_[0],
                               absl::StrCat("node id ", id(repeated_[0]), " occurs twice"));
  }

 private:
  std::vector<uint64_t> ids_;
  // The first position of each id.
  absl::flat_hash_map<uint64_t, size_t> positions_;
  std::vector<size_t> repeated_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_NODE_ID_INDEX_H_
