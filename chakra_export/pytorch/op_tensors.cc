#include "chakra_export/pytorch/op_tensors.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// An operator that only passes tensors on is called by one that has them; further up, tensors are
// others.
constexpr int kMaxCallersAsked = 3;

// Collectives write where they read, whatever their list of outputs says.
bool IsCommunicationOp(absl::string_view name) {
  return name == "record_param_comms" || absl::StartsWith(name, "nccl:") ||
         absl::StartsWith(name, "c10d::");
}

// Storages on the device in the order of their ids.
struct Accesses {
  std::set<uint64_t> reads;
  std::set<uint64_t> writes;

  bool empty() const { return reads.empty() && writes.empty(); }
};

std::set<uint64_t> StoragesIn(JsonValue values) {
  std::set<uint64_t> storages;
  for (const HostTensor& tensor : TensorsIn(values)) {
    if (tensor.on_device) storages.insert(tensor.storage_id);
  }
  return storages;
}

Accesses AccessesOf(const HostTrace& host, HostOpIndex op) {
  const HostOpDetails details = host.Details(op);
  Accesses accesses{StoragesIn(details.inputs.values), StoragesIn(details.outputs.values)};
  if (IsCommunicationOp(host.name(op))) {
    accesses.writes.insert(accesses.reads.begin(), accesses.reads.end());
  }
  return accesses;
}

// Finds the nearest of the operator and its callers that has tensors on the device, and what it
// does to them; kNoHostOp when none has.
HostOpIndex FindAccesses(const HostTrace& host, HostOpIndex op, Accesses* accesses) {
  for (int i = 0; i <= kMaxCallersAsked && op != kNoHostOp; ++i, op = host.ops()[op].parent) {
    *accesses = AccessesOf(host, op);
    if (!accesses->empty()) return op;
  }
  return kNoHostOp;
}

// What was done to a storage.
struct History {
  // The node that wrote it last.
  TimelineIndex writer = kNoTimelineNode;
  // The nodes that have read it since, the last of each stream.
  std::vector<TimelineIndex> readers;
};

class Finder {
 public:
  Finder(const HostTrace& host, RankTimeline* timeline) : host_(host), timeline_(*timeline) {}

  void Run() {
    // Operators often launch several kernels.
    HostOpIndex launching_op = kNoHostOp, op = kNoHostOp;
    Accesses accesses;
    for (const TimelineIndex node : InLaunchOrder()) {
      if (timeline_.nodes[node].launching_op != launching_op) {
        launching_op = timeline_.nodes[node].launching_op;
        op = FindAccesses(host_, launching_op, &accesses);
      }
      timeline_.nodes[node].tensor_op = op;
      if (op == kNoHostOp) continue;
      for (const uint64_t storage : accesses.reads) Read(node, &histories_[storage]);
      for (const uint64_t storage : accesses.writes) Write(node, &histories_[storage]);
    }
  }

 private:
  std::vector<TimelineIndex> InLaunchOrder() const {
    std::vector<TimelineIndex> order;
    for (TimelineIndex i = 0; i < timeline_.nodes.size(); ++i) {
      if (timeline_.nodes[i].launching_op != kNoHostOp) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [this](TimelineIndex a, TimelineIndex b) {
      return timeline_.nodes[a].launched_ps < timeline_.nodes[b].launched_ps;
    });
    return order;
  }

  void Read(TimelineIndex node, History* history) {
    AddEdge(node, history->writer);
    for (TimelineIndex& reader : history->readers) {
      if (timeline_.nodes[reader].track != timeline_.nodes[node].track) continue;
      reader = node;
      return;
    }
    history->readers.push_back(node);
  }

  void Write(TimelineIndex node, History* history) {
    AddEdge(node, history->writer);
    for (const TimelineIndex reader : history->readers) AddEdge(node, reader);
    history->readers.clear();
    history->writer = node;
  }

  void AddEdge(TimelineIndex node, TimelineIndex source) {
    if (source == kNoTimelineNode || source == node) return;
    if (timeline_.nodes[source].end_ps() > timeline_.nodes[node].start_ps) {
      ++timeline_.edges_against_time;
      return;
    }
    timeline_.AddEdge(node, source, EdgeKind::kData);
  }

  const HostTrace& host_;
  RankTimeline& timeline_;
  absl::flat_hash_map<uint64_t, History> histories_;
};

}  // namespace

void AddTensorDependencies(const HostTrace& host, RankTimeline* timeline) {
  Finder(host, timeline).Run();
}

