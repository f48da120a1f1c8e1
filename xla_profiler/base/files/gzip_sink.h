// Compresses into another sink, for outputs whose name ends in .gz.
#ifndef XLA_PROFILER_BASE_FILES_GZIP_SINK_H_
#define XLA_PROFILER_BASE_FILES_GZIP_SINK_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

class GzipSink : public ByteSink {
 public:
  // `compressed` must outlive this object.
  explicit GzipSink(ByteSink* compressed);
  ~GzipSink() override;

  absl::Status Append(absl::string_view data) override;

  // Before compression.
  uint64_t bytes_appended() const override { return bytes_appended_; }

  // Writes what is still held back and the gzip trailer; without it the output is cut off. Nothing
  // may be appended afterwards. The other sink is left open.
  absl::Status Finish();

 private:
  struct Stream;

  absl::Status Deflate(absl::string_view data, int flush);

  ByteSink* compressed_;
  std::unique_ptr<Stream> stream_;
  uint64_t bytes_appended_ = 0;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_GZIP_SINK_H_
