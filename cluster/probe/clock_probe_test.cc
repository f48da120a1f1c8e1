// clock_probe on real sockets: daemons that talk through a relay, the program as users run it, and
// combine on what is written.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cluster/probe/probe_daemon.h"
#include "cluster/probe/testing/simulated_hosts.h"
#include "cluster/probe/testing/skewed_clock.h"
#include "cluster/probe/testing/udp_relay.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "trace_alignment/probes/probe_offsets.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond = 1000000000;
// At least two whole windows of 4 s.
constexpr absl::Duration kRunTime = absl::Seconds(13);
constexpr double kMaxCpu = 0.01;

struct ClockError {
  int64_t offset_ns = 0;
  double drift_ppm = 0;
};

// Daemons in threads, each with a clock of its own, that talk through a relay.
class RelayedDaemons {
 public:
  RelayedDaemons(const std::vector<ClockError>& errors, const PathModel& model,
                 UdpRelay::Observer observer = nullptr, bool kernel_stamps = true)
      : nodes_(errors.size()) {
    const int64_t origin_ns = absl::GetCurrentTimeNanos();
    std::vector<int> ports;
    for (const ClockError& error : errors) {
      clocks_.push_back(std::make_unique<SkewedClock>(origin_ns, error.offset_ns, error.drift_ppm));
      sockets_.push_back(std::make_unique<UdpSocket>(*UdpSocket::Open(0, kernel_stamps)));
      ports.push_back(sockets_.back()->port());
    }
    relay_ = std::make_unique<UdpRelay>(ports, model, std::move(observer));
  }

  int Port(size_t node) const { return sockets_[node]->port(); }

  // Runs all daemons for a while, `meanwhile` beside them.
  void Run(const std::function<void()>& meanwhile = [] {}) {
    counts_.resize(nodes_);
    cpu_.resize(nodes_);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < nodes_; ++i) {
      threads.emplace_back([&, i] {
        ProbeDaemonOptions options;
        for (size_t j = 0; j < nodes_; ++j) {
          options.hosts.push_back(
              {"127.0.0.1", i == j ? Port(i) : relay_->Port(i, j), static_cast<int64_t>(j), 1});
        }
        options.host = i;
        options.key = "test";
        options.output_folder = directory_.path();
        const absl::Time start = absl::Now();
        const absl::StatusOr<ProbeCounts> counts =
            RunProbeDaemon(options, *sockets_[i], *clocks_[i], FileSystem::Posix(), stop);
        timespec cpu = {};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
        cpu_[i] = absl::FDivDuration(absl::DurationFromTimespec(cpu), absl::Now() - start);
        EXPECT_OK(counts);
        if (counts.ok()) counts_[i] = *counts;
      });
    }
    begin_ns_ = absl::GetCurrentTimeNanos();
    const absl::Time end = absl::Now() + kRunTime;
    meanwhile();
    absl::SleepFor(end - absl::Now());
    end_ns_ = absl::GetCurrentTimeNanos();
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }

  // Checks that combine's code finds every true offset in its interval, in every window, and prints
  // and returns the largest error of windows that the daemons ran all through; of others a few
  // packets decide.
  double LargestErrorNs(const std::string& name) const {
    std::vector<std::string> files;
    for (const std::string& file : directory_.List()) files.push_back(directory_.PathOf(file));
    const absl::StatusOr<ProbeOffsets> offsets =
        LoadProbeOffsets(FileSystem::Posix(), files, 0, 100);
    EXPECT_OK(offsets);
    if (!offsets.ok()) return 1e18;
    double largest_ns = 0, widest_ns = 0;
    int whole_windows = 0;
    for (size_t node = 1; node < nodes_; ++node) {
      const std::vector<OffsetSample>& samples =
          offsets->samples.SamplesOf(static_cast<int64_t>(node));
      EXPECT_GE(samples.size(), 3u);
      for (const OffsetSample& sample : samples) {
        const int64_t true_ns = clocks_[0]->ToRealtime(sample.midpoint_ref_ns);
        const auto truth_ns =
            static_cast<double>(clocks_[node]->FromRealtime(true_ns) - sample.midpoint_ref_ns);
        const double error_ns = std::abs(static_cast<double>(sample.offset_ps) / 1000 - truth_ns);
        EXPECT_LE(error_ns, sample.uncertainty_ns.value_or(0) + 2) << "node " << node;
        const int64_t kWindowNs = TwoWayOptions().window_ns;
        const int64_t window_ns = sample.midpoint_ref_ns / kWindowNs * kWindowNs;
        if (window_ns < begin_ns_ || window_ns + kWindowNs > end_ns_) continue;
        ++whole_windows;
        largest_ns = std::max(largest_ns, error_ns);
        widest_ns = std::max(widest_ns, sample.uncertainty_ns.value_or(1e18));
      }
    }
    EXPECT_GE(whole_windows, 2 * (static_cast<int>(nodes_) - 1));
    std::printf("%s: error up to %.2f us, stated up to %.1f us, CPU up to %.2f %%\n", name.c_str(),
                largest_ns / 1000, widest_ns / 1000,
                *std::max_element(cpu_.begin(), cpu_.end()) * 100);
    return largest_ns;
  }

  const ProbeCounts& counts(size_t node) const { return counts_[node]; }
  double MaxCpu() const { return *std::max_element(cpu_.begin(), cpu_.end()); }

 private:
  const size_t nodes_;
  const TemporaryDirectory directory_;
  std::vector<std::unique_ptr<SkewedClock>> clocks_;
  std::vector<std::unique_ptr<UdpSocket>> sockets_;
  std::unique_ptr<UdpRelay> relay_;
  // When the daemons ran, on the machine's clock, which is that of node 0.
  int64_t begin_ns_ = 0;
  int64_t end_ns_ = 0;
  std::vector<ProbeCounts> counts_;
  // CPU time over time, by node.
  std::vector<double> cpu_;
};

