#include "xla_profiler/xplane/xplane_rewriter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/xplane/event_wire.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"

namespace meridian {
namespace {

// Collects small pieces before they go to the sink; an error is kept until Finish.
class SinkOutput {
 public:
  explicit SinkOutput(ByteSink* sink) : sink_(sink), buffer_(new char[kCapacity]) {}

  void Raw(absl::string_view bytes) {
    if (ABSL_PREDICT_FALSE(bytes.size() > kCapacity - used_)) {
      Flush();
      if (bytes.size() > kCapacity / 2) {
        if (status_.ok()) status_ = sink_->Append(bytes);
        return;
      }
    }
    std::memcpy(buffer_.get() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }

  void Varint(uint64_t value) {
    if (ABSL_PREDICT_FALSE(kCapacity - used_ < kMaxVarintBytes)) Flush();
    used_ = EncodeVarint(value, buffer_.get() + used_) - buffer_.get();
  }

  // OK while everything handed to the sink so far was taken.
  const absl::Status& status() const { return status_; }

  absl::Status Finish() {
    Flush();
    return status_;
  }

 private:
  static constexpr size_t kCapacity = size_t{1} << 18;

  void Flush() {
    if (status_.ok()) status_ = sink_->Append(absl::string_view(buffer_.get(), used_));
    used_ = 0;
  }

  ByteSink* sink_;
  std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
  absl::Status status_;
};

// Reads an event of any form that was checked before.
absl::Status ParseEvent(const XSpaceSource& source, absl::string_view payload, XEventProto* event) {
  constexpr size_t kMaxBytes = std::numeric_limits<int>::max();
  if (payload.size() <= kMaxBytes &&
      event->ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return absl::OkStatus();
  }
  return WireError(payload.data(), source.origin(), "an event that cannot be read");
}

// Reads the times of an event that was checked before.
absl::Status ReadTimes(const XSpaceSource& source, absl::string_view payload, EventTimes* times) {
  PlainEvent plain;
  if (ABSL_PREDICT_TRUE(ReadPlainEvent(payload, source, &plain) &&
                        OnlyStatsFollow(plain, payload))) {
    *times = {plain.offset_ps, plain.duration_ps, /*is_aggregated=*/false, /*is_plain=*/true};
    return absl::OkStatus();
  }
  XEventProto event;
  RETURN_IF_ERROR(ParseEvent(source, payload, &event));
  *times = {event.offset_ps(), event.duration_ps(), event.has_num_occurrences()};
  return absl::OkStatus();
}

// Gives events other times and ids. An event's new length is not known before, so it is put together
// in a buffer.
class XEventRewriter {
 public:
  XEventRewriter(const XSpaceSource& source, const EventIds& ids)
      : source_(source),
        ids_(ids),
        event_ids_(ids.metadata == nullptr ? nullptr : &ids.metadata->events),
        stat_ids_(ids.metadata == nullptr ? nullptr : &ids.metadata->stats) {}

  // The short cut of event_wire.h: returns the event's new fields, which live until the next call.
  // The payload itself when nothing changes; null when the event is not of that form, or uses an id
  // that is not defined.
  ABSL_ATTRIBUTE_ALWAYS_INLINE absl::string_view RewritePlain(absl::string_view payload,
                                                              const EventTimes& wanted) {
    PlainEvent plain;
    if (ABSL_PREDICT_FALSE(!wanted.is_plain || !ReadPlainEvent(payload, source_, &plain))) {
      return {};
    }
    const bool keeps_ids = ids_.empty();
    if (keeps_ids && plain.offset_ps == wanted.offset_ps &&
        plain.duration_ps == wanted.duration_ps) {
      return payload;
    }
    // A stat of two bytes may become one of thirteen.
    const size_t most = 8 * payload.size() + 64;
    if (ABSL_PREDICT_FALSE(plain_.size() < most)) plain_.resize(2 * most);
    char* out = plain_.data();
    int64_t event_id = plain.metadata_id;
    if (!Find(event_ids_, &event_id)) return {};
    if (event_id != 0) out = PutVarint(XEventField::kMetadataId, event_id, out);
    if (wanted.offset_ps != 0) out = PutVarint(XEventField::kOffsetPs, wanted.offset_ps, out);
    if (wanted.duration_ps != 0) {
      out = PutVarint(XEventField::kDurationPs, wanted.duration_ps, out);
    }
    const char* end = payload.data() + payload.size();
    if (keeps_ids) {
      std::memcpy(out, plain.stats, end - plain.stats);
      return {plain_.data(), static_cast<size_t>(out + (end - plain.stats) - plain_.data())};
    }
    absl::string_view stat;
    for (const char* p = plain.stats; p != end;) {
      p = NextPlainStat(p, end, &stat);
      if (ABSL_PREDICT_FALSE(p == nullptr)) return {};
      out = RewritePlainStat(stat, out);
      if (ABSL_PREDICT_FALSE(out == nullptr)) return {};
    }
    return {plain_.data(), static_cast<size_t>(out - plain_.data())};
  }

