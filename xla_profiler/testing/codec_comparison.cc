#include "xla_profiler/testing/codec_comparison.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/field_comparator.h"
#include "google/protobuf/util/message_differencer.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/testing/moving_editor.h"
#include "xla_profiler/xplane/xplane_rewriter.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

namespace xp = ::tensorflow::profiler;

absl::Status Differ(absl::string_view what) {
  return absl::InternalError(absl::StrCat("codecs differ: ", what));
}

#define EXPECT_SAME(a, b, what)             \
  do {                                      \
    if (!((a) == (b))) return Differ(what); \
  } while (false)

absl::Status CompareStat(const XStatVisitor& ours, const xp::XStat& theirs,
                         const xp::XPlane& plane) {
  using Case = XStatVisitor::ValueCase;
  EXPECT_SAME(ours.Id(), theirs.metadata_id(), "stat id");
  const auto metadata = plane.stat_metadata().find(theirs.metadata_id());
  if (metadata != plane.stat_metadata().end()) {
    EXPECT_SAME(ours.Name(), metadata->second.name(), "stat name");
  }
  switch (theirs.value_case()) {
    case xp::XStat::kDoubleValue: {
      const double a = ours.DoubleValue(), b = theirs.double_value();
      EXPECT_SAME(std::memcmp(&a, &b, sizeof(a)), 0, "double");
      EXPECT_SAME(ours.value_case(), Case::kDouble, "stat case");
      break;
    }
    case xp::XStat::kUint64Value:
      EXPECT_SAME(ours.value_case(), Case::kUint64, "stat case");
      EXPECT_SAME(ours.UintValue(), theirs.uint64_value(), "uint64");
      EXPECT_SAME(ours.IntOrUintValue(), static_cast<int64_t>(theirs.uint64_value()), "uint64");
      break;
    case xp::XStat::kInt64Value:
      EXPECT_SAME(ours.value_case(), Case::kInt64, "stat case");
      EXPECT_SAME(ours.IntValue(), theirs.int64_value(), "int64");
      break;
    case xp::XStat::kStrValue:
      EXPECT_SAME(ours.value_case(), Case::kStr, "stat case");
      EXPECT_SAME(ours.StrOrRefValue(), theirs.str_value(), "str");
      break;
    case xp::XStat::kBytesValue:
      EXPECT_SAME(ours.value_case(), Case::kBytes, "stat case");
      EXPECT_SAME(ours.BytesValue(), theirs.bytes_value(), "bytes");
      break;
    case xp::XStat::kRefValue: {
      EXPECT_SAME(ours.value_case(), Case::kRef, "stat case");
      const auto referred = plane.stat_metadata().find(static_cast<int64_t>(theirs.ref_value()));
      EXPECT_SAME(referred == plane.stat_metadata().end(), false, "reference exists");
      EXPECT_SAME(ours.StrOrRefValue(), referred->second.name(), "ref");
      break;
    }
    case xp::XStat::VALUE_NOT_SET:
      EXPECT_SAME(ours.value_case(), Case::kNone, "stat case");
      break;
  }
  return absl::OkStatus();
}

template <typename Stats>
absl::Status CompareStats(absl::Span<const XStatVisitor> ours, const Stats& theirs,
                          const xp::XPlane& plane) {
  EXPECT_SAME(ours.size(), static_cast<size_t>(theirs.size()), "number of stats");
  for (size_t i = 0; i < ours.size(); ++i) {
    RETURN_IF_ERROR(CompareStat(ours[i], theirs.Get(static_cast<int>(i)), plane));
  }
  return absl::OkStatus();
}

absl::Status CompareEvent(const XEventVisitor& ours, const xp::XEvent& theirs,
                          const xp::XPlane& plane) {
  EXPECT_SAME(ours.Id(), theirs.metadata_id(), "event metadata id");
  EXPECT_SAME(ours.Name(), plane.event_metadata().at(theirs.metadata_id()).name(), "event name");
  EXPECT_SAME(ours.IsAggregatedEvent(), theirs.data_case() == xp::XEvent::kNumOccurrences, "oneof");
  EXPECT_SAME(ours.OffsetPs(), theirs.offset_ps(), "offset_ps");
  EXPECT_SAME(ours.DurationPs(), theirs.duration_ps(), "duration_ps");
  return CompareStats(ours.Stats(), theirs.stats(), plane);
}

