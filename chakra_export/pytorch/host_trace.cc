#include "chakra_export/pytorch/host_trace.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr absl::string_view kSchemas[] = {"1.0.2", "1.0.3", "1.0.4", "1.1.0", "1.1.1"};
// Once "execution_graph|thread]", today "execution_trace|thread]".
constexpr absl::string_view kStructuralPrefix = "[pytorch|profiler|execution_";
constexpr absl::string_view kProcessGroups = "## process_group:init ##";

// Lists of lists of tensors occur; deeper ones are no tensors.
constexpr int kMaxTensorDepth = 8;

// Returns a number that may stand alone or as the only one of a list, as writers of newer layouts
// do.
std::optional<uint64_t> IdOf(JsonValue value) {
  const std::optional<uint64_t> id = value.AsUint64();
  if (id.has_value()) return id;
  const std::optional<std::vector<int64_t>> ids = value.AsInt64Array();
  if (!ids.has_value() || ids->size() != 1 || ids->front() < 0) return std::nullopt;
  return static_cast<uint64_t>(ids->front());
}

// Reads [tensor, storage, offset, elements, bytes of one, device]; false when the list is another.
bool ReadTensor(JsonValue list, HostTensor* tensor) {
  const std::vector<JsonValue> values = list.Elements(6);
  if (values.size() < 6 || !absl::StartsWith(values[5].text(), "\"")) return false;
  const std::optional<uint64_t> storage = values[1].AsUint64();
  const std::optional<int64_t> elements = values[3].AsInt64();
  const std::optional<int64_t> size = values[4].AsInt64();
  if (!storage.has_value() || !elements.has_value() || !size.has_value()) return false;
  if (*elements < 0 || *size < 0) return false;
  if (*size > 0 && *elements > std::numeric_limits<int64_t>::max() / *size) return false;
  tensor->storage_id = *storage;
  tensor->elements = *elements;
  tensor->bytes = *elements * *size;
  tensor->on_device = !absl::StartsWith(values[5].text(), "\"cpu");
  return true;
}

void CollectTensors(JsonValue values, int depth, std::vector<HostTensor>* tensors) {
  for (const JsonValue value : values.Elements()) {
    if (!absl::StartsWith(value.text(), "[")) continue;
    HostTensor tensor;
    if (ReadTensor(value, &tensor)) {
      tensors->push_back(tensor);
    } else if (depth < kMaxTensorDepth) {
      CollectTensors(value, depth + 1, tensors);
    }
  }
}

HostOpTensors TensorsOf(JsonValue json) {
  return {json.Find("values"), json.Find("shapes"), json.Find("types")};
}

}  // namespace

void HostOpDetails::ForEachAttribute(
    absl::FunctionRef<void(absl::string_view name, JsonValue value)> fn) const {
  for (const JsonValue attribute : attributes.Elements()) {
    absl::string_view name = attribute.Find("name").text();
    if (!absl::ConsumePrefix(&name, "\"") || !absl::ConsumeSuffix(&name, "\"")) continue;
    fn(name, attribute.Find("value"));
  }
}

bool HostTrace::IsStructural(HostOpIndex op) const {
  return absl::StartsWith(name(op), kStructuralPrefix) || name(op) == kProcessGroups;
}

JsonValue HostTrace::Json(HostOpIndex op) const {
  return JsonValue(JsonCutter(text_, ops_[op].source_offset).CutValue());
}

HostOpDetails HostTrace::Details(HostOpIndex op) const {
  HostOpDetails details;
  JsonCutter cutter(Json(op).text());
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const JsonValue value(cutter.CutValue());
    if (key == "inputs") details.inputs = TensorsOf(value);
    if (key == "outputs") details.outputs = TensorsOf(value);
    if (key == "attrs") details.attributes = value;
  }
  return details;
}

class HostTraceReader {
 public:
  explicit HostTraceReader(absl::string_view text) : text_(text) { trace_.text_ = text; }

  absl::StatusOr<HostTrace> Read() {
    RETURN_IF_ERROR(ReadDocument());
    RETURN_IF_ERROR(CheckSchema());
    RETURN_IF_ERROR(SortById());
    RETURN_IF_ERROR(FindParents());
    return std::move(trace_);
  }

 private:
  absl::Status ReadDocument() {
    // All of it, since linked traces are made of its parts.
    JsonCutter cutter(text_, 0, JsonChecks::kAll);
    bool has_nodes = false;
    cutter.Enter('{');
    for (absl::string_view key; cutter.NextMember(&key);) {
      if (key == "nodes") {
        has_nodes = true;
        cutter.Enter('[');
        while (cutter.NextElement()) {
          const absl::string_view node = cutter.CutValue();
          RETURN_IF_ERROR(cutter.status());
          RETURN_IF_ERROR(ReadNode(node));
        }
      } else {
        const JsonValue value(cutter.CutValue());
        if (key == "schema") trace_.schema_ = value.AsString().value_or("");
        if (cutter.status().ok()) trace_.header_.emplace_back(key, value);
      }
    }
    if (cutter.status().ok() && !cutter.AtEnd()) cutter.Fail("text after the end of the document");
    RETURN_IF_ERROR(cutter.status());
    if (has_nodes) return absl::OkStatus();
    return InvalidArgument(
        "no PyTorch execution trace: it has no list of nodes; expected a file that "
        "torch.profiler.ExecutionTraceObserver wrote");
  }

