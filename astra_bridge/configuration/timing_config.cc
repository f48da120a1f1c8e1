#include "astra_bridge/configuration/timing_config.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/corrections/corrections.h"
#include "xla_profiler/base/config/config_value.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// The YAML library takes some 250 bytes of memory for each byte of a list.
constexpr size_t kMaxYamlBytes = size_t{4} << 20;

// The file of the program that runs.
constexpr char kThisProgram[] = "/proc/self/exe";

template <typename Enum>
struct Name {
  absl::string_view name;
  Enum value;
};
constexpr Name<TimingModel> kModels[] = {{"analytical", TimingModel::kAnalytical},
                                         {"embedded", TimingModel::kEmbedded},
                                         {"astra", TimingModel::kAstra}};
constexpr Name<TimingMode> kModes[] = {{"isolated", TimingMode::kIsolated},
                                       {"snapshot", TimingMode::kSnapshot}};
constexpr Name<Congestion> kCongestions[] = {
    {"aware", Congestion::kAware}, {"unaware", Congestion::kUnaware}, {"fair", Congestion::kFair}};

// Returns a reader of one of the names, which outlive it.
template <typename Names, typename T>
ConfigValue::Reader NameReader(const Names& names, T* result) {
  return [&names, result](const ConfigValue& value) -> absl::Status {
    ASSIGN_OR_RETURN(const std::string name, value.Text());
    std::vector<absl::string_view> known;
    for (const auto& named : names) {
      known.push_back(named.name);
      if (named.name != name) continue;
      *result = named.value;
      return absl::OkStatus();
    }
    return value.Error(
        absl::StrCat("is ", Printable(name), ", not one of ", absl::StrJoin(known, ", ")));
  };
}

absl::StatusOr<std::shared_ptr<const FabricSet>> ReadFabrics(FileSystem& file_system,
                                                             const TimingConfig& config,
                                                             std::vector<std::string>* warnings) {
  if (config.topologies.empty()) {
    return InvalidArgument(
        "no network is given; use --network=F.yml, or topologies in the file of --config");
  }
  std::map<std::string, Fabric> fabrics;
  for (const auto& [key, files] : config.topologies) {
    ASSIGN_OR_RETURN(Fabric fabric, ReadFabric(file_system, files));
    if (!fabric.network.unknown_keys.empty()) warnings->push_back(fabric.network.unknown_keys);
    fabrics.emplace(key, std::move(fabric));
  }
  return std::make_shared<FabricSet>(std::move(fabrics));
}

}  // namespace

absl::StatusOr<TimingConfig> ParseTimingConfig(absl::string_view yaml, absl::string_view source) {
  ASSIGN_OR_RETURN(const ConfigValue document,
                   ConfigValue::FromYaml(yaml, source, kMaxYamlBytes, "a configuration"));
  // The folder of the file, with a slash at its end; empty for the current one.
  const std::string folder(source.substr(0, source.rfind('/') + 1));
  const auto path_reader = [&](std::string* path) -> ConfigValue::Reader {
    return [&folder, path](const ConfigValue& value) -> absl::Status {
      ASSIGN_OR_RETURN(const std::string text, value.Text());
      *path = ResolvePath(text, folder);
      return absl::OkStatus();
    };
  };
  TimingConfig config;
  const auto read_astra = [&](const ConfigValue& value) {
    return value.ReadMembers({{"congestion", NameReader(kCongestions, &config.congestion)},
                              {"mode", NameReader(kModes, &config.mode)}});
  };
  const auto read_topology = [&](const std::string& key,
                                 const ConfigValue& member) -> absl::Status {
    if (key.empty()) return member.Error("the key is empty");
    FabricFiles& files = config.topologies[key];
    if (member.IsScalar()) return path_reader(&files.network)(member);
    RETURN_IF_ERROR(member.ReadMembers(
        {{"network", path_reader(&files.network)}, {"system", path_reader(&files.system)}}));
    return files.network.empty() ? member.Error("network is missing") : absl::OkStatus();
  };
  std::string system;
  RETURN_IF_ERROR(document.ReadMembers(
      {{"network_backend",
        [&](const ConfigValue& value) {
          return value.ReadMembers(
              {{"model", NameReader(kModels, &config.model)}, {"astra", read_astra}});
        }},
       {"topologies", [&](const ConfigValue& value) { return value.ForEachMember(read_topology); }},
       {"system", path_reader(&system)},
       {"corrections", path_reader(&config.corrections)},
       {"cache", path_reader(&config.cache_folder)}}));
  for (auto& [key, topology] : config.topologies) {
    if (topology.system.empty()) topology.system = system;
  }
  return config;
}

absl::StatusOr<TimingConfig> ReadTimingConfig(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseTimingConfig(file.bytes(), path);
}

absl::StatusOr<TimingSetup> SetUpTiming(FileSystem& file_system, const TimingConfig& config) {
  TimingSetup setup;
  setup.congestion =
      config.model == TimingModel::kAnalytical ? Congestion::kUnaware : config.congestion;
  if (config.model == TimingModel::kAstra) {
    setup.warnings.push_back(
        "model: astra: the embedded engine, which gives the same times, is used");
  }
  ASSIGN_OR_RETURN(setup.fabrics, ReadFabrics(file_system, config, &setup.warnings));
  if (!config.cache_folder.empty()) {
    RETURN_IF_ERROR(file_system.CreateDirectories(config.cache_folder));
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> program, file_system.Map(kThisProgram));
    setup.cache = std::make_shared<TimingCache>(file_system, config.cache_folder,
                                                HashDigits(HashOfText(program->bytes())));
  }
  setup.timing = EmbeddedTiming(setup.fabrics, setup.congestion, setup.cache);
  if (config.corrections.empty()) return setup;
  ASSIGN_OR_RETURN(Corrections corrections, ReadCorrections(file_system, config.corrections));
  for (const auto& [key, files] : config.topologies) {
    ASSIGN_OR_RETURN(const Fabric* fabric, setup.fabrics->Find(key));
    if (files.calibrated_network.empty() || !fabric->network.has_links()) continue;
    corrections = corrections.OnlyOverhead();
  }
  setup.overhead_ns = corrections.overhead_ns;
  setup.timing = CorrectedTiming(std::move(setup.timing), std::move(corrections));
  return setup;
}

}  // namespace meridian