absl::Status CompareLine(const XLineVisitor& ours, const xp::XLine& theirs,
                         const xp::XPlane& plane) {
  EXPECT_SAME(ours.Header().id, theirs.id(), "line id");
  EXPECT_SAME(ours.Header().name, theirs.name(), "line name");
  EXPECT_SAME(ours.Header().timestamp_ns, theirs.timestamp_ns(), "timestamp_ns");
  EXPECT_SAME(ours.Header().display_name, theirs.display_name(), "display_name");
  EXPECT_SAME(ours.NumEvents(), static_cast<uint64_t>(theirs.events_size()), "number of events");
  int index = 0;
  return ours.ForEachEvent([&](const XEventVisitor& event) {
    return CompareEvent(event, theirs.events(index++), plane);
  });
}

absl::Status CompareMetadata(const XPlaneVisitor& ours, const xp::XPlane& theirs) {
  EXPECT_SAME(ours.EventMetadata().size(), theirs.event_metadata().size(), "event metadata count");
  EXPECT_SAME(ours.StatMetadata().size(), theirs.stat_metadata().size(), "stat metadata count");
  for (const XStatMetadata& metadata : ours.StatMetadata()) {
    const xp::XStatMetadata& other = theirs.stat_metadata().at(metadata.id);
    EXPECT_SAME(metadata.name, other.name(), "stat metadata name");
  }
  for (const XEventMetadata& metadata : ours.EventMetadata()) {
    const xp::XEventMetadata& other = theirs.event_metadata().at(metadata.id);
    EXPECT_SAME(metadata.name, other.name(), "event metadata name");
    EXPECT_SAME(metadata.display_name, other.display_name(), "event metadata display_name");
    RETURN_IF_ERROR(CompareStats(metadata.stats, other.stats(), theirs));
  }
  return CompareStats(ours.Stats(), theirs.stats(), theirs);
}

absl::Status ComparePlane(const XSpaceSource& source, absl::string_view bytes,
                          const xp::XPlane& theirs) {
  ASSIGN_OR_RETURN(const XPlaneVisitor ours, XPlaneVisitor::Create(source, bytes));
  EXPECT_SAME(ours.Id(), theirs.id(), "plane id");
  EXPECT_SAME(ours.Name(), theirs.name(), "plane name");
  RETURN_IF_ERROR(CompareMetadata(ours, theirs));
  EXPECT_SAME(ours.NumLines(), static_cast<size_t>(theirs.lines_size()), "number of lines");
  int index = 0;
  return ours.ForEachLine(
      [&](const XLineVisitor& line) { return CompareLine(line, theirs.lines(index++), theirs); });
}

absl::Status CompareTexts(const std::vector<absl::string_view>& ours,
                          const google::protobuf::RepeatedPtrField<std::string>& theirs) {
  EXPECT_SAME(ours.size(), static_cast<size_t>(theirs.size()), "number of messages");
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_SAME(ours[i], theirs.Get(static_cast<int>(i)), "message of the space");
  }
  return absl::OkStatus();
}

absl::Status CompareSpace(const XSpaceSource& source, const xp::XSpace& theirs) {
  ASSIGN_OR_RETURN(const XSpaceLayout layout, ReadXSpaceLayout(source));
  RETURN_IF_ERROR(CompareTexts(layout.errors, theirs.errors()));
  RETURN_IF_ERROR(CompareTexts(layout.warnings, theirs.warnings()));
  RETURN_IF_ERROR(CompareTexts(layout.hostnames, theirs.hostnames()));
  EXPECT_SAME(layout.planes.size(), static_cast<size_t>(theirs.planes_size()), "number of planes");
  for (size_t i = 0; i < layout.planes.size(); ++i) {
    RETURN_IF_ERROR(ComparePlane(source, layout.planes[i], theirs.planes(static_cast<int>(i))));
  }
  return absl::OkStatus();
}