  absl::Status ErrorAt(absl::string_view slice, absl::string_view reason) const {
    return InvalidArgument("offset ", slice.data() - text_.data(), ": ", reason);
  }

  absl::Status ReadNode(absl::string_view json) {
    if (read_.size() == kNoHostOp) return ErrorAt(json, "more nodes than 2^32");
    HostOp op;
    op.source_offset = json.data() - text_.data();
    std::optional<uint64_t> id;
    absl::string_view name;
    JsonValue parent;
    JsonCutter cutter(json);
    cutter.Enter('{');
    for (absl::string_view key; cutter.NextMember(&key);) {
      const JsonValue value(cutter.CutValue());
      if (key == "id") {
        id = value.AsUint64();
      } else if (key == "name") {
        name = value.text();
      } else if (key == "ctrl_deps") {
        parent = value;
      } else if (key == "attrs") {
        ReadAttributes(value, &op);
      }
    }
    if (!cutter.status().ok()) return ErrorAt(json, "a node that is no JSON object");
    if (!id.has_value()) return ErrorAt(json, "a node without an id");
    op.id = *id;
    RETURN_IF_ERROR(SetName(json, name, &op));
    read_.emplace_back(op, IdOf(parent).value_or(op.id));
    return absl::OkStatus();
  }

  absl::Status SetName(absl::string_view json, absl::string_view quoted, HostOp* op) {
    const std::optional<std::string> name = JsonValue(quoted).AsString();
    if (!name.has_value()) {
      return ErrorAt(json, absl::StrCat("node ", op->id, " has no name that is text"));
    }
    op->name = trace_.names_.Intern(*name);
    return absl::OkStatus();
  }

  static void ReadAttributes(JsonValue list, HostOp* op) {
    for (const JsonValue attribute : list.Elements()) {
      const absl::string_view name = attribute.Find("name").text();
      if (name == "\"rf_id\"") {
        op->record_function_id = attribute.Find("value").AsUint64().value_or(0);
      }
    }
  }

  absl::Status CheckSchema() const {
    const std::vector<absl::string_view> parts = absl::StrSplit(trace_.schema_, '-');
    if (absl::c_linear_search(kSchemas, parts[0])) return absl::OkStatus();
    return InvalidArgument("schema \"", Printable(trace_.schema_),
                           "\" is not known; expected one of ", absl::StrJoin(kSchemas, ", "));
  }

  // PyTorch writes an operator when it returns, which is after those it called.
  absl::Status SortById() {
    absl::c_stable_sort(read_,
                        [](const auto& a, const auto& b) { return a.first.id < b.first.id; });
    std::vector<HostOp>& ops = trace_.ops_;
    ops.reserve(read_.size());
    for (const auto& [op, parent_id] : read_) {
      if (!ops.empty() && ops.back().id == op.id) {
        return InvalidArgument("offset ", op.source_offset, ": node ", op.id,
                               " occurs twice, also at offset ", ops.back().source_offset);
      }
      ops.push_back(op);
    }
    return absl::OkStatus();
  }

  absl::Status FindParents() {
    std::vector<HostOp>& ops = trace_.ops_;
    for (size_t i = 0; i < ops.size(); ++i) {
      const uint64_t parent_id = read_[i].second;
      if (parent_id == ops[i].id) continue;
      const auto it = absl::c_lower_bound(ops, parent_id,
                                          [](const HostOp& op, uint64_t id) { return op.id < id; });
      // An operator whose parent is no node is a root.
      if (it == ops.end() || it->id != parent_id) continue;
      ops[i].parent = static_cast<HostOpIndex>(it - ops.begin());
    }
    return CheckForCircles();
  }

  absl::Status CheckForCircles() const {
    const std::vector<HostOp>& ops = trace_.ops_;
    // Which walk upwards came here first; 0 for none.
    std::vector<uint32_t> walk(ops.size(), 0);
    for (HostOpIndex i = 0; i < ops.size(); ++i) {
      HostOpIndex at = i;
      for (; at != kNoHostOp && walk[at] == 0; at = ops[at].parent) walk[at] = i + 1;
      if (at == kNoHostOp || walk[at] != i + 1) continue;
      return InvalidArgument("offset ", ops[at].source_offset, ": node ", ops[at].id,
                             " is its own ancestor");
    }
    return absl::OkStatus();
  }

  const absl::string_view text_;
  HostTrace trace_;
  // The operators, each with the id of its parent; a root has its own id.
  std::vector<std::pair<HostOp, uint64_t>> read_;
};

absl::StatusOr<HostTrace> ReadHostTrace(absl::string_view text, absl::string_view name) {
  return Annotate(HostTraceReader(text).Read(), name);
}

std::vector<HostTensor> TensorsIn(JsonValue values) {
  std::vector<HostTensor> tensors;
  if (values.exists()) CollectTensors(values, 0, &tensors);
  return tensors;
}

}  // namespace meridian
