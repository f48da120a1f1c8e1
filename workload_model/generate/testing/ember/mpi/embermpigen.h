// SPDX-License-Identifier: Apache-2.0
// In place of SST's Ember, whose functions it names as that does: generated motifs are compiled with it,
// and what they enqueue is written down.
#ifndef EMBER_MPI_EMBERMPIGEN_H_
#define EMBER_MPI_EMBERMPIGEN_H_

#include <cstdint>
#include <map>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define SST_ELI_REGISTER_SUBCOMPONENT(...)
#define SST_ELI_DOCUMENT_PARAMS(...)
#define CALL_INFO 0

namespace SST {

using ComponentId_t = uint64_t;

class Params {
 public:
  explicit Params(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  template <typename T>
  T find(const std::string& key, const T& fallback) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return fallback;
    T value = fallback;
    std::istringstream(found->second) >> value;
    return value;
  }

 private:
  std::map<std::string, std::string> values_;
};

namespace Ember {

namespace MP {
enum ReductionOperation { SUM };
constexpr uint32_t AnySrc = static_cast<uint32_t>(-1);
constexpr uint32_t AnyTag = static_cast<uint32_t>(-1);
}  // namespace MP

enum PayloadDataType { CHAR };
using Communicator = uint32_t;
using RankID = uint32_t;
using MessageRequest = void*;
struct MessageResponse {};
struct EmberEvent {};
constexpr Communicator GroupWorld = 0;

class EmberMessagePassingGenerator {
 public:
  EmberMessagePassingGenerator(ComponentId_t, Params& params, const std::string&)
      : rank_(params.find<int>("rank", 0)), size_(params.find<int>("ranks", 1)), groups_(1) {
    for (int rank = 0; rank < size_; ++rank) groups_[0].push_back(rank);
  }
  virtual ~EmberMessagePassingGenerator() = default;

  // Returns true at the end.
  virtual bool generate(std::queue<EmberEvent*>& queue) = 0;

  // What was enqueued, e.g. "sendrecv 256 to 1 from 3".
  const std::vector<std::string>& calls() const { return calls_; }

 protected:
  using Queue = std::queue<EmberEvent*>;

  int rank() const { return rank_; }
  int size() const { return size_; }
  template <typename... Parts>
  [[noreturn]] void fatal(int, int, const char* format, const Parts&...) {
    throw std::runtime_error(format);
  }

  void enQ_compute(Queue& queue, uint64_t ns) { Add(queue, "compute ", ns); }
  void enQ_commCreate(Queue& queue, Communicator, std::vector<int>& ranks, Communicator* made) {
    *made = static_cast<Communicator>(groups_.size());
    groups_.push_back(ranks);
    queue.push(nullptr);
  }
  void enQ_barrier(Queue& queue, Communicator group) { Collective(queue, "Barrier", 0, group); }
  void enQ_bcast(Queue& queue, void*, uint32_t bytes, PayloadDataType, int, Communicator group) {
    Collective(queue, "Bcast", bytes, group);
  }
  void enQ_reduce(Queue& queue, void*, void*, uint32_t bytes, PayloadDataType,
                  MP::ReductionOperation, int, Communicator group) {
    Collective(queue, "Reduce", bytes, group);
  }
  void enQ_allreduce(Queue& queue, void*, void*, uint32_t bytes, PayloadDataType,
                     MP::ReductionOperation, Communicator group) {
    Collective(queue, "Allreduce", bytes, group);
  }
  void enQ_allgather(Queue& queue, void*, int bytes, PayloadDataType, void*, int, PayloadDataType,
                     Communicator group) {
    Collective(queue, "Allgather", bytes, group);
  }
  void enQ_alltoall(Queue& queue, void*, int bytes, PayloadDataType, void*, int, PayloadDataType,
                    Communicator group) {
    Collective(queue, "Alltoall", bytes, group);
  }
  void enQ_send(Queue& queue, void*, uint32_t bytes, PayloadDataType, RankID to, uint32_t,
                Communicator) {
    Add(queue, "send ", bytes, " to ", to);
  }
  void enQ_recv(Queue& queue, void*, uint32_t bytes, PayloadDataType, RankID from, uint32_t,
                Communicator) {
    Add(queue, "recv ", bytes, " from ", static_cast<int>(from));
  }
  void enQ_isend(Queue& queue, void*, uint32_t bytes, PayloadDataType, RankID to, uint32_t,
                 Communicator, MessageRequest*) {
    Add(queue, "isend ", bytes, " to ", to);
  }
  void enQ_irecv(Queue& queue, void*, uint32_t bytes, PayloadDataType, RankID from, uint32_t,
                 Communicator, MessageRequest*) {
    Add(queue, "irecv ", bytes, " from ", static_cast<int>(from));
  }
  void enQ_wait(Queue& queue, MessageRequest*) { Add(queue, "wait"); }
  void enQ_sendrecv(Queue& queue, void*, uint32_t bytes, PayloadDataType, RankID to, uint32_t,
                    void*, uint32_t, PayloadDataType, RankID from, uint32_t, Communicator,
                    MessageResponse*) {
    Add(queue, "sendrecv ", bytes, " to ", to, " from ", from);
  }

 private:
  template <typename... Parts>
  void Add(Queue& queue, const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    calls_.push_back(text.str());
    queue.push(nullptr);
  }
  void Collective(Queue& queue, const char* name, int64_t bytes, Communicator group) {
    std::ostringstream members;
    for (const int rank : groups_.at(group)) members << " " << rank;
    Add(queue, name, " ", bytes, " of", members.str());
  }

  const int rank_;
  const int size_;
  std::vector<std::vector<int>> groups_;
  std::vector<std::string> calls_;
};

}  // namespace Ember
}  // namespace SST

#endif  // EMBER_MPI_EMBERMPIGEN_H_
