#include "xla_profiler/hlo/hlo_text.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/hlo/hlo_shape.h"

namespace meridian {
namespace {

absl::Status CannotParse(absl::string_view what, absl::string_view text) {
  return InvalidArgument("cannot read ", what, " '", text, "'");
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

// Takes e.g. "[...]" from the front of the text; false, and nothing taken, when it is not there.
bool ConsumeBracketed(char open, char close, absl::string_view* text, absl::string_view* inside) {
  if (text->empty() || text->front() != open) return false;
  const size_t end = text->find(close);
  if (end == absl::string_view::npos) return false;
  *inside = text->substr(1, end - 1);
  text->remove_prefix(end + 1);
  return true;
}

bool IsList(absl::string_view text) {
  return text.size() >= 2 && absl::StartsWith(text, "{") && absl::EndsWith(text, "}");
}

// Parses "{{0,1},{2,3}}".
absl::StatusOr<IdGroups> ParseList(absl::string_view text, absl::string_view what) {
  IdGroups groups;
  std::vector<int64_t> ids;
  // Without the outer braces: "{0,1},{2,3}".
  absl::string_view rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    absl::string_view inside;
    if (!ConsumeBracketed('{', '}', &rest, &inside) || !ParseIds(inside, &ids) || ids.empty() ||
        static_cast<int64_t>(groups.ids().size() + ids.size()) > kMaxGroupIds) {
      return CannotParse(what, text);
    }
    groups.Add(ids);
    if (!rest.empty() && (!absl::ConsumePrefix(&rest, ",") || rest.empty())) {
      return CannotParse(what, text);
    }
  }
  return groups;
}

absl::StatusOr<IdGroups> ParseIota(absl::string_view text, absl::string_view whole) {
  absl::string_view shape_text, dims_text, perm_text;
  std::vector<int64_t> shape, dims, perm;
  absl::string_view rest = text;
  bool is_iota = ConsumeBracketed('[', ']', &rest, &shape_text) &&
                 absl::ConsumePrefix(&rest, "<=") &&
                 ConsumeBracketed('[', ']', &rest, &dims_text) && ParseIds(shape_text, &shape) &&
                 ParseIds(dims_text, &dims) && shape.size() == 2 && !dims.empty();
  if (is_iota && !rest.empty()) {
    is_iota = absl::ConsumePrefix(&rest, "T") && ConsumeBracketed('(', ')', &rest, &perm_text) &&
              rest.empty() && ParseIds(perm_text, &perm) && !perm.empty();
  }
  if (!is_iota) return CannotParse("replica groups", whole);
  return IotaGroups(shape[0], shape[1], dims, perm);
}

}  // namespace

absl::StatusOr<IdGroups> ParseReplicaGroups(absl::string_view text) {
  std::string plain = absl::StrReplaceAll(text, {{";", ","}, {" ", ""}});
  if (!IsList(plain)) return ParseIota(plain, text);
  ASSIGN_OR_RETURN(IdGroups groups, ParseList(plain, "replica groups"));
  RETURN_IF_ERROR(CheckGroupIds(groups));
  return groups;
}

absl::StatusOr<std::vector<SourceTargetPair>> ParseSourceTargetPairs(absl::string_view text) {
  constexpr absl::string_view kWhat = "source-target pairs";
  if (!IsList(text)) return CannotParse(kWhat, text);
  ASSIGN_OR_RETURN(const IdGroups groups, ParseList(text, kWhat));
  std::vector<SourceTargetPair> pairs;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].size() != 2) return CannotParse(kWhat, text);
    pairs.push_back({groups[i][0], groups[i][1]});
  }
  return pairs;
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
    xla::ShapeProto shape;
    std::vector<int64_t> dims;
    const absl::string_view type = rest.substr(0, std::min(bracket, rest.size()));
    const std::optional<xla::PrimitiveType> element_type = FindElementType(type);
    if (bracket == absl::string_view::npos || !element_type.has_value()) {
      return CannotParse("shape", text);
    }
    shape.set_element_type(*element_type);
    rest.remove_prefix(bracket);
    if (!ConsumeBracketed('[', ']', &rest, &dims_text) || !ParseIds(dims_text, &dims)) {
      return CannotParse("shape", text);
    }
    (void)ConsumeBracketed('{', '}', &rest, &layout);
    shape.mutable_dimensions()->Add(dims.begin(), dims.end());
    ASSIGN_OR_RETURN(const int64_t bytes, ShapeBytes(shape));
    if (__builtin_add_overflow(total, bytes, &total)) return CannotParse("shape", text);
    if (!tuple && !rest.empty()) return CannotParse("shape", text);
    absl::ConsumePrefix(&rest, ",");
  }
  if (tuple != (rest == ")")) return CannotParse("shape", text);
  return total;
}

}  // namespace meridian
