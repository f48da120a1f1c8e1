#include "trace_alignment/testing/cluster_spec.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr int64_t kMaxDelayUs = 60'000'000;

absl::StatusOr<CollectiveSpec> ParseCollective(absl::string_view item, int64_t ranks) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(item, absl::MaxSplits('/', 1));
  CollectiveSpec spec;
  bool known = false;
  for (const CollectiveSpec& candidate : OneOfEach(1)) {
    if (CollectiveKindName(candidate.kind) != parts.first) continue;
    spec.kind = candidate.kind;
    known = true;
  }
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", item, "' is no collective; expected e.g. all-reduce or all-gather/4s"));
  }
  if (parts.first.size() == item.size()) return spec;
  absl::string_view size = parts.second;
  spec.strided = absl::ConsumeSuffix(&size, "s");
  if (!absl::SimpleAtoi(size, &spec.group_size) || spec.group_size < 1 ||
      ranks % spec.group_size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", item, "': groups of '", size, "' do not divide ", ranks, " ranks"));
  }
  return spec;
}

absl::StatusOr<Straggler> ParseStraggler(absl::string_view item, int64_t ranks) {
  const std::vector<absl::string_view> parts = absl::StrSplit(item, ':');
  Straggler straggler;
  int64_t delay_us = 0;
  if (parts.size() < 2 || parts.size() > 3 || !absl::SimpleAtoi(parts[0], &straggler.rank) ||
      straggler.rank < 0 || straggler.rank >= ranks || !absl::SimpleAtoi(parts[1], &delay_us) ||
      delay_us < 0 || delay_us > kMaxDelayUs ||
      (parts.size() == 3 &&
       (!absl::SimpleAtoi(parts[2], &straggler.every) || straggler.every < 1))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", item, "' is no straggler among ", ranks,
        " ranks; expected rank:microseconds or rank:microseconds:every, e.g. 3:500:4"));
  }
  straggler.delay_ns = delay_us * 1000;
  return straggler;
}

}  // namespace

absl::StatusOr<std::vector<CollectiveSpec>> ParseCollectives(absl::string_view text,
                                                             int64_t ranks) {
  std::vector<CollectiveSpec> specs;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const CollectiveSpec spec, ParseCollective(item, ranks));
    specs.push_back(spec);
  }
  return specs;
}

absl::StatusOr<std::vector<Straggler>> ParseStragglers(absl::string_view text, int64_t ranks) {
  std::vector<Straggler> stragglers;
  for (absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(const Straggler straggler, ParseStraggler(item, ranks));
    stragglers.push_back(straggler);
  }
  return stragglers;
}

}  // namespace meridian
