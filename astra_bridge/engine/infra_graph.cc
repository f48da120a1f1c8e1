#include "astra_bridge/engine/infra_graph.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/links_config.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Bounds of what a hostile file makes us do: counts multiply, and an alias repeats what it names.
constexpr int64_t kMaxNodes = int64_t{4} * kMaxNpus;
constexpr int64_t kMaxWork = int64_t{16} * kMaxLinks;
constexpr int64_t kWorkOfEntry = 128;
constexpr int kMaxLevels = 5;
constexpr size_t kMaxTextBytes = 100;

struct Unit {
  absl::string_view name;
  // One of it in bytes per ns, or in ns; 0: not known.
  double value;
};

constexpr Unit kBandwidthUnits[] = {
    {"gigabits_per_second", 0.125}, {"gigabytes_per_second", 1}, {"gigatransfers_per_second", 0}};
constexpr Unit kLatencyUnits[] = {{"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
constexpr absl::string_view kTopKeys[] = {"name",           "description", "devices",
                                          "links",          "instances",   "edges",
                                          "infrastructure", "annotations"};
constexpr absl::string_view kChoices[] = {"xpu", "nic",    "switch", "port",
                                          "cpu", "memory", "custom", "device"};

// Things of one kind, each with a member `name`, in file order.
template <typename T>
struct NamedList {
  std::vector<T> list;
  absl::flat_hash_map<std::string, size_t> positions;

  absl::Status Add(const ConfigValue& where, T thing) {
    if (!positions.try_emplace(thing.name, list.size()).second) {
      return where.ErrorAtLine(absl::StrCat("the name ", thing.name, " is there twice"));
    }
    list.push_back(std::move(thing));
    return absl::OkStatus();
  }

  // The error says what it would be, e.g. "instance", and which there are.
  absl::StatusOr<const T*> Find(const ConfigValue& where, absl::string_view what,
                                absl::string_view name) const {
    const auto found = positions.find(name);
    if (found != positions.end()) return &list[found->second];
    std::string names = list.empty() ? " is none" : " are ";
    for (size_t i = 0; i < std::min<size_t>(list.size(), 8); ++i) {
      absl::StrAppend(&names, i == 0 ? "" : ", ", list[i].name);
    }
    return where.ErrorAtLine(absl::StrCat(what, " ", name, " does not exist; there", names,
                                          list.size() > 8 ? ", ..." : ""));
  }
};

// What the links of a name have in common; the ends are not set.
struct LinkKind {
  std::string name;
  NetworkLink link;
};

struct Entry {
  std::string name;
  ConfigValue value;
};

struct Device;

// A component, `count` times. Its nodes are consecutive in the device that it is in: `stride` of
// them each time, which are 1 or all those of a device, from `first` on.
struct Component {
  std::string name;
  int64_t count = 1;
  int64_t first = 0;
  int64_t stride = 1;
  // The device that it is; null for an NPU or a switch.
  std::shared_ptr<Device> device;
};

// A device with all that is in it. The infrastructure is one, too: its components are instances.
struct Device {
  std::string name;
  NamedList<Component> components;
  // By node.
  std::vector<bool> is_npu;
  // Links between nodes, and the position of that between two, the smaller of which is first.
  std::vector<NetworkLink> links;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, size_t> link_between;
};

// Returns the name of a device's node, e.g. "host.0.xpu.3".
std::string NodeName(const Device* device, int64_t node) {
  std::string name;
  while (device != nullptr) {
    const Component& component = *std::prev(
        absl::c_upper_bound(device->components.list, node,
                            [](int64_t n, const Component& next) { return n < next.first; }));
    node -= component.first;
    absl::StrAppend(&name, name.empty() ? "" : ".", component.name, ".", node / component.stride);
    node %= component.stride;
    device = component.device.get();
  }
  return name;
}

absl::StatusOr<std::string> TextOf(const ConfigValue& map, absl::string_view key) {
  const ConfigValue value = map.Find(key);
  if (!value.exists()) return map.ErrorAtLine(absl::StrCat("has no ", key));
  absl::StatusOr<std::string> text = value.Text();
  if (text.ok() && text->size() <= kMaxTextBytes && Printable(*text) == *text) return text;
  return value.ErrorAtLine(
      absl::StrCat("expected 1 to ", kMaxTextBytes, " characters, all of them printable"));
}

// Reads a bandwidth or latency, e.g. { choice: us, us: 2 }; what does not exist stays as it is.
absl::Status ReadQuantity(const ConfigValue& value, absl::Span<const Unit> units, double min,
                          double max, double* quantity) {
  if (!value.exists()) return absl::OkStatus();
  const ConfigValue choice = value.Find("choice");
  std::vector<absl::string_view> keys;
  std::vector<Unit> chosen;
  for (const Unit& unit : units) {
    keys.push_back(unit.name);
    const bool is_chosen =
        choice.exists() ? choice.Text().value_or("") == unit.name : value.Find(unit.name).exists();
    if (is_chosen) chosen.push_back(unit);
  }
  if (chosen.size() != 1) {
    return value.ErrorAtLine(absl::StrCat("expected one choice of ", absl::StrJoin(keys, ", ")));
  }
  keys.push_back("choice");
  RETURN_IF_ERROR(CheckKeys(value, keys));
  const auto [name, unit] = chosen[0];
  if (unit == 0) {
    return value.ErrorAtLine(absl::StrCat(
        name, " is no bandwidth: lanes and encoding are not known; write gigabits_per_second ",
        "instead, e.g. 252 for 16 lanes of PCIe at 16 GT/s"));
  }
  const absl::StatusOr<double> number = value.Find(name).Number();
  // Written so that NaN fails too.
  if (!number.ok() || !(*number * unit >= min && *number * unit <= max)) {
    return value.ErrorAtLine(
        absl::StrCat(name, ": expected a number from ", min / unit, " to ", max / unit));
  }
  *quantity = *number * unit;
  return absl::OkStatus();
}

absl::Status ReadLinkKind(const ConfigValue& value, NamedList<LinkKind>* kinds) {
  LinkKind kind;
  ASSIGN_OR_RETURN(kind.name, TextOf(value, "name"));
  // Without a bandwidth it limits nothing.
  kind.link.bytes_per_ns = kMaxBytesPerNs;
  const ConfigValue physical = value.Find("physical");
  if (physical.exists()) RETURN_IF_ERROR(CheckKeys(physical, {"bandwidth", "latency"}));
  RETURN_IF_ERROR(ReadQuantity(physical.Find("bandwidth"), kBandwidthUnits, kMinBytesPerNs,
                               kMaxBytesPerNs, &kind.link.bytes_per_ns));
  RETURN_IF_ERROR(ReadQuantity(physical.Find("latency"), kLatencyUnits, 0, kMaxLatencyNs,
                               &kind.link.latency_ns));
  return kinds->Add(value, std::move(kind));
}

// The numbers first, first + step, ...
struct Slice {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// Returns which of `count` "xpu", "xpu[2]", "xpu[0:4]", "xpu[::2]" or "xpu[-1]" selects in Python.
// Unlike there, it is an error to select none, or one that does not exist.
absl::StatusOr<Slice> ReadSlice(const ConfigValue& where, absl::string_view text, int64_t count) {
  const size_t open = text.find('[');
  if (open == text.npos) return Slice{0, 1, count};
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::StripSuffix(text.substr(open + 1), "]"), ':');
  int32_t numbers[3] = {0, 0, 1};
  bool is_slice = text.back() == ']' && parts.size() <= 3;
  for (size_t i = 0; is_slice && i < parts.size(); ++i) {
    const bool is_left_out = parts[i].empty() && parts.size() > 1;
    is_slice = is_left_out || absl::SimpleAtoi(parts[i], &numbers[i]);
  }
  const auto from_start = [&](int64_t number) { return number < 0 ? number + count : number; };
  Slice slice{from_start(numbers[0]), numbers[2], 1};
  if (!is_slice || slice.step == 0) {
    return where.ErrorAtLine(absl::StrCat(text, ": expected e.g. xpu, xpu[2] or xpu[0:8:2]"));
  }
  if (parts.size() > 1) {
    const int64_t sign = slice.step > 0 ? 1 : -1;
    if (parts[0].empty()) slice.first = sign > 0 ? 0 : count - 1;
    const int64_t end = sign > 0 ? count : -1;
    const int64_t stop = parts[1].empty() ? end : from_start(numbers[1]);
    slice.count = (stop - slice.first + slice.step - sign) / slice.step;  // Rounded up.
  }
  const int64_t last = slice.first + (slice.count - 1) * slice.step;
  const bool exist = std::min(slice.first, last) >= 0 && std::max(slice.first, last) < count;
  if (slice.count > 0 && exist) return slice;
  return where.ErrorAtLine(
      absl::StrCat(text, slice.count > 0 ? ": there are only " : ": selects none of ", count));
}

class InfraGraphReader {
 public:
  absl::StatusOr<Device> Read(const ConfigValue& infrastructure) {
    RETURN_IF_ERROR(ForEachEntry(
        infrastructure, "devices", {"name", "description", "components", "links", "edges"},
        [&](const ConfigValue& value) {
          const absl::StatusOr<std::string> name = TextOf(value, "name");
          return name.ok() ? devices_.Add(value, Entry{*name, value}) : name.status();
        }));
    return ReadDevice(Entry{"", infrastructure}, 0);
  }

 private:
  absl::Status Spend(const ConfigValue& where, int64_t work) {
    work_ += work;
    if (work_ <= kMaxWork) return absl::OkStatus();
    return where.ErrorAtLine("the lists and edges up to here make too many components and pairs");
  }

  // Reads each entry of a list, which may be missing; entries have no other keys than these.
  absl::Status ForEachEntry(const ConfigValue& map, absl::string_view list_key,
                            absl::Span<const absl::string_view> keys,
                            absl::FunctionRef<absl::Status(const ConfigValue&)> read) {
    const ConfigValue list = map.Find(list_key);
    if (!list.exists()) return absl::OkStatus();
    if (!list.IsList()) return list.ErrorAtLine("expected a list");
    return list.ForEachElement([&](const ConfigValue& entry) -> absl::Status {
      RETURN_IF_ERROR(Spend(entry, kWorkOfEntry));
      RETURN_IF_ERROR(CheckKeys(entry, keys));
      return read(entry);
    });
  }

  // Reads a device that is in so many others; one in none is the infrastructure.
  absl::StatusOr<Device> ReadDevice(const Entry& entry, int level) {
    Device device;
    device.name = entry.name;
    const auto read_component = [&](const ConfigValue& value) {
      return ReadComponent(value, level, &device);
    };
    RETURN_IF_ERROR(level == 0
                        ? ForEachEntry(entry.value, "instances",
                                       {"name", "description", "device", "count"}, read_component)
                        : ForEachEntry(entry.value, "components",
                                       {"name", "description", "count", "choice", "xpu", "nic",
                                        "switch", "port", "cpu", "memory", "custom", "device"},
                                       read_component));
    if (device.is_npu.empty()) {
      return entry.value.ErrorAtLine(level == 0 ? "has no instances" : "has no components");
    }
    NamedList<LinkKind> kinds;
    RETURN_IF_ERROR(
        ForEachEntry(entry.value, "links", {"name", "description", "physical"},
                     [&](const ConfigValue& value) { return ReadLinkKind(value, &kinds); }));
    RETURN_IF_ERROR(ForEachEntry(
        entry.value, "edges", {"ep1", "ep2", "scheme", "link"},
        [&](const ConfigValue& edge) { return ReadEdge(edge, level == 0, kinds, &device); }));
    return device;
  }

  absl::Status ReadComponent(const ConfigValue& value, int level, Device* device) {
    Component component;
    ASSIGN_OR_RETURN(component.name, TextOf(value, "name"));
    // An instance is a device of another name, a component of choice device that of its name.
    std::string choice = "device";
    std::string inner = component.name;
    if (level == 0) {
      ASSIGN_OR_RETURN(inner, TextOf(value, "device"));
    } else {
      ASSIGN_OR_RETURN(choice, TextOf(value, "choice"));
    }
    if (!absl::c_linear_search(kChoices, choice)) {
      return value.Find("choice").ErrorAtLine(
          absl::StrCat("expected one of ", absl::StrJoin(kChoices, ", ")));
    }
    if (choice == "device") {
      ASSIGN_OR_RETURN(const Entry* entry, devices_.Find(value, "device", inner));
      if (level == kMaxLevels) {
        return value.ErrorAtLine(absl::StrCat("device ", inner, " is more than ", kMaxLevels,
                                              " devices deep; does it contain itself?"));
      }
      ASSIGN_OR_RETURN(Device read, ReadDevice(*entry, level + 1));
      component.device = std::make_shared<Device>(std::move(read));
      component.stride = component.device->is_npu.size();
    }
    component.first = device->is_npu.size();
    const absl::StatusOr<int64_t> count = value.Find("count").Integer("", 1, kMaxNodes);
    if (!count.ok() || component.first + *count * component.stride > kMaxNodes) {
      return value.ErrorAtLine(absl::StrCat("expected a count from 1 on, and at most ", kMaxNodes,
                                            " components in all"));
    }
    component.count = *count;
    if (component.device == nullptr) {
      device->is_npu.resize(component.first + component.count, choice == "xpu");
    } else {
      RETURN_IF_ERROR(AppendDevices(value, *component.device, component.count, device));
    }
    return device->components.Add(value, std::move(component));
  }

  absl::Status AppendDevices(const ConfigValue& where, const Device& inner, int64_t count,
                             Device* device) {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t first = static_cast<int32_t>(device->is_npu.size());
      device->is_npu.insert(device->is_npu.end(), inner.is_npu.begin(), inner.is_npu.end());
      for (const NetworkLink& link : inner.links) {
        RETURN_IF_ERROR(Join(where, first + link.ends[0], first + link.ends[1], link, device));
      }
    }
    return absl::OkStatus();
  }

  // Returns the nodes that an end of an edge selects: { instance: "host[0:2]", component: nic }, or
  // in a device { component: "nic[0]" } or { device: card, component: "port[0]" }.
  absl::StatusOr<std::vector<int32_t>> Select(const ConfigValue& edge, absl::string_view end_key,
                                              absl::string_view outer_key, const Device* device) {
    const ConfigValue end = edge.Find(end_key);
    if (!end.exists()) return edge.ErrorAtLine(absl::StrCat("has no ", end_key));
    RETURN_IF_ERROR(CheckKeys(end, {outer_key, "component"}));
    std::vector<int32_t> nodes = {0};
    absl::string_view what = outer_key == "instance" ? "instance" : "component";
    for (const absl::string_view key : {outer_key, absl::string_view("component")}) {
      const ConfigValue where = end.Find(key);
      if (key == "device" && !where.exists()) continue;
      ASSIGN_OR_RETURN(const std::string path, TextOf(end, key));
      for (const absl::string_view part : absl::StrSplit(path, '.')) {
        const absl::string_view name = part.substr(0, part.find('['));
        if (device == nullptr) {
          return where.ErrorAtLine(absl::StrCat(path, ": what is before ", name, " is no device"));
        }
        // Paths may begin with the name of the device that they are in.
        if (name == device->name && !device->components.positions.contains(name)) continue;
        ASSIGN_OR_RETURN(const Component* component, device->components.Find(where, what, name));
        ASSIGN_OR_RETURN(const Slice slice, ReadSlice(where, part, component->count));
        RETURN_IF_ERROR(Spend(where, static_cast<int64_t>(nodes.size()) * slice.count));
        std::vector<int32_t> selected;
        for (const int32_t node : nodes) {
          for (int64_t i = 0; i < slice.count; ++i) {
            const int64_t number = slice.first + i * slice.step;
            selected.push_back(
                static_cast<int32_t>(node + component->first + number * component->stride));
          }
        }
        nodes = std::move(selected);
        device = component->device.get();
        what = "component";
      }
    }
    if (device == nullptr) return nodes;
    return end.ErrorAtLine(absl::StrCat("device ", device->name, " has components; add one, e.g. .",
                                        device->components.list[0].name));
  }

  absl::Status ReadEdge(const ConfigValue& edge, bool is_between_instances,
                        const NamedList<LinkKind>& kinds, Device* device) {
    const absl::string_view outer_key = is_between_instances ? "instance" : "device";
    ASSIGN_OR_RETURN(const std::string scheme, TextOf(edge, "scheme"));
    ASSIGN_OR_RETURN(const std::string name, TextOf(edge, "link"));
    ASSIGN_OR_RETURN(const LinkKind* kind, kinds.Find(edge.Find("link"), "link", name));
    ASSIGN_OR_RETURN(std::vector<int32_t> from, Select(edge, "ep1", outer_key, device));
    ASSIGN_OR_RETURN(std::vector<int32_t> to, Select(edge, "ep2", outer_key, device));
    if (scheme == "many2many") {
      RETURN_IF_ERROR(Spend(edge, static_cast<int64_t>(from.size() * to.size())));
      for (const int32_t a : from) {
        for (const int32_t b : to) RETURN_IF_ERROR(Join(edge, a, b, kind->link, device));
      }
      return absl::OkStatus();
    }
    if (scheme == "ring") {
      // It goes through the nodes of the first end, then through those of the second if they differ.
      if (to != from) from.insert(from.end(), to.begin(), to.end());
      to = from;
      absl::c_rotate(to, to.begin() + 1);
    } else if (scheme != "one2one") {
      return edge.Find("scheme").ErrorAtLine("expected one2one, many2many or ring");
    }
    for (size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      RETURN_IF_ERROR(Join(edge, from[i], to[i], kind->link, device));
    }
    return absl::OkStatus();
  }

  // Adds a link of that kind, unless there is the same already; none joins a node to itself.
  absl::Status Join(const ConfigValue& where, int32_t a, int32_t b, const NetworkLink& kind,
                    Device* device) {
    if (a == b) return absl::OkStatus();
    const auto [found, is_new] = device->link_between.try_emplace(
        std::pair<int32_t, int32_t>(std::minmax(a, b)), device->links.size());
    if (is_new) {
      NetworkLink& link = device->links.emplace_back(kind);
      link.ends[0] = a;
      link.ends[1] = b;
      if (device->links.size() <= kMaxLinks) return absl::OkStatus();
      return where.ErrorAtLine(absl::StrCat("more than ", kMaxLinks, " links"));
    }
    const NetworkLink& link = device->links[found->second];
    if (link.bytes_per_ns == kind.bytes_per_ns && link.latency_ns == kind.latency_ns) {
      return absl::OkStatus();
    }
    return where.ErrorAtLine(absl::StrCat(NodeName(device, a), " and ", NodeName(device, b),
                                          " are joined already, by a link with other values"));
  }

  NamedList<Entry> devices_;
  // What is used of kMaxWork.
  int64_t work_ = 0;
};

// Takes links away that lead to a switch with no other link, until there is none. Returns the number
// of links that each node still has.
std::vector<int32_t> RemoveDeadEnds(const std::vector<bool>& is_npu,
                                    std::vector<NetworkLink>* links) {
  std::vector<int32_t> degree(is_npu.size());
  // All positions of a node's links in one, by exclusive or: the position itself when it has one.
  std::vector<size_t> positions(is_npu.size());
  for (size_t i = 0; i < links->size(); ++i) {
    for (const int32_t node : (*links)[i].ends) {
      ++degree[node];
      positions[node] ^= i;
    }
  }
  for (size_t start = 0; start < is_npu.size(); ++start) {
    int32_t node = static_cast<int32_t>(start);
    while (!is_npu[node] && degree[node] == 1) {
      const size_t position = positions[node];
      NetworkLink& link = (*links)[position];
      const int32_t next = link.ends[link.ends[0] == node ? 1 : 0];
      for (const int32_t end : {node, next}) {
        --degree[end];
        positions[end] ^= position;
      }
      link.ends[0] = link.ends[1] = -1;
      node = next;
    }
  }
  links->erase(std::remove_if(links->begin(), links->end(),
                              [](const NetworkLink& link) { return link.ends[0] < 0; }),
               links->end());
  return degree;
}

ConfigValue Infrastructure(const ConfigValue& document) {
  const ConfigValue inner = document.Find("infrastructure");
  return inner.exists() ? inner : document;
}

}  // namespace