  // The same for events of any form; an id that is not defined is an error. What changes is written
  // as libprotobuf writes it.
  absl::StatusOr<absl::string_view> RewriteAny(absl::string_view payload,
                                               const EventTimes& wanted) {
    XEventProto event;
    RETURN_IF_ERROR(ParseEvent(source_, payload, &event));
    const std::string before = event.SerializeAsString();
    if (!event.has_num_occurrences() && wanted.offset_ps != event.offset_ps()) {
      event.set_offset_ps(wanted.offset_ps);
    }
    event.set_duration_ps(wanted.duration_ps);
    const auto undefined = [&](absl::string_view kind, int64_t id) {
      return WireError(
          payload.data(), source_.origin(),
          absl::StrCat(kind, " metadata id ", id, " is used but not defined in its plane"));
    };
    int64_t id = event.metadata_id();
    if (!Find(event_ids_, &id)) return undefined("event", id);
    event.set_metadata_id(id);
    for (XStatProto& stat : *event.mutable_stats()) {
      if (ids_.values != nullptr && stat.metadata_id() == ids_.values_stat_id) ReplaceValue(&stat);
      int64_t stat_id = stat.metadata_id();
      if (!Find(stat_ids_, &stat_id)) return undefined("stat", stat_id);
      stat.set_metadata_id(stat_id);
      if (!stat.has_ref_value()) continue;
      int64_t referred = static_cast<int64_t>(stat.ref_value());
      if (!Find(stat_ids_, &referred)) return undefined("stat", referred);
      stat.set_ref_value(static_cast<uint64_t>(referred));
    }
    event_ = event.SerializeAsString();
    return event_ == before ? payload : event_;
  }

 private:
  // Known writers put the id first, then one value. Returns the end of what was written, or
  // nullptr.
  char* RewritePlainStat(absl::string_view stat, char* out) const {
    PlainStat plain;
    if (!ReadPlainStat(stat, &plain)) return nullptr;
    if (ids_.values != nullptr && plain.id == ids_.values_stat_id) return nullptr;
    int64_t id = plain.id;
    if (!Find(stat_ids_, &id)) return nullptr;
    absl::string_view value = plain.value_field;
    char reference[2 * kMaxVarintBytes];
    if (plain.number == XStatField::kRef) {
      int64_t referred = static_cast<int64_t>(plain.scalar);
      if (!Find(stat_ids_, &referred)) return nullptr;
      value = absl::string_view(reference,
                                PutVarint(XStatField::kRef, referred, reference) - reference);
    }
    *out++ = OneByteTag(XEventField::kStats, WireType::kBytes);
    out = EncodeVarint(1 + VarintSize(static_cast<uint64_t>(id)) + value.size(), out);
    out = PutVarint(XStatField::kMetadataId, id, out);
    std::memcpy(out, value.data(), value.size());
    return out + value.size();
  }

  static char* PutVarint(uint32_t number, int64_t value, char* out) {
    *out++ = OneByteTag(number, WireType::kVarint);
    return EncodeVarint(static_cast<uint64_t>(value), out);
  }

  // Replaces the id; false when it is not defined.
  static bool Find(const MetadataTable<int64_t>* ids, int64_t* id) {
    if (ids == nullptr) return true;
    const int64_t* new_id = ids->Find(*id);
    if (ABSL_PREDICT_FALSE(new_id == nullptr)) return false;
    *id = *new_id;
    return true;
  }

