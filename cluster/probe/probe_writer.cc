#include "cluster/probe/probe_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "trace_alignment/probes/two_way_probes.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr absl::string_view kSuffix = ".jsonl";

void AppendProbe(const TwoWayProbe& probe, std::string* lines) {
  absl::StrAppend(lines, "{\"src\":", probe.src, ",\"dst\":", probe.dst,
                  ",\"t1\":", probe.src_sent_ns, ",\"t2\":", probe.dst_received_ns,
                  ",\"t3\":", probe.dst_sent_ns, ",\"t4\":", probe.src_received_ns, "}\n");
}

}  // namespace

RotatingFile::RotatingFile(FileSystem& file_system, std::string folder, std::string name,
                           const RotationOptions& options)
    : file_system_(file_system),
      folder_(std::move(folder)),
      name_(std::move(name)),
      options_(options) {}

std::string RotatingFile::Path(absl::string_view middle) const {
  return absl::StrCat(folder_, "/", name_, middle, kSuffix);
}

absl::Status RotatingFile::Append(absl::string_view lines) {
  if (lines.empty()) return absl::OkStatus();
  const auto size = static_cast<int64_t>(lines.size());
  if (file_ != nullptr && bytes_ + size > options_.max_file_bytes) {
    RETURN_IF_ERROR(file_->Close());
    file_ = nullptr;
  }
  if (file_ == nullptr) {
    RETURN_IF_ERROR(MakeRoom());
    ASSIGN_OR_RETURN(file_, file_system_.CreateFile(Path("")));
    bytes_ = 0;
  }
  bytes_ += size;
  return file_->Append(lines);
}

absl::Status RotatingFile::MakeRoom() {
  std::vector<int64_t> numbers;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(folder_));
  bool is_taken = false;
  for (absl::string_view name : names) {
    int64_t number = 0;
    if (!absl::ConsumePrefix(&name, name_) || !absl::ConsumeSuffix(&name, kSuffix)) continue;
    is_taken |= name.empty();
    if (absl::ConsumePrefix(&name, ".") && absl::SimpleAtoi(name, &number) && number > 0) {
      numbers.push_back(number);
    }
  }
  if (!is_taken) return absl::OkStatus();
  std::sort(numbers.begin(), numbers.end());
  const int64_t next = numbers.empty() ? 1 : numbers.back() + 1;
  RETURN_IF_ERROR(file_system_.Rename(Path(""), Path(absl::StrCat(".", next))));
  numbers.push_back(next);
  for (size_t i = 0; i + static_cast<size_t>(options_.kept_files) < numbers.size(); ++i) {
    RETURN_IF_ERROR(file_system_.Delete(Path(absl::StrCat(".", numbers[i]))));
  }
  return absl::OkStatus();
}

std::string ProbeLines(const ProbeHost& host, const ProbeWindow& window, int64_t window_ns) {
  const int64_t start_ns = window.window_id * window_ns;
  std::string lines;
  for (const TwoWayProbe& probe : window.probes) AppendProbe(probe, &lines);
  for (int64_t node = 1; node < host.nodes; ++node) {
    // Twice, so that their rates are known to be equal too.
    for (const int64_t time_ns : {start_ns, start_ns + window_ns - 1}) {
      AppendProbe({host.first_node, host.first_node + node, time_ns, time_ns, time_ns, time_ns},
                  &lines);
    }
  }
  return lines;
}

}  // namespace meridian
