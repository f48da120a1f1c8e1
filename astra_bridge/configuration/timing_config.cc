#include "astra_bridge/configuration/timing_config.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/config/config_value.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// The YAML library takes some 250 bytes of memory for each byte of a list.
constexpr size_t kMaxYamlBytes = size_t{4} << 20;
constexpr double kMaxTimeoutSeconds = 1e7;

std::optional<TimingModel> TimingModelFromName(absl::string_view name) {
  if (name == "analytical") return TimingModel::kAnalytical;
  if (name == "embedded") return TimingModel::kEmbedded;
  if (name == "astra") return TimingModel::kAstra;
  return std::nullopt;
}

// Returns a reader of the name of something, which `from_name` knows; errors list `names`.
template <typename Enum, typename T>
ConfigValue::Reader NameReader(std::optional<Enum> (*from_name)(absl::string_view),
                               absl::string_view names, T* result) {
  return [=](const ConfigValue& value) -> absl::Status {
    ASSIGN_OR_RETURN(const std::string name, value.Text());
    const std::optional<Enum> found = from_name(name);
    if (!found.has_value()) {
      return value.Error(absl::StrCat("is ", Printable(name), ", not one of ", names));
    }
    *result = *found;
    return absl::OkStatus();
  };
}

absl::StatusOr<int32_t> ReadRank(const ConfigValue& value) {
  ASSIGN_OR_RETURN(const int64_t rank, value.Integer("expected a whole number from 0 on", 0,
                                                     std::numeric_limits<int32_t>::max()));
  return static_cast<int32_t>(rank);
}

absl::StatusOr<std::vector<int32_t>> ReadRanks(const ConfigValue& value) {
  std::vector<int32_t> ranks;
  absl::flat_hash_set<int32_t> seen;
  RETURN_IF_ERROR(value.ForEachElement([&](const ConfigValue& element) -> absl::Status {
    ASSIGN_OR_RETURN(const int32_t rank, ReadRank(element));
    if (!seen.insert(rank).second) return element.Error(absl::StrCat(rank, " occurs twice"));
    ranks.push_back(rank);
    return absl::OkStatus();
  }));
  if (ranks.empty()) return value.Error("is empty");
  return ranks;
}

absl::StatusOr<RankToDevice> ReadRankToDevice(const ConfigValue& value) {
  RankToDevice map;
  if (value.IsList()) {
    RETURN_IF_ERROR(value.ForEachElement([&](const ConfigValue& element) {
      return ReadInto(&map[static_cast<int32_t>(map.size())], ReadRank)(element);
    }));
  } else {
    RETURN_IF_ERROR(
        value.ForEachMember([&](const std::string& key, const ConfigValue& member) -> absl::Status {
          int32_t rank = 0;
          if (!absl::SimpleAtoi(key, &rank) || rank < 0) return member.Error("the key is no rank");
          return ReadInto(&map[rank], ReadRank)(member);
        }));
  }
  if (map.empty()) return value.Error("is empty");
  return map;
}

absl::StatusOr<CollectiveAlgorithm> ReadAlgorithm(const ConfigValue& value) {
  ASSIGN_OR_RETURN(const std::string name, value.Text());
  const absl::StatusOr<CollectiveAlgorithm> algorithm = ParseCollectiveAlgorithm(name);
  if (!algorithm.ok()) return value.Error(algorithm.status().message());
  return algorithm;
}

absl::StatusOr<CollectiveChoices> ReadCollectives(const ConfigValue& value) {
  CollectiveChoices choices;
  RETURN_IF_ERROR(
      value.ForEachMember([&](const std::string& key, const ConfigValue& member) -> absl::Status {
        const std::optional<CollectiveKind> kind = TimedKindFromName(key);
        if (!kind.has_value() || *kind == CollectiveKind::kPointToPoint) {
          return member.Error(
              "not known; there are all-reduce, all-gather, reduce-scatter, all-to-all");
        }
        CollectiveChoice& choice = choices[*kind];
        const auto add_algorithm = [&](const ConfigValue& name) {
          return ReadInto(&choice.algorithms.emplace_back(), ReadAlgorithm)(name);
        };
        choice.in_every_dimension = member.IsScalar();
        if (choice.in_every_dimension) return add_algorithm(member);
        RETURN_IF_ERROR(member.ForEachElement(add_algorithm));
        return choice.algorithms.empty() ? member.Error("is empty") : absl::OkStatus();
      }));
  return choices;
}

class Reader {
 public:
  explicit Reader(absl::string_view source) : folder_(source.substr(0, source.rfind('/') + 1)) {}

  absl::StatusOr<TimingConfig> Read(const ConfigValue& document) {
    std::string system;
    RETURN_IF_ERROR(document.ReadMembers(
        {{"network_backend", [&](const ConfigValue& v) { return ReadBackend(v); }},
         {"topologies", [&](const ConfigValue& v) { return ReadTopologies(v); }},
         {"system", PathReader(&system)},
         {"corrections", PathReader(&config_.corrections)},
         {"rank_to_device", ReadInto(&config_.layout.rank_to_device, ReadRankToDevice)},
         {"groups", [&](const ConfigValue& v) { return ReadGroups(v); }},
         {"group_topologies", [](const ConfigValue&) { return absl::OkStatus(); }},
         {"folders", [&](const ConfigValue& v) { return ReadFolders(v); }},
         {"cache", NameReader(CacheModeFromName, "off, readonly, readwrite", &config_.cache)}}));
    for (auto& [key, topology] : config_.topologies) {
      if (topology.system.empty()) topology.system = system;
    }
    // All topologies are known now.
    const ConfigValue group_topologies = document.Find("group_topologies");
    if (group_topologies.exists()) RETURN_IF_ERROR(ReadGroupTopologies(group_topologies));
    return std::move(config_);
  }

