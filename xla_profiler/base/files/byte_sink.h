// Where a writer's bytes go: a file, a string, a compressor.
#ifndef XLA_PROFILER_BASE_FILES_BYTE_SINK_H_
#define XLA_PROFILER_BASE_FILES_BYTE_SINK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Appends all of data or fails; after a failure nothing more may be appended.
  virtual absl::Status Append(absl::string_view data) = 0;

  virtual uint64_t bytes_appended() const = 0;
};

// Appends to a string owned by the caller.
class StringSink : public ByteSink {
 public:
  explicit StringSink(std::string* out) : out_(out), size_before_(out->size()) {}

  absl::Status Append(absl::string_view data) override {
    out_->append(data.data(), data.size());
    return absl::OkStatus();
  }

  uint64_t bytes_appended() const override { return out_->size() - size_before_; }

 private:
  std::string* out_;
  uint64_t size_before_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_BYTE_SINK_H_
