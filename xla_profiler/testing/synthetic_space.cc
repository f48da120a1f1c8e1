#include "xla_profiler/testing/synthetic_space.h"

#include "absl/strings/str_cat.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {
namespace {

namespace xp = ::tensorflow::profiler;

constexpr int kKernels = 200;
enum StatId { kCorrelation = 1, kHloOp, kHloModule, kProgramId, kDetails, kFirstOpName };

// The plane without its lines.
xp::XPlane PlaneMetadata() {
  xp::XPlane plane;
  plane.set_name("/device:GPU:0");
  const auto add_stat = [&](int64_t id, const std::string& name) {
    auto& metadata = (*plane.mutable_stat_metadata())[id];
    metadata.set_id(id);
    metadata.set_name(name);
  };
  add_stat(kCorrelation, "correlation_id");
  add_stat(kHloOp, "hlo_op");
  add_stat(kHloModule, "hlo_module");
  add_stat(kProgramId, "program_id");
  add_stat(kDetails, "kernel_details");
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    add_stat(kFirstOpName + kernel, absl::StrCat("loop_add_fusion.", kernel));
    auto& metadata = (*plane.mutable_event_metadata())[kernel + 1];
    metadata.set_id(kernel + 1);
    metadata.set_name(absl::StrCat("loop_add_fusion_", kernel, "_kernel"));
  }
  return plane;
}

xp::XStat* AddStat(int64_t id, xp::XEvent* event) {
  xp::XStat* stat = event->add_stats();
  stat->set_metadata_id(id);
  return stat;
}

xp::XLine MakeLine(int num_events) {
  xp::XLine line;
  line.set_id(14);
  line.set_name("Stream #14(Compute)");
  line.set_timestamp_ns(20915975);
  int64_t offset_ps = 0;
  for (int i = 0; i < num_events; ++i) {
    const int kernel = static_cast<int>(int64_t{i} * 7919 % kKernels);
    const int64_t duration_ps = 1000000 + 1000 * (int64_t{i} * 104729 % 50000);
    xp::XEvent* event = line.add_events();
    event->set_metadata_id(kernel + 1);
    event->set_offset_ps(offset_ps);
    event->set_duration_ps(duration_ps);
    AddStat(kCorrelation, event)->set_uint64_value(100000 + i);
    AddStat(kHloOp, event)->set_ref_value(kFirstOpName + kernel);
    AddStat(kHloModule, event)->set_ref_value(kFirstOpName);
    AddStat(kProgramId, event)->set_uint64_value(15);
    AddStat(kDetails, event)->set_ref_value(kFirstOpName + 1);
    offset_ps += duration_ps + 500000;
  }
  return line;
}

xp::XPlane TaskEnvironment() {
  xp::XPlane plane;
  plane.set_name(std::string(kTaskEnvPlaneName));
  (*plane.mutable_stat_metadata())[1].set_name("profile_start_time");
  xp::XStat* stat = plane.add_stats();
  stat->set_metadata_id(1);
  stat->set_uint64_value(1794701451406144825);
  return plane;
}

std::string BytesField(uint32_t number, const std::string& payload) {
  std::string field;
  StringOutput output(&field);
  WriteBytesField(number, payload, &output);
  return field;
}

}  // namespace

absl::Status WriteSyntheticXSpace(const SyntheticSpaceOptions& options, ByteSink& sink) {
  const std::string metadata = PlaneMetadata().SerializeAsString();
  const std::string line =
      BytesField(XPlaneField::kLines, MakeLine(options.events_per_line).SerializeAsString());
  const uint64_t lines = options.min_bytes / line.size() + 1;

  std::string header;
  StringOutput output(&header);
  WriteBytesHeader(XSpaceField::kPlanes, metadata.size() + lines * line.size(), &output);
  RETURN_IF_ERROR(sink.Append(header));
  RETURN_IF_ERROR(sink.Append(metadata));
  for (uint64_t i = 0; i < lines; ++i) RETURN_IF_ERROR(sink.Append(line));
  return sink.Append(BytesField(XSpaceField::kPlanes, TaskEnvironment().SerializeAsString()));
}

std::string SyntheticXSpace(const SyntheticSpaceOptions& options) {
  std::string bytes;
  StringSink sink(&bytes);
  MERIDIAN_CHECK(WriteSyntheticXSpace(options, sink).ok());
  return bytes;
}

}  // namespace meridian
