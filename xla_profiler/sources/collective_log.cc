#include "xla_profiler/sources/collective_log.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/kineto/kineto_collectives.h"

namespace meridian {
namespace {

// What PyTorch calls a collective, and what NCCL names its kernels after.
struct CallName {
  absl::string_view call;
  absl::string_view kernel;
};

CallName NameOf(CollectiveKind kind) {
  // In the order of the enum.
  static constexpr CallName kNames[] = {
      {"allreduce", "AllReduce"},
      {"_allgather_base", "AllGather"},
      {"_reduce_scatter_base", "ReduceScatter"},
      {"all_to_all", "SendRecv"},
      {"send", "SendRecv"},
      {"all_to_allv", "SendRecv"},
      {"broadcast", "Broadcast"},
      {"reduce", "Reduce"},
      {"send", "SendRecv"},
      {"send", "SendRecv"},
      {"recv", "SendRecv"},
      {"gather", "SendRecv"},
      {"scatter", "SendRecv"},
      {"barrier", "AllReduce"},
      {"unknown", "Generic"},
  };
  static_assert(std::size(kNames) == static_cast<size_t>(CollectiveKind::kUnknown) + 1);
  return kNames[static_cast<int>(kind)];
}

int64_t LaunchNs(const LoggedWork& work) {
  // The host may note a launch after the kernel has begun.
  return std::min(work.launched_ns.value_or(work.start_ns), work.start_ns);
}

const std::string& StreamOf(const LoggedCollective& collective) {
  return collective.stream.empty() ? collective.group : collective.stream;
}

class KinetoText {
 public:
  explicit KinetoText(const CollectiveLog& log) : log_(log), json_(&text_) {
    for (const LoggedCollective& collective : log.collectives) {
      AddStream(StreamOf(collective), LaunchNs(collective));
    }
    for (const LoggedWork& work : log.work) AddStream(work.stream, LaunchNs(work));
    base_ns_ -= kBaseBeforeFirstNs;
    int64_t next = 1;
    for (auto& [name, stream] : streams_) stream = next++;
  }

  std::string Write() {
    json_.BeginObject();
    WriteHeader();
    json_.BeginArray("traceEvents", JsonLayout::kLines);
    if (!log_.events.empty()) json_.Raw(log_.events);
    for (const LoggedCollective& collective : log_.collectives) WriteCollective(collective);
    for (const LoggedWork& work : log_.work) WriteWork(work);
    json_.EndArray();
    json_.EndObject();
    return std::move(text_);
  }

 private:
  void AddStream(const std::string& name, int64_t launch_ns) {
    base_ns_ = streams_.empty() ? launch_ns : std::min(base_ns_, launch_ns);
    streams_.insert({name, 0});
  }

  void WriteHeader() {
    json_.Member("schemaVersion", 1);
    json_.BeginObject("distributedInfo");
    json_.Member("backend", "nccl");
    json_.Member("rank", log_.rank);
    if (log_.world_size > 0) json_.Member("world_size", log_.world_size);
    json_.BeginArray("pg_config");
    for (const auto& [group, ranks] : log_.groups) {
      json_.BeginObject();
      json_.Member("pg_name", group);
      json_.Key("ranks");
      json_.List(ranks);
      json_.EndObject();
    }
    json_.EndArray();
    json_.EndObject();
    if (!log_.hostname.empty()) json_.Member(kHostNameKey, log_.hostname);
    json_.Member("baseTimeNanoseconds", log_.base_ns.value_or(base_ns_));
  }

  void Microseconds(absl::string_view key, int64_t ns) {
    json_.Key(key);
    json_.Raw(absl::StrFormat("%d.%03d", ns / 1000, ns % 1000));
  }

  void BeginEvent(absl::string_view category, absl::string_view name, int64_t process,
                  int64_t thread, int64_t start_ns, int64_t took_ns) {
    json_.BeginObject();
    json_.Member("ph", "X");
    json_.Member("cat", category);
    json_.Member("name", name);
    json_.Member("pid", process);
    json_.Member("tid", thread);
    Microseconds("ts", start_ns - base_ns_);
    Microseconds("dur", took_ns);
    json_.BeginObject("args");
    json_.Member("correlation", correlation_);
    json_.Member("External id", correlation_);
  }

