#include "workload_model/testing/made_up_search.h"

#include <cmath>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "workload_model/measurements/call_traces.h"

namespace meridian {
namespace {

constexpr double kCallUs = 5;

// Writes down the calls of one rank.
class Tracer {
 public:
  Tracer(const MadeUpSearch& search, int64_t rank)
      : q_(search.root_of_ranks), rank_(rank), share_(std::exp2(search.size - 10)) {
    share_ /= static_cast<double>(q_ * q_);
  }

  void Collective(int callsite, absl::string_view name, int64_t first, int64_t stride,
                  int64_t length, double bytes, double us) {
    Call(callsite, name, us);
    absl::StrAppendFormat(&text_, "coll 0xc4 %.0f to ", bytes);
    for (int64_t i = 0; i < length; ++i) absl::StrAppend(&text_, first + i * stride, " ");
    absl::StrAppend(&text_, "\n");
  }

  void Message(int callsite, int64_t peer, double bytes, double us) {
    Call(callsite, "Sendrecv", us);
    absl::StrAppendFormat(&text_, "p2p %.0f to %d:%d\n", bytes, peer, peer);
  }

  void World(int callsite, absl::string_view name, double bytes, double us) {
    Collective(callsite, name, 0, 1, q_ * q_, bytes, us);
  }
  void Row(int callsite, absl::string_view name, double bytes, double us) {
    Collective(callsite, name, row() * q_, 1, q_, bytes, us);
  }
  void Column(int callsite, absl::string_view name, double bytes, double us) {
    Collective(callsite, name, column(), q_, q_, bytes, us);
  }

  int64_t row() const { return rank_ / q_; }
  int64_t column() const { return rank_ % q_; }
  int64_t InRow(int64_t step) const { return row() * q_ + (column() + step) % q_; }
  double share() const { return share_; }
  std::string text() && { return std::move(text_); }

 private:
  void Call(int callsite, absl::string_view name, double us) {
    absl::StrAppendFormat(&text_, "TRACE %d -> %d %.1f MPI_%s ", last_, callsite,
                          last_ == 0 ? 1672852472724046.0 : us + kCallUs, name);
    last_ = callsite;
  }

  const int64_t q_;
  const int64_t rank_;
  double share_;
  int last_ = 0;
  std::string text_;
};

}  // namespace

std::string SearchTrace(const MadeUpSearch& search, int64_t rank) {
  const int64_t q = search.root_of_ranks;
  Tracer tracer(search, rank);
  // The same on all ranks.
  std::mt19937_64 random(search.seed);
  for (int root = 0; root < search.roots; ++root) {
    tracer.World(1, "Allreduce", 8, 20);
    tracer.Column(2, "Allgather", 128, 10 + tracer.share());
    tracer.Message(3, tracer.column() * q + tracer.row(), 8 * tracer.share() + 64, 15);
    const int levels = random() % 10 < 7 ? 3 : 2;
    for (int level = 0; level < levels; ++level) {
      tracer.Row(4, "Bcast", 64 * tracer.share(), 10 + 2 * tracer.share());
      for (int64_t step = 1; step < q; ++step) {
        tracer.Message(5, tracer.InRow(1), 256, 10);
        tracer.Message(6, tracer.InRow(step), 16 * tracer.share(), 10 + tracer.share());
      }
      tracer.Row(7, "Alltoall", 4, 12);
      tracer.World(8, "Allreduce", 8, 20);
    }
    tracer.World(9, "Barrier", 0, 5);
  }
  return std::move(tracer).text();
}

std::vector<RunMeasurements> SearchRuns(const MadeUpSearch& search) {
  std::vector<RunMeasurements> runs;
  for (int64_t rank = 0; rank < search.root_of_ranks * search.root_of_ranks; ++rank) {
    RunName name;
    name.cell.machines = static_cast<double>(search.root_of_ranks * search.root_of_ranks);
    name.cell.size = search.size;
    name.rank = rank;
    name.run = "search";
    std::vector<TracedCall> calls = *ParseCallTrace(SearchTrace(search, rank), "search");
    for (TracedCall& call : calls) call.call_us = kCallUs;
    runs.push_back(*MeasureCalls(std::move(calls), "search", name));
  }
  return runs;
}

std::vector<RunMeasurements> SearchesOf(const std::vector<int64_t>& roots) {
  std::vector<RunMeasurements> runs;
  for (int64_t q : roots) {
    for (double size : {14, 16, 18}) {
      MadeUpSearch search;
      search.root_of_ranks = q;
      search.size = size;
      search.seed = static_cast<uint64_t>(q) * 100 + static_cast<uint64_t>(size);
      for (RunMeasurements& run : SearchRuns(search)) runs.push_back(std::move(run));
    }
  }
  return runs;
}

}  // namespace meridian
