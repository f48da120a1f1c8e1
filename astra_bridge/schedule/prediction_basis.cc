#include "astra_bridge/schedule/prediction_basis.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr int kMaxFallbackDetails = 100;

}  // namespace

void AddTimingBasis(const TimingSetup& setup, TimingMode mode, PredictionReport* report) {
  const TimingEngine engine = setup.timing->engine();
  report->set_engine(engine.name);
  report->set_engine_version(engine.version);
  report->set_mode(mode == TimingMode::kSnapshot ? "snapshot" : "isolated");
  for (const std::string& warning : setup.warnings) report->add_warnings(warning);
}

void AddCacheUse(const TimingSetup& setup, PredictionReport* report) {
  if (setup.cache == nullptr) return;
  report->set_cache_hits(setup.cache->stats().hits);
  report->set_cache_misses(setup.cache->stats().misses);
  for (const std::string& warning : setup.cache->warnings()) report->add_warnings(warning);
}

void AddFallback(absl::string_view edge_id, absl::string_view reason, PredictionReport* report) {
  report->set_fallbacks(report->fallbacks() + 1);
  if (report->fallback_details_size() == kMaxFallbackDetails) return;
  FallbackReport* detail = report->add_fallback_details();
  detail->set_edge_id(std::string(edge_id));
  detail->set_reason(std::string(reason));
}

std::string CacheUseText(const PredictionReport& report) {
  if (report.cache_hits() + report.cache_misses() == 0) return "not used";
  return absl::StrCat(WithThousands(report.cache_hits()), " hits, ",
                      WithThousands(report.cache_misses()), " misses");
}

std::string FallbacksText(const PredictionReport& report) {
  if (report.fallbacks() == 0) return "0";
  return absl::StrCat(WithThousands(report.fallbacks()),
                      ", the first: ", Printable(report.fallback_details(0).reason()));
}

std::string MicrosText(double seconds) { return absl::StrFormat("%.3f", seconds * 1e6); }

}  // namespace meridian