  void EndEvent() {
    json_.EndObject();
    json_.EndObject();
  }

  // Writes something that the thread that launches does in no time.
  void WriteCall(absl::string_view category, absl::string_view name, int64_t ns) {
    BeginEvent(category, name, log_.pid, log_.pid, ns, 0);
    EndEvent();
  }

  // Writes the launch, and begins the kernel that it launches.
  void BeginKernel(const LoggedWork& work, absl::string_view name, int64_t stream) {
    WriteCall("cuda_runtime", "cudaLaunchKernel", LaunchNs(work));
    BeginEvent("kernel", name, 0, stream, work.start_ns, work.end_ns - work.start_ns);
    json_.Member("device", 0);
    json_.Member("stream", stream);
  }

  // What is exchanged together is told by calls, then launched as one kernel that says nothing.
  void WriteCollective(const LoggedCollective& collective) {
    ++correlation_;
    const bool is_batched = is_in_batch_ || collective.is_with_next;
    is_in_batch_ = collective.is_with_next;
    if (is_batched) {
      BeginEvent("cpu_op", "record_param_comms", log_.pid, log_.pid, LaunchNs(collective), 0);
      WriteArguments(collective);
      EndEvent();
      if (is_in_batch_) return;
      ++correlation_;
      WriteCall("user_annotation", "nccl:coalesced", LaunchNs(collective));
    }
    std::string name = absl::StrCat("ncclDevKernel_", NameOf(collective.kind).kernel);
    if (!collective.protocol.empty()) absl::StrAppend(&name, "_", collective.protocol);
    if (!collective.name.empty()) absl::StrAppend(&name, "(", collective.name, ")");
    BeginKernel(collective, name, streams_[StreamOf(collective)]);
    if (!is_batched) WriteArguments(collective);
    EndEvent();
  }

  void WriteArguments(const LoggedCollective& collective) {
    json_.Member("Collective name", NameOf(collective.kind).call);
    if (collective.in_bytes.has_value()) json_.Member("In msg nelems", *collective.in_bytes);
    if (collective.out_bytes.has_value()) json_.Member("Out msg nelems", *collective.out_bytes);
    json_.Member("Group size", collective.group_size);
    json_.Member("dtype", "Byte");
    json_.Member("Process Group Name", collective.group);
    if (collective.peer.has_value()) {
      const bool sends = collective.kind == CollectiveKind::kSend;
      json_.Member(sends ? "Dst Rank" : "Src Rank", *collective.peer);
    }
    const bool is_message = HasPairs(collective.kind);
    if (collective.ran_ns.has_value()) json_.Member(kRanKey, *collective.ran_ns);
    if (collective.execution != 0) {
      json_.Member(is_message ? kMessageIdKey : "Comms Id", collective.execution);
    } else if (is_message) {
      // Messages with a Seq are counted from step to step, not over all of the trace.
      json_.Member("Seq", 0);
    }
  }

  void WriteWork(const LoggedWork& work) {
    ++correlation_;
    if (work.category == "kernel") {
      BeginKernel(work, work.name, streams_[work.stream]);
    } else {
      const int64_t thread = work.stream.empty() ? 0 : streams_[work.stream];
      BeginEvent(work.category, work.name, log_.pid, log_.pid + thread, work.start_ns,
                 work.end_ns - work.start_ns);
    }
    EndEvent();
  }

  const CollectiveLog& log_;
  std::string text_;
  JsonWriter json_;
  int64_t base_ns_ = 0;
  std::map<std::string, int64_t> streams_;
  int64_t correlation_ = 0;
  // The collective before is exchanged together with this one.
  bool is_in_batch_ = false;
};

}  // namespace

std::string CollectiveLogToKineto(const CollectiveLog& log) { return KinetoText(log).Write(); }

uint64_t ExecutionNumber(const std::string& group, const std::string& what, int64_t count) {
  ContentHash hash;
  hash.AddText(group);
  hash.AddText(what);
  hash.AddNumber(static_cast<uint64_t>(count));
  // Positive, and never 0, which stands for none.
  return (absl::Uint128Low64(hash.value()) >> 1) | 1;
}

}  // namespace meridian
