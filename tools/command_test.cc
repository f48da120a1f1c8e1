#include "tools/command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/util/atomic_file_writer.h"
#include "xla_profiler/util/file_system.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/testing/status_matchers.h"
#include "xla_profiler/util/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A command in a process of its own that has written half of an output when Start returns, and then
// waits for ever.
class InterruptedCommand {
 public:
  explicit InterruptedCommand(std::string output) : output_(std::move(output)) {}

  // `before` is called in the process before the command.
  void Start(void (*before)() = [] {}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    process_ = fork();
    ASSERT_GE(process_, 0);
    if (process_ == 0) {
      before();
      char name[] = "interrupted";
      char* arguments[] = {name, nullptr};
      _exit(RunCommand({name, "Writes for ever.", {}, {}}, 1, arguments,
                       [&] { return WriteHalf(ends[1]); }));
    }
    close(ends[1]);
    char written;
    EXPECT_EQ(read(ends[0], &written, 1), 1);
    close(ends[0]);
  }

  void Signal(int number) const { kill(process_, number); }

  // Returns the status as of waitpid.
  int Wait() const {
    int status = 0;
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    return status;
  }

 private:
  absl::StatusOr<int> WriteHalf(int written) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFileWriter> writer,
                     AtomicFileWriter::Create(FileSystem::Posix(), output_));
    RETURN_IF_ERROR(writer->Append(std::string(3 << 20, 'x')));
    if (write(written, "w", 1) != 1) return 1;
    for (;;) pause();
  }

  const std::string output_;
  pid_t process_ = -1;
};

class CommandTest : public ::testing::TestWithParam<int> {
 protected:
  // Names in the folder, hidden ones too.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const char* pattern : {"*", ".*.tmp"}) {
      absl::StatusOr<std::vector<std::string>> found =
          FileSystem::Posix().Glob(directory_.PathOf(pattern));
      EXPECT_OK(found.status());
      names.insert(names.end(), found->begin(), found->end());
    }
    return names;
  }

  const TemporaryDirectory directory_;
};

TEST_P(CommandTest, AnInterruptedCommandLeavesNothingAndEndsByTheSignal) {
  InterruptedCommand command(directory_.PathOf("out"));
  command.Start();
  EXPECT_THAT(Files(), SizeIs(1));
  command.Signal(GetParam());
  const int status = command.Wait();
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), GetParam());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_P(CommandTest, AnOldOutputStays) {
  const std::string output = directory_.Write("out", "old");
  InterruptedCommand command(output);
  command.Start();
  command.Signal(GetParam());
  command.Wait();
  EXPECT_THAT(Files(), ElementsAre(output));
  EXPECT_EQ(directory_.Read("out"), "old");
}

// As nohup and shells do for what runs in the background.
TEST_P(CommandTest, ASignalThatIsIgnoredStaysIgnored) {
  InterruptedCommand command(directory_.PathOf("out"));
  command.Start([] {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_IGN);
  });
  command.Signal(GetParam());
  command.Signal(SIGKILL);
  EXPECT_EQ(WTERMSIG(command.Wait()), SIGKILL);
  EXPECT_THAT(Files(), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Signals, CommandTest, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

}  // namespace
}  // namespace meridian
