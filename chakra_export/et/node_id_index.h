// SPDX-License-Identifier: Apache-2.0
// From the ids of the nodes in one trace to their positions in it.
#ifndef CHAKRA_EXPORT_ET_NODE_ID_INDEX_H_
#define CHAKRA_EXPORT_ET_NODE_ID_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/et/et_reader.h"

namespace meridian {

// Ids mostly count up, and then cost nothing beyond themselves.
class NodeIdIndex {
 public:
  // Appends the id of the next position, from 0. An id may come again.
  void Add(uint64_t id);

  size_t size() const { return ids_.size(); }
  uint64_t id(size_t position) const { return ids_[position]; }

  // Returns the position of an id, the first if there are several, among those added so far. Each
  // call after an Add may take time in proportion to size() when ids do not count up.
  std::optional<size_t> Find(uint64_t id);

  // True while every id was greater than the one before, when Find is always cheap.
  bool ascending() const { return ascending_; }

  // Returns the positions whose id an earlier position has, in ascending order.
  std::vector<size_t> Repeated();

  // Returns InvalidArgument that names the first node whose id an earlier one has, if there is one.
  // The ids must be those of all nodes of the reader's file.
  absl::Status CheckAreUnique(EtReader* reader);

 private:
  void Sort();

  std::vector<uint64_t> ids_;
  bool ascending_ = true;
  // All positions in the order of their ids; empty as long as ids ascend or Sort was not called.
  std::vector<uint32_t> by_id_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_NODE_ID_INDEX_H_
