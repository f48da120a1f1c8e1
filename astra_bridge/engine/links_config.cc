#include "astra_bridge/engine/links_config.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Reads a number, or a multiple: "2x". CheckLinks knows the bounds of the former.
absl::Status ReadRate(const ConfigValue& value, double* number, double* factor) {
  *number = *factor = 0;
  const absl::StatusOr<std::string> text = value.Text();
  if (!text.ok()) return value.ErrorAtLine("expected a number, or a multiple as 2x");
  const bool is_multiple = absl::EndsWith(*text, "x");
  double* const target = is_multiple ? factor : number;
  if (!absl::SimpleAtod(absl::StripSuffix(*text, "x"), target)) {
    return value.ErrorAtLine(
        absl::StrCat("\"", Printable(*text), "\" is no number, and no multiple as 2x"));
  }
  if (is_multiple && !(*factor >= 1e-6 && *factor <= 1e6)) {
    return value.ErrorAtLine("a multiple must be from 0.000001x to 1000000x");
  }
  return absl::OkStatus();
}

// Reads line, bandwidth and latency of a link.
absl::StatusOr<NetworkLink> ReadRates(const ConfigValue& value, bool gibibytes) {
  NetworkLink link;
  link.line = value.line();
  const ConfigValue bandwidth = value.Find("bandwidth");
  if (!bandwidth.exists()) {
    return value.ErrorAtLine("has no bandwidth; e.g. bandwidth: 12.5 (GiB/s), or 1x");
  }
  double per_second = 0;
  RETURN_IF_ERROR(ReadRate(bandwidth, &per_second, &link.bandwidth_factor));
  link.bytes_per_ns = gibibytes ? GibibytesPerSecondToBytesPerNs(per_second) : per_second;
  const ConfigValue latency = value.Find("latency");
  link.latency_factor = 1;
  if (!latency.exists()) return link;
  RETURN_IF_ERROR(ReadRate(latency, &link.latency_ns, &link.latency_factor));
  return link;
}

// Adds links to a network, and switches as they are first named.
class LinkBuilder {
 public:
  explicit LinkBuilder(NetworkConfig* network) : network_(*network) {}

  int32_t npus() const { return npus_; }

  int32_t Switch(const std::string& name) {
    const auto [known, is_new] =
        numbers_.try_emplace(name, npus_ + static_cast<int32_t>(network_.switches.size()));
    if (is_new) network_.switches.push_back(name);
    return known->second;
  }

  // Adds a link like the given one, `width` times as wide; none where there are too many.
  void Add(NetworkLink link, int32_t a, int32_t b, double width = 1) {
    if (HasTooMany()) return;
    link.ends[0] = a;
    link.ends[1] = b;
    link.bytes_per_ns *= width;
    link.bandwidth_factor *= width;
    network_.links.push_back(link);
  }

  bool HasTooMany() const { return network_.links.size() > kMaxLinks; }

 private:
  NetworkConfig& network_;
  const int32_t npus_ = network_.npus();
  absl::flat_hash_map<std::string, int32_t> numbers_;
};

absl::StatusOr<int32_t> ReadEnd(const ConfigValue& end, LinkBuilder* builder) {
  const absl::StatusOr<std::string> name = end.Text();
  if (!name.ok()) return end.ErrorAtLine("expected the number of an NPU or the name of a switch");
  int64_t number = 0;
  if (!absl::SimpleAtoi(*name, &number)) return builder->Switch(*name);
  if (number >= 0 && number < builder->npus()) return static_cast<int32_t>(number);
  return end.ErrorAtLine(absl::StrCat("there is no NPU ", number, "; npus_count says 0 to ",
                                      builder->npus() - 1, "; switches have names"));
}

// Joins the NPUs of each block: those that differ only in the coordinate which grows with `stride`.
// A switch is called by the name and the first NPU of its block.
void AddBlocks(const NetworkDimension& block, int32_t stride, const NetworkLink& link,
               absl::string_view switch_name, LinkBuilder* builder) {
  for (int32_t npu = 0; npu < builder->npus() && !builder->HasTooMany(); ++npu) {
    const int32_t place = npu / stride % block.npus;
    const int32_t first = npu - place * stride;
    switch (block.shape) {
      case BlockShape::kRing:
        // Two NPUs are joined once, not around as well.
        if (place == block.npus - 1 && block.npus > 2) builder->Add(link, npu, first);
        ABSL_FALLTHROUGH_INTENDED;
      case BlockShape::kMesh:
        if (place < block.npus - 1) builder->Add(link, npu, npu + stride);
        break;
      case BlockShape::kFullyConnected:
        for (int32_t other = place + 1; other < block.npus && !builder->HasTooMany(); ++other) {
          builder->Add(link, npu, first + other * stride);
        }
        break;
      case BlockShape::kSwitch:
        builder->Add(link, npu, builder->Switch(absl::StrCat(switch_name, first)));
        break;
      case BlockShape::kLinks:
        break;
    }
  }
}

