#include "workload_model/generate/ember_motif_text.h"

namespace meridian {

const char kEmberMotifSource[] =
    R"(// Motif $NAME$, for any number of ranks and any size. Made by workload_model generate.
#include <sst_config.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <queue>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mpi/embermpigen.h"
#include <sst/core/rng/mersenne.h>

namespace SST {
namespace Ember {

class Ember$NAME$Generator : public EmberMessagePassingGenerator {
 public:
  SST_ELI_REGISTER_SUBCOMPONENT(Ember$NAME$Generator, "ember", "$NAME$Motif",
                                SST_ELI_ELEMENT_VERSION(1, 0, 0), "Generated from measured calls",
                                SST::Ember::EmberGenerator)
  SST_ELI_DOCUMENT_PARAMS({"arg.seed", "Seed of the branches, the same on all ranks", "$SEED$"},
                          {"arg.size", "Size of the problem", "$SIZE$"},
                          {"arg.threads", "Threads of a rank, as in the model files", "$THREADS$"},
                          {"arg.exec_model", "Models of times", "$NAME$.exec.model"},
                          {"arg.msg_model", "Models of bytes", "$NAME$.msg.model"})

  Ember$NAME$Generator(SST::ComponentId_t id, Params& params)
      : EmberMessagePassingGenerator(id, params, "$NAME$"),
        random_(params.find<uint32_t>("arg.seed", $SEED$)),
        ranks_(size()),
        nodes_(ranks_ / $RANKS_PER_NODE$),
        size_(params.find<double>("arg.size", $SIZE$)) {
    const int threads = params.find<int>("arg.threads", $THREADS$);
    ReadModels(params.find<std::string>("arg.exec_model", "$NAME$.exec.model"), true, threads);
    ReadModels(params.find<std::string>("arg.msg_model", "$NAME$.msg.model"), false, threads);
$CLASSES$$GROUPS$  }

  // One callsite at a time: its call, then the computation until the next.
  bool generate(std::queue<EmberEvent*>& evQ) override {
    // What was waited for has ended when the queue is empty.
    if (has_waited_) requests_.clear();
    has_waited_ = false;
    for (; made_ < groups_.size(); ++made_) {
      if (!IsPart(made_)) continue;
      enQ_commCreate(evQ, GroupWorld, groups_[made_], &communicators_[made_]);
      ++made_;
      return false;
    }
    switch (class_) {
$DISPATCH$    }
    // A call that enqueues nothing would end the motif.
    if (evQ.empty()) enQ_compute(evQ, 0);
    return state_ == 0;
  }

 private:
$FLOWS$
  // A row of a model file: what it says, of a table the powers of size and nodes in each column.
  struct Row {
    std::string type;
    std::vector<double> numbers;
    std::vector<std::pair<int, int>> powers;
    size_t next = 0;
  };
  // The class of ranks, -1 for all; source and destination, of bytes the callsite and 0; and FIRST for
  // the first time, WHOLE for the time with the call at its end, LAST for what times that drift are in
  // the last iteration, as a multiple of their mean.
  using Key = std::tuple<int, int, int, std::string>;

  // Of a polynomial in a row of its own the numbers are power of size, power of nodes, coefficient.
  static void TakePowers(Row* row) {
    std::vector<double> numbers;
    numbers.swap(row->numbers);
    for (size_t i = 0; i + 2 < numbers.size(); i += 3) {
      row->powers.push_back({static_cast<int>(numbers[i]), static_cast<int>(numbers[i + 1])});
      row->numbers.push_back(numbers[i + 2]);
    }
  }

  // Reads "source destination threads [FIRST, WHOLE or LAST] TYPE numbers", of bytes without destination,
  // or a table of polynomials. Rows behind "class 1" are those of the second class of ranks.
  void ReadModels(const std::string& path, bool are_times, int threads) {
    static const std::map<std::string, size_t> kCounts = {
        {"CONSTANT", 1}, {"EXPONENTIAL", 4}, {"BILINEAR", 4}, {"NORMAL", 7}};
    std::ifstream file(path);
    if (!file) fatal(CALL_INFO, -1, "%s cannot be read\n", path.c_str());
    int of_class = -1;
    std::vector<std::pair<int, int>> powers;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string word;
      if (!(words >> word)) continue;
      if (word == "class") {
        words >> of_class;
        continue;
      }
      if (word.compare(0, 8, "callsite") == 0) {
        for (int x = 0, y = 0; words >> word;) {
          if (std::sscanf(word.c_str(), "%d,%d", &x, &y) == 2) powers.push_back({x, y});
        }
        continue;
      }
      int source = 0, destination = 0, of_threads = 0;
      std::istringstream(word) >> source;
      if (are_times) words >> destination;
      words >> of_threads;
      Row row;
      std::string role;
      row.type = "POLYNOMIAL";
      row.powers = powers;
      if (powers.empty()) words >> row.type;
      if (row.type == "FIRST" || row.type == "WHOLE" || row.type == "LAST") {
        role = row.type;
        words >> row.type;
      }
      for (double number = 0; words >> number;) row.numbers.push_back(number);
      if (row.type == "POLYNOMIAL" && powers.empty()) TakePowers(&row);
      const auto count = kCounts.find(row.type);
      const bool is_row = count != kCounts.end() ? row.numbers.size() == count->second
                          : row.type == "TRACE"  ? !row.numbers.empty()
                                                 : !row.powers.empty() && row.numbers.size() == row.powers.size();
      if (!is_row) fatal(CALL_INFO, -1, "%s: '%s' is no model\n", path.c_str(), line.c_str());
      if (of_threads == threads) rows_[Key(of_class, source, destination, role)] = row;
    }
  }