  void ReplaceValue(XStatProto* stat) const {
    const bool is_signed = stat->has_int64_value();
    if (!is_signed && !stat->has_uint64_value()) return;
    const auto value = ids_.values->find(is_signed ? static_cast<uint64_t>(stat->int64_value())
                                                   : stat->uint64_value());
    if (value == ids_.values->end()) return;
    if (is_signed) {
      stat->set_int64_value(static_cast<int64_t>(value->second));
    } else {
      stat->set_uint64_value(value->second);
    }
  }

  const XSpaceSource& source_;
  const EventIds& ids_;
  const MetadataTable<int64_t>* const event_ids_;
  const MetadataTable<int64_t>* const stat_ids_;
  // The event at hand when rewritten, of the plain form or of another.
  std::vector<char> plain_;
  std::string event_;
};

// Fields of a plane or line that are to have another value: the old ones are left out, the new ones
// come at the end.
class FieldChanges {
 public:
  void Varint(uint32_t number, const std::optional<int64_t>& wanted, int64_t current) {
    if (!wanted.has_value() || *wanted == current) return;
    dropped_.push_back(MakeTag(number, WireType::kVarint));
    StringOutput output(&fields_);
    WriteVarintField(number, static_cast<uint64_t>(*wanted), &output);
  }

  void Text(uint32_t number, const std::optional<std::string>& wanted, absl::string_view current) {
    if (!wanted.has_value() || *wanted == current) return;
    dropped_.push_back(MakeTag(number, WireType::kBytes));
    StringOutput output(&fields_);
    WriteBytesField(number, *wanted, &output);
  }

  // Returns whether the field is one that is left out.
  bool Drops(const WireField& field) const {
    return absl::c_linear_search(dropped_, MakeTag(field.number, field.type));
  }
  // What is to be written at the end.
  const std::string& fields() const { return fields_; }

 private:
  std::vector<uint32_t> dropped_;
  std::string fields_;
};

// Tells whether a line's events come in the order in which they may be edited in parts.
class PartOrder {
 public:
  void Add(const EventTimes& event) {
    if (event.is_aggregated) return;
    // The longer first; any number can be inverted.
    const std::pair<int64_t, int64_t> place = {event.offset_ps, ~event.duration_ps};
    holds_ = holds_ && last_ <= place;
    last_ = place;
  }

  // Of all events so far.
  bool holds() const { return holds_; }

 private:
  bool holds_ = true;
  std::pair<int64_t, int64_t> last_ = {std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::min()};
};

// Hands out the times of a line that was checked before, part by part.
class PartReader {
 public:
  PartReader(const XSpaceSource& source, absl::string_view line, size_t part_events)
      : source_(source), part_events_(part_events), reader_(line, source.origin(), kXLineDepth) {}

  // Replaces what the edit had of the part before. The last part is followed by empty ones.
  absl::Status Next(LineEdit* edit) {
    edit->first_event += edit->times.size();
    edit->times.clear();
    WireField field;
    while (edit->times.size() < part_events_ && reader_.Next(&field)) {
      if (!field.IsBytes(XLineField::kEvents)) continue;
      RETURN_IF_ERROR(ReadTimes(source_, field.bytes, &edit->times.emplace_back()));
    }
    return reader_.status();
  }

 private:
  const XSpaceSource& source_;
  const size_t part_events_;
  WireReader reader_;
};

}  // namespace

namespace internal {

class PlaneWriter {
 public:
  PlaneWriter(ByteSink* sink, const RewriteOptions& options) : output_(sink), options_(options) {}

  // `header` stands before the payload in the profile; it need not be in the shortest form.
  absl::Status WritePlane(absl::string_view header, const EditedPlane& edited) {
    const absl::Status status = CopyPlane(header, edited);
    return output_.status().ok() ? Named(edited, status) : output_.status();
  }

