// SPDX-License-Identifier: Apache-2.0
// Small PyTorch traces for tests, written as PyTorch writes them. Times are microseconds.
#ifndef CHAKRA_EXPORT_PYTORCH_TESTING_TORCH_TRACES_H_
#define CHAKRA_EXPORT_PYTORCH_TESTING_TORCH_TRACES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace meridian {

// An execution trace.
class HostTraceText {
 public:
  explicit HostTraceText(std::string schema = "1.1.1-chakra.0.0.4") : schema_(std::move(schema)) {}

  // `inputs` and `outputs` are JSON lists of values. The id is also the rf_id.
  HostTraceText& Op(uint64_t id, uint64_t parent, absl::string_view name, int64_t thread = 1,
                    absl::string_view inputs = "[]", absl::string_view outputs = "[]",
                    absl::string_view schema = "");

  std::string Text() const;

 private:
  std::string schema_;
  std::vector<std::string> nodes_;
};

// Returns a tensor as execution traces have it.
std::string TensorJson(uint64_t storage, int64_t elements, absl::string_view device = "cuda:0");

// A profile of rank `rank` of `world_size`.
class KinetoText {
 public:
  explicit KinetoText(int64_t rank = 0, int64_t world_size = 1)
      : rank_(rank), world_size_(world_size) {}

  KinetoText& Op(absl::string_view name, int64_t thread, int64_t ts, int64_t dur, uint64_t id = 0);
  KinetoText& Step(int64_t number, int64_t thread, int64_t ts, int64_t dur);
  KinetoText& Call(absl::string_view name, int64_t thread, int64_t ts, int64_t dur,
                   uint64_t correlation);
  // `args` are further members, each with a comma in front.
  KinetoText& Kernel(absl::string_view name, int64_t stream, int64_t ts, int64_t dur,
                     uint64_t correlation, absl::string_view args = "");
  // A collective's kernel of that many floats in all ranks of the world.
  KinetoText& Collective(absl::string_view collective, absl::string_view kernel, int64_t stream,
                         int64_t ts, int64_t dur, uint64_t correlation, int64_t elements);

  std::string Text() const;

 private:
  void Add(absl::string_view category, absl::string_view name, int64_t pid, int64_t tid, int64_t ts,
           int64_t dur, absl::string_view args);

  const int64_t rank_;
  const int64_t world_size_;
  std::vector<std::string> events_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_TESTING_TORCH_TRACES_H_