// Walks everything and compares nothing: OK when the bytes are well-formed.
absl::Status VisitAll(const XSpaceSource& source) {
  ASSIGN_OR_RETURN(const XSpaceLayout layout, ReadXSpaceLayout(source));
  for (absl::string_view bytes : layout.planes) {
    ASSIGN_OR_RETURN(const XPlaneVisitor plane, XPlaneVisitor::Create(source, bytes));
    RETURN_IF_ERROR(plane.ForEachLine(
        [](const XLineVisitor& line) { return line.ForEachEvent([](const XEventVisitor&) {}); }));
  }
  return absl::OkStatus();
}

constexpr Movement kMovement = {/*offset_ps=*/123456789, /*duration_ps=*/-1, /*timestamp_ns=*/300};

absl::StatusOr<std::string> Rewrite(const XSpaceSource& source, const Movement& movement,
                                    const RewriteOptions& options) {
  MovingEditor editor(movement);
  std::string out;
  StringSink sink(&out);
  RETURN_IF_ERROR(RewriteXSpace(source, editor, sink, options));
  return out;
}

void Move(xp::XSpace* space) {
  for (xp::XPlane& plane : *space->mutable_planes()) {
    for (xp::XLine& line : *plane.mutable_lines()) {
      line.set_timestamp_ns(MovingEditor::Plus(line.timestamp_ns(), kMovement.timestamp_ns));
      for (xp::XEvent& event : *line.mutable_events()) {
        event.set_duration_ps(MovingEditor::Plus(event.duration_ps(), kMovement.duration_ps));
        if (event.data_case() == xp::XEvent::kNumOccurrences) continue;
        event.set_offset_ps(MovingEditor::Plus(event.offset_ps(), kMovement.offset_ps));
      }
    }
  }
}

absl::Status CompareRewrites(const XSpaceSource& source, xp::XSpace* theirs) {
  RewriteOptions in_two_passes;
  in_two_passes.buffer_bytes = 0;
  ASSIGN_OR_RETURN(const std::string same, Rewrite(source, Movement(), {}));
  EXPECT_SAME(absl::string_view(same), source.bytes, "rewrite without changes");
  ASSIGN_OR_RETURN(const std::string same_again, Rewrite(source, Movement(), in_two_passes));
  EXPECT_SAME(absl::string_view(same_again), source.bytes, "rewrite without changes, two passes");
  ASSIGN_OR_RETURN(const std::string moved, Rewrite(source, kMovement, {}));
  ASSIGN_OR_RETURN(const std::string moved_again, Rewrite(source, kMovement, in_two_passes));
  EXPECT_SAME(moved, moved_again, "one pass and two");
  xp::XSpace ours;
  EXPECT_SAME(ours.ParseFromString(moved), true, "libprotobuf reads the moved file");
  Move(theirs);
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_field_comparator(&comparator);
  EXPECT_SAME(differencer.Compare(ours, *theirs), true, "moved times");
  return absl::OkStatus();
}

#undef EXPECT_SAME

bool IsInconsistentIds(const absl::Status& status) {
  return absl::StrContains(status.message(), " occurs twice") ||
         absl::StrContains(status.message(), "not defined in its plane");
}

}  // namespace

absl::Status CompareWithLibprotobuf(absl::string_view bytes, CodecVerdict* verdict) {
  const XSpaceSource source{bytes, {}};
  xp::XSpace theirs;
  const bool accepted = theirs.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const absl::Status visited = VisitAll(source);
  if (!visited.ok() && Rewrite(source, kMovement, {}).ok()) {
    return Differ(absl::StrCat("copied, although ", visited.ToString()));
  }
  if (visited.ok() != accepted) {
    // Inconsistent ids may hide damage further on, so nothing can be said about the rest.
    if (!visited.ok() && IsInconsistentIds(visited)) {
      *verdict = CodecVerdict::kInconsistentIds;
      return absl::OkStatus();
    }
    return Differ(absl::StrCat("libprotobuf ", accepted ? "accepts" : "refuses", " but we say ",
                               visited.ToString()));
  }
  if (!accepted) {
    *verdict = CodecVerdict::kMalformed;
    return absl::OkStatus();
  }
  *verdict = CodecVerdict::kAccepted;
  RETURN_IF_ERROR(CompareSpace(source, theirs));
  return CompareRewrites(source, &theirs);
}

}  // namespace meridian