  absl::Status WriteJoinedPlane(absl::string_view head, absl::Span<const EditedPlane> parts) {
    std::vector<XPlaneLayout> planes;
    planes.reserve(parts.size());
    size_t num_lines = 0;
    std::vector<std::vector<PreparedLine>> lines(parts.size());
    uint64_t expected = 0;
    for (const EditedPlane& part : parts) {
      absl::StatusOr<XPlaneLayout> plane = ReadXPlaneLayout(*part.source, part.payload);
      if (!plane.ok()) return Named(part, plane.status());
      planes.push_back(*std::move(plane));
      expected += ExpectedBytes(planes.back());
      num_lines += planes.back().lines.size();
    }
    RETURN_IF_ERROR(CountPlane(num_lines));
    StartBuffer(expected);
    for (size_t i = 0; i < parts.size(); ++i) {
      const absl::StatusOr<XPlaneVisitor> visitor =
          XPlaneVisitor::Create(*parts[i].source, parts[i].payload);
      if (!visitor.ok()) return Named(parts[i], visitor.status());
      RETURN_IF_ERROR(Named(parts[i], PrepareLines({*parts[i].source, *parts[i].editor, planes[i]},
                                                   *visitor, &lines[i])));
    }
    CountingOutput measured;
    measured.Raw(head);
    for (const std::vector<PreparedLine>& part : lines) {
      for (const PreparedLine& line : part) {
        WriteBytesHeader(XPlaneField::kLines, line.size, &measured);
        measured.Add(line.size);
      }
    }
    WriteBytesHeader(XSpaceField::kPlanes, measured.size(), &output_);
    output_.Raw(head);
    for (size_t i = 0; i < parts.size(); ++i) {
      const LineOwner owner = {*parts[i].source, *parts[i].editor, planes[i]};
      for (size_t l = 0; l < lines[i].size(); ++l) {
        WriteBytesHeader(XPlaneField::kLines, lines[i][l].size, &output_);
        const absl::Status status =
            WritePreparedLine(owner, planes[i].lines[l], lines[i][l], &output_);
        RETURN_IF_ERROR(output_.status());
        RETURN_IF_ERROR(Named(parts[i], status));
      }
    }
    return output_.status();
  }

  absl::Status WriteFields(absl::string_view fields) {
    output_.Raw(fields);
    return output_.status();
  }

  absl::Status Finish() { return output_.Finish(); }

 private:
  static absl::Status Named(const EditedPlane& plane, const absl::Status& status) {
    return plane.name.empty() ? status : Annotate(status, plane.name);
  }

  absl::Status CopyPlane(absl::string_view header, const EditedPlane& edited) {
    XSpaceEditor& editor = *edited.editor;
    ASSIGN_OR_RETURN(const XPlaneVisitor visitor,
                     XPlaneVisitor::Create(*edited.source, edited.payload));
    const XPlaneLayout& plane = visitor.Layout();
    RETURN_IF_ERROR(CountPlane(plane.lines.size()));
    PlaneEdit edit;
    RETURN_IF_ERROR(editor.EditPlane(visitor, &edit));
    if (!edit.edit_lines) RETURN_IF_ERROR(visitor.CheckEvents());
    FieldChanges changes;
    changes.Text(XPlaneField::kName, edit.name, plane.name);
    if (!edit.edit_lines && changes.fields().empty() && edit.additions.empty() &&
        edit.replacements.empty()) {
      output_.Raw(header);
      output_.Raw(edited.payload);
      return output_.status();
    }

    const LineOwner owner = {*edited.source, editor, plane};
    std::vector<PreparedLine> lines;
    if (edit.edit_lines) {
      StartBuffer(ExpectedBytes(plane));
      RETURN_IF_ERROR(PrepareLines(owner, visitor, &lines));
    }
    CountingOutput measured;
    RETURN_IF_ERROR(WritePlaneFields(owner, edit, changes, lines, &measured));
    if (measured.size() == edited.payload.size()) {
      output_.Raw(header);
    } else {
      WriteBytesHeader(XSpaceField::kPlanes, measured.size(), &output_);
    }
    RETURN_IF_ERROR(WritePlaneFields(owner, edit, changes, lines, &output_));
    return output_.status();
  }

  // Nothing is written that would be refused when read.
  absl::Status CountPlane(size_t num_lines) {
    const XSpaceLimits limits;
    num_lines_ += num_lines;
    if (++num_planes_ <= limits.max_planes && num_lines_ <= limits.max_lines) {
      return absl::OkStatus();
    }
    return InvalidArgument("the profile that is written would have more than ", limits.max_planes,
                           " planes or ", limits.max_lines,
                           " lines, which nobody reads; take fewer profiles at once");
  }