absl::Status ReadLinkList(const ConfigValue& links, bool gibibytes, NetworkConfig* network) {
  LinkBuilder builder(network);
  return links.ForEachElement([&](const ConfigValue& value) -> absl::Status {
    RETURN_IF_ERROR(CheckKeys(value, {"between", "bandwidth", "latency"}));
    ASSIGN_OR_RETURN(const NetworkLink link, ReadRates(value, gibibytes));
    const ConfigValue between = value.Find("between");
    std::vector<int32_t> ends;
    if (between.IsList()) {
      RETURN_IF_ERROR(between.ForEachElement([&](const ConfigValue& end) -> absl::Status {
        ASSIGN_OR_RETURN(const int32_t device, ReadEnd(end, &builder));
        ends.push_back(device);
        return absl::OkStatus();
      }));
    }
    if (ends.size() != 2 || ends[0] == ends[1]) {
      return value.ErrorAtLine("expected two different ends; e.g. between: [ 0, leaf0 ]");
    }
    builder.Add(link, ends[0], ends[1]);
    return absl::OkStatus();
  });
}

// A shape of links, by the keys that it has besides shape, bandwidth and latency.
class ShapeReader {
 public:
  ShapeReader(const ConfigValue& shape, const NetworkLink& link, bool gibibytes,
              NetworkConfig* network)
      : shape_(shape),
        link_(link),
        gibibytes_(gibibytes),
        npus_(network->npus()),
        builder_(network) {}

  absl::Status Read() {
    ASSIGN_OR_RETURN(const std::string name, shape_.Find("shape").Text(kShapes));
    absl::Status status = absl::OkStatus();
    if (name == "star") {
      status = CheckKeys(shape_, {"shape", "bandwidth", "latency"});
      AddBlocks({BlockShape::kSwitch, npus_}, 1, link_, "switch", &builder_);
    } else if (name == "leaf_spine") {
      status = LeafSpine();
    } else if (name == "fat_tree") {
      status = FatTree();
    } else if (name == "torus") {
      status = Torus();
    } else if (name == "dragonfly") {
      status = Dragonfly();
    } else {
      return shape_.Find("shape").ErrorAtLine(kShapes);
    }
    return status;
  }

 private:
  static constexpr absl::string_view kShapes =
      "expected star, leaf_spine, fat_tree, torus or dragonfly";

  // Reads a whole number that the shape must have; `fallback` 0: it has no default.
  absl::StatusOr<int32_t> Count(absl::string_view key, int32_t fallback = 0) const {
    const ConfigValue value = shape_.Find(key);
    if (!value.exists() && fallback > 0) return fallback;
    const absl::StatusOr<int64_t> count = value.Integer("", 1, kMaxNpus);
    if (count.ok()) return static_cast<int32_t>(*count);
    const std::string reason =
        absl::StrCat("expected ", key, ": a whole number from 1 to ", kMaxNpus);
    return value.exists() ? value.ErrorAtLine(reason) : shape_.ErrorAtLine(reason);
  }

  // Reads an element of a list of sizes.
  static absl::StatusOr<int32_t> SizeOf(const ConfigValue& element, int32_t least) {
    const absl::StatusOr<int64_t> size = element.Integer("", least, kMaxNpus);
    if (size.ok()) return static_cast<int32_t>(*size);
    return element.ErrorAtLine(
        absl::StrCat("expected a whole number from ", least, " to ", kMaxNpus));
  }

  void Add(int32_t a, int32_t b, double width = 1) { builder_.Add(link_, a, b, width); }

  int32_t Switch(absl::string_view name, int32_t number) {
    return builder_.Switch(absl::StrCat(name, number));
  }

