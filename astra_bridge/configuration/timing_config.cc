#include "astra_bridge/configuration/timing_config.h"

#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

template <typename Enum>
struct Name {
  absl::string_view name;
  Enum value;
};
constexpr Name<TimingModel> kModels[] = {{"analytical", TimingModel::kAnalytical},
                                         {"embedded", TimingModel::kEmbedded},
                                         {"astra", TimingModel::kAstra}};
constexpr Name<TimingModel> kEngines[] = {{"analytical", TimingModel::kAnalytical},
                                          {"embedded", TimingModel::kEmbedded},
                                          {"sidecar", TimingModel::kAstra}};
constexpr Name<TimingMode> kModes[] = {{"isolated", TimingMode::kIsolated},
                                       {"snapshot", TimingMode::kSnapshot}};
constexpr Name<Congestion> kCongestions[] = {
    {"aware", Congestion::kAware}, {"unaware", Congestion::kUnaware}, {"fair", Congestion::kFair}};

// Sets *result to what has the name; else returns the names, for messages.
template <typename Names, typename T>
std::string FindNamed(const Names& names, absl::string_view name, T* result) {
  std::vector<absl::string_view> known;
  for (const auto& named : names) {
    known.push_back(named.name);
    if (named.name != name) continue;
    *result = named.value;
    return "";
  }
  return absl::StrJoin(known, ", ");
}

// Returns a reader of one of the names, which outlive it.
template <typename Names, typename T>
ConfigValue::Reader NameReader(const Names& names, T* result) {
  return [&names, result](const ConfigValue& value) -> absl::Status {
    ASSIGN_OR_RETURN(const std::string name, value.Text());
    const std::string others = FindNamed(names, name, result);
    if (others.empty()) return absl::OkStatus();
    return value.Error(absl::StrCat("is ", Printable(name), ", not one of ", others));
  };
}

template <typename Names, typename T>
absl::Status ApplyName(absl::string_view flag, const std::string& name, const Names& names,
                       T* result) {
  const std::string others = name.empty() ? "" : FindNamed(names, name, result);
  if (others.empty()) return absl::OkStatus();
  return InvalidArgument("--", flag, "=", name, " is none of ", others);
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
         {"cache", PathReader(&config_.cache_folder)}}));
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
    return value.ReadMembers({{"model", NameReader(kModels, &config_.model)},
                              {"astra", [&](const ConfigValue& v) { return ReadAstra(v); }}});
  }

  absl::Status ReadAstra(const ConfigValue& value) {
    return value.ReadMembers({{"backend",
                               [&](const ConfigValue& v) -> absl::Status {
                                 ASSIGN_OR_RETURN(const std::string backend, v.Text());
                                 if (backend == "analytical") return absl::OkStatus();
                                 return v.Error(
                                     absl::StrCat("is ", Printable(backend), ", not analytical"));
                               }},
                              {"congestion", NameReader(kCongestions, &config_.congestion)},
                              {"mode", NameReader(kModes, &config_.mode)},
                              {"binary", PathReader(&config_.astra_binary)},
                              {"timeout_s", [&](const ConfigValue& v) -> absl::Status {
                                 constexpr absl::string_view kReason = "expected a number above 0";
                                 ASSIGN_OR_RETURN(const double seconds, v.Number(kReason));
                                 // Written so that NaN fails too.
                                 if (!(seconds > 0)) return v.Error(kReason);
                                 if (seconds > kMaxTimeoutSeconds) return v.Error("is too long");
                                 config_.astra_timeout = absl::Seconds(seconds);
                                 return absl::OkStatus();
                               }}});
  }

  absl::Status ReadTopologies(const ConfigValue& value) {
    return value.ForEachMember(
        [&](const std::string& key, const ConfigValue& member) -> absl::Status {
          if (key.empty()) return member.Error("the key is empty");
          FabricFiles& files = config_.topologies[key];
          if (member.IsScalar()) return PathReader(&files.network)(member);
          RETURN_IF_ERROR(member.ReadMembers(
              {{"network", PathReader(&files.network)}, {"system", PathReader(&files.system)}}));
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

absl::StatusOr<TimingConfig> ParseTimingConfig(absl::string_view yaml, absl::string_view source) {
  ASSIGN_OR_RETURN(const ConfigValue document,
                   ConfigValue::FromYaml(yaml, source, kMaxYamlBytes, "a configuration"));
  return Reader(source).Read(document);
}

absl::StatusOr<TimingConfig> ReadTimingConfig(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseTimingConfig(file.bytes(), path);
}

absl::Status ApplyTimingFlags(const TimingFlags& flags, TimingConfig* config) {
  if (!flags.fabric.network.empty()) {
    config->topologies.clear();
    config->topologies[""] = {flags.fabric.network, "", flags.fabric.calibrated_network};
  }
  for (auto& [key, files] : config->topologies) {
    if (!flags.fabric.system.empty()) files.system = flags.fabric.system;
  }
  RETURN_IF_ERROR(ApplyName("engine", flags.engine, kEngines, &config->model));
  RETURN_IF_ERROR(ApplyName("mode", flags.mode, kModes, &config->mode));
  RETURN_IF_ERROR(ApplyName("congestion", flags.congestion, kCongestions, &config->congestion));
  // Written so that NaN fails too.
  if (!(flags.astra_timeout_s >= 0)) {
    return InvalidArgument("--astra_timeout_s=", flags.astra_timeout_s, " is no time above 0");
  }
  if (flags.astra_timeout_s > 0) config->astra_timeout = absl::Seconds(flags.astra_timeout_s);
  if (!flags.astra_binary.empty()) config->astra_binary = flags.astra_binary;
  if (!flags.corrections.empty()) config->corrections = flags.corrections;
  if (!flags.cache_folder.empty()) config->cache_folder = flags.cache_folder;
  return absl::OkStatus();
}

std::vector<std::string> FilesOf(const TimingConfig& config) {
  std::vector<std::string> files = {config.corrections};
  for (const auto& [key, topology] : config.topologies) {
    files.insert(files.end(), {topology.network, topology.system});
  }
  return files;
}

}  // namespace meridian
