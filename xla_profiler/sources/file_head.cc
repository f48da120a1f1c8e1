#include "xla_profiler/sources/file_head.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"

namespace meridian {
namespace {

// What tells a trace stands within so many bytes.
constexpr size_t kHeadBytes = size_t{1} << 18;

constexpr absl::string_view kGzipMagic = "\x1f\x8b";
// zlib: the window of gzip, told by its header.
constexpr int kGzipWindow = 15 + 32;

// Returns the beginning of what gzip data inflate to; what cannot be inflated is left out.
std::string InflateBeginning(absl::string_view compressed) {
  std::string inflated(kHeadBytes, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return "";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(std::min<size_t>(compressed.size(), kHeadBytes));
  stream.next_out = reinterpret_cast<Bytef*>(inflated.data());
  stream.avail_out = static_cast<uInt>(inflated.size());
  inflate(&stream, Z_SYNC_FLUSH);
  inflated.resize(inflated.size() - stream.avail_out);
  inflateEnd(&stream);
  return inflated;
}

}  // namespace

std::vector<std::string> KeysOfJson(absl::string_view text) {
  std::vector<std::string> keys;
  if (!absl::StartsWith(text, "{")) return keys;
  JsonCutter cutter(text);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key); cutter.CutValue()) {
    keys.emplace_back(key);
    if (key == "traceEvents") break;
  }
  return keys;
}

FileHead::FileHead(std::string bytes) : bytes_(std::move(bytes)), keys_(KeysOfJson(text())) {}

absl::StatusOr<FileHead> FileHead::Read(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> region, file_system.Map(path));
  const absl::string_view bytes = region->bytes();
  if (absl::StartsWith(bytes, kGzipMagic)) {
    std::string inflated = InflateBeginning(bytes);
    if (!inflated.empty()) return FileHead(std::move(inflated));
  }
  return FileHead(std::string(bytes.substr(0, kHeadBytes)));
}

absl::string_view FileHead::text() const {
  absl::string_view text = bytes_;
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  return absl::StripLeadingAsciiWhitespace(text);
}

bool FileHead::HasKey(absl::string_view key) const { return absl::c_linear_search(keys_, key); }

}  // namespace meridian
