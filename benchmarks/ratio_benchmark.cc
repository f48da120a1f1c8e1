#include "benchmarks/ratio_benchmark.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>

#include "absl/strings/str_format.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

double TimeCpu(const std::function<void()>& work) {
  const double begin = CpuSeconds();
  work();
  return CpuSeconds() - begin;
}

}  // namespace

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double CpuSeconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int64_t AnonymousBytes() {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return 0;
  char line[256];
  int64_t kib = 0;
  while (std::fgets(line, sizeof(line), status) != nullptr) {
    long long value;  // NOLINT: what sscanf wants
    if (std::sscanf(line, "RssAnon: %lld", &value) == 1) kib = value;
  }
  std::fclose(status);
  return kib * 1024;
}

bool RunRatioCases(const std::vector<RatioCase>& cases, int rounds) {
  TextTable table({"case", ">CPU ms", ">MB/s", "floor", ">CPU ms", ">ratio", ">reach", ""});
  bool all_reached = true;
  for (const RatioCase& one : cases) {
    double run_s = std::numeric_limits<double>::infinity(), floor_s = run_s;
    for (int round = 0; round < std::max(1, rounds); ++round) {
      run_s = std::min(run_s, TimeCpu(one.run));
      floor_s = std::min(floor_s, TimeCpu(one.floor));
    }
    const double ratio = run_s / floor_s;
    const bool reached = !one.reach.has_value() || ratio <= *one.reach;
    all_reached = all_reached && reached;
    table.AddRow({one.name, absl::StrFormat("%.2f", run_s * 1e3),
                  absl::StrFormat("%.0f", static_cast<double>(one.bytes) / run_s / 1e6),
                  one.floor_name, absl::StrFormat("%.2f", floor_s * 1e3),
                  absl::StrFormat("%.3f", ratio),
                  one.reach.has_value() ? absl::StrFormat("%.3f", *one.reach) : "-",
                  reached ? "" : "MISSED"});
  }
  std::fputs(table.ToString().c_str(), stdout);
  return all_reached;
}

}  // namespace meridian
