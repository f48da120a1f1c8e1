// From the ids of one rank's nodes to their positions.
#ifndef CHAKRA_EXPORT_GRAPH_NODE_ID_INDEX_H_
#define CHAKRA_EXPORT_GRAPH_NODE_ID_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

  // Returns positions whose id an earlier position has, ascending.
  std::vector<size_t> Repeated();

 private:
  void Sort();

  std::vector<uint64_t> ids_;
  bool ascending_ = true;
  // All positions by id, when ids do not ascend and Sort was called.
  std::vector<uint32_t> by_id_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_NODE_ID_INDEX_H_