  // Where lines come from.
  struct LineOwner {
    const XSpaceSource& source;
    XSpaceEditor& editor;
    const XPlaneLayout& plane;
  };

  // A line that was checked.
  struct ScannedLine {
    XLineHeader header;
    // Its times are not in times_, but are to be read in parts.
    bool has_parts = false;
  };

  // What is known about a line before its plane is written.
  struct PreparedLine {
    // Bytes of the new payload.
    uint64_t size = 0;
    // Where the new payload begins in the buffer; nullopt when there was no room to keep it.
    std::optional<uint64_t> buffer_position;
    ScannedLine scanned;
  };

  static const std::string* FindReplacement(const PlaneEdit& edit, const WireField& field) {
    if (edit.replacements.empty() || field.type != WireType::kBytes) return nullptr;
    const auto it = edit.replacements.find(field.bytes.data());
    return it == edit.replacements.end() ? nullptr : &it->second;
  }

  // Of all lines when rewritten: new times and ids take somewhat more bytes than the old ones.
  static uint64_t ExpectedBytes(const XPlaneLayout& plane) {
    uint64_t bytes = 0;
    for (absl::string_view line : plane.lines) bytes += line.size() + line.size() / 4;
    return bytes;
  }

  void StartBuffer(uint64_t expected_bytes) {
    buffer_.clear();
    buffer_.Reserve(std::min(expected_bytes, options_.buffer_bytes));
  }

  // Checks all lines; rewrites them into the buffer while they fit, measures the others.
  absl::Status PrepareLines(const LineOwner& owner, const XPlaneVisitor& visitor,
                            std::vector<PreparedLine>* lines) {
    lines->reserve(owner.plane.lines.size());
    for (absl::string_view line : owner.plane.lines) {
      PreparedLine prepared;
      RETURN_IF_ERROR(ScanLine(owner.source, &visitor, line, &prepared.scanned));
      // New times and ids may take more bytes than the old ones, hardly twice as many.
      if (buffer_.size() + 2 * line.size() <= options_.buffer_bytes) {
        prepared.buffer_position = buffer_.size();
        RETURN_IF_ERROR(RewriteLine(owner, prepared.scanned, RewritePass::kWrite, &buffer_));
        prepared.size = buffer_.size() - *prepared.buffer_position;
      } else {
        CountingOutput output;
        RETURN_IF_ERROR(RewriteLine(owner, prepared.scanned, RewritePass::kMeasure, &output));
        prepared.size = output.size();
      }
      owner.source.Forget(line);
      lines->push_back(prepared);
    }
    return absl::OkStatus();
  }

  // Writes, or measures, the payload of a plane.
  template <typename Output>
  absl::Status WritePlaneFields(const LineOwner& owner, const PlaneEdit& edit,
                                const FieldChanges& changes, absl::Span<const PreparedLine> lines,
                                Output* output) {
    size_t line_index = 0;
    WireReader reader(owner.plane.payload, owner.source.origin(), kXPlaneDepth);
    WireField part;
    while (reader.Next(&part)) {
      if (part.IsBytes(XPlaneField::kLines) && edit.edit_lines) {
        const PreparedLine& line = lines[line_index++];
        WriteHeader(part, line.size, output);
        RETURN_IF_ERROR(WritePreparedLine(owner, part.bytes, line, output));
      } else if (const std::string* replacement = FindReplacement(edit, part)) {
        WriteBytesField(part.number, *replacement, output);
      } else if (!changes.Drops(part)) {
        output->Raw(part.raw);
      }
    }
    RETURN_IF_ERROR(reader.status());
    output->Raw(changes.fields());
    output->Raw(edit.additions);
    return absl::OkStatus();
  }

  absl::Status WritePreparedLine(const LineOwner&, absl::string_view, const PreparedLine& line,
                                 CountingOutput* output) {
    output->Add(line.size);
    return absl::OkStatus();
  }