 private:
  absl::Status ReadBackend(const ConfigValue& value) {
    return value.ReadMembers(
        {{"model", NameReader(TimingModelFromName, "analytical, embedded, astra", &config_.model)},
         {"astra", [&](const ConfigValue& v) { return ReadAstra(v); }}});
  }

  absl::Status ReadAstra(const ConfigValue& value) {
    return value.ReadMembers(
        {{"backend",
          [&](const ConfigValue& v) -> absl::Status {
            ASSIGN_OR_RETURN(const std::string backend, v.Text());
            if (backend == "analytical") return absl::OkStatus();
            return v.Error(absl::StrCat("is ", Printable(backend), ", not analytical"));
          }},
         {"congestion", NameReader(CongestionFromName, "aware, unaware", &config_.congestion)},
         {"mode", NameReader(TimingModeFromName, "isolated, snapshot", &config_.mode)},
         {"binary", PathReader(&config_.astra_binary)},
         {"timeout_s",
          [&](const ConfigValue& v) -> absl::Status {
            constexpr absl::string_view kReason = "expected a number above 0";
            ASSIGN_OR_RETURN(const double seconds, v.Number(kReason));
            // Written so that NaN fails too.
            if (!(seconds > 0)) return v.Error(kReason);
            if (seconds > kMaxTimeoutSeconds) return v.Error("is too long");
            config_.astra_timeout = absl::Seconds(seconds);
            return absl::OkStatus();
          }},
         {"collectives", ReadInto(&config_.collectives, ReadCollectives)}});
  }

  absl::Status ReadTopologies(const ConfigValue& value) {
    return value.ForEachMember([&](const std::string& key,
                                   const ConfigValue& member) -> absl::Status {
      if (key.empty()) return member.Error("the key is empty");
      FabricFiles& files = config_.topologies[key];
      if (member.IsScalar()) return PathReader(&files.network)(member);
      RETURN_IF_ERROR(member.ReadMembers(
          {{"network", PathReader(&files.network)},
           {"system", PathReader(&files.system)},
           {"rank_to_device", [&](const ConfigValue& v) {
              return ReadInto(&config_.layout.rank_to_device_by_topology[key], ReadRankToDevice)(v);
            }}}));
      return files.network.empty() ? member.Error("network is missing") : absl::OkStatus();
    });
  }

  absl::Status ReadGroups(const ConfigValue& value) {
    return value.ForEachMember([&](const std::string& key, const ConfigValue& member) {
      return ReadInto(&config_.layout.groups[key], ReadRanks)(member);
    });
  }

  absl::Status ReadGroupTopologies(const ConfigValue& value) {
    return value.ForEachMember(
        [&](const std::string& key, const ConfigValue& member) -> absl::Status {
          ASSIGN_OR_RETURN(const std::string topology, member.Text());
          if (config_.topologies.count(topology) == 0) {
            return member.Error(absl::StrCat(Printable(topology), " is none of the topologies"));
          }
          config_.layout.group_topologies[key] = topology;
          return absl::OkStatus();
        });
  }

  absl::Status ReadFolders(const ConfigValue& value) {
    return value.ReadMembers(
        {{"work", PathReader(&config_.work_folder)}, {"cache", PathReader(&config_.cache_folder)}});
  }

  // Returns a reader of a path relative to the file.
  ConfigValue::Reader PathReader(std::string* path) const {
    return [this, path](const ConfigValue& value) -> absl::Status {
      ASSIGN_OR_RETURN(const std::string text, value.Text());
      *path = ResolvePath(text, folder_);
      return absl::OkStatus();
    };
  }

  // The folder of the file, with a slash at its end; empty for the current one.
  std::string folder_;
  TimingConfig config_;
};

}  // namespace

std::optional<TimingMode> TimingModeFromName(absl::string_view name) {
  if (name == "isolated") return TimingMode::kIsolated;
  if (name == "snapshot") return TimingMode::kSnapshot;
  return std::nullopt;
}

std::optional<Congestion> CongestionFromName(absl::string_view name) {
  if (name == "aware") return Congestion::kAware;
  if (name == "unaware") return Congestion::kUnaware;
  return std::nullopt;
}

absl::StatusOr<TimingConfig> ParseTimingConfig(absl::string_view yaml, absl::string_view source) {
  ASSIGN_OR_RETURN(const ConfigValue document,
                   ConfigValue::FromYaml(yaml, source, kMaxYamlBytes, "a configuration"));
  return Reader(source).Read(document);
}

absl::StatusOr<TimingConfig> ReadTimingConfig(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseTimingConfig(file.bytes(), path);
}

}  // namespace meridian
