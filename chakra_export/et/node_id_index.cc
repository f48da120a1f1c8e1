#include "chakra_export/et/node_id_index.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace meridian {

void NodeIdIndex::Add(uint64_t id) {
  if (!ids_.empty() && id <= ids_.back()) ascending_ = false;
  ids_.push_back(id);
}

std::optional<size_t> NodeIdIndex::Find(uint64_t id) {
  if (ids_.empty()) return std::nullopt;
  if (ascending_) {
    // Most ids have no gaps, so that an id says where it is.
    const uint64_t guess = id - ids_.front();
    if (guess < ids_.size() && ids_[guess] == id) return guess;
    const auto it = std::lower_bound(ids_.begin(), ids_.end(), id);
    if (it == ids_.end() || *it != id) return std::nullopt;
    return it - ids_.begin();
  }
  Sort();
  const auto it = std::lower_bound(
      by_id_.begin(), by_id_.end(), id,
      [this](uint32_t position, uint64_t wanted) { return ids_[position] < wanted; });
  if (it == by_id_.end() || ids_[*it] != id) return std::nullopt;
  return *it;
}

std::vector<size_t> NodeIdIndex::Repeated() {
  std::vector<size_t> repeated;
  if (ascending_) return repeated;
  Sort();
  for (size_t i = 1; i < by_id_.size(); ++i) {
    if (ids_[by_id_[i]] == ids_[by_id_[i - 1]]) repeated.push_back(by_id_[i]);
  }
  std::sort(repeated.begin(), repeated.end());
  return repeated;
}

absl::Status NodeIdIndex::CheckAreUnique(EtReader* reader) {
  const std::vector<size_t> repeated = Repeated();
  if (repeated.empty()) return absl::OkStatus();
  return reader->NodeErrorAt(repeated[0],
                             absl::StrCat("node id ", id(repeated[0]), " occurs twice"));
}

void NodeIdIndex::Sort() {
  if (by_id_.size() == ids_.size()) return;
  by_id_.resize(ids_.size());
  std::iota(by_id_.begin(), by_id_.end(), uint32_t{0});
  std::sort(by_id_.begin(), by_id_.end(), [this](uint32_t a, uint32_t b) {
    return ids_[a] != ids_[b] ? ids_[a] < ids_[b] : a < b;
  });
}

}  // namespace meridian
