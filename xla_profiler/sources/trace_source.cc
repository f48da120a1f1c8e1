#include "xla_profiler/sources/trace_source.h"

#include "absl/strings/str_cat.h"

namespace meridian {

absl::StatusOr<std::vector<std::string>> TraceSource::Convert(size_t, OpenFunction,
                                                              const ConversionOptions&,
                                                              WriteFunction) const {
  return absl::InternalError(absl::StrCat(noun(), " needs no conversion"));
}

}  // namespace meridian