  // What a row says at these nodes and this size, 0 in place of less; `other` where there is none.
  double Value(int of_class, int source, int destination, const std::string& role, double other) {
    auto found = rows_.find(Key(of_class, source, destination, role));
    if (found == rows_.end()) found = rows_.find(Key(-1, source, destination, role));
    if (found == rows_.end()) return other;
    Row& row = found->second;
    const std::vector<double>& c = row.numbers;
    const double n = nodes_, s = size_;
    double value = c[0];
    if (row.type == "EXPONENTIAL" || row.type == "BILINEAR") {
      value = c[0] * n * s + c[1] * n + c[2] * s + c[3];
      if (row.type == "EXPONENTIAL") value = std::exp(value);
    } else if (row.type == "TRACE") {
      value = c[row.next++ % c.size()];
    } else if (row.type == "NORMAL") {
      // Beyond the largest share that was fitted, c[0], the last term goes on as its tangent.
      const double u = (c[1] != 0 ? s : std::exp2(s)) / n;
      const double last = c[0] > 0 && u > c[0] ? std::sqrt(c[0]) * (c[0] + 1.5 * (u - c[0]))
                                               : std::sqrt(u) * u;
      value = c[2] + c[3] * std::log2(n) + c[4] * std::sqrt(u) + c[5] * u + c[6] * last;
    } else if (row.type == "POLYNOMIAL") {
      value = 0;
      for (size_t i = 0; i < c.size(); ++i) {
        value += c[i] * std::pow(s, row.powers[i].first) * std::pow(n, row.powers[i].second);
      }
    }
    return value > 0 ? value : 0;
  }

  // The bytes of a callsite.
  int Bytes(int of_class, int callsite) {
    const double bytes = std::round(Value(of_class, callsite, 0, "", 0));
    if (!(bytes <= 2147483647)) fatal(CALL_INFO, -1, "callsite %d sends too much\n", callsite);
    return static_cast<int>(bytes);
  }

  // Goes on to another callsite, 0 for the end, and computes on the way.
  void Go(std::queue<EmberEvent*>& evQ, int next) {
    double us = next == 0 ? 0 : Value(class_, state_, next, "", 0);
    if (++taken_[std::make_pair(state_, next)] == 1 && next != 0) {
      const double call_us = std::max(0.0, Value(class_, state_, next, "WHOLE", us) - us);
      us = Value(class_, state_, next, "FIRST", us + call_us) - call_us;
    } else if (next != 0 && iterations_ > 1) {
      const double done = std::min(std::max((heads_ - 1.5) / (iterations_ - 1), 0.0), 1.0);
      us *= 1 + (Value(class_, state_, next, "LAST", 1) - 1) * (2 * done - 1);
    }
    enQ_compute(evQ, static_cast<uint64_t>(std::llround(1000 * std::min(std::max(us, 0.0), 1e12))));
    before_[2] = before_[1];
    before_[1] = before_[0];
    before_[0] = state_;
    state_ = next;
  }

  int64_t Whole(double number) { return std::llround(std::min(std::max(number, 0.0), 1e12)); }
  int Root() {
    const int root = static_cast<int>(std::lround(std::sqrt(ranks_)));
    if (root * root != size()) fatal(CALL_INFO, -1, "%d ranks are no square\n", size());
    return root;
  }
  int Share(int parts) {
    if (size() % parts != 0) fatal(CALL_INFO, -1, "%d ranks do not divide by %d\n", size(), parts);
    return size() / parts;
  }
  void CheckRow(int stride, int length) {
    if (size() % (stride * length) == 0) return;
    fatal(CALL_INFO, -1, "%d ranks have no rows of %d, every %d\n", size(), length, stride);
  }

  void AddRow(int stride, int length) {
    CheckRow(stride, length);
    std::vector<int> ranks;
    const int first = rank() - rank() / stride % length * stride;
    for (int i = 0; i < length; ++i) ranks.push_back(first + i * stride);
    groups_.push_back(ranks);
    communicators_.push_back(GroupWorld);
  }
  int Length(size_t row) { return static_cast<int>(groups_[row].size()); }
  // Whether a row is a part of the ranks, and not one alone.
  bool IsPart(size_t row) { return Length(row) > 1 && Length(row) < size(); }

