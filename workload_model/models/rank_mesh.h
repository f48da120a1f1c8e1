// SPDX-License-Identifier: Apache-2.0
// Ranks as a mesh, rank = sum of position times stride over its axes, of which the first is that of
// neighbouring ranks; and its rows: every stride-th rank, so many together.
//
//   of 16 ranks, rank 6 in {4 5 6 7}     stride 1, length 4
//   of 16 ranks, rank 6 in {2 6 10 14}   stride 4, length 4
#ifndef WORKLOAD_MODEL_MODELS_RANK_MESH_H_
#define WORKLOAD_MODEL_MODELS_RANK_MESH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace meridian {

struct RankRow {
  int64_t stride = 1;
  int64_t length = 1;

  // Where in its row a rank is, and the first rank of that row.
  int64_t Position(int64_t rank) const { return rank / stride % length; }
  int64_t First(int64_t rank) const { return rank - Position(rank) * stride; }

  // Returns all ranks of the row that the rank is in.
  std::vector<int64_t> Members(int64_t rank) const {
    std::vector<int64_t> members;
    for (int64_t i = 0; i < length; ++i) members.push_back(First(rank) + i * stride);
    return members;
  }

  // Whether so many ranks are such rows and nothing else.
  bool Tiles(int64_t ranks) const {
    return stride > 0 && length > 0 && stride <= ranks && length <= ranks &&
           ranks % (stride * length) == 0;
  }
};

// Returns the row that these members, at least one, are; nullopt when they are none of so many ranks.
inline std::optional<RankRow> RowOfMembers(std::vector<int64_t> members, int64_t ranks) {
  std::sort(members.begin(), members.end());
  RankRow row;
  row.length = static_cast<int64_t>(members.size());
  if (members.size() > 1) row.stride = members[1] - members[0];
  if (members.back() >= ranks || !row.Tiles(ranks)) return std::nullopt;
  if (row.Members(members[0]) != members) return std::nullopt;
  return row;
}

// From one axis up to, not including, another.
using AxisRange = std::pair<size_t, size_t>;

class RankMesh {
 public:
  RankMesh() = default;
  explicit RankMesh(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {
    for (const int64_t length : lengths_) cuts_.push_back(cuts_.back() * length);
  }

  size_t axes() const { return lengths_.size(); }
  int64_t length(size_t axis) const { return lengths_[axis]; }
  int64_t stride(size_t axis) const { return cuts_[axis]; }
  int64_t ranks() const { return cuts_.back(); }

  std::vector<int64_t> PlaceOf(int64_t rank) const {
    std::vector<int64_t> place;
    for (size_t axis = 0; axis < axes(); ++axis) {
      place.push_back(rank / cuts_[axis] % lengths_[axis]);
    }
    return place;
  }

  int64_t RankAt(const std::vector<int64_t>& place) const {
    int64_t rank = 0;
    for (size_t axis = 0; axis < axes(); ++axis) rank += place[axis] * cuts_[axis];
    return rank;
  }

  // Returns the axes that a row spans; those of a single rank are none. Its ends are strides of axes.
  AxisRange AxesOf(const RankRow& row) const {
    const auto axis = [&](int64_t cut) {
      return static_cast<size_t>(std::find(cuts_.begin(), cuts_.end(), cut) - cuts_.begin());
    };
    if (row.length == 1) return {0, 0};
    return {axis(row.stride), axis(row.stride * row.length)};
  }

  // Returns the row that neighbouring axes make together.
  RankRow RowOf(const AxisRange& axes) const {
    return {cuts_[axes.first], cuts_[axes.second] / cuts_[axes.first]};
  }

  // Returns the axis along which a message goes; nullopt when it changes several places, or none.
  std::optional<size_t> AxisBetween(int64_t a, int64_t b) const {
    const std::vector<int64_t> from = PlaceOf(a), to = PlaceOf(b);
    std::optional<size_t> axis;
    for (size_t i = 0; i < axes(); ++i) {
      if (from[i] == to[i]) continue;
      if (axis.has_value()) return std::nullopt;
      axis = i;
    }
    return axis;
  }

 private:
  std::vector<int64_t> lengths_;
  // The stride of each axis and, at the end, the number of ranks.
  std::vector<int64_t> cuts_ = {1};
};

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MODELS_RANK_MESH_H_
