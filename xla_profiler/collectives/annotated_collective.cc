#include "xla_profiler/collectives/annotated_collective.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/hlo/hlo_shape.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

absl::Status CannotParse(absl::string_view what, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", what, " '", text, "'"));
}

// "1,2,3" -> {1, 2, 3}; false when an element is no number that is not negative.
bool ParseIds(absl::string_view text, std::vector<int64_t>* ids) {
  ids->clear();
  if (text.empty()) return true;
  for (absl::string_view element : absl::StrSplit(text, ',')) {
    int64_t id = 0;
    if (!absl::SimpleAtoi(element, &id) || id < 0) return false;
    ids->push_back(id);
  }
  return true;
}

// Takes "[...]" from the front of the text.
bool ConsumeBracketed(char open, char close, absl::string_view* text, absl::string_view* inside) {
  if (text->empty() || text->front() != open) return false;
  const size_t end = text->find(close);
  if (end == absl::string_view::npos) return false;
  *inside = text->substr(1, end - 1);
  text->remove_prefix(end + 1);
  return true;
}

absl::StatusOr<IdGroups> ParseList(absl::string_view text, absl::string_view whole) {
  IdGroups groups;
  std::vector<int64_t> ids;
  // Without the outer braces: "{0,1},{2,3}".
  absl::string_view rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    absl::string_view inside;
    if (!ConsumeBracketed('{', '}', &rest, &inside) || !ParseIds(inside, &ids) || ids.empty() ||
        static_cast<int64_t>(groups.ids().size() + ids.size()) > kMaxGroupIds) {
      return CannotParse("replica groups", whole);
    }
    groups.Add(ids);
    if (!rest.empty() && (!absl::ConsumePrefix(&rest, ",") || rest.empty())) {
      return CannotParse("replica groups", whole);
    }
  }
  RETURN_IF_ERROR(CheckGroupIds(groups));
  return groups;
}

absl::StatusOr<IdGroups> ParseIota(absl::string_view text, absl::string_view whole) {
  absl::string_view shape_text, dims_text, perm_text;
  std::vector<int64_t> shape, dims, perm;
  absl::string_view rest = text;
  if (!ConsumeBracketed('[', ']', &rest, &shape_text) || !absl::StartsWith(rest, "<=")) {
    return CannotParse("replica groups", whole);
  }
  rest.remove_prefix(2);
  if (!ConsumeBracketed('[', ']', &rest, &dims_text) || !ParseIds(shape_text, &shape) ||
      !ParseIds(dims_text, &dims) || shape.size() != 2 || dims.empty()) {
    return CannotParse("replica groups", whole);
  }
  if (!rest.empty()) {
    if (rest.front() != 'T') return CannotParse("replica groups", whole);
    rest.remove_prefix(1);
    if (!ConsumeBracketed('(', ')', &rest, &perm_text) || !rest.empty() ||
        !ParseIds(perm_text, &perm) || perm.empty()) {
      return CannotParse("replica groups", whole);
    }
  }
  return IotaGroups(shape[0], shape[1], dims, perm);
}

std::string TextStat(const XEventVisitor& event, StatType type) {
  const XStatVisitor* stat = event.GetEventOrMetadataStat(type);
  return stat == nullptr ? std::string() : std::string(stat->StrOrRefValue());
}

// What one participant puts in, given what it gets out; an error when that does not fit.
absl::StatusOr<int64_t> OperandBytes(CollectiveKind kind, int64_t output_bytes,
                                     int64_t group_size) {
  if (kind == CollectiveKind::kAllGather) return output_bytes / std::max<int64_t>(1, group_size);
  if (kind != CollectiveKind::kReduceScatter) return output_bytes;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(output_bytes, group_size, &bytes)) {
    return absl::InvalidArgumentError("operand is beyond 2^63 bytes");
  }
  return bytes;
}

// Sets the bytes of an op from its annotated shape.
absl::Status Measure(absl::string_view shape, CollectiveOp* op) {
  const int64_t group_size = op->groups.empty() ? 1 : static_cast<int64_t>(op->groups[0].size());
  ASSIGN_OR_RETURN(const int64_t output_bytes, ParseShapeBytes(shape));
  ASSIGN_OR_RETURN(op->operand_bytes, OperandBytes(op->kind, output_bytes, group_size));
  op->output_bytes = output_bytes;
  return absl::OkStatus();
}

}  // namespace