  absl::Status WritePreparedLine(const LineOwner& owner, absl::string_view payload,
                                 const PreparedLine& line, SinkOutput* output) {
    if (line.buffer_position.has_value()) {
      // Of empty lines alone there is no buffer.
      if (line.size > 0) output->Raw(buffer_.bytes().substr(*line.buffer_position, line.size));
    } else {
      ScannedLine scanned = line.scanned;
      if (!scanned.has_parts) {
        RETURN_IF_ERROR(ScanLine(owner.source, nullptr, payload, &scanned));
      }
      RETURN_IF_ERROR(RewriteLine(owner, scanned, RewritePass::kWrite, output));
      owner.source.Forget(payload);
    }
    return output->status();
  }

  // Writes the tag and length of a field whose payload now has `size` bytes. A header that is not
  // in the shortest form is kept when the size is the old one.
  template <typename Output>
  static void WriteHeader(const WireField& field, uint64_t size, Output* output) {
    if (size == field.bytes.size()) {
      output->Raw(field.raw.substr(0, field.raw.size() - field.bytes.size()));
    } else {
      WriteBytesHeader(field.number, size, output);
    }
  }

  // Reads a line's header and, unless it has parts, the times of its events into times_. Checks all
  // that will be copied; the plane is null when that was done before.
  absl::Status ScanLine(const XSpaceSource& source, const XPlaneVisitor* plane,
                        absl::string_view line, ScannedLine* scanned) {
    scanned->has_parts = false;
    times_.clear();
    PartOrder order;
    const auto add = [&](const EventTimes& times) {
      order.Add(times);
      if (order.holds() && times_.size() == options_.part_events) {
        scanned->has_parts = true;
        times_.clear();
      }
      times_.push_back(times);
    };
    if (plane != nullptr) {
      RETURN_IF_ERROR(plane->WalkTimes(line, &scanned->header, [&](const XEventVisitor& event) {
        add({event.OffsetPs(), event.DurationPs(), event.IsAggregatedEvent(), event.IsPlain()});
      }));
    } else {
      RETURN_IF_ERROR(WalkXLine(source, line, &scanned->header, [&](absl::string_view payload) {
        EventTimes times;
        RETURN_IF_ERROR(ReadTimes(source, payload, &times));
        add(times);
        return absl::OkStatus();
      }));
    }
    if (!scanned->has_parts || order.holds()) return absl::OkStatus();
    // The order ends in a later part: all are needed at once.
    scanned->has_parts = false;
    times_.clear();
    return WalkXLine(source, line, &scanned->header, [&](absl::string_view payload) {
      return ReadTimes(source, payload, &times_.emplace_back());
    });
  }

  // Writes, or measures, the payload of a line that was just scanned, or that has parts.
  template <typename Output>
  absl::Status RewriteLine(const LineOwner& owner, const ScannedLine& line, RewritePass pass,
                           Output* output) {
    LineEdit edit;
    edit.times = std::move(times_);
    if (line.has_parts) edit.times.clear();
    PartReader parts(owner.source, line.header.payload, options_.part_events);
    const auto edit_part = [&]() -> absl::Status {
      if (line.has_parts) RETURN_IF_ERROR(parts.Next(&edit));
      const size_t num_events = edit.times.size();
      RETURN_IF_ERROR(owner.editor.EditLine(owner.plane, line.header, pass, &edit));
      if (edit.times.size() == num_events) return absl::OkStatus();
      return absl::InternalError(absl::StrCat("line '", line.header.name, "' has ", num_events,
                                              " events but was given ", edit.times.size(),
                                              " times"));
    };
    RETURN_IF_ERROR(edit_part());
    FieldChanges changes;
    changes.Varint(XLineField::kId, edit.id, line.header.id);
    changes.Varint(XLineField::kTimestampNs, edit.timestamp_ns, line.header.timestamp_ns);
    changes.Text(XLineField::kDisplayName, edit.display_name, line.header.display_name);
    RETURN_IF_ERROR(
        WriteLineFields(owner.source, line.header.payload, changes, edit_part, &edit, output));
    times_ = std::move(edit.times);
    return absl::OkStatus();
  }

