// SPDX-License-Identifier: Apache-2.0
// PyTorch's execution trace: which operators the host ran, nested as they were called, on which
// tensors, without times. Schemas 1.0.2 to 1.1.1:
//
//   {"id", "name", "ctrl_deps", "inputs": {"values", "shapes", "types"}, "outputs", "attrs": [..]}
//
// An operator takes 40 bytes here; its tensors and attributes stay in the text until they are asked
// for.
#ifndef CHAKRA_EXPORT_PYTORCH_HOST_TRACE_H_
#define CHAKRA_EXPORT_PYTORCH_HOST_TRACE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/string_pool.h"

namespace meridian {

// Position of an operator in HostTrace::ops().
using HostOpIndex = uint32_t;
inline constexpr HostOpIndex kNoHostOp = std::numeric_limits<HostOpIndex>::max();

struct HostOp {
  uint64_t id = 0;
  // The number that joins it to the profiler's event; 0 for none.
  uint64_t record_function_id = 0;
  // Where its object begins in the text.
  uint64_t source_offset = 0;
  // Index into the trace's names; see HostTrace::name.
  uint32_t name = 0;
  // The operator that called it; kNoHostOp for a root.
  HostOpIndex parent = kNoHostOp;
};

// A tensor that an operator took or gave.
struct HostTensor {
  uint64_t storage_id = 0;
  int64_t elements = 0;
  // Number of elements times the size of one.
  int64_t bytes = 0;
  bool on_device = false;
};

// Arguments or results of an operator: JSON, or values that do not exist.
struct HostOpTensors {
  JsonValue values, shapes, types;
};

// What the text says about one operator beyond HostOp.
struct HostOpDetails {
  HostOpTensors inputs, outputs;
  // A list of objects with a name and a value each.
  JsonValue attributes;

  // Calls fn with each attribute, its name as written.
  void ForEachAttribute(absl::FunctionRef<void(absl::string_view name, JsonValue value)> fn) const;
};

class HostTrace {
 public:
  const std::string& schema() const { return schema_; }
  // What the document says besides its nodes (schema, pid, time, start_ts, finish_ts): keys and
  // values as written, in order.
  const std::vector<std::pair<absl::string_view, JsonValue>>& header() const { return header_; }

  // In the order of ids, which is that of the calls.
  const std::vector<HostOp>& ops() const { return ops_; }
  absl::string_view name(HostOpIndex op) const { return names_.Get(ops_[op].name); }

  // True for nodes that stand for no call: the process, its threads, the list of process groups.
  bool IsStructural(HostOpIndex op) const;

  // Returns the operator's whole object.
  JsonValue Json(HostOpIndex op) const;
  HostOpDetails Details(HostOpIndex op) const;

 private:
  friend class HostTraceReader;

  absl::string_view text_;
  std::string schema_;
  std::vector<std::pair<absl::string_view, JsonValue>> header_;
  std::vector<HostOp> ops_;
  StringPool names_;
};

// The text must outlive the trace; `name` is the file's and begins every error. InvalidArgument
// with offset and reason for text that is no such trace, a schema that is not known, an id that
// occurs twice and operators that call each other in a circle.
absl::StatusOr<HostTrace> ReadHostTrace(absl::string_view text, absl::string_view name);

// Returns the tensors in a list of values, those in nested lists too, in order.
std::vector<HostTensor> TensorsIn(JsonValue values);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_HOST_TRACE_H_