PathModel BurstyPath() {
  PathModel model;
  model.loss = 0.05;
  model.burst_period_ns = 700'000'000;
  model.burst_ns = 150'000'000;
  model.burst_delay_ns = 2'000'000;
  return model;
}

const std::vector<ClockError> kSkewed = {
    {0, 0}, {3'000'000, 20}, {-20'000'000, -35}, {700'000'000, 8}};

TEST(ClockProbeTest, IntervalsHoldTheTruthWithAsymmetryBurstsAndLoss) {
  PathModel model = BurstyPath();
  model.asymmetry = 0.3;
  RelayedDaemons same(std::vector<ClockError>(4), model, nullptr, /*kernel_stamps=*/false);
  RelayedDaemons skewed(kSkewed, model);
  std::thread other([&] { same.Run(); });
  skewed.Run();
  other.join();
  same.LargestErrorNs("asymmetric, one clock, stamps by the program");
  skewed.LargestErrorNs("asymmetric, clocks off and drifting");
  EXPECT_GT(skewed.counts(0).lost, 0);
}

TEST(ClockProbeTest, ASymmetricPathIsFoundTo10Us) {
  RelayedDaemons same(std::vector<ClockError>(3), BurstyPath());
  same.Run();
  EXPECT_LT(same.LargestErrorNs("symmetric, one clock"), 10'000);
  RelayedDaemons skewed(kSkewed, BurstyPath());
  skewed.Run();
  EXPECT_LT(skewed.LargestErrorNs("symmetric, clocks off and drifting"), 10'000);
  // What else the machine does only adds to it.
  EXPECT_LT(std::min(same.MaxCpu(), skewed.MaxCpu()), kMaxCpu);
}

// Datagrams of any size, replays, replays with another node's id, and a flood of all of them.
TEST(ClockProbeTest, HostilePacketsChangeNoResult) {
  std::mutex mutex;
  std::vector<std::string> seen;
  RelayedDaemons daemons({{0, 0}, {5'000'000, 12}, {-400'000, 0}}, PathModel(),
                         [&](const std::string& bytes) {
                           const std::lock_guard<std::mutex> lock(mutex);
                           if (seen.size() < 10'000) seen.push_back(bytes);
                         });
  const absl::Time start = absl::Now();
  daemons.Run([&] {
    absl::StatusOr<UdpSocket> socket = UdpSocket::Open(0, false);
    ASSERT_OK(socket);
    std::vector<std::string> victims;
    for (size_t i = 0; i < 3; ++i)
      victims.push_back(*socket->Resolve("127.0.0.1", daemons.Port(i)));
    std::mt19937 random(1);
    // 12,000 in a second, then 500 in each of some more.
    for (int i = 0; i < 16'000; ++i) {
      std::string bytes(random() % 1400, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (i % 4 > 0 && !seen.empty()) bytes = seen[random() % seen.size()];
      }
      if (i % 4 == 2 && bytes.size() > 8) bytes[8] = static_cast<char>(random() % 4);
      if (i % 4 == 3) bytes.resize(random() % 200, 'x');
      socket->Send(bytes, victims[random() % victims.size()]);
      if (i % 12 == 0) absl::SleepFor(i < 12'000 ? absl::Milliseconds(1) : absl::Milliseconds(24));
    }
  });
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  EXPECT_LT(daemons.LargestErrorNs("hostile packets"), 10'000);
  for (size_t node = 0; node < 3; ++node) {
    EXPECT_GT(daemons.counts(node).foreign, 1000) << node;
    EXPECT_GT(daemons.counts(node).refused, 200) << node;
    // Fewer than usual on a machine that does other work, but enough to measure with.
    EXPECT_GT(daemons.counts(node).answered, 30) << node;
    EXPECT_LE(daemons.counts(node).packets_sent, 100 * (seconds + 1)) << node;
  }
}

// Somebody who knows the key asks in another host's name.
TEST(ClockProbeTest, AnswersGoWhereTheListSaysAndNotToStrangers) {
  const TemporaryDirectory directory;
  UdpSocket asked = *UdpSocket::Open(0, false), listed = *UdpSocket::Open(0, false);
  UdpSocket stranger = *UdpSocket::Open(0, false);
  ProbeDaemonOptions options;
  options.hosts = {{"127.0.0.1", asked.port(), 0, 1}, {"127.0.0.1", listed.port(), 1, 1}};
  options.key = "test";
  options.output_folder = directory.path();
  options.duration_ns = kSecond;
  ProbePacket question;
  question.src = 1;
  question.sequence = 7;
  stranger.Send(EncodeProbePacket(question, options.key),
                *stranger.Resolve("127.0.0.1", asked.port()));
  const std::unique_ptr<ClockSource> clock = SystemClockSource();
  std::atomic<bool> stop{false};
  ASSERT_OK(RunProbeDaemon(options, asked, *clock, FileSystem::Posix(), stop));
  EXPECT_FALSE(stranger.Receive().has_value());
  int answers = 0;
  while (const std::optional<UdpSocket::Datagram> datagram = listed.Receive()) {
    const std::optional<ProbePacket> packet = DecodeProbePacket(datagram->bytes, options.key);
    answers += packet.has_value() && packet->kind == ProbePacket::Kind::kAnswer;
  }
  EXPECT_EQ(answers, 1);
}

// Starts the program with its output in a file, and returns its process.
pid_t Start(const std::vector<std::string>& arguments, const std::string& output) {
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), "cluster/probe/clock_probe");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t process = fork();
  if (process == 0) {
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    dup2(file, STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  return process;
}

TEST(ClockProbeTest, TheProgramStopsCleanlyWhenToldToAndTakesLittle) {
  const TemporaryDirectory directory;
  std::vector<int> ports;
  {
    // Two free ports.
    const UdpSocket first = *UdpSocket::Open(0, false), second = *UdpSocket::Open(0, false);
    ports = {first.port(), second.port()};
  }
  const std::string hosts = directory.Write(
      "hosts", absl::StrCat("127.0.0.1:", ports[0], "\nlocalhost:", ports[1], " slots=2\n"));
  pid_t processes[2];
  const absl::Time start = absl::Now();
  for (int i = 0; i < 2; ++i) {
    processes[i] = Start({"--host_file=" + hosts, absl::StrCat("--host_index=", i), "--json",
                          "--token=abc", "--output=" + directory.PathOf("probes")},
                         directory.PathOf(absl::StrCat("counts", i)));
    ASSERT_GT(processes[i], 0);
  }
  absl::SleepFor(absl::Seconds(10));
  for (const pid_t process : processes) kill(process, SIGTERM);
  double cpu = 0;
  for (const pid_t process : processes) {
    int status = 0;
    rusage usage = {};
    ASSERT_EQ(wait4(process, &status, 0, &usage), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    cpu = std::max(cpu, absl::FDivDuration(absl::DurationFromTimeval(usage.ru_utime) +
                                               absl::DurationFromTimeval(usage.ru_stime),
                                           absl::Now() - start));
  }
  std::printf("the program: CPU %.2f %%\n", cpu * 100);
  EXPECT_LT(cpu, kMaxCpu);
  EXPECT_THAT(directory.Read("counts1"), HasSubstr("\"foreign\":0,"));
  ASSERT_OK_AND_ASSIGN(const ProbeOffsets offsets,
                       LoadProbeOffsets(FileSystem::Posix(),
                                        {directory.PathOf("probes/probes_node0.jsonl"),
                                         directory.PathOf("probes/probes_node1.jsonl")},
                                        0, 100));
  // Node 2 runs on the second host too.
  for (const int64_t node : {1, 2}) {
    ASSERT_GE(offsets.samples.SamplesOf(node).size(), 2u);
    for (const OffsetSample& sample : offsets.samples.SamplesOf(node)) {
      EXPECT_LE(std::abs(static_cast<double>(sample.offset_ps) / 1000), *sample.uncertainty_ns + 1);
      EXPECT_LT(*sample.uncertainty_ns, 50'000);
    }
  }
}

TEST(ClockProbeTest, SaysWhatIsMissing) {
  CommandResult result = RunCommandLine("cluster/probe/clock_probe", {"--output=/tmp"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("--host_file"));
  result = RunCommandLine("cluster/probe/clock_probe", {"--output=/tmp", "--hosts=a,b"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("--host_index"));
}

// The number behind the key, as in "ts": 12.5.
double NumberAfter(const std::string& text, const std::string& key) {
  return std::stod(text.substr(text.find(key) + key.size()));
}

// Ranks 2 and 3 of a PyTorch job ran on a host whose clock is 20 ms behind and drifts.
TEST(ClockProbeTest, CombineUsesProbesForKineto) {
  const TemporaryDirectory directory;
  constexpr int64_t kOffsetNs = -20'000'000;
  int64_t start_ns = 0;
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_OK_AND_ASSIGN(
        const InputFile file,
        InputFile::Open(FileSystem::Posix(),
                        absl::StrCat("examples/torch_pipeline4/kineto_", rank, ".json.gz")));
    std::string text(file.bytes());
    const std::string key = "\"baseTimeNanoseconds\": ";
    const size_t digits = text.find(key) + key.size();
    const size_t end = text.find_first_not_of("0123456789", digits);
    const int64_t base_ns = std::stoll(text.substr(digits, end - digits));
    if (rank == 0) {
      start_ns = base_ns + static_cast<int64_t>(NumberAfter(text, "\"ts\": ") * 1000);
    } else if (rank >= 2) {
      text.replace(digits, end - digits, absl::StrCat(base_ns + kOffsetNs));
    }
    directory.Write(absl::StrCat("run/kineto_", rank, ".json"), text);
  }
  SimulatedHosts hosts({{0, 0}, {kOffsetNs, 0}}, BurstyPath(), start_ns - 6 * kSecond, 1, 2);
  ASSERT_OK(FileSystem::Posix().CreateDirectories(directory.PathOf("probes")));
  ASSERT_OK(hosts.Run(20 * kSecond, directory.PathOf("probes")));
  const CommandResult result =
      RunCommandLine("tools/combine", {"--run_dir=" + directory.PathOf("run"),
                                       "--probes=" + directory.PathOf("probes"), "--validate",
                                       "--json", "--output=" + directory.PathOf("all.json.gz")});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  CombineReport report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result.standard_output, &report).ok());
  EXPECT_EQ(report.method(), "probes");
  EXPECT_GT(report.happens_before().violations_before(), 0);
  EXPECT_EQ(report.happens_before().violations_after(), 0);
  ASSERT_EQ(report.nodes_size(), 4);
  for (const CombinedNode& node : report.nodes()) {
    const int64_t truth_ns = node.node_id() >= 2 ? kOffsetNs : 0;
    EXPECT_LE(std::abs(node.offset_ns() - truth_ns), node.uncertainty_ns() + 1) << node.node_id();
    EXPECT_LT(node.uncertainty_ns(), 200'000);
    std::printf("combine, node %d: error %lld ns, stated %.0f ns\n",
                static_cast<int>(node.node_id()),
                static_cast<long long>(node.offset_ns() - truth_ns),
                static_cast<double>(node.uncertainty_ns()));
  }
}

}  // namespace
}  // namespace meridian
