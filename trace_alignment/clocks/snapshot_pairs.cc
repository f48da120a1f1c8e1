#include "trace_alignment/clocks/snapshot_pairs.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "third_party/xplane/snapshot_pairs.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

constexpr absl::string_view kPairExample = R"({"sys_ns":1000000,"tracer_ns":1000250})";

// Pairs as written, with what their source says about them.
struct RawPairs {
  struct Row {
    SnapshotPair pair;
    // The line of a text file, else the position among the pairs, counted from 1.
    int64_t number = 0;
  };

  // "file:17" for a line, "file: event 17" else; `noun` says which.
  std::string Place(int64_t number) const {
    return noun == "line" ? absl::StrCat(name, ":", number)
                          : absl::StrCat(name, ": ", noun, " ", number);
  }

  std::string name;
  absl::string_view noun;
  bool absolute = false;
  std::optional<int64_t> node_id;
  ClockAnchors header;
  std::vector<Row> rows;
};

template <typename T>
std::optional<T> FirstKnown(const std::optional<T>& a, const std::optional<T>& b,
                            const std::optional<T>& c) {
  return a.has_value() ? a : b.has_value() ? b : c;
}

absl::StatusOr<ClockAnchors> ResolveAnchors(const RawPairs& raw,
                                            const SnapshotPairsOptions& options) {
  const ClockAnchors& flags = options.flags;
  const ClockAnchors& offsets = options.offsets_header;
  ClockAnchors anchors = {
      FirstKnown(flags.start_walltime_ns, raw.header.start_walltime_ns, offsets.start_walltime_ns),
      FirstKnown(flags.start_gpu_ns, raw.header.start_gpu_ns, offsets.start_gpu_ns)};
  if (!anchors.start_walltime_ns.has_value() && !raw.absolute) {
    anchors.start_walltime_ns = options.earliest_tracer_base_ns;
  }
  const auto unknown = [&](absl::string_view name) {
    return FailedPrecondition(raw.name, ": ", name, " of the node is unknown, and its ",
                              raw.absolute ? "absolute" : "relative",
                              " snapshot pairs cannot be placed without; give --", name,
                              " or put it into the header of the snapshot pairs or of the offsets");
  };
  if (!anchors.start_walltime_ns.has_value()) return unknown("start_walltime_ns");
  if (raw.absolute && !anchors.start_gpu_ns.has_value()) return unknown("start_gpu_ns");
  return anchors;
}

// Adds to each clock of the pair what makes it Unix time. False when a sum does not fit.
bool Shift(absl::int128 sys_shift_ns, absl::int128 tracer_shift_ns, SnapshotPair* pair) {
  bool fits = true;
  const auto shift = [&](absl::int128 shift_ns, int64_t* time_ns) {
    const std::optional<int64_t> sum_ns = NarrowToInt64(shift_ns + *time_ns);
    fits = fits && sum_ns.has_value();
    *time_ns = sum_ns.value_or(0);
  };
  shift(sys_shift_ns, &pair->sys_ns);
  shift(tracer_shift_ns, &pair->tracer_ns);
  if (pair->bracket.has_value()) {
    shift(sys_shift_ns, &pair->bracket->sys_before_ns);
    shift(sys_shift_ns, &pair->bracket->sys_after_ns);
  }
  return fits;
}

absl::Status MakeUnixTime(const ClockAnchors& anchors, RawPairs* raw) {
  const absl::int128 walltime_ns = *anchors.start_walltime_ns;
  const absl::int128 sys_shift_ns = raw->absolute ? 0 : walltime_ns;
  const absl::int128 tracer_shift_ns =
      raw->absolute ? walltime_ns - *anchors.start_gpu_ns : walltime_ns;
  for (RawPairs::Row& row : raw->rows) {
    if (Shift(sys_shift_ns, tracer_shift_ns, &row.pair)) continue;
    return InvalidArgument(raw->Place(row.number), ": the pair is beyond the times that fit; ",
                           raw->absolute ? "start_walltime_ns and start_gpu_ns do not belong to it"
                                         : "is it absolute, and the header does not say so?");
  }
  return absl::OkStatus();
}

