#include "trace_alignment/testing/naive_merge.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/clocks/clock_map.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

constexpr int64_t kSecondPs = 1000000000000;
// What the good profile's clock is behind the common one.
constexpr int64_t kShiftPs = 12345678;

// One text for each stat, sorted; values that refer to a name are the name.
std::string StatTexts(const XPlaneProto& plane,
                      const google::protobuf::RepeatedPtrField<XStatProto>& stats) {
  const auto name = [&](uint64_t id) {
    const auto it = plane.stat_metadata().find(static_cast<int64_t>(id));
    return it == plane.stat_metadata().end() ? absl::StrCat(id) : it->second.name();
  };
  std::vector<std::string> texts;
  for (XStatProto stat : stats) {
    const std::string stat_name = name(stat.metadata_id());
    if (stat_name == StatTypeName(StatType::kProgramId)) continue;
    stat.clear_metadata_id();
    if (stat.has_ref_value()) stat.set_str_value(name(stat.ref_value()));
    texts.push_back(absl::StrCat(stat_name, "=", stat.SerializeAsString()));
  }
  std::sort(texts.begin(), texts.end());
  std::string all;
  for (const std::string& text : texts) absl::StrAppend(&all, " ", absl::CEscape(text));
  return all;
}

// One text for each event of the space, whose session began at that Unix time.
std::vector<std::string> EventTexts(const XSpaceProto& space, int64_t start_ns, int64_t shift_ps) {
  std::vector<std::string> texts;
  for (const XPlaneProto& plane : space.planes()) {
    for (const XLineProto& line : plane.lines()) {
      for (const XEventProto& event : line.events()) {
        std::string time = absl::StrCat(event.num_occurrences(), " times");
        if (event.data_case() != XEventProto::kNumOccurrences) {
          const absl::int128 ps =
              (absl::int128(start_ns) + line.timestamp_ns()) * 1000 + event.offset_ps() + shift_ps;
          time = absl::StrCat(static_cast<int64_t>(ps / 1000), " ns ",
                              static_cast<int64_t>(ps % 1000), " ps");
        }
        const XEventMetadataProto& metadata = plane.event_metadata().at(event.metadata_id());
        texts.push_back(
            absl::StrCat(absl::CEscape(line.name()), " | ", absl::CEscape(metadata.name()), " | ",
                         absl::CEscape(metadata.display_name()), StatTexts(plane, metadata.stats()),
                         " | ", time, " + ", event.duration_ps(), StatTexts(plane, event.stats())));
      }
    }
  }
  return texts;
}

struct Profile {
  XSpaceReader reader;
  SessionClock clock;
};

absl::StatusOr<Profile> Read(absl::string_view bytes) {
  ASSIGN_OR_RETURN(XSpaceReader reader, XSpaceReader::FromBytes(bytes, "profile"));
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  ASSIGN_OR_RETURN(SessionClock clock, SessionClock::Create("profile", info, std::nullopt));
  return Profile{std::move(reader), std::move(clock)};
}

}  // namespace

absl::Status CompareWithNaiveMerge(absl::string_view bytes, PlaneNaming naming,
                                   MergeVerdict* verdict) {
  static const std::string* const good = new std::string(SyntheticRun({})[1].SerializeAsString());
  *verdict = MergeVerdict::kRefused;
  const absl::StatusOr<Profile> first = Read(bytes);
  if (!first.ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Profile second, Read(*good));
  const NodeClock first_node{RunClock(first->clock.start_ns())};
  NodeClock second_node{RunClock(second.clock.start_ns())};
  ASSIGN_OR_RETURN(second_node.host_to_reference,
                   ClockMap::Create({{0, kShiftPs}, {kSecondPs, kSecondPs + kShiftPs}}));
  std::vector<CombineInput> inputs = {{&first->reader, &first->clock, &first_node, {}},
                                      {&second.reader, &second.clock, &second_node, {}}};
  inputs[1].record.node_id = 1;
  CombineOptions options;
  options.naming = naming;
  std::string combined_bytes;
  StringSink sink(&combined_bytes);
  if (!CombineXSpaces(inputs, options, sink).ok()) return absl::OkStatus();
  *verdict = MergeVerdict::kMerged;

  XSpaceProto first_space, second_space, combined_space;
  if (!combined_space.ParseFromString(combined_bytes)) {
    return absl::InternalError("libprotobuf refuses the combined profile");
  }
  if (!first_space.ParseFromString(std::string(bytes)) || !second_space.ParseFromString(*good)) {
    return absl::InternalError("libprotobuf refuses a profile that was combined");
  }
  const absl::StatusOr<Profile> combined = Read(combined_bytes);
  if (!combined.ok()) return absl::InternalError(combined.status().message());
  std::vector<std::string> expected = EventTexts(first_space, first->clock.start_ns(), 0);
  for (std::string& text : EventTexts(second_space, second.clock.start_ns(), kShiftPs)) {
    expected.push_back(std::move(text));
  }
  std::vector<std::string> found = EventTexts(combined_space, combined->clock.start_ns(), 0);
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  const auto [e, f] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  if (e == expected.end() && f == found.end()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(expected.size(), " events became ", found.size(),
                                          "; expected ", e == expected.end() ? "no more" : *e,
                                          "; found ", f == found.end() ? "no more" : *f));
}

}  // namespace meridian
