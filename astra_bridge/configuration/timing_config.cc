#include "astra_bridge/configuration/timing_config.h"

#include <functional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/tables/text_table.h"
#include "yaml-cpp/yaml.h"

namespace meridian {
namespace {

constexpr size_t kMaxYamlBytes = size_t{16} << 20;
constexpr double kMaxTimeoutSeconds = 1e7;

// A value of the document and the keys that lead to it.
class Value {
 public:
  Value(YAML::Node node, absl::string_view source, std::string keys)
      : node_(std::move(node)), source_(source), keys_(std::move(keys)) {}

  absl::Status Error(absl::string_view reason) const {
    return absl::InvalidArgumentError(
        absl::StrCat(source_, keys_.empty() ? "" : ": ", keys_, ": ", reason));
  }

  bool IsSequence() const { return node_.IsSequence(); }
  bool IsScalar() const { return node_.IsScalar(); }

  absl::StatusOr<std::string> Text() const {
    if (!node_.IsScalar() || node_.Scalar().empty()) return Error("expected one value");
    return node_.Scalar();
  }

  absl::StatusOr<int32_t> NumberFromZero() const {
    int32_t number = 0;
    if (!node_.IsScalar() || !absl::SimpleAtoi(node_.Scalar(), &number) || number < 0) {
      return Error("expected a whole number from 0 on");
    }
    return number;
  }

  absl::StatusOr<double> PositiveNumber() const {
    double number = 0;
    if (!node_.IsScalar() || !absl::SimpleAtod(node_.Scalar(), &number) || !(number > 0)) {
      return Error("expected a number above 0");
    }
    return number;
  }

  // Calls fn(key, value) for each member of a map, in file order.
  template <typename Function>
  absl::Status ForEachMember(Function fn) const {
    if (!node_.IsMap()) return Error("expected keys and values");
    absl::flat_hash_set<std::string> seen;
    for (const auto& member : node_) {
      if (!member.first.IsScalar()) return Error("has a key that is no text");
      const std::string key = member.first.Scalar();
      if (!seen.insert(key).second) return Error(absl::StrCat(Printable(key), " occurs twice"));
      RETURN_IF_ERROR(
          fn(key, Value(member.second, source_,
                        absl::StrCat(keys_, keys_.empty() ? "" : ".", Printable(key)))));
    }
    return absl::OkStatus();
  }

  template <typename Function>
  absl::Status ForEachElement(Function fn) const {
    if (!node_.IsSequence()) return Error("expected a list");
    size_t position = 0;
    for (const YAML::Node& element : node_) {
      RETURN_IF_ERROR(fn(Value(element, source_, absl::StrCat(keys_, "[", position++, "]"))));
    }
    return absl::OkStatus();
  }