absl::Status Contradiction(const RawPairs& raw, const RawPairs::Row& last,
                           const RawPairs::Row& next) {
  const absl::string_view reason = last.pair.tracer_ns == next.pair.tracer_ns
                                       ? "contradicts"
                                       : "the host clock does not increase with the tracer's since";
  return InvalidArgument(raw.Place(next.number), ": ", reason, " ", raw.noun, " ", last.number,
                         ": (sys_ns ", last.pair.sys_ns, ", tracer_ns ", last.pair.tracer_ns,
                         ") there, (sys_ns ", next.pair.sys_ns, ", tracer_ns ", next.pair.tracer_ns,
                         ") here, both as Unix time");
}

absl::StatusOr<SnapshotPairs> Finish(RawPairs raw, const SnapshotPairsOptions& options) {
  if (raw.rows.empty()) {
    return InvalidArgument(raw.name, ": no snapshot pairs; expected e.g. ", kPairExample);
  }
  SnapshotPairs snapshots;
  snapshots.name = raw.name;
  snapshots.node_id = raw.node_id;
  ASSIGN_OR_RETURN(const ClockAnchors anchors, ResolveAnchors(raw, options));
  RETURN_IF_ERROR(MakeUnixTime(anchors, &raw));
  std::sort(raw.rows.begin(), raw.rows.end(), [](const RawPairs::Row& a, const RawPairs::Row& b) {
    return std::tie(a.pair.tracer_ns, a.pair.sys_ns, a.number) <
           std::tie(b.pair.tracer_ns, b.pair.sys_ns, b.number);
  });
  const RawPairs::Row* last = nullptr;
  for (const RawPairs::Row& row : raw.rows) {
    if (last != nullptr && last->pair.tracer_ns == row.pair.tracer_ns &&
        last->pair.sys_ns == row.pair.sys_ns) {
      ++snapshots.identical_dropped;
      continue;
    }
    if (last != nullptr &&
        (last->pair.tracer_ns == row.pair.tracer_ns || last->pair.sys_ns >= row.pair.sys_ns)) {
      return Contradiction(raw, *last, row);
    }
    snapshots.pairs.push_back(row.pair);
    last = &row;
  }
  return snapshots;
}