  absl::Status LeafSpine() {
    RETURN_IF_ERROR(
        CheckKeys(shape_, {"shape", "bandwidth", "latency", "leaf", "spines", "oversubscription"}));
    ASSIGN_OR_RETURN(const int32_t leaf, Count("leaf"));
    ASSIGN_OR_RETURN(const int32_t spines, Count("spines", 1));
    double oversubscription = 1;
    const ConfigValue value = shape_.Find("oversubscription");
    if (!value.ReadIfThere(&oversubscription).ok() ||
        !(oversubscription >= 0.001 && oversubscription <= 1000)) {
      return value.ErrorAtLine("expected a number from 0.001 to 1000");
    }
    if (leaf >= npus_) {
      return shape_.ErrorAtLine("all NPUs are at one leaf: say shape: star, or a smaller leaf");
    }
    for (int32_t npu = 0; npu < npus_; ++npu) Add(npu, Switch("leaf", npu / leaf));
    for (int32_t l = 0; l * leaf < npus_ && !builder_.HasTooMany(); ++l) {
      for (int32_t s = 0; s < spines && !builder_.HasTooMany(); ++s) {
        Add(Switch("leaf", l), Switch("spine", s), leaf / (spines * oversubscription));
      }
    }
    return absl::OkStatus();
  }