namespace {

using Shape = std::vector<int64_t>;

// Files may claim anything; sums and products stop at the largest number.
int64_t Add(int64_t a, int64_t b) { return SaturateToInt64(absl::int128(a) + b); }
int64_t Multiply(int64_t a, int64_t b) { return SaturateToInt64(absl::int128(a) * b); }

int64_t ProductOf(const Shape& shape, size_t from = 0) {
  int64_t product = 1;
  for (size_t i = from; i < shape.size(); ++i) product = Multiply(product, shape[i]);
  return product;
}

// Returns the shape of each argument; empty for one that is no tensor, or whose shape cannot be
// true.
std::vector<Shape> ShapesIn(JsonValue list) {
  std::vector<Shape> shapes;
  for (const JsonValue value : list.Elements()) {
    Shape shape = value.AsInt64Array().value_or(Shape());
    if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; })) {
      shape.clear();
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

struct Arguments {
  std::vector<Shape> inputs;
  std::vector<Shape> outputs;

  const Shape& input(size_t i) const {
    static const Shape& none = *new Shape();
    return i < inputs.size() ? inputs[i] : none;
  }
};

// Returns the operations of [.., m, k] x [.., k, n]; nullopt when these are no matrices that fit.
std::optional<int64_t> MatrixProduct(const Shape& a, const Shape& b) {
  const size_t rank = a.size();
  if (rank < 2 || b.size() != rank || a[rank - 1] != b[rank - 2]) return std::nullopt;
  return Multiply(2, Multiply(ProductOf(a), b[rank - 1]));
}

// Every element of the result is a sum over the weights of one output channel.
std::optional<int64_t> Convolution(const Shape& result, const Shape& weights) {
  if (result.size() < 3 || weights.size() != result.size()) return std::nullopt;
  return Multiply(2, Multiply(ProductOf(result), ProductOf(weights, 1)));
}

// [batch, length, heads, size] each: queries times keys, and that times values.
std::optional<int64_t> Attention(const Shape& q, const Shape& k, const Shape& v) {
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[3] != k[3]) return std::nullopt;
  const int64_t pairs = Multiply(Multiply(q[0], q[2]), Multiply(q[1], k[1]));
  return Multiply(2, Multiply(pairs, Add(q[3], v[3])));
}

// Returns the operations of operators whose products are known; nullopt for all others.
std::optional<int64_t> Products(absl::string_view name, const Arguments& arguments) {
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::_int_mm") {
    return MatrixProduct(arguments.input(0), arguments.input(1));
  }
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::_addmm_activation") {
    return MatrixProduct(arguments.input(1), arguments.input(2));
  }
  if (name == "aten::convolution" || name == "aten::_convolution" ||
      name == "aten::cudnn_convolution" || name == "aten::miopen_convolution") {
    const Shape result = arguments.outputs.empty() ? Shape() : arguments.outputs[0];
    return Convolution(result, arguments.input(1));
  }
  if (name == "aten::convolution_backward") {
    // For the gradient of the input and that of the weights, whichever are asked for.
    const std::optional<int64_t> one = Convolution(arguments.input(0), arguments.input(2));
    int64_t wanted = 0;
    for (size_t i = 0; i < arguments.outputs.size() && i < 2; ++i) {
      wanted += arguments.outputs[i].empty() ? 0 : 1;
    }
    return one.has_value() ? std::optional<int64_t>(Multiply(*one, wanted)) : std::nullopt;
  }
  if (name == "aten::_efficient_attention_forward" || name == "aten::_flash_attention_forward") {
    return Attention(arguments.input(0), arguments.input(1), arguments.input(2));
  }
  return std::nullopt;
}

// Returns the elements of the argument that has most; one may be a list of tensors.
int64_t LargestArgument(JsonValue values) {
  int64_t largest = 0;
  for (const JsonValue value : values.Elements()) {
    const std::string argument = absl::StrCat("[", value.text(), "]");
    int64_t elements = 0;
    for (const HostTensor& tensor : TensorsIn(JsonValue(argument))) {
      if (tensor.on_device) elements = Add(elements, tensor.elements);
    }
    largest = std::max(largest, elements);
  }
  return largest;
}

// True for operators that compute more than one operation for each element.
bool DoesMoreThanItsShapesTell(absl::string_view name) {
  for (const char* word : {"attention", "conv", "rnn", "lstm", "gru", "fft", "linalg", "mm"}) {
    if (absl::StrContains(name, word)) return true;
  }
  return !absl::StartsWith(name, "aten::");
}

}  // namespace

OpCost CostOfOperator(absl::string_view name, const HostOpDetails& details) {
  OpCost cost;
  for (const JsonValue values : {details.inputs.values, details.outputs.values}) {
    for (const HostTensor& tensor : TensorsIn(values)) {
      if (tensor.on_device) cost.bytes = Add(cost.bytes, tensor.bytes);
    }
  }
  const Arguments arguments{ShapesIn(details.inputs.shapes), ShapesIn(details.outputs.shapes)};
  cost.operations = Products(name, arguments);
  if (cost.operations.has_value() || DoesMoreThanItsShapesTell(name)) return cost;
  cost.operations =
      std::max(LargestArgument(details.inputs.values), LargestArgument(details.outputs.values));
  return cost;
}

}  // namespace meridian