absl::Status ReadHeader(const JsonlRow& row, RawPairs* raw) {
  if (row.Has("node_id")) {
    ASSIGN_OR_RETURN(raw->node_id, row.Int64("node_id"));
  }
  ASSIGN_OR_RETURN(raw->header, ReadClockAnchors(row));
  ASSIGN_OR_RETURN(raw->absolute, row.Bool("absolute", false));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SnapshotBracket>> ReadBracket(const JsonlRow& row) {
  if (!row.Has("sys_before_ns") && !row.Has("sys_after_ns")) return std::nullopt;
  SnapshotBracket bracket;
  ASSIGN_OR_RETURN(bracket.sys_before_ns, row.Int64("sys_before_ns"));
  ASSIGN_OR_RETURN(bracket.sys_after_ns, row.Int64("sys_after_ns"));
  if (bracket.sys_before_ns > bracket.sys_after_ns) {
    return row.Error("sys_before_ns is after sys_after_ns");
  }
  return bracket;
}

int64_t Middle(const SnapshotBracket& bracket) {
  return static_cast<int64_t>((absl::int128(bracket.sys_before_ns) + bracket.sys_after_ns) / 2);
}

absl::StatusOr<SnapshotPair> ReadPair(const JsonlRow& row) {
  SnapshotPair pair;
  const absl::string_view sys_key = row.Has("sys_clock_ns") ? "sys_clock_ns" : "sys_ns";
  const absl::string_view tracer_key = row.Has("tracer_clock_ns") ? "tracer_clock_ns" : "tracer_ns";
  ASSIGN_OR_RETURN(pair.tracer_ns, row.Int64(tracer_key));
  ASSIGN_OR_RETURN(pair.bracket, ReadBracket(row));
  if (pair.bracket.has_value() && !row.Has(sys_key)) {
    pair.sys_ns = Middle(*pair.bracket);
    return pair;
  }
  ASSIGN_OR_RETURN(pair.sys_ns, row.Int64(sys_key));
  if (pair.bracket.has_value() &&
      (pair.sys_ns < pair.bracket->sys_before_ns || pair.sys_ns > pair.bracket->sys_after_ns)) {
    return row.Error(absl::StrCat(sys_key, " lies outside its bracket"));
  }
  return pair;
}

absl::StatusOr<RawPairs> ReadJsonl(absl::string_view contents, const std::string& name) {
  RawPairs raw;
  raw.name = name;
  raw.noun = "line";
  bool first = true;
  RETURN_IF_ERROR(
      ForEachJsonlRow(contents, name, kPairExample, [&](const JsonlRow& row) -> absl::Status {
        ASSIGN_OR_RETURN(const bool is_header, row.Bool("meta", false));
        if (is_header && !first) return row.Error("the header is not the first line");
        first = false;
        if (is_header) return ReadHeader(row, &raw);
        ASSIGN_OR_RETURN(const SnapshotPair pair, ReadPair(row));
        raw.rows.push_back({pair, row.line()});
        return absl::OkStatus();
      }));
  return raw;
}

// Adds a pair of absolute readings. InvalidArgument when one does not fit int64.
absl::Status AddReading(uint64_t sys_ns, uint64_t tracer_ns, RawPairs* raw) {
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  SnapshotPair pair;
  pair.sys_ns = static_cast<int64_t>(sys_ns);
  pair.tracer_ns = static_cast<int64_t>(tracer_ns);
  raw->rows.push_back({pair, static_cast<int64_t>(raw->rows.size()) + 1});
  if (sys_ns <= kLargest && tracer_ns <= kLargest) return absl::OkStatus();
  return InvalidArgument(raw->Place(raw->rows.size()), ": a reading does not fit 63 bits");
}

// Fields that the message does not have come from a message of another type.
bool HasUnknownFields(const tensorflow::profiler::SnapshotPairs& message) {
  const auto unknown = [](const auto& part) {
    return part.GetReflection()->GetUnknownFields(part).field_count() > 0;
  };
  return unknown(message) || std::any_of(message.pairs().begin(), message.pairs().end(), unknown);
}

absl::StatusOr<RawPairs> ReadMessage(absl::string_view contents, const std::string& name) {
  tensorflow::profiler::SnapshotPairs message;
  if (contents.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(contents.data(), static_cast<int>(contents.size())) ||
      HasUnknownFields(message)) {
    return InvalidArgument(
        name, ": neither JSONL nor a SnapshotPairs message; expected lines like ", kPairExample);
  }
  RawPairs raw;
  raw.name = name;
  raw.noun = "pair";
  raw.absolute = true;
  for (const auto& pair : message.pairs()) {
    RETURN_IF_ERROR(AddReading(pair.sys_clock_ns(), pair.tracer_clock_ns(), &raw));
  }
  return raw;
}

// The Unix time of the earliest base of a line that the tracer stamped.
absl::StatusOr<std::optional<int64_t>> EarliestTracerBase(const XSpaceReader& profile,
                                                          const SessionClock& clock) {
  std::optional<int64_t> earliest_ns;
  RETURN_IF_ERROR(profile.ForEachPlane([&](const XPlaneVisitor& plane) {
    return plane.ForEachLine([&](const XLineVisitor& line) -> absl::Status {
      if (ClockDomainOf(plane.Name(), line.Name()) != ClockDomain::kTracer) return absl::OkStatus();
      ASSIGN_OR_RETURN(const int64_t base_ns, clock.LineBaseNs(line.Header()));
      earliest_ns = std::min(earliest_ns.value_or(base_ns), base_ns);
      return absl::OkStatus();
    });
  }));
  return earliest_ns;
}

}  // namespace