  // The rank so many steps along a row; -1 for none.
  int Shifted(int stride, int length, bool wraps, int64_t step) {
    CheckRow(stride, length);
    const int64_t place = rank() / stride % length + step;
    if (!wraps && (place < 0 || place >= length)) return -1;
    return static_cast<int>(rank() + ((place % length + length) % length - rank() / stride % length) * stride);
  }
  int Transposed() { return rank() % Root() * Root() + rank() / Root(); }
  int Exchanged(int64_t step) {
    const int64_t other = rank() ^ (int64_t{1} << step);
    return other < size() ? static_cast<int>(other) : -1;
  }

  void Exchange(std::queue<EmberEvent*>& evQ, int to, int from, int bytes, uint32_t tag) {
    if (to == rank() && from == rank()) return;
    if (to >= 0 && from >= 0) {
      enQ_sendrecv(evQ, nullptr, bytes, CHAR, static_cast<RankID>(to), tag, nullptr, bytes, CHAR,
                   static_cast<RankID>(from), tag, GroupWorld, &response_);
    } else if (to >= 0) {
      enQ_send(evQ, nullptr, bytes, CHAR, static_cast<RankID>(to), tag, GroupWorld);
    } else if (from >= 0) {
      enQ_recv(evQ, nullptr, bytes, CHAR, static_cast<RankID>(from), tag, GroupWorld);
    }
  }

  // Events point to their requests, which a deque does not move.
  void Send(std::queue<EmberEvent*>& evQ, int to, int bytes, uint32_t tag, bool waits) {
    if (to < 0) return;
    const RankID target = static_cast<RankID>(to);
    if (waits) {
      enQ_send(evQ, nullptr, bytes, CHAR, target, tag, GroupWorld);
    } else {
      requests_.push_back(MessageRequest());
      enQ_isend(evQ, nullptr, bytes, CHAR, target, tag, GroupWorld, &requests_.back());
    }
  }
  // Traces do not say from whom: what comes first.
  void Receive(std::queue<EmberEvent*>& evQ, int most_bytes, bool waits) {
    if (waits) {
      enQ_recv(evQ, nullptr, most_bytes, CHAR, MP::AnySrc, MP::AnyTag, GroupWorld);
    } else {
      requests_.push_back(MessageRequest());
      enQ_irecv(evQ, nullptr, most_bytes, CHAR, MP::AnySrc, MP::AnyTag, GroupWorld, &requests_.back());
    }
  }
  void Wait(std::queue<EmberEvent*>& evQ) {
    for (MessageRequest& request : requests_) enQ_wait(evQ, &request);
    has_waited_ = true;
  }

  SST::RNG::MersenneRNG random_;
  const double ranks_;
  const double nodes_;
  const double size_;
  std::map<Key, Row> rows_;
  int class_ = 0;
  int state_ = 0;
  int before_[3] = {0, 0, 0};
  size_t made_ = 0;
  // Events hold references to both.
  std::vector<std::vector<int>> groups_;
  std::vector<Communicator> communicators_;
  int64_t heads_ = 0;
  double iterations_ = 0;
  std::map<int, int64_t> visits_;
  std::map<int, int64_t> peer_visits_;
  std::map<std::pair<int, int>, int64_t> taken_;
  std::deque<MessageRequest> requests_;
  bool has_waited_ = false;
  MessageResponse response_;
};

}  // namespace Ember
}  // namespace SST
)";

const char kEmberMotifSdl[] = R"(# Runs the motif $NAME$ on $NODES$ nodes: sst $NAME$.py
import sst
from sst.merlin.base import *
from sst.merlin.interface import *
from sst.merlin.topology import *
from sst.ember import *

PlatformDefinition.setCurrentPlatform("firefly-defaults")

# The network is yours to choose; this one is a single switch.
router = hr_router()
router.link_bw = "12.5GB/s"
router.flit_size = "8B"
router.xbar_bw = "18GB/s"
router.input_latency = "20ns"
router.output_latency = "20ns"
router.input_buf_size = "16kB"
router.output_buf_size = "16kB"
router.num_vns = 1
router.xbar_arb = "merlin.xbar_arb_lru"

topology = topoSingle()
topology.router = router
topology.num_ports = $NODES$
topology.link_latency = "500ns"

network = ReorderLinkControl()
network.link_bw = "12.5GB/s"
network.input_buf_size = "16kB"
network.output_buf_size = "16kB"

job = EmberMPIJob(0, $NODES$, $RANKS_PER_NODE$)
job.network_interface = network
job.addMotif("Init")
job.addMotif("$NAME$ seed=$SEED$ size=$SIZE$ exec_model=$NAME$.exec.model msg_model=$NAME$.msg.model")
job.addMotif("Fini")

system = System()
system.setTopology(topology)
system.allocateNodes(job, "linear")
system.build()
)";

}  // namespace meridian
