#include "xla_profiler/base/files/byte_sink.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

TEST(StringSinkTest, AppendsBehindWhatIsThere) {
  std::string out = "head ";
  StringSink sink(&out);
  EXPECT_OK(sink.Append("one "));
  EXPECT_OK(sink.Append("two"));
  EXPECT_EQ(out, "head one two");
}

// Compresses in pieces of the given size, inflates, and compares.
void ExpectRoundTrip(const std::string& text, size_t piece_bytes) {
  std::string compressed;
  StringSink sink(&compressed);
  GzipSink gzip(&sink);
  for (size_t i = 0; i < text.size(); i += piece_bytes) {
    ASSERT_OK(gzip.Append(absl::string_view(text).substr(i, piece_bytes)));
  }
  ASSERT_OK(gzip.Finish());
  const TemporaryDirectory directory;
  const std::string path = directory.Write("text.gz", compressed);
  ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(FileSystem::Posix(), path));
  EXPECT_TRUE(file.was_compressed());
  EXPECT_EQ(file.bytes(), text);
}

TEST(GzipSinkTest, InflatesToWhatWasAppended) {
  ExpectRoundTrip("", 1);
  ExpectRoundTrip("hello, hello", 5);
  // More than the output buffer holds, compressible or not.
  ExpectRoundTrip(std::string(1000000, 'a'), 4099);
  std::mt19937 random(6);
  std::string noise(1000000, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  ExpectRoundTrip(noise, 65536);
  ExpectRoundTrip(noise, noise.size());
}

TEST(GzipSinkTest, Compresses) {
  std::string compressed;
  StringSink sink(&compressed);
  GzipSink gzip(&sink);
  ASSERT_OK(gzip.Append(std::string(1000000, 'a')));
  ASSERT_OK(gzip.Finish());
  EXPECT_LT(compressed.size(), 2000);
}

class BrokenSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view) override { return absl::DataLossError("broken"); }
};

TEST(GzipSinkTest, ErrorsOfTheOtherSinkComeBack) {
  BrokenSink sink;
  GzipSink gzip(&sink);
  // The ten bytes of gzip's header may be held back or not.
  const absl::Status appended = gzip.Append("x");
  EXPECT_THAT(appended.ok() ? gzip.Finish() : appended,
              StatusIs(absl::StatusCode::kDataLoss, "broken"));
}

#ifndef MERIDIAN_SANITIZED  // Their allocators end the program themselves.
// Leaves the process no more memory than the sink itself takes: the compressor's own 256 KiB are
// missing.
void TakeTheMemoryThatACompressorNeeds() {
  // Volatile: the compiler may drop what is only allocated and freed.
  void* volatile for_the_sink = std::malloc(80 << 10);
  const rlimit nothing_new = {0, 0};
  setrlimit(RLIMIT_AS, &nothing_new);
  while (std::malloc(32 << 10) != nullptr) {
  }
  std::free(for_the_sink);
}

TEST(GzipSinkTest, WithoutMemoryForTheCompressorItFailsInsteadOfAborting) {
  EXPECT_EXIT(
      {
        DiscardingSink sink;
        TakeTheMemoryThatACompressorNeeds();
        GzipSink gzip(&sink);
        const absl::Status appended = gzip.Append("x");
        const absl::Status finished = gzip.Finish();
        const bool failed = absl::IsResourceExhausted(appended) && finished == appended;
        _exit(failed ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace meridian