absl::StatusOr<ClockAnchors> ReadClockAnchors(const JsonlRow& row) {
  ClockAnchors anchors;
  if (row.Has("start_walltime_ns")) {
    ASSIGN_OR_RETURN(anchors.start_walltime_ns, row.Int64("start_walltime_ns"));
    if (anchors.start_walltime_ns == 0) return ClockAnchors();
  }
  if (row.Has("start_gpu_ns")) {
    ASSIGN_OR_RETURN(anchors.start_gpu_ns, row.Int64("start_gpu_ns"));
  }
  return anchors;
}

std::optional<int64_t> ReadingUncertaintyNs(const SnapshotPairs& snapshots) {
  int64_t largest_ns = 0;
  for (const SnapshotPair& pair : snapshots.pairs) {
    if (!pair.bracket.has_value()) return std::nullopt;
    largest_ns = std::max({largest_ns, pair.sys_ns - pair.bracket->sys_before_ns,
                           pair.bracket->sys_after_ns - pair.sys_ns});
  }
  return largest_ns;
}

absl::StatusOr<SnapshotPairs> LoadSnapshotPairs(FileSystem& file_system, const std::string& path,
                                                const SnapshotPairsOptions& options) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseSnapshotPairs(file.bytes(), path, options);
}

absl::StatusOr<SnapshotPairs> ParseSnapshotPairs(absl::string_view contents,
                                                 const std::string& name,
                                                 const SnapshotPairsOptions& options) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(contents);
  const bool is_jsonl = text.empty() || text.front() == '{';
  ASSIGN_OR_RETURN(RawPairs raw,
                   is_jsonl ? ReadJsonl(contents, name) : ReadMessage(contents, name));
  return Finish(std::move(raw), options);
}

absl::StatusOr<SnapshotPairs> SnapshotPairsFromPlane(const XPlaneVisitor& plane,
                                                     const SessionClock& clock,
                                                     const std::string& name,
                                                     const SnapshotPairsOptions& options) {
  RawPairs raw;
  raw.name = absl::StrCat(name, ": ", kSnapshotsPlaneName);
  raw.noun = "event";
  raw.absolute = true;
  RETURN_IF_ERROR(plane.ForEachLine([&](const XLineVisitor& line) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t base_ns, clock.LineBaseNs(line.Header()));
    return line.ForEachEvent([&](const XEventVisitor& event) -> absl::Status {
      const XStatVisitor* stat = event.GetStat(StatType::kRocmNs);
      const std::optional<int64_t> tracer_ns =
          stat == nullptr ? std::nullopt : stat->IntOrUintValue();
      if (!tracer_ns.has_value()) {
        return InvalidArgument(raw.Place(raw.rows.size() + 1), ": the stat rocm_ns is missing");
      }
      const int64_t sys_ns = RunClock(base_ns).ToUnixNs(event.OffsetPs());
      return AddReading(sys_ns, *tracer_ns, &raw);
    });
  }));
  return Finish(std::move(raw), options);
}

absl::StatusOr<std::optional<SnapshotPairs>> LoadProfileSnapshots(FileSystem& file_system,
                                                                  const XSpaceReader& profile,
                                                                  const SessionClock& clock,
                                                                  const std::string& file,
                                                                  SnapshotPairsOptions options) {
  ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> plane,
                   profile.FindPlane(kSnapshotsPlaneName));
  if (file.empty() && !plane.has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(options.earliest_tracer_base_ns, EarliestTracerBase(profile, clock));
  return file.empty() ? SnapshotPairsFromPlane(*plane, clock, profile.name(), options)
                      : LoadSnapshotPairs(file_system, file, options);
}

absl::StatusOr<ClockMap> TracerToHostMap(const SnapshotPairs& snapshots, const RunClock& clock) {
  std::vector<ClockKnot> knots;
  knots.reserve(snapshots.pairs.size());
  for (const SnapshotPair& pair : snapshots.pairs) {
    ASSIGN_OR_RETURN(const int64_t from_ps,
                     Annotate(clock.ToRunPs(pair.tracer_ns, 0), snapshots.name));
    ASSIGN_OR_RETURN(const int64_t to_ps, Annotate(clock.ToRunPs(pair.sys_ns, 0), snapshots.name));
    knots.push_back({from_ps, to_ps});
  }
  return ClockMap::Create(std::move(knots));
}

}  // namespace meridian