  // Three layers of switches with that many ports: half of them lead up, half down.
  absl::Status FatTree() {
    RETURN_IF_ERROR(CheckKeys(shape_, {"shape", "bandwidth", "latency", "ports"}));
    ASSIGN_OR_RETURN(const int32_t ports, Count("ports"));
    const int64_t half = ports / 2;
    if (ports % 2 != 0 || half * half * ports < npus_ || half * half >= npus_) {
      return shape_.ErrorAtLine(absl::StrCat("switches of ", ports, " ports (an even number) join ",
                                             half * half + 1, " to ", half * half * ports,
                                             " NPUs in three layers; there are ", npus_));
    }
    for (int32_t npu = 0; npu < npus_; ++npu) Add(npu, Switch("edge", npu / half));
    for (int64_t edge = 0; edge * half < npus_; ++edge) {
      const int64_t pod = edge / half;
      for (int64_t a = 0; a < half; ++a) {
        Add(Switch("edge", edge), Switch("aggregation", pod * half + a));
      }
    }
    for (int64_t aggregation = 0; aggregation / half * half * half < npus_; ++aggregation) {
      for (int64_t c = 0; c < half; ++c) {
        Add(Switch("aggregation", aggregation), Switch("core", aggregation % half * half + c));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Torus() {
    RETURN_IF_ERROR(CheckKeys(shape_, {"shape", "bandwidth", "latency", "sizes"}));
    const ConfigValue sizes = shape_.Find("sizes");
    int64_t product = 1;
    std::vector<int32_t> ring;
    if (sizes.IsList()) {
      RETURN_IF_ERROR(sizes.ForEachElement([&](const ConfigValue& size) -> absl::Status {
        ASSIGN_OR_RETURN(const int32_t npus, SizeOf(size, 2));
        ring.push_back(npus);
        product = std::min<int64_t>(product * npus, int64_t{2} * kMaxNpus);
        return absl::OkStatus();
      }));
    }
    if (product != npus_) {
      return shape_.ErrorAtLine(absl::StrCat("expected sizes whose product is the ", npus_,
                                             " of npus_count, e.g. [ 2, ", npus_ / 2, " ]"));
    }
    int32_t stride = 1;
    for (const int32_t size : ring) {
      AddBlocks({BlockShape::kRing, size}, stride, link_, "", &builder_);
      stride *= size;
    }
    return absl::OkStatus();
  }

  // Returns the link of that name, which has the latency of all where it has none, or the link of all.
  absl::StatusOr<NetworkLink> LinkOf(absl::string_view key) const {
    const ConfigValue value = shape_.Find(key);
    if (!value.exists()) return link_;
    RETURN_IF_ERROR(CheckKeys(value, {"bandwidth", "latency"}));
    ASSIGN_OR_RETURN(NetworkLink link, ReadRates(value, gibibytes_));
    if (value.Find("latency").exists()) return link;
    link.latency_ns = link_.latency_ns;
    link.latency_factor = link_.latency_factor;
    return link;
  }

  // Reads `routers` of a group: a number, or how many are in a row and in a column.
  absl::Status ReadRouters(int32_t* rows, int32_t* columns) const {
    const ConfigValue routers = shape_.Find("routers");
    std::vector<int32_t> sizes;
    if (!routers.IsList()) {
      ASSIGN_OR_RETURN(*rows, Count("routers"));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(routers.ForEachElement([&](const ConfigValue& size) -> absl::Status {
      ASSIGN_OR_RETURN(const int32_t count, SizeOf(size, 1));
      sizes.push_back(count);
      return absl::OkStatus();
    }));
    if (sizes.size() != 2 || static_cast<int64_t>(sizes[0]) * sizes[1] > kMaxNpus) {
      return routers.ErrorAtLine("expected routers in a row and in a column, e.g. [ 16, 6 ]");
    }
    *rows = sizes[0];
    *columns = sizes[1];
    return absl::OkStatus();
  }

  // Routers of a row, and of a column, are all joined, and each two groups by some of their routers.
  absl::Status Dragonfly() {
    RETURN_IF_ERROR(CheckKeys(shape_, {"shape", "bandwidth", "latency", "routers", "hosts",
                                       "host_link", "column_link", "group_link", "group_links"}));
    int32_t row = 1, column = 1;
    RETURN_IF_ERROR(ReadRouters(&row, &column));
    ASSIGN_OR_RETURN(const int32_t hosts, Count("hosts"));
    ASSIGN_OR_RETURN(const int32_t group_links, Count("group_links", 1));
    ASSIGN_OR_RETURN(const NetworkLink host_link, LinkOf("host_link"));
    ASSIGN_OR_RETURN(const NetworkLink column_link, LinkOf("column_link"));
    ASSIGN_OR_RETURN(const NetworkLink group_link, LinkOf("group_link"));
    const int32_t routers = row * column;
    const int64_t group_npus = static_cast<int64_t>(routers) * hosts;
    const int64_t groups = npus_ / group_npus;
    if (npus_ % group_npus != 0 || groups < 2) {
      return shape_.ErrorAtLine(absl::StrCat("groups of ", routers, " routers with ", hosts,
                                             " NPUs each: npus_count must be a multiple of ",
                                             group_npus, ", at least twice it; is ", npus_));
    }
    if (group_links > routers) {
      return shape_.ErrorAtLine(
          absl::StrCat("expected group_links: 1 to ", routers, ", the routers of a group"));
    }
    const auto router = [&](int64_t group, int64_t number) {
      return Switch("router", static_cast<int32_t>(group * routers + number % routers));
    };
    for (int32_t npu = 0; npu < npus_; ++npu) {
      builder_.Add(host_link, npu, Switch("router", npu / hosts));
    }
    for (int64_t g = 0; g < groups && !builder_.HasTooMany(); ++g) {
      for (int32_t a = 0; a < routers; ++a) {
        for (int32_t b = a + 1; b < routers && !builder_.HasTooMany(); ++b) {
          if (a / row == b / row) Add(router(g, a), router(g, b));
          if (a % row == b % row) builder_.Add(column_link, router(g, a), router(g, b));
        }
      }
      for (int64_t other = g + 1; other < groups && !builder_.HasTooMany(); ++other) {
        for (int64_t i = 0; i < group_links; ++i) {
          builder_.Add(group_link, router(g, (other - 1) * group_links + i),
                       router(other, g * group_links + i));
        }
      }
    }
    return absl::OkStatus();
  }

  const ConfigValue& shape_;
  const NetworkLink link_;
  const bool gibibytes_;
  const int32_t npus_;
  LinkBuilder builder_;
};

absl::Status LinkError(const NetworkConfig& network, size_t link, absl::string_view reason) {
  const int32_t line = network.links[link].line;
  return ConfigError(line == 0 ? network.source : absl::StrCat(network.source, ":", line),
                     absl::StrCat("links[", link, "]"), reason);
}

// Returns for each device one that it is joined with, directly or by others; the same for all that
// are joined with each other.
std::vector<int32_t> JoinedWith(const NetworkConfig& network, int32_t devices) {
  std::vector<int32_t> joined(devices);
  for (int32_t device = 0; device < devices; ++device) joined[device] = device;
  const auto root = [&](int32_t device) {
    while (joined[device] != device) device = joined[device] = joined[joined[device]];
    return device;
  };
  for (const NetworkLink& link : network.links) {
    const int32_t a = root(link.ends[0]), b = root(link.ends[1]);
    joined[std::max(a, b)] = std::min(a, b);
  }
  for (int32_t device = 0; device < devices; ++device) joined[device] = root(device);
  return joined;
}

}  // namespace

absl::Status CheckKeys(const ConfigValue& map, absl::Span<const absl::string_view> keys) {
  absl::Status unknown;
  const absl::Status status =
      map.ForEachMember([&](const std::string& key, const ConfigValue& member) {
        if (absl::c_linear_search(keys, key)) return absl::OkStatus();
        return unknown = member.ErrorAtLine(
                   absl::StrCat("not known; there are ", absl::StrJoin(keys, ", ")));
      });
  if (status.ok() || !unknown.ok()) return unknown;
  return map.ErrorAtLine("expected keys and values, each key once");
}

absl::Status ReadLinks(const ConfigValue& links, bool gibibytes, NetworkConfig* network) {
  if (links.IsList()) {
    RETURN_IF_ERROR(ReadLinkList(links, gibibytes, network));
  } else if (links.IsMap()) {
    ASSIGN_OR_RETURN(const NetworkLink link, ReadRates(links, gibibytes));
    RETURN_IF_ERROR(ShapeReader(links, link, gibibytes, network).Read());
  }
  if (network->links.size() > kMaxLinks) {
    return links.ErrorAtLine(absl::StrCat("more than ", kMaxLinks, " links"));
  }
  if (network->links.empty()) {
    return links.Error(
        "expected a list of links, e.g. - { between: [ 0, leaf0 ], bandwidth: 12.5 }, or a shape, "
        "e.g. { shape: star, bandwidth: 12.5 }");
  }
  return CheckLinks(*network);
}

absl::Status CheckLinks(const NetworkConfig& network) {
  const int32_t npus = network.npus();
  const int32_t devices = npus + static_cast<int32_t>(network.switches.size());
  std::vector<int32_t> link_count(devices, 0);
  for (size_t l = 0; l < network.links.size(); ++l) {
    const NetworkLink& link = network.links[l];
    for (const int32_t end : link.ends) {
      if (end < 0 || end >= devices) return LinkError(network, l, "leads to no device");
      ++link_count[end];
    }
    if (link.ends[0] == link.ends[1]) return LinkError(network, l, "joins a device with itself");
    const std::string fault = RateFault(link.bandwidth_factor == 0 ? link.bytes_per_ns : 1,
                                        link.latency_factor == 0 ? link.latency_ns : 0);
    if (!fault.empty()) return LinkError(network, l, fault);
  }
  for (size_t l = 0; l < network.links.size(); ++l) {
    for (const int32_t end : network.links[l].ends) {
      if (end < npus || link_count[end] > 1) continue;
      return LinkError(network, l,
                       absl::StrCat("leads to ", network.DeviceName(end),
                                    ", which no other link leads on from: is the name right?"));
    }
  }
  const std::vector<int32_t> joined = JoinedWith(network, devices);
  for (int32_t npu = 0; npu < npus; ++npu) {
    if (joined[npu] == joined[0]) continue;
    return LinkError(network, 0,
                     link_count[npu] == 0 ? absl::StrCat("no link reaches NPU ", npu)
                                          : absl::StrCat("no way leads from NPU 0 to NPU ", npu));
  }
  return absl::OkStatus();
}

absl::Status ResolveLinks(const NetworkConfig& calibrated, NetworkConfig* network) {
  if (calibrated.has_links()) {
    return ConfigError(calibrated.source, "topology", "Links are not what astra_calibrate writes");
  }
  const NetworkDimension& outermost = calibrated.dimensions.back();
  const double between_ranks_ns =
      outermost.latency_ns * (outermost.shape == BlockShape::kSwitch ? 2 : 1);
  const int32_t npus = network->npus();
  for (NetworkLink& link : network->links) {
    const bool is_direct = std::max(link.ends[0], link.ends[1]) < npus;
    if (link.bandwidth_factor > 0) {
      link.bytes_per_ns = link.bandwidth_factor * outermost.bytes_per_ns;
    }
    if (link.latency_factor > 0) {
      link.latency_ns = link.latency_factor * between_ranks_ns / (is_direct ? 1 : 2);
    }
    link.bandwidth_factor = link.latency_factor = 0;
  }
  return CheckLinks(*network);
}

absl::StatusOr<NetworkConfig> AsLinks(const NetworkConfig& network) {
  if (network.has_links()) return network;
  NetworkConfig as_links = network;
  LinkBuilder builder(&as_links);
  int32_t stride = 1;
  for (size_t d = 0; d < network.dimensions.size(); ++d) {
    const NetworkDimension& block = network.dimensions[d];
    NetworkLink link;
    link.bytes_per_ns = block.bytes_per_ns;
    link.latency_ns = block.latency_ns;
    AddBlocks(block, stride, link, absl::StrCat("switch", d, "_"), &builder);
    stride *= block.npus;
  }
  if (builder.HasTooMany()) {
    return ConfigError(network.source, "links", absl::StrCat("more than ", kMaxLinks, " links"));
  }
  for (NetworkDimension& dimension : as_links.dimensions) dimension.shape = BlockShape::kLinks;
  return as_links;
}

}  // namespace meridian
