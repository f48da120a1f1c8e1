#include "astra_bridge/engine/testing/random_workload.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace meridian {
namespace {

class Maker {
 public:
  Maker(const RandomSimulationOptions& options, std::mt19937_64& random)
      : options_(options), random_(random) {}

  RandomSimulation Make() {
    simulation_.congestion = Chance(2) ? Congestion::kAware : Congestion::kUnaware;
    MakeNetwork();
    MakeSystem();
    npus_ = simulation_.network.npus();
    simulation_.workload.ranks.resize(npus_);
    if (options_.custom) MakeCustom();
    next_id_.assign(npus_, 1);
    last_ordered_.assign(npus_, 0);
    const int32_t operations = Between(1, options_.max_operations);
    for (int32_t i = 0; i < operations; ++i) AddOperation(i);
    if (options_.memory) AddMemory();
    for (RankWorkload& rank : simulation_.workload.ranks) {
      if (rank.nodes().empty()) rank.Add(WorkloadNode());
    }
    return std::move(simulation_);
  }

 private:
  int32_t Between(int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random_);
  }
  bool Chance(int32_t one_in) { return Between(1, one_in) == 1; }
  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[Between(0, static_cast<int32_t>(values.size()) - 1)];
  }

  void MakeNetwork() {
    const int32_t dimensions = Between(1, options_.max_dimensions);
    int32_t left = options_.max_npus;
    for (int32_t d = 0; d < dimensions && left >= 2; ++d) {
      NetworkDimension& dimension = simulation_.network.dimensions.emplace_back();
      dimension.shape = OneOf<BlockShape>(
          {BlockShape::kRing, BlockShape::kFullyConnected, BlockShape::kSwitch, BlockShape::kMesh});
      dimension.npus = Between(2, dimensions == 1 ? left : std::min(left, 4));
      left /= dimension.npus;
      dimension.bytes_per_ns =
          GibibytesPerSecondToBytesPerNs(OneOf<double>({1, 25, 50, 100, 400, 0.93132257}));
      dimension.latency_ns = OneOf<double>({0, 1, 10, 33.3, 250, 500, 936.25});
    }
  }

  CollectiveAlgorithm MakeAlgorithm(int32_t npus, CollectiveKind op) {
    CollectiveAlgorithm algorithm;
    if (options_.rings_only) return algorithm;
    const bool is_power_of_two = (npus & (npus - 1)) == 0;
    // In one dimension groups take the algorithm too, and have any number of members.
    const bool fits_all = simulation_.network.dimensions.size() > 1;
    switch (Between(0, 4)) {
      case 0:
        algorithm.kind = CollectiveAlgorithm::Kind::kDirect;
        break;
      case 1:
        algorithm.kind = CollectiveAlgorithm::Kind::kDirect;
        algorithm.window = Between(1, 3);
        break;
      case 2:
        if (is_power_of_two && fits_all && op != CollectiveKind::kAllToAll) {
          algorithm.kind = CollectiveAlgorithm::Kind::kHalvingDoubling;
        }
        break;
      default:
        break;
    }
    return algorithm;
  }

  void MakeSystem() {
    SystemConfig& system = simulation_.system;
    system.preferred_dataset_splits = OneOf<int32_t>({1, 1, 2, 3, 4, 7});
    // As many chunks at once as there are: fewer may hold up each other in several dimensions.
    system.active_chunks_per_dimension = simulation_.network.dimensions.size() == 1
                                             ? OneOf<int32_t>({1, 1, 2, 3, 4})
                                             : 2 * system.preferred_dataset_splits;
    system.endpoint_delay_ns = OneOf<int64_t>({1, 5, 10, 10, 100, 1000});
    system.local_memory_bandwidth = OneOf<double>({0, 50, 1600});
    system.collective_optimization = Chance(2) ? CollectiveOptimization::kBaseline
                                               : CollectiveOptimization::kLocalBandwidthAware;
    for (int op = 0; op < kSimulatedCollectives; ++op) {
      for (const NetworkDimension& dimension : simulation_.network.dimensions) {
        system.algorithms[op].push_back(
            MakeAlgorithm(dimension.npus, static_cast<CollectiveKind>(op)));
      }
    }
    system.roofline_enabled = system.local_memory_bandwidth > 0 && Chance(3);
    system.peak_performance = OneOf<double>({0.5, 100});
  }

  // The last kind keeps its algorithms, so that one fits any number of ranks.
  void MakeCustom() {
    simulation_.system.preferred_dataset_splits = 1;
    for (int op = 0; op + 1 < kSimulatedCollectives; ++op) {
      if (Chance(3)) continue;
      int32_t size = npus_;
      while (size > 3 && Chance(2)) --size;
      if (npus_ % size != 0) size = npus_;
      simulation_.system.custom[op] = "custom";
      simulation_.workload.custom[op] = MakeCustomAlgorithm(size);
    }
  }

  // Messages and computations in an order in which all come to an end, with ids in no order.
  std::vector<RankWorkload> MakeCustomAlgorithm(int32_t size) {
    std::vector<RankWorkload> members(size);
    const auto add = [&](int32_t member, WorkloadNode node) {
      std::vector<uint64_t> dependencies;
      for (const WorkloadNode& earlier : members[member].nodes()) {
        if (Chance(4)) dependencies.push_back(earlier.id);
      }
      // Unique, since the factor has no divisor in common with the modulus.
      constexpr uint64_t kFactor = 7919, kModulus = 10007;
      node.id = (members[member].nodes().size() * kFactor + 17) % kModulus;
      members[member].Add(node, dependencies);
    };
    const int32_t operations = Between(1, 6 * size);
    for (int32_t i = 0; i < operations; ++i) {
      const int32_t source = Between(0, size - 1);
      const int32_t destination = (source + Between(1, size - 1)) % size;
      WorkloadNode node;
      node.duration_ns = OneOf<int64_t>({0, 1000, 5000});
      if (Chance(4)) add(source, node);
      node.tag = i;
      node.bytes = OneOf<int64_t>({1000, 4096, 4096, 1 << 20});
      node.type = WorkloadNodeType::kSend;
      node.peer = destination;
      add(source, node);
      node.type = WorkloadNodeType::kReceive;
      node.peer = source;
      add(destination, node);
    }
    for (int32_t member = 0; member < size; ++member) {
      if (members[member].nodes().empty()) add(member, WorkloadNode());
    }
    return members;
  }

  // Adds a node to a rank. Collectives and sends follow each other, so that all ranks issue what
  // they share in one order; other dependencies are random.
  void Add(int32_t rank, WorkloadNode node) {
    node.id = next_id_[rank]++;
    std::vector<uint64_t> dependencies;
    const bool is_ordered =
        node.type == WorkloadNodeType::kCollective || node.type == WorkloadNodeType::kSend;
    if (is_ordered) {
      if (last_ordered_[rank] != 0) dependencies.push_back(last_ordered_[rank]);
      last_ordered_[rank] = node.id;
    }
    if (node.id > 1 && !Chance(3)) {
      dependencies.push_back(static_cast<uint64_t>(Between(1, static_cast<int32_t>(node.id) - 1)));
    }
    simulation_.workload.ranks[rank].Add(std::move(node), dependencies);
  }

  void AddOperation(int32_t number) {
    switch (Between(0, 5)) {
      case 0:
        AddCompute();
        return;
      case 1:
        AddSend(number);
        return;
      case 2:
        AddGroupCollectives();
        return;
      default:
        AddCollective(kWorldGroup, RandomCollective(npus_));
        return;
    }
  }

  void AddCompute() {
    WorkloadNode node;
    node.duration_ns = OneOf<int64_t>({0, 1000, 2000, 50000});
    node.operations = OneOf<int64_t>({1'000'000, 3'000'000'000});
    node.tensor_bytes = OneOf<int64_t>({100'000, 7'000'000});
    for (int32_t rank = 0; rank < npus_; ++rank) {
      if (Chance(2)) Add(rank, node);
    }
  }

  void AddMemory() {
    RemoteMemory& memory = simulation_.system.remote_memory;
    memory.kind = OneOf<RemoteMemory::Kind>(
        {RemoteMemory::Kind::kPerNpu, RemoteMemory::Kind::kPerNode, RemoteMemory::Kind::kPool});
    memory.latency_ns = OneOf<int64_t>({1, 100, 1000});
    memory.bytes_per_ns = OneOf<int64_t>({1, 7, 50});
    memory.npus_per_node = Between(1, npus_);
    memory.nodes = (npus_ + memory.npus_per_node - 1) / memory.npus_per_node;
    WorkloadNode access;
    access.type = WorkloadNodeType::kMemory;
    for (int32_t rank = 0; rank < npus_; ++rank) {
      for (int32_t i = Between(0, 4); i > 0; --i) {
        access.tensor_bytes = OneOf<int64_t>({1, 4096, 4096, 99'999});
        access.on_host = Chance(4);
        access.duration_ns = 3000;
        Add(rank, access);
      }
      std::vector<uint64_t> all(next_id_[rank] - 1);
      std::iota(all.begin(), all.end(), 1);
      WorkloadNode last;
      last.id = next_id_[rank]++;
      last.operations = last.tensor_bytes = 1'000'000;
      simulation_.workload.ranks[rank].Add(std::move(last), all);
    }
  }

  void AddSend(int32_t tag) {
    const int32_t source = Between(0, npus_ - 1);
    const int32_t destination = (source + Between(1, npus_ - 1)) % npus_;
    WorkloadNode node;
    node.tag = tag;
    node.bytes = OneOf<int64_t>({1000, 4096, 1 << 20});
    node.type = WorkloadNodeType::kSend;
    node.peer = destination;
    Add(source, node);
    node.type = WorkloadNodeType::kReceive;
    node.peer = source;
    Add(destination, node);
  }

  WorkloadNode RandomCollective(size_t size) {
    WorkloadNode node;
    node.type = WorkloadNodeType::kCollective;
    size_t custom_size = size;
    do {
      const int op = Between(0, kSimulatedCollectives - 1);
      node.op = static_cast<CollectiveKind>(op);
      custom_size = simulation_.workload.custom[op].size();
    } while (custom_size != 0 && custom_size != size);
    node.bytes = OneOf<int64_t>({100, 4096, 65536, 1 << 20, 12345678});
    return node;
  }

  // A collective of some ranks, or of each part of a partition.
  void AddGroupCollectives() {
    std::vector<int32_t> ranks(npus_);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random_);
    std::vector<int32_t> sizes;
    for (int32_t size = 2; size < npus_; ++size) {
      if (!options_.whole_partitions || npus_ % size == 0) sizes.push_back(size);
    }
    if (sizes.empty()) return;
    const int32_t size = OneOf(sizes);
    const int32_t parts = options_.whole_partitions ? npus_ / size : 1;
    const WorkloadNode node = RandomCollective(size);
    for (int32_t part = 0; part < parts; ++part) {
      const int32_t id = static_cast<int32_t>(simulation_.workload.groups.size()) + 1;
      simulation_.workload.groups[id].assign(ranks.begin() + part * size,
                                             ranks.begin() + (part + 1) * size);
      if (options_.custom) {
        std::sort(simulation_.workload.groups[id].begin(), simulation_.workload.groups[id].end());
      }
      AddCollective(id, node);
    }
  }

  void AddCollective(int32_t group, WorkloadNode node) {
    node.group = group;
    for (int32_t rank = 0; rank < npus_; ++rank) {
      const std::vector<int32_t>* const members =
          group == kWorldGroup ? nullptr : &simulation_.workload.groups[group];
      if (members == nullptr ||
          std::find(members->begin(), members->end(), rank) != members->end()) {
        Add(rank, node);
      }
    }
  }

  const RandomSimulationOptions options_;
  std::mt19937_64& random_;
  RandomSimulation simulation_;
  int32_t npus_ = 0;
  // By rank.
  std::vector<uint64_t> next_id_;
  std::vector<uint64_t> last_ordered_;
};

}  // namespace

RandomSimulation MakeRandomSimulation(const RandomSimulationOptions& options,
                                      std::mt19937_64& random) {
  return Maker(options, random).Make();
}

}  // namespace meridian