std::optional<CollectiveKind> KindOfKernel(absl::string_view kernel_name, bool has_groups) {
  // ncclDevKernel_AllReduce_Sum_f32_RING_LL(...): the word after the first "_".
  const std::vector<absl::string_view> words = absl::StrSplit(kernel_name, absl::MaxSplits('_', 2));
  if (words.size() < 2) return std::nullopt;
  const std::string library = absl::AsciiStrToLower(words[0]);
  if (library != "nccldevkernel" && library != "ncclkernel" && library != "rccldevkernel" &&
      library != "rcclkernel") {
    return std::nullopt;
  }
  const absl::string_view function = words[1].substr(0, words[1].find('('));
  if (function == "AllReduce") return CollectiveKind::kAllReduce;
  if (function == "AllGather") return CollectiveKind::kAllGather;
  if (function == "ReduceScatter") return CollectiveKind::kReduceScatter;
  if (function == "Broadcast") return CollectiveKind::kCollectiveBroadcast;
  if (function == "Reduce") return CollectiveKind::kCollectiveReduce;
  if (function == "SendRecv") {
    return has_groups ? CollectiveKind::kAllToAll : CollectiveKind::kCollectivePermute;
  }
  return std::nullopt;
}

absl::StatusOr<IdGroups> ParseReplicaGroups(absl::string_view text) {
  std::string plain = absl::StrReplaceAll(text, {{";", ","}, {" ", ""}});
  const absl::string_view view = plain;
  if (absl::StartsWith(view, "{") && absl::EndsWith(view, "}") && view.size() >= 2) {
    return ParseList(view, text);
  }
  return ParseIota(view, text);
}

absl::StatusOr<int64_t> ParseShapeBytes(absl::string_view text) {
  const std::string plain = absl::StrReplaceAll(text, {{";", ","}, {" ", ""}});
  absl::string_view rest = plain;
  if (rest.empty()) return CannotParse("shape", text);
  int64_t total = 0;
  const bool tuple = absl::ConsumePrefix(&rest, "(");
  while (!rest.empty() && rest != ")") {
    const size_t bracket = rest.find('[');
    absl::string_view dims_text, layout;
    HloShape shape;
    const absl::string_view type = rest.substr(0, std::min(bracket, rest.size()));
    const std::optional<int64_t> element_type = FindElementType(type);
    if (bracket == absl::string_view::npos || !element_type.has_value()) {
      return CannotParse("shape", text);
    }
    shape.element_type = *element_type;
    rest.remove_prefix(bracket);
    if (!ConsumeBracketed('[', ']', &rest, &dims_text) || !ParseIds(dims_text, &shape.dimensions)) {
      return CannotParse("shape", text);
    }
    (void)ConsumeBracketed('{', '}', &rest, &layout);
    ASSIGN_OR_RETURN(const int64_t bytes, shape.ByteSize());
    if (__builtin_add_overflow(total, bytes, &total)) return CannotParse("shape", text);
    if (!tuple && !rest.empty()) return CannotParse("shape", text);
    absl::ConsumePrefix(&rest, ",");
  }
  if (tuple != (rest == ")")) return CannotParse("shape", text);
  return total;
}

std::optional<uint32_t> AnnotatedCollectives::FindOp(const XEventVisitor& event,
                                                     CollectiveCollector* collector) {
  const std::string groups_text = TextStat(event, StatType::kReplicaGroups);
  if (groups_text.empty()) return std::nullopt;
  const std::string module = TextStat(event, StatType::kHloModule);
  const std::string instruction = TextStat(event, StatType::kHloOp);
  const auto [it, inserted] = ops_.try_emplace({module, instruction});
  if (!inserted) return it->second;

  CollectiveOp op;
  op.module = module;
  op.instruction = instruction;
  const std::optional<CollectiveKind> kind = KindOfKernel(event.Name(), true);
  const absl::StatusOr<IdGroups> groups = ParseReplicaGroups(groups_text);
  if (!kind.has_value() || !groups.ok()) {
    collector->AddUnresolved("annotation of a collective cannot be read",
                             absl::StrCat(instruction, ": ",
                                          groups.ok() ? std::string(event.Name())
                                                      : std::string(groups.status().message())));
    return std::nullopt;
  }
  op.kind = *kind;
  op.groups = *groups;
  const absl::Status measured = Measure(TextStat(event, StatType::kShape), &op);
  if (!measured.ok()) {
    collector->AddUnresolved("bytes of an annotated collective cannot be told",
                             absl::StrCat(instruction, ": ", std::string(measured.message())));
  }
  it->second = collector->AddOp(std::move(op));
  return it->second;
}

}  // namespace meridian
