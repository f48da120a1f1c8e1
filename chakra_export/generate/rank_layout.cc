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

ProcessGroup RankLayout::ContextGroup(int64_t rank) const {
  if (context_parallel_ == data_parallel_) return DataGroup(rank);
  const int64_t tensor_index = rank % tensor_parallel_;
  // The groups of one tensor index follow each other through data indices and stages.
  const int64_t block = rank / tensor_parallel_ / context_parallel_;
  ProcessGroup group;
  if (named_context_groups() > 0) {
    group.name = absl::StrCat(1 + named_tensor_groups() + named_data_groups() +
                              block * tensor_parallel_ + tensor_index);
  }
  for (int64_t i = 0; i < context_parallel_; ++i) {
    group.ranks.push_back(tensor_index + tensor_parallel_ * (i + context_parallel_ * block));
  }
  return group;
}

}  // namespace meridian