bool IsInfraGraph(const ConfigValue& document) {
  const ConfigValue infrastructure = Infrastructure(document);
  return infrastructure.Find("devices").exists() || infrastructure.Find("instances").exists();
}

absl::StatusOr<NetworkConfig> ReadInfraGraph(const ConfigValue& document,
                                             absl::string_view source) {
  const ConfigValue infrastructure = Infrastructure(document);
  RETURN_IF_ERROR(CheckKeys(document, kTopKeys));
  RETURN_IF_ERROR(CheckKeys(infrastructure, kTopKeys));
  ASSIGN_OR_RETURN(const Device graph, InfraGraphReader().Read(infrastructure));
  const ConfigValue instances = infrastructure.Find("instances");
  NetworkConfig network;
  network.source = std::string(source);
  if (document.Find("annotations").exists()) {
    network.unknown_keys = absl::StrCat(source, ": annotations: not known and ignored");
  }
  const int64_t npus = absl::c_count(graph.is_npu, true);
  if (npus < 2 || npus > kMaxNpus) {
    return instances.ErrorAtLine(
        absl::StrCat("have ", npus, " components of choice xpu; expected 2 to ", kMaxNpus));
  }
  network.dimensions.push_back({BlockShape::kLinks, static_cast<int32_t>(npus)});
  network.links = graph.links;
  const std::vector<int32_t> degree = RemoveDeadEnds(graph.is_npu, &network.links);
  // The device of each node; -1: it is left out.
  std::vector<int32_t> devices(degree.size(), -1);
  int32_t next_npu = 0;
  for (size_t node = 0; node < degree.size(); ++node) {
    if (degree[node] == 0) {
      if (!graph.is_npu[node]) continue;
      return instances.ErrorAtLine(
          absl::StrCat(NodeName(&graph, node), " has no link that leads to another xpu"));
    }
    if (graph.is_npu[node]) {
      devices[node] = next_npu++;
    } else {
      devices[node] = static_cast<int32_t>(npus + network.switches.size());
      network.switches.push_back(NodeName(&graph, node));
    }
  }
  for (NetworkLink& link : network.links) {
    for (int32_t& end : link.ends) end = devices[end];
  }
  RETURN_IF_ERROR(CheckNetworkConfig(network));
  return network;
}

}  // namespace meridian