  // Calls edit_part whenever the events of the edit are written and others follow.
  template <typename EditPart, typename Output>
  absl::Status WriteLineFields(const XSpaceSource& source, absl::string_view line,
                               const FieldChanges& changes, EditPart edit_part, LineEdit* edit,
                               Output* output) {
    XEventRewriter rewriter(source, edit->ids);
    // Fields that stay are copied in runs: [unchanged, here) waits to be written.
    const char* unchanged = line.data();
    size_t event_index = 0;
    ForgettingWalk walk(line);
    WireReader reader(line, source.origin(), kXLineDepth);
    WireField field;
    while (reader.Next(&field)) {
      walk.Reach(unchanged);
      if (field.IsBytes(XLineField::kEvents)) {
        if (ABSL_PREDICT_FALSE(event_index == edit->times.size())) {
          output->Raw(absl::string_view(unchanged, field.raw.data() - unchanged));
          unchanged = field.raw.data();
          RETURN_IF_ERROR(edit_part());
          event_index = 0;
        }
        const EventTimes& wanted = edit->times[event_index];
        additions_.clear();
        if (edit->event_additions) edit->event_additions(event_index, &additions_);
        ++event_index;
        absl::string_view event = rewriter.RewritePlain(field.bytes, wanted);
        if (ABSL_PREDICT_FALSE(event.data() == nullptr)) {
          ASSIGN_OR_RETURN(event, rewriter.RewriteAny(field.bytes, wanted));
        }
        if (event.data() == field.bytes.data() && additions_.empty()) continue;
        output->Raw(absl::string_view(unchanged, field.raw.data() - unchanged));
        WriteBytesHeader(XLineField::kEvents, event.size() + additions_.size(), output);
        output->Raw(event);
        output->Raw(additions_);
      } else if (changes.Drops(field)) {
        output->Raw(absl::string_view(unchanged, field.raw.data() - unchanged));
      } else {
        continue;
      }
      unchanged = field.raw.data() + field.raw.size();
    }
    output->Raw(absl::string_view(unchanged, line.data() + line.size() - unchanged));
    output->Raw(changes.fields());
    return reader.status();
  }

  SinkOutput output_;
  const RewriteOptions options_;
  size_t num_planes_ = 0;
  size_t num_lines_ = 0;
  // Lines of the plane at hand that are written already.
  WireBuffer buffer_;
  // Of the events of the line at hand. These two are kept between lines and events for their room.
  std::vector<EventTimes> times_;
  std::string additions_;
};

}  // namespace internal

XSpaceWriter::XSpaceWriter(ByteSink* sink, const RewriteOptions& options)
    : writer_(std::make_unique<internal::PlaneWriter>(sink, options)) {}

XSpaceWriter::~XSpaceWriter() = default;

absl::Status XSpaceWriter::WritePlane(const EditedPlane& plane) {
  std::string header;
  StringOutput output(&header);
  WriteBytesHeader(XSpaceField::kPlanes, plane.payload.size(), &output);
  return writer_->WritePlane(header, plane);
}

absl::Status XSpaceWriter::WriteJoinedPlane(absl::string_view head,
                                            absl::Span<const EditedPlane> parts) {
  return writer_->WriteJoinedPlane(head, parts);
}

absl::Status XSpaceWriter::WriteFields(absl::string_view fields) {
  return writer_->WriteFields(fields);
}

absl::Status XSpaceWriter::Finish() { return writer_->Finish(); }

absl::Status RewriteXSpace(const XSpaceSource& source, XSpaceEditor& editor, ByteSink& sink,
                           const RewriteOptions& options) {
  // What stands beside the planes is checked here, planes when they are copied.
  RETURN_IF_ERROR(ReadXSpaceLayout(source).status());
  internal::PlaneWriter writer(&sink, options);
  WireReader reader(source.bytes, source.origin(), kXSpaceDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsBytes(XSpaceField::kPlanes)) {
      const absl::string_view header = field.raw.substr(0, field.raw.size() - field.bytes.size());
      RETURN_IF_ERROR(writer.WritePlane(header, {&source, field.bytes, &editor, ""}));
    } else {
      RETURN_IF_ERROR(writer.WriteFields(field.raw));
    }
  }
  RETURN_IF_ERROR(reader.status());
  return writer.Finish();
}

}  // namespace meridian
