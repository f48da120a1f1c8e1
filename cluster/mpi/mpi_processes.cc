#include "cluster/mpi/mpi_processes.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

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

// Starts to move so many elements from or to where they lie.
using StartMessage =
    absl::FunctionRef<void(void* data, int count, MPI_Datatype type, MPI_Request* request)>;

// Moves how many bytes there are, then these, in messages that MPI can count.
void Move(StartMessage start, std::string* bytes) {
  uint64_t size = bytes->size();
  MPI_Request request;
  start(&size, 1, MPI_UINT64_T, &request);
  Wait(request);
  bytes->resize(size);
  for (size_t begin = 0; begin < size; begin += kMaxMessageBytes) {
    const auto count = static_cast<int>(std::min(kMaxMessageBytes, size - begin));
    start(&(*bytes)[begin], count, MPI_BYTE, &request);
    Wait(request);
  }
}

}  // namespace

MpiProcesses::MpiProcesses() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  MPI_Comm on_host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &on_host);
  MPI_Comm_rank(on_host, &rank_on_host_);
  MPI_Comm_free(&on_host);
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
  const auto broadcast = [&](void* data, int count, MPI_Datatype type, MPI_Request* request) {
    MPI_Ibcast(data, count, type, first, MPI_COMM_WORLD, request);
  };
  Move(broadcast, &bytes);
  return absl::Status(static_cast<absl::StatusCode>(bytes[0]), bytes.substr(1));
}

absl::Status MpiProcesses::Gather(std::string bytes,
                                  absl::FunctionRef<absl::Status(absl::string_view)> take) {
  absl::Status status;
  const auto send = [](void* data, int count, MPI_Datatype type, MPI_Request* request) {
    MPI_Isend(data, count, type, 0, 0, MPI_COMM_WORLD, request);
  };
  if (rank_ != 0) Move(send, &bytes);
  // Also after an error, for the sender waits.
  for (int rank = 1; rank < ranks_ && rank_ == 0; ++rank) {
    const auto receive = [&](void* data, int count, MPI_Datatype type, MPI_Request* request) {
      MPI_Irecv(data, count, type, rank, 0, MPI_COMM_WORLD, request);
    };
    Move(receive, &bytes);
    status.Update(take(bytes));
  }
  return Agree(status);
}

void MpiProcesses::Broadcast(std::string* bytes) {
  const auto broadcast = [](void* data, int count, MPI_Datatype type, MPI_Request* request) {
    MPI_Ibcast(data, count, type, 0, MPI_COMM_WORLD, request);
  };
  Move(broadcast, bytes);
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
