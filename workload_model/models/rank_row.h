// SPDX-License-Identifier: Apache-2.0
// Ranks as rows of a mesh: every stride-th of them, so many together.
//
//   of 16 ranks, rank 6 in {4 5 6 7}     stride 1, length 4
//   of 16 ranks, rank 6 in {2 6 10 14}   stride 4, length 4
#ifndef WORKLOAD_MODEL_MODELS_RANK_ROW_H_
#define WORKLOAD_MODEL_MODELS_RANK_ROW_H_

#include <algorithm>
#include <cstdint>
#include <optional>
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

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MODELS_RANK_ROW_H_
