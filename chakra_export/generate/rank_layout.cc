#include "chakra_export/generate/rank_layout.h"

#include "absl/strings/str_cat.h"

namespace meridian {

ProcessGroup RankLayout::TensorGroup(int64_t rank) const {
  const int64_t position = rank / tensor_parallel_;
  ProcessGroup group;
  if (named_tensor_groups() > 0) group.name = absl::StrCat(1 + position);
  for (int64_t i = 0; i < tensor_parallel_; ++i) {
    group.ranks.push_back(position * tensor_parallel_ + i);
  }
  return group;
}

ProcessGroup RankLayout::DataGroup(int64_t rank) const {
  const int64_t tensor_index = rank % tensor_parallel_;
  const int64_t position = Stage(rank) * tensor_parallel_ + tensor_index;
  ProcessGroup group;
  if (named_data_groups() > 0) group.name = absl::StrCat(1 + named_tensor_groups() + position);
  for (int64_t i = 0; i < data_parallel_; ++i) {
    group.ranks.push_back(tensor_index + tensor_parallel_ * (i + data_parallel_ * Stage(rank)));
  }
  return group;
}

}  // namespace meridian
