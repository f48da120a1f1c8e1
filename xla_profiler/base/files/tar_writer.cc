#include "xla_profiler/base/files/tar_writer.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr size_t kTarBlockBytes = 512;
constexpr size_t kMaxNameBytes = 100;
// What eleven octal digits hold.
constexpr uint64_t kMaxMemberBytes = (uint64_t{1} << 33) - 1;

std::string TarHeader(absl::string_view name, uint64_t bytes) {
  std::string header(kTarBlockBytes, '\0');
  const auto put = [&](size_t offset, absl::string_view text) {
    header.replace(offset, text.size(), text.data(), text.size());
  };
  put(0, name);
  put(100, "0000644");  // mode
  put(108, "0000000");  // owner
  put(116, "0000000");  // group
  put(124, absl::StrFormat("%011o", bytes));
  put(136, "00000000000");  // time
  put(148, "        ");     // the sum of all bytes, itself taken as spaces
  put(156, "0");            // a plain file
  put(257, "ustar");
  put(263, "00");
  uint32_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, absl::StrFormat("%06o%c", sum, '\0'));
  return header;
}

}  // namespace

absl::Status AppendTarMember(absl::string_view name, absl::string_view bytes, ByteSink& sink) {
  if (name.size() > kMaxNameBytes || bytes.size() > kMaxMemberBytes) {
    return InvalidArgument(name, " of ", bytes.size(), " bytes does not fit a tar archive");
  }
  RETURN_IF_ERROR(sink.Append(TarHeader(name, bytes.size())));
  RETURN_IF_ERROR(sink.Append(bytes));
  const size_t rest = bytes.size() % kTarBlockBytes;
  return rest == 0 ? absl::OkStatus() : sink.Append(std::string(kTarBlockBytes - rest, '\0'));
}

absl::Status FinishTar(ByteSink& sink) {
  return sink.Append(std::string(2 * kTarBlockBytes, '\0'));
}

}  // namespace meridian
