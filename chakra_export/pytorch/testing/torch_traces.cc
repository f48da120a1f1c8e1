#include "chakra_export/pytorch/testing/torch_traces.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace meridian {

HostTraceText& HostTraceText::Op(uint64_t id, uint64_t parent, absl::string_view name,
                                 int64_t thread, absl::string_view inputs,
                                 absl::string_view outputs, absl::string_view schema) {
  nodes_.push_back(absl::StrCat(
      R"({"id": )", id, R"(, "name": ")", name, R"(", "ctrl_deps": )", parent,
      R"(, "inputs": {"values": )", inputs,
      R"(, "shapes": [], "types": []}, "outputs": {"values": )", outputs,
      R"(, "shapes": [], "types": []}, "attrs": [{"name": "rf_id", "type": "uint64", "value": )",
      id, R"(}, {"name": "tid", "type": "uint64", "value": )", thread,
      R"(}, {"name": "op_schema", "type": "string", "value": ")", schema, R"("}]})"));
  return *this;
}

std::string HostTraceText::Text() const {
  return absl::StrCat(R"({"schema": ")", schema_,
                      R"(", "pid": 7, "time": "2026-11-15 00:16:23", "start_ts": 1, "nodes": [)",
                      absl::StrJoin(nodes_, ",\n"), R"(], "finish_ts": 2})");
}

std::string TensorJson(uint64_t storage, int64_t elements, absl::string_view device) {
  return absl::StrCat("[", storage + 1000, ", ", storage, ", 0, ", elements, ", 4, \"", device,
                      "\"]");
}

void KinetoText::Add(absl::string_view category, absl::string_view name, int64_t pid, int64_t tid,
                     int64_t ts, int64_t dur, absl::string_view args) {
  events_.push_back(absl::StrCat(R"({"ph": "X", "cat": ")", category, R"(", "name": ")", name,
                                 R"(", "pid": )", pid, R"(, "tid": )", tid, R"(, "ts": )", ts,
                                 R"(, "dur": )", dur, R"(, "args": {)", args, "}}"));
}

KinetoText& KinetoText::Op(absl::string_view name, int64_t thread, int64_t ts, int64_t dur,
                           uint64_t id) {
  Add("cpu_op", name, 7, thread, ts, dur,
      id == 0 ? "" : absl::StrCat("\"Record function id\": ", id));
  return *this;
}

KinetoText& KinetoText::Step(int64_t number, int64_t thread, int64_t ts, int64_t dur) {
  Add("user_annotation", absl::StrCat("ProfilerStep#", number), 7, thread, ts, dur, "");
  return *this;
}

KinetoText& KinetoText::Call(absl::string_view name, int64_t thread, int64_t ts, int64_t dur,
                             uint64_t correlation) {
  Add("cuda_runtime", name, 7, thread, ts, dur, absl::StrCat(R"("correlation": )", correlation));
  return *this;
}

KinetoText& KinetoText::Kernel(absl::string_view name, int64_t stream, int64_t ts, int64_t dur,
                               uint64_t correlation, absl::string_view args) {
  Add("kernel", name, 0, stream, ts, dur,
      absl::StrCat(R"("device": 0, "stream": )", stream, R"(, "correlation": )", correlation,
                   args));
  return *this;
}

KinetoText& KinetoText::Collective(absl::string_view collective, absl::string_view kernel,
                                   int64_t stream, int64_t ts, int64_t dur, uint64_t correlation,
                                   int64_t elements) {
  std::vector<int64_t> ranks(static_cast<size_t>(world_size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  return Kernel(
      kernel, stream, ts, dur, correlation,
      absl::StrCat(R"(, "Collective name": ")", collective, R"(", "In msg nelems": )", elements,
                   R"(, "Out msg nelems": )", elements, R"(, "Group size": )", world_size_,
                   R"(, "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[)",
                   absl::StrJoin(ranks, ", "), R"(]", "Seq": )", correlation));
}

std::string KinetoText::Text() const {
  return absl::StrCat(R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": )",
                      rank_, R"(, "world_size": )", world_size_,
                      R"(}, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [)",
                      absl::StrJoin(events_, ",\n"), "]}");
}

}  // namespace meridian
