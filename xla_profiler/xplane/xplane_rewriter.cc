#include "xla_profiler/xplane/xplane_rewriter.h"

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/wire/wire_writer.h"

namespace meridian {
namespace {

// Collects small pieces before they go to the sink; an error is kept until Finish.
class SinkOutput {
 public:
  explicit SinkOutput(ByteSink* sink) : sink_(sink), buffer_(new char[kCapacity]) {}

  void Raw(absl::string_view bytes) {
    if (bytes.size() > kCapacity - used_) {
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
    if (kCapacity - used_ < kMaxVarintBytes) Flush();
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

// An event with the places of its times: where the last offset_ps and duration_ps field stand.
struct LocatedEvent {
  absl::string_view payload;
  absl::string_view offset_field;
  absl::string_view duration_field;
  EventTimes times;
};

absl::Status LocateTimes(const XSpaceSource& source, absl::string_view payload,
                         LocatedEvent* event) {
  *event = LocatedEvent();
  event->payload = payload;
  WireReader reader(payload, source.origin(), kXEventDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.type != WireType::kVarint) continue;
    switch (field.number) {
      case XEventField::kOffsetPs:
        event->offset_field = field.raw;
        event->times.offset_ps = static_cast<int64_t>(field.scalar);
        event->times.is_aggregated = false;
        break;
      case XEventField::kDurationPs:
        event->duration_field = field.raw;
        event->times.duration_ps = static_cast<int64_t>(field.scalar);
        break;
      case XEventField::kNumOccurrences:
        event->times.offset_ps = 0;
        event->times.is_aggregated = true;
        break;
    }
  }
  if (ABSL_PREDICT_FALSE(reader.failed())) return reader.status();
  return absl::OkStatus();
}

// A varint field that is to have another value.
struct VarintChange {
  uint32_t number;
  // The field as it stands; null when there is none and it goes to the end.
  absl::string_view old_field;
  uint64_t value;

  uint64_t NewSize() const {
    return VarintSize(MakeTag(number, WireType::kVarint)) + VarintSize(value);
  }
};

// At most two changes to an event, in the order in which they are written.
class EventPatch {
 public:
  EventPatch(const LocatedEvent& event, const EventTimes& wanted) : event_(event) {
    if (!event.times.is_aggregated) {
      Add(XEventField::kOffsetPs, event.offset_field, event.times.offset_ps, wanted.offset_ps);
    }
    Add(XEventField::kDurationPs, event.duration_field, event.times.duration_ps,
        wanted.duration_ps);
    // Fields that stand in the event come in file order, before those that are appended.
    if (count_ == 2 && Position(changes_[1]) < Position(changes_[0])) {
      std::swap(changes_[0], changes_[1]);
    }
  }

  bool empty() const { return count_ == 0; }

  uint64_t NewSize() const {
    uint64_t size = event_.payload.size();
    for (int i = 0; i < count_; ++i) size += changes_[i].NewSize() - changes_[i].old_field.size();
    return size;
  }

  template <typename Output>
  void Write(Output* output) const {
    const char* copied = event_.payload.data();
    const char* end = copied + event_.payload.size();
    for (int i = 0; i < count_; ++i) {
      const VarintChange& change = changes_[i];
      const char* position = Position(change);
      output->Raw(absl::string_view(copied, position - copied));
      WriteVarintField(change.number, change.value, output);
      copied = position + change.old_field.size();
    }
    output->Raw(absl::string_view(copied, end - copied));
  }

 private:
  void Add(uint32_t number, absl::string_view old_field, int64_t old_value, int64_t new_value) {
    if (old_value == new_value) return;
    changes_[count_++] = {number, old_field, static_cast<uint64_t>(new_value)};
  }

  const char* Position(const VarintChange& change) const {
    return change.old_field.empty() ? event_.payload.data() + event_.payload.size()
                                    : change.old_field.data();
  }

  const LocatedEvent& event_;
  VarintChange changes_[2];
  int count_ = 0;
};

// Fields of a plane or line that are to have another value, each written where the old one stood
// (at every place, should it stand there several times) or else at the end.
class FieldChanges {
 public:
  void Varint(uint32_t number, const std::optional<int64_t>& wanted, int64_t current) {
    if (!wanted.has_value() || *wanted == current) return;
    changes_.push_back({number, WireType::kVarint, static_cast<uint64_t>(*wanted), {}, false});
  }

  void Text(uint32_t number, const std::optional<std::string>& wanted, absl::string_view current) {
    if (!wanted.has_value() || *wanted == current) return;
    changes_.push_back({number, WireType::kBytes, 0, *wanted, false});
  }

  bool empty() const { return changes_.empty(); }

  // Writes the new value in place of the field; returns false when the field is to stay.
  template <typename Output>
  bool Replace(const WireField& field, Output* output) {
    for (Change& change : changes_) {
      if (change.number != field.number || change.type != field.type) continue;
      Write(change, output);
      change.written = true;
      return true;
    }
    return false;
  }

  template <typename Output>
  void AppendMissing(Output* output) const {
    for (const Change& change : changes_) {
      if (!change.written) Write(change, output);
    }
  }

 private:
  struct Change {
    uint32_t number;
    WireType type;
    uint64_t scalar;
    absl::string_view text;
    bool written;
  };

  template <typename Output>
  static void Write(const Change& change, Output* output) {
    if (change.type == WireType::kVarint) {
      WriteVarintField(change.number, change.scalar, output);
    } else {
      WriteBytesField(change.number, change.text, output);
    }
  }

  std::vector<Change> changes_;
};

class Rewriter {
 public:
  Rewriter(const XSpaceSource& source, XSpaceEditor& editor, ByteSink& sink)
      : source_(source), editor_(editor), output_(&sink) {}

  absl::Status Run() {
    WireReader reader(source_.bytes, source_.origin(), kXSpaceDepth);
    WireField field;
    while (reader.Next(&field)) {
      if (field.IsBytes(XSpaceField::kPlanes)) {
        RETURN_IF_ERROR(RewritePlane(field));
      } else {
        output_.Raw(field.raw);
      }
      RETURN_IF_ERROR(output_.status());
    }
    RETURN_IF_ERROR(reader.status());
    return output_.Finish();
  }

 private:
  absl::Status RewritePlane(const WireField& field) {
    ASSIGN_OR_RETURN(const XPlaneLayout plane, ReadXPlaneLayout(source_, field.bytes));
    PlaneEdit edit;
    RETURN_IF_ERROR(editor_.EditPlane(plane, &edit));
    if (edit.drop) return absl::OkStatus();
    FieldChanges changes;
    changes.Varint(XPlaneField::kId, edit.id, plane.id);
    changes.Text(XPlaneField::kName, edit.name, plane.name);
    if (!edit.edit_lines && changes.empty() && edit.additions.empty()) {
      output_.Raw(field.raw);
      return absl::OkStatus();
    }

    CountingOutput measured;
    std::vector<uint64_t> line_sizes;
    if (edit.edit_lines) {
      line_sizes.reserve(plane.lines.size());
      for (absl::string_view line : plane.lines) {
        CountingOutput line_size;
        RETURN_IF_ERROR(RewriteLine(plane, line, RewritePass::kMeasure, &line_size));
        line_sizes.push_back(line_size.size());
      }
    }
    RETURN_IF_ERROR(WritePlane(field, plane, edit, changes, line_sizes, &measured));
    if (measured.size() == field.bytes.size()) {
      // Keeps a header that is not in the shortest form.
      output_.Raw(field.raw.substr(0, field.raw.size() - field.bytes.size()));
    } else {
      WriteBytesHeader(XSpaceField::kPlanes, measured.size(), &output_);
    }
    return WritePlane(field, plane, edit, changes, line_sizes, &output_);
  }

  // Writes, or measures, the payload of a plane. Lines count with their known sizes when measured.
  template <typename Output>
  absl::Status WritePlane(const WireField& field, const XPlaneLayout& plane, const PlaneEdit& edit,
                          FieldChanges changes, absl::Span<const uint64_t> line_sizes,
                          Output* output) {
    size_t line_index = 0;
    WireReader reader(field.bytes, source_.origin(), kXPlaneDepth);
    WireField part;
    while (reader.Next(&part)) {
      if (part.IsBytes(XPlaneField::kLines) && edit.edit_lines) {
        RETURN_IF_ERROR(WriteLine(plane, part, line_sizes[line_index++], output));
      } else if (!changes.Replace(part, output)) {
        output->Raw(part.raw);
      }
    }
    RETURN_IF_ERROR(reader.status());
    changes.AppendMissing(output);
    output->Raw(edit.additions);
    return absl::OkStatus();
  }

  absl::Status WriteLine(const XPlaneLayout&, const WireField& field, uint64_t size,
                         CountingOutput* output) {
    WriteLineHeader(field, size, output);
    output->Add(size);
    return absl::OkStatus();
  }

  absl::Status WriteLine(const XPlaneLayout& plane, const WireField& field, uint64_t size,
                         SinkOutput* output) {
    WriteLineHeader(field, size, output);
    RETURN_IF_ERROR(RewriteLine(plane, field.bytes, RewritePass::kWrite, output));
    return output->status();
  }

  template <typename Output>
  static void WriteLineHeader(const WireField& field, uint64_t size, Output* output) {
    if (size == field.bytes.size()) {
      output->Raw(field.raw.substr(0, field.raw.size() - field.bytes.size()));
    } else {
      WriteBytesHeader(XPlaneField::kLines, size, output);
    }
  }

  // Writes, or measures, the payload of a line.
  template <typename Output>
  absl::Status RewriteLine(const XPlaneLayout& plane, absl::string_view line, RewritePass pass,
                           Output* output) {
    ASSIGN_OR_RETURN(const XLineHeader header, ReadXLineHeader(source_, line));
    ClearLineEdit();
    RETURN_IF_ERROR(editor_.EditLine(plane, header, pass, &line_edit_));
    const std::vector<EventTimes>& times = line_edit_.times;
    if (!times.empty() && times.size() != header.num_events) {
      return absl::InternalError(absl::StrCat("line '", header.name, "' has ", header.num_events,
                                              " events but was given ", times.size(), " times"));
    }
    FieldChanges changes;
    changes.Varint(XLineField::kId, line_edit_.id, header.id);
    changes.Text(XLineField::kName, line_edit_.name, header.name);
    changes.Varint(XLineField::kTimestampNs, line_edit_.timestamp_ns, header.timestamp_ns);
    changes.Varint(XLineField::kDisplayId, line_edit_.display_id, header.display_id);
    changes.Text(XLineField::kDisplayName, line_edit_.display_name, header.display_name);
    if (changes.empty() && times.empty()) {
      output->Raw(line);
      return absl::OkStatus();
    }
    size_t event_index = 0;
    WireReader reader(line, source_.origin(), kXLineDepth);
    WireField field;
    while (reader.Next(&field)) {
      if (field.IsBytes(XLineField::kEvents) && !times.empty()) {
        RETURN_IF_ERROR(RewriteEvent(field, times[event_index++], output));
      } else if (!changes.Replace(field, output)) {
        output->Raw(field.raw);
      }
    }
    changes.AppendMissing(output);
    return reader.status();
  }

  template <typename Output>
  absl::Status RewriteEvent(const WireField& field, const EventTimes& wanted, Output* output) {
    LocatedEvent event;
    RETURN_IF_ERROR(LocateTimes(source_, field.bytes, &event));
    const EventPatch patch(event, wanted);
    if (patch.empty()) {
      output->Raw(field.raw);
      return absl::OkStatus();
    }
    WriteBytesHeader(XLineField::kEvents, patch.NewSize(), output);
    patch.Write(output);
    return absl::OkStatus();
  }

  // Back to the default, keeping the vector's room.
  void ClearLineEdit() {
    std::vector<EventTimes> times = std::move(line_edit_.times);
    times.clear();
    line_edit_ = LineEdit();
    line_edit_.times = std::move(times);
  }

  const XSpaceSource& source_;
  XSpaceEditor& editor_;
  SinkOutput output_;
  LineEdit line_edit_;
};

}  // namespace

absl::Status ReadEventTimes(const XSpaceSource& source, const XLineHeader& line,
                            std::vector<EventTimes>* times) {
  times->clear();
  times->reserve(line.num_events);
  WireReader reader(line.payload, source.origin(), kXLineDepth);
  WireField field;
  LocatedEvent event;
  while (reader.Next(&field)) {
    if (!field.IsBytes(XLineField::kEvents)) continue;
    RETURN_IF_ERROR(LocateTimes(source, field.bytes, &event));
    times->push_back(event.times);
  }
  return reader.status();
}

absl::Status RewriteXSpace(const XSpaceSource& source, XSpaceEditor& editor, ByteSink& sink) {
  return Rewriter(source, editor, sink).Run();
}

}  // namespace meridian
