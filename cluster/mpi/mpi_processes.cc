#include "cluster/mpi/mpi_processes.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// MPI counts with int.
constexpr size_t kMaxMessageBytes = size_t{1} << 30;

// Waits without taking the processor from those that still work: MPI's own waits spin.
void Wait(MPI_Request request) {
  constexpr int kQuickTests = 50;
  constexpr useconds_t kLongestPauseUs = 1000;
  useconds_t pause_us = 10;
  for (int tests = 0;; ++tests) {
    int is_done = 0;
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (is_done != 0) return;
    if (tests < kQuickTests) {
      sched_yield();
      continue;
    }
    usleep(pause_us);
    pause_us = std::min(2 * pause_us, kLongestPauseUs);
  }
}

void ForEachMessage(size_t size, absl::FunctionRef<MPI_Request(size_t begin, int count)> start) {
  for (size_t begin = 0; begin < size; begin += kMaxMessageBytes) {
    Wait(start(begin, static_cast<int>(std::min(kMaxMessageBytes, size - begin))));
  }
}

void Send(const std::string& bytes, int rank) {
  const uint64_t size = bytes.size();
  MPI_Request request;
  MPI_Isend(&size, 1, MPI_UINT64_T, rank, 0, MPI_COMM_WORLD, &request);
  Wait(request);
  ForEachMessage(size, [&](size_t begin, int count) {
    MPI_Isend(bytes.data() + begin, count, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &request);
    return request;
  });
}

std::string Receive(int rank) {
  uint64_t size = 0;
  MPI_Request request;
  MPI_Irecv(&size, 1, MPI_UINT64_T, rank, 0, MPI_COMM_WORLD, &request);
  Wait(request);
  std::string bytes(size, '\0');
  ForEachMessage(size, [&](size_t begin, int count) {
    MPI_Irecv(&bytes[begin], count, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &request);
    return request;
  });
  return bytes;
}

// Gives what one rank has to all.
void BroadcastFrom(int root, std::string* bytes) {
  uint64_t size = bytes->size();
  MPI_Request request;
  MPI_Ibcast(&size, 1, MPI_UINT64_T, root, MPI_COMM_WORLD, &request);
  Wait(request);
  bytes->resize(size);
  ForEachMessage(size, [&](size_t begin, int count) {
    MPI_Ibcast(&(*bytes)[begin], count, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    return request;
  });
}

}  // namespace

MpiProcesses::MpiProcesses() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
}

MpiProcesses::~MpiProcesses() { MPI_Finalize(); }

absl::Status MpiProcesses::Agree(const absl::Status& status) {
  const int candidate = status.ok() ? ranks_ : rank_;
  int first = ranks_;
  MPI_Request request;
  MPI_Iallreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  Wait(request);
  if (first == ranks_) return absl::OkStatus();
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(host, &length);
  // The code as one character, then the message.
  std::string bytes(1, static_cast<char>(status.code()));
  absl::StrAppend(&bytes, "rank ", rank_, " (", host, "): ", status.message());
  BroadcastFrom(first, &bytes);
  return absl::Status(static_cast<absl::StatusCode>(bytes[0]), bytes.substr(1));
}

absl::Status MpiProcesses::Gather(const std::string& bytes,
                                  absl::FunctionRef<absl::Status(absl::string_view)> take) {
  absl::Status status;
  if (rank_ != 0) Send(bytes, 0);
  // Also after an error, for the sender waits.
  for (int rank = 1; rank < ranks_ && rank_ == 0; ++rank) status.Update(take(Receive(rank)));
  return Agree(status);
}

std::vector<int64_t> MpiProcesses::LargestOf(std::vector<int64_t> values) {
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, MPI_MAX,
                 MPI_COMM_WORLD, &request);
  Wait(request);
  return values;
}

void MpiProcesses::Abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

int RunMpiCommand(MpiProcesses* processes, Command command, int argc, char** argv) {
  const int standard_error = dup(STDERR_FILENO);
  if (!processes->is_first()) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
  command.body = [processes, standard_error,
                  body = std::move(command.body)]() -> absl::StatusOr<int> {
    if (!processes->is_first()) dup2(standard_error, STDERR_FILENO);
    absl::StatusOr<int> code = body();
    if (code.ok() || processes->is_first()) return code;
    return ExitCode(code.status());
  };
  return RunCommand(command, argc, argv);
}

}  // namespace meridian