 private:
  YAML::Node node_;
  absl::string_view source_;
  std::string keys_;
};

// What each key of a map does.
using Readers = std::map<std::string, std::function<absl::Status(const Value&)>>;

absl::Status ReadMembers(const Value& value, const Readers& readers) {
  return value.ForEachMember([&](const std::string& key, const Value& member) -> absl::Status {
    const auto reader = readers.find(key);
    if (reader != readers.end()) return reader->second(member);
    return member.Error(absl::StrCat(
        "not known; there are ",
        absl::StrJoin(readers, ", ",
                      [](std::string* out, const auto& known) { *out += known.first; })));
  });
}

std::optional<TimingModel> TimingModelFromName(absl::string_view name) {
  if (name == "analytical") return TimingModel::kAnalytical;
  if (name == "embedded") return TimingModel::kEmbedded;
  if (name == "astra") return TimingModel::kAstra;
  return std::nullopt;
}

// Reads the name of something with `from_name`, which knows `names`.
template <typename Enum>
absl::Status ReadName(const Value& value, std::optional<Enum> (*from_name)(absl::string_view),
                      absl::string_view names, Enum* result) {
  ASSIGN_OR_RETURN(const std::string name, value.Text());
  const std::optional<Enum> found = from_name(name);
  if (!found.has_value()) {
    return value.Error(absl::StrCat("is ", Printable(name), ", not one of ", names));
  }
  *result = *found;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> ReadRanks(const Value& value) {
  std::vector<int32_t> ranks;
  absl::flat_hash_set<int32_t> seen;
  RETURN_IF_ERROR(value.ForEachElement([&](const Value& element) -> absl::Status {
    ASSIGN_OR_RETURN(const int32_t rank, element.NumberFromZero());
    if (!seen.insert(rank).second) return element.Error(absl::StrCat(rank, " occurs twice"));
    ranks.push_back(rank);
    return absl::OkStatus();
  }));
  if (ranks.empty()) return value.Error("is empty");
  return ranks;
}

absl::StatusOr<RankToDevice> ReadRankToDevice(const Value& value) {
  RankToDevice map;
  if (value.IsSequence()) {
    RETURN_IF_ERROR(value.ForEachElement([&](const Value& element) -> absl::Status {
      const int32_t rank = static_cast<int32_t>(map.size());
      ASSIGN_OR_RETURN(map[rank], element.NumberFromZero());
      return absl::OkStatus();
    }));
  } else {
    RETURN_IF_ERROR(
        value.ForEachMember([&](const std::string& key, const Value& member) -> absl::Status {
          int32_t rank = 0;
          if (!absl::SimpleAtoi(key, &rank) || rank < 0) return member.Error("the key is no rank");
          ASSIGN_OR_RETURN(map[rank], member.NumberFromZero());
          return absl::OkStatus();
        }));
  }
  if (map.empty()) return value.Error("is empty");
  return map;
}

absl::StatusOr<CollectiveAlgorithm> ReadAlgorithm(const Value& value) {
  ASSIGN_OR_RETURN(const std::string name, value.Text());
  const absl::StatusOr<CollectiveAlgorithm> algorithm = ParseCollectiveAlgorithm(name);
  if (!algorithm.ok()) return value.Error(algorithm.status().message());
  return algorithm;
}

absl::StatusOr<CollectiveChoices> ReadCollectives(const Value& value) {
  CollectiveChoices choices;
  RETURN_IF_ERROR(
      value.ForEachMember([&](const std::string& key, const Value& member) -> absl::Status {
        const std::optional<CollectiveKind> kind = TimedKindFromName(key);
        if (!kind.has_value() || *kind == CollectiveKind::kPointToPoint) {
          return member.Error(
              "not known; there are all-reduce, all-gather, reduce-scatter, all-to-all");
        }
        CollectiveChoice& choice = choices[*kind];
        if (member.IsScalar()) {
          choice.in_every_dimension = true;
          ASSIGN_OR_RETURN(const CollectiveAlgorithm algorithm, ReadAlgorithm(member));
          choice.algorithms = {algorithm};
          return absl::OkStatus();
        }
        RETURN_IF_ERROR(member.ForEachElement([&](const Value& element) -> absl::Status {
          ASSIGN_OR_RETURN(const CollectiveAlgorithm algorithm, ReadAlgorithm(element));
          choice.algorithms.push_back(algorithm);
          return absl::OkStatus();
        }));
        return choice.algorithms.empty() ? member.Error("is empty") : absl::OkStatus();
      }));
  return choices;
}

class Reader {
 public:
  explicit Reader(absl::string_view source) {
    const size_t slash = source.rfind('/');
    if (slash != absl::string_view::npos) folder_ = std::string(source.substr(0, slash + 1));
  }

  absl::StatusOr<TimingConfig> Read(const Value& document) {
    std::string system;
    std::optional<Value> group_topologies;
    RETURN_IF_ERROR(ReadMembers(
        document,
        {{"network_backend", [&](const Value& v) { return ReadBackend(v); }},
         {"topologies", [&](const Value& v) { return ReadTopologies(v); }},
         {"system", [&](const Value& v) { return ReadPath(v, &system); }},
         {"corrections", [&](const Value& v) { return ReadPath(v, &config_.corrections); }},
         {"rank_to_device",
          [&](const Value& v) -> absl::Status {
            ASSIGN_OR_RETURN(config_.rank_to_device, ReadRankToDevice(v));
            return absl::OkStatus();
          }},
         {"groups", [&](const Value& v) { return ReadGroups(v); }},
         {"group_topologies",
          [&](const Value& v) {
            group_topologies.emplace(v);
            return absl::OkStatus();
          }},
         {"folders", [&](const Value& v) { return ReadFolders(v); }},
         {"cache", [&](const Value& v) {
            return ReadName(v, CacheModeFromName, "off, readonly, readwrite",
                            &config_.cache.emplace());
          }}}));
    for (auto& [key, topology] : config_.topologies) {
      if (topology.files.system.empty()) topology.files.system = system;
    }
    // All topologies are known now.
    if (group_topologies.has_value()) RETURN_IF_ERROR(ReadGroupTopologies(*group_topologies));
    return std::move(config_);
  }

 private:
  absl::Status ReadBackend(const Value& value) {
    return ReadMembers(value, {{"model",
                                [&](const Value& v) {
                                  return ReadName(v, TimingModelFromName,
                                                  "analytical, embedded, astra", &config_.model);
                                }},
                               {"astra", [&](const Value& v) { return ReadAstra(v); }}});
  }

  absl::Status ReadAstra(const Value& value) {
    return ReadMembers(
        value, {{"backend",
                 [&](const Value& v) -> absl::Status {
                   ASSIGN_OR_RETURN(const std::string backend, v.Text());
                   if (backend == "analytical") return absl::OkStatus();
                   return v.Error(absl::StrCat("is ", Printable(backend), ", not analytical"));
                 }},
                {"congestion",
                 [&](const Value& v) {
                   return ReadName(v, CongestionFromName, "aware, unaware", &config_.congestion);
                 }},
                {"mode",
                 [&](const Value& v) {
                   return ReadName(v, TimingModeFromName, "isolated, snapshot", &config_.mode);
                 }},
                {"binary", [&](const Value& v) { return ReadPath(v, &config_.astra_binary); }},
                {"timeout_s",
                 [&](const Value& v) -> absl::Status {
                   ASSIGN_OR_RETURN(const double seconds, v.PositiveNumber());
                   if (seconds > kMaxTimeoutSeconds) return v.Error("is too long");
                   config_.astra_timeout = absl::Seconds(seconds);
                   return absl::OkStatus();
                 }},
                {"collectives", [&](const Value& v) -> absl::Status {
                   ASSIGN_OR_RETURN(config_.collectives, ReadCollectives(v));
                   return absl::OkStatus();
                 }}});
  }

  absl::Status ReadTopologies(const Value& value) {
    return value.ForEachMember([&](const std::string& key, const Value& member) -> absl::Status {
      if (key.empty()) return member.Error("the key is empty");
      TopologyConfig& topology = config_.topologies[key];
      if (member.IsScalar()) return ReadPath(member, &topology.files.network);
      RETURN_IF_ERROR(ReadMembers(
          member,
          {{"network", [&](const Value& v) { return ReadPath(v, &topology.files.network); }},
           {"system", [&](const Value& v) { return ReadPath(v, &topology.files.system); }},
           {"rank_to_device", [&](const Value& v) -> absl::Status {
              ASSIGN_OR_RETURN(topology.rank_to_device, ReadRankToDevice(v));
              return absl::OkStatus();
            }}}));
      return topology.files.network.empty() ? member.Error("network is missing") : absl::OkStatus();
    });
  }

  absl::Status ReadGroups(const Value& value) {
    return value.ForEachMember([&](const std::string& key, const Value& member) -> absl::Status {
      ASSIGN_OR_RETURN(config_.groups[key], ReadRanks(member));
      return absl::OkStatus();
    });
  }

  absl::Status ReadGroupTopologies(const Value& value) {
    return value.ForEachMember([&](const std::string& key, const Value& member) -> absl::Status {
      ASSIGN_OR_RETURN(const std::string topology, member.Text());
      if (config_.topologies.count(topology) == 0) {
        return member.Error(absl::StrCat(Printable(topology), " is none of the topologies"));
      }
      config_.group_topologies[key] = topology;
      return absl::OkStatus();
    });
  }

  absl::Status ReadFolders(const Value& value) {
    return ReadMembers(
        value, {{"work", [&](const Value& v) { return ReadPath(v, &config_.work_folder); }},
                {"cache", [&](const Value& v) { return ReadPath(v, &config_.cache_folder); }}});
  }

  absl::Status ReadPath(const Value& value, std::string* path) const {
    ASSIGN_OR_RETURN(const std::string text, value.Text());
    *path = ResolvePath(text, folder_);
    return absl::OkStatus();
  }

  // Of the file, with a slash at its end; empty for the current one.
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
  if (yaml.size() > kMaxYamlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": too long for a configuration: ", yaml.size(), " bytes"));
  }
  // yaml-cpp reports by exceptions.
  try {
    return Reader(source).Read(Value(YAML::Load(std::string(yaml)), source, ""));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(source, ":", error.mark.line + 1, ": ",
                                                   Printable(error.msg), "; expected YAML"));
  }
}

absl::StatusOr<TimingConfig> ReadTimingConfig(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseTimingConfig(file.bytes(), path);
}

}  // namespace meridian
