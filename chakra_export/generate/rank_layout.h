// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job with three kinds of parallelism are: tensor parallel ranks are next to
// each other, then come the data parallel copies, then the stages of the pipeline.
//
//   rank = tensor index + tensor parallel * (data index + data parallel * stage)
//
//                 2 x 2 x 2     stage 0   stage 1
//       data index 0             0  1      4  5      tensor groups {0, 1}, {2, 3}, {4, 5}, {6, 7}
//       data index 1             2  3      6  7      data groups   {0, 2}, {1, 3}, {4, 6}, {5, 7}
//
// Copies that share the sequences of a batch (context parallel) are next to each other among the data
// parallel ones.
#ifndef CHAKRA_EXPORT_GENERATE_RANK_LAYOUT_H_
#define CHAKRA_EXPORT_GENERATE_RANK_LAYOUT_H_

#include <cstdint>

#include "chakra_export/graph/execution_graph.h"

namespace meridian {

class RankLayout {
 public:
  // Each degree of parallelism is at least 1; so many of the data parallel copies share sequences,
  // which divides their number.
  RankLayout(int64_t tensor_parallel, int64_t data_parallel, int64_t pipeline_parallel,
             int64_t context_parallel = 1)
      : tensor_parallel_(tensor_parallel),
        data_parallel_(data_parallel),
        pipeline_parallel_(pipeline_parallel),
        context_parallel_(context_parallel) {}

  int64_t rank_count() const { return tensor_parallel_ * data_parallel_ * pipeline_parallel_; }

  int64_t Stage(int64_t rank) const { return rank / (tensor_parallel_ * data_parallel_); }

  // Returns the rank that has the same indices in another stage.
  int64_t InStage(int64_t rank, int64_t stage) const {
    return rank + (stage - Stage(rank)) * tensor_parallel_ * data_parallel_;
  }

  // Return the group in which the rank computes one layer, and that of the copies with which it
  // sums gradients. Groups are numbered from 1 on, tensor groups first; a group of all ranks has no
  // name.
  ProcessGroup TensorGroup(int64_t rank) const;
  ProcessGroup DataGroup(int64_t rank) const;
  // Returns the group with which it shares sequences: the data group if that is all of it. Numbered
  // behind the others.
  ProcessGroup ContextGroup(int64_t rank) const;

  // How many of these groups have a name and more than one rank.
  int64_t named_tensor_groups() const { return NamedGroups(tensor_parallel_); }
  int64_t named_data_groups() const { return NamedGroups(data_parallel_); }
  int64_t named_context_groups() const {
    return context_parallel_ == data_parallel_ ? 0 : NamedGroups(context_parallel_);
  }

 private:
  int64_t NamedGroups(int64_t group_size) const {
    return group_size == 1 || group_size == rank_count() ? 0 : rank_count() / group_size;
  }

  int64_t tensor_parallel_;
  int64_t data_parallel_;
  int64_t pipeline_parallel_;
  int64_t context_parallel_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_RANK_LAYOUT_H_
