#include "xla_profiler/base/files/input_file.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "zlib.h"

namespace meridian {
namespace {

constexpr absl::string_view kGzipMagic = "\x1f\x8b";
constexpr size_t kInflatedBytes = size_t{1} << 20;
// zlib counts in 32 bits.
constexpr size_t kMaxFedBytes = size_t{1} << 30;
constexpr int kGunzipWindowBits = 15 + 16;

class GzipReader {
 public:
  explicit GzipReader(absl::string_view compressed)
      : compressed_size_(compressed.size()),
        rest_(compressed),
        buffer_(std::make_unique<char[]>(kInflatedBytes)) {
    start_result_ = inflateInit2(&stream_, kGunzipWindowBits);
  }
  ~GzipReader() { inflateEnd(&stream_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Returns the next bytes, valid until the next call; empty at the end of the last member.
  absl::StatusOr<absl::string_view> Read() {
    if (start_result_ != Z_OK) return absl::ResourceExhaustedError("out of memory");
    while (true) {
      if (member_ended_) {
        if (AtEnd()) return absl::string_view();
        RETURN_IF_ERROR(StartMember());
      }
      ASSIGN_OR_RETURN(const absl::string_view inflated, InflateOnce());
      if (!inflated.empty()) return inflated;
    }
  }

  // How many compressed bytes have been read.
  uint64_t offset() const { return compressed_size_ - rest_.size(); }

 private:
  // Zeros after the last member are a tape's padding; gzip ignores them, too.
  bool AtEnd() const { return rest_.find_first_not_of('\0') == absl::string_view::npos; }

  absl::Status StartMember() {
    if (!absl::StartsWith(rest_, kGzipMagic)) {
      return InvalidArgument("unknown data after the end of the gzip data");
    }
    MERIDIAN_CHECK(inflateReset(&stream_) == Z_OK);
    member_ended_ = false;
    return absl::OkStatus();
  }

  absl::StatusOr<absl::string_view> InflateOnce() {
    const size_t fed_bytes = std::min(rest_.size(), kMaxFedBytes);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream_.avail_in = fed_bytes;
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.get());
    stream_.avail_out = kInflatedBytes;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    rest_.remove_prefix(fed_bytes - stream_.avail_in);
    switch (result) {
      case Z_STREAM_END:
        member_ended_ = true;
        break;
      case Z_OK:
        break;
      case Z_BUF_ERROR:  // There was room for output, so the input is used up.
        return InvalidArgument("truncated gzip data");
      case Z_MEM_ERROR:
        return absl::ResourceExhaustedError("out of memory");
      default:
        return InvalidArgument(stream_.msg == nullptr ? "bad gzip data" : stream_.msg);
    }
    return absl::string_view(buffer_.get(), kInflatedBytes - stream_.avail_out);
  }

  const uint64_t compressed_size_;
  // What zlib has not consumed yet.
  absl::string_view rest_;
  bool member_ended_ = false;
  // What zlib said when the stream was made; all that can go wrong there is the memory.
  int start_result_;
  z_stream stream_ = {};
  std::unique_ptr<char[]> buffer_;
};

bool IsBomb(uint64_t compressed_bytes, uint64_t inflated_bytes, const InputFileOptions& options) {
  // In double, since "no limit" times a size would overflow.
  return inflated_bytes > options.max_inflated_bytes &&
         static_cast<double>(inflated_bytes) >
             static_cast<double>(options.max_inflation_ratio) * compressed_bytes;
}

absl::Status Inflate(absl::string_view compressed, const InputFileOptions& options,
                     WritableFile& out) {
  GzipReader reader(compressed);
  uint64_t inflated_bytes = 0;
  while (true) {
    const absl::StatusOr<absl::string_view> piece = reader.Read();
    if (!piece.ok()) return Annotate(piece.status(), absl::StrCat("offset ", reader.offset()));
    if (piece->empty()) return absl::OkStatus();
    inflated_bytes += piece->size();
    if (IsBomb(compressed.size(), inflated_bytes, options)) {
      return InvalidArgument(
          "offset ", reader.offset(), ": inflates to more than ", options.max_inflation_ratio,
          " times its size, refused as a decompression bomb; gunzip it first if it is genuine");
    }
    RETURN_IF_ERROR(out.Append(*piece));
  }
}

absl::StatusOr<std::unique_ptr<MappedRegion>> MapInflated(FileSystem& file_system,
                                                          absl::string_view compressed,
                                                          const InputFileOptions& options) {
  absl::StatusOr<std::unique_ptr<WritableFile>> created =
      file_system.CreateTemporary(options.temporary_directory);
  // A scratch folder that is missing, say, is not the user's input.
  if (ExitCode(created.status()) == kExitBadInput) {
    return absl::UnavailableError(
        absl::StrCat("no place to inflate it (TMPDIR): ", created.status().message()));
  }
  RETURN_IF_ERROR(created.status());
  const std::unique_ptr<WritableFile> file = *std::move(created);
  RETURN_IF_ERROR(Inflate(compressed, options, *file));
  return file_system.MapTemporary(*file);
}

class BytesOfOthers : public MappedRegion {
 public:
  explicit BytesOfOthers(absl::string_view bytes) : bytes_(bytes) {}

  absl::string_view bytes() const override { return bytes_; }

 private:
  absl::string_view bytes_;
};

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(FileSystem& file_system, const std::string& path,
                                          const InputFileOptions& options) {
  InputFile file;
  file.path_ = path;
  ASSIGN_OR_RETURN(file.region_, file_system.Map(path));
  file.file_size_ = file.bytes().size();
  file.was_compressed_ = absl::StartsWith(file.bytes(), kGzipMagic);
  if (file.was_compressed_) {
    ASSIGN_OR_RETURN(file.region_, Annotate(MapInflated(file_system, file.bytes(), options), path));
  }
  return file;
}

InputFile InputFile::OfBytes(absl::string_view bytes, std::string path) {
  InputFile file;
  file.path_ = std::move(path);
  file.file_size_ = bytes.size();
  file.region_ = std::make_unique<BytesOfOthers>(bytes);
  return file;
}

}  // namespace meridian
