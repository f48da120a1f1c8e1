#include "astra_bridge/engine/infra_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/config/config_value.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Two servers of 4 xpus, each with a nic at a leaf of its server; one spine.
constexpr char kClos[] = R"(name: clos
devices:
  - name: server
    components:
      - { name: xpu, count: 4, choice: xpu }
      - { name: nvswitch, count: 1, choice: switch }
      - { name: nic, count: 4, choice: nic }
      - { name: cpu, count: 1, choice: cpu }
      - { name: memory, count: 2, choice: memory }
    links:
      - name: nvlink
        physical:
          bandwidth: { choice: gigabytes_per_second, gigabytes_per_second: 450 }
          latency: { choice: ns, ns: 300 }
      - name: pcie
    edges:
      - { ep1: { component: xpu }, ep2: { component: nvswitch }, scheme: many2many, link: nvlink }
      - { ep1: { component: xpu }, ep2: { component: nic }, scheme: one2one, link: pcie }
      - { ep1: { component: cpu }, ep2: { component: memory }, scheme: many2many, link: pcie }
      - { ep1: { component: cpu }, ep2: { component: nvswitch }, scheme: one2one, link: pcie }
  - name: switch
    components:
      - { name: asic, count: 1, choice: switch }
      - { name: port, count: 8, choice: port }
    links: [ { name: internal } ]
    edges:
      - { ep1: { component: asic }, ep2: { component: port }, scheme: many2many, link: internal }
instances:
  - { name: host, device: server, count: 2 }
  - { name: leaf, device: switch, count: 2 }
  - { name: spine, device: switch, count: 1 }
links:
  - name: access
    physical:
      bandwidth: { gigabits_per_second: 100 }
      latency: { us: 1.5 }
  - name: uplink
    physical:
      bandwidth: { gigabits_per_second: 400 }
      latency: { ms: 0.25 }
edges:
  - ep1: { instance: "host[0]", component: nic }
    ep2: { instance: "leaf[0]", component: port }
    scheme: one2one
    link: access
  - { ep1: { instance: "host[1]", component: nic }, ep2: { instance: "leaf[1]", component: port },
      scheme: one2one, link: access }
  - { ep1: { instance: leaf, component: "port[7]" }, ep2: { instance: spine, component: port },
      scheme: one2one, link: uplink }
)";

absl::StatusOr<NetworkConfig> Read(const std::string& yaml) {
  absl::StatusOr<ConfigValue> document =
      ConfigValue::FromYaml(yaml, "n.yml", size_t{1} << 20, "a network");
  if (!document.ok()) return document.status();
  EXPECT_TRUE(IsInfraGraph(*document));
  return ReadInfraGraph(*document, "n.yml");
}

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = kClos;
  EXPECT_NE(text.find(from), text.npos) << from;
  return text.replace(text.find(from), from.size(), to);
}

// Expects an InvalidArgument with this message.
void ExpectError(const std::string& yaml, const std::string& message) {
  EXPECT_THAT(Read(yaml), StatusIs(absl::StatusCode::kInvalidArgument, message));
}

// Returns an infrastructure of one device with xpus 0 to 7 and switches a.0 to a.3 whose edges are
// these, and the line of the first of them is 8.
std::string OneDevice(const std::string& edges) {
  return absl::StrCat(R"(devices:
  - name: box
    components:
      - { name: xpu, count: 8, choice: xpu }
      - { name: a, count: 4, choice: switch }
    links: [ { name: fast }, { name: slow, physical: { bandwidth: { gigabits_per_second: 8 } } } ]
    edges:
)",
                      edges, "instances: [ { name: box, device: box, count: 1 } ]\n");
}

std::string Edge(const std::string& ep1, const std::string& ep2, const std::string& scheme) {
  return absl::StrCat("      - { ep1: { component: \"", ep1, "\" }, ep2: { component: \"", ep2,
                      "\" }, scheme: ", scheme, ", link: fast }\n");
}

std::vector<std::pair<int, int>> Ends(const NetworkConfig& network) {
  std::vector<std::pair<int, int>> ends;
  for (const NetworkLink& link : network.links) ends.emplace_back(link.ends[0], link.ends[1]);
  return ends;
}

// Returns the ends of the links that follow a ring of all xpus, so that all of them are reached.
absl::StatusOr<std::vector<std::pair<int, int>>> EndsAfterRing(const std::string& edges) {
  absl::StatusOr<NetworkConfig> network = Read(OneDevice(Edge("xpu", "xpu", "ring") + edges));
  if (!network.ok()) return network.status();
  std::vector<std::pair<int, int>> ends = Ends(*network);
  return std::vector<std::pair<int, int>>(ends.begin() + 8, ends.end());
}

TEST(InfraGraphTest, ReadsServersLeavesAndASpine) {
  ASSERT_OK_AND_ASSIGN(const NetworkConfig network, Read(kClos));
  EXPECT_EQ(network.source, "n.yml");
  ASSERT_THAT(network.dimensions, SizeIs(1));
  EXPECT_EQ(network.dimensions[0].shape, BlockShape::kLinks);
  EXPECT_EQ(network.dimensions[0].npus, 8);
  EXPECT_THAT(network.unknown_keys, IsEmpty());
  // Cpus, memories and the ports that nothing is at lead nowhere.
  EXPECT_THAT(
      network.switches,
      ElementsAre("host.0.nvswitch.0", "host.0.nic.0", "host.0.nic.1", "host.0.nic.2",
                  "host.0.nic.3", "host.1.nvswitch.0", "host.1.nic.0", "host.1.nic.1",
                  "host.1.nic.2", "host.1.nic.3", "leaf.0.asic.0", "leaf.0.port.0", "leaf.0.port.1",
                  "leaf.0.port.2", "leaf.0.port.3", "leaf.0.port.7", "leaf.1.asic.0",
                  "leaf.1.port.0", "leaf.1.port.1", "leaf.1.port.2", "leaf.1.port.3",
                  "leaf.1.port.7", "spine.0.asic.0", "spine.0.port.0", "spine.0.port.1"));
  // In a server 4 at the nvswitch and 4 at nics; 5 in a leaf and 2 in the spine; 8 + 2 between.
  ASSERT_THAT(network.links, SizeIs(2 * 8 + 2 * 5 + 2 + 8 + 2));
  const auto expect_link = [&](size_t position, int a, int b, double bytes_per_ns,
                               double latency_ns) {
    const NetworkLink& link = network.links[position];
    EXPECT_THAT(link.ends, ElementsAre(a, b)) << position;
    EXPECT_EQ(link.bytes_per_ns, bytes_per_ns) << position;
    EXPECT_EQ(link.latency_ns, latency_ns) << position;
    EXPECT_EQ(link.bandwidth_factor, 0) << position;
    EXPECT_EQ(link.latency_factor, 0) << position;
  };
  // Device 8 is the first switch, of which those of host 1 start with device 13.
  expect_link(0, 0, 8, 450, 300);
  expect_link(3, 3, 8, 450, 300);
  expect_link(4, 0, 9, 1e12, 0);
  expect_link(8, 4, 13, 450, 300);
  expect_link(15, 7, 17, 1e12, 0);
  expect_link(16, 18, 19, 1e12, 0);
  expect_link(28, 9, 19, 12.5, 1500);
  expect_link(35, 17, 28, 12.5, 1500);
  expect_link(36, 23, 31, 50, 250000);
  expect_link(37, 29, 32, 50, 250000);
}

TEST(InfraGraphTest, MayBeUnderATopKeyOrJson) {
  const std::string indented = absl::StrReplaceAll(kClos, {{"\n", "\n  "}});
  ASSERT_OK_AND_ASSIGN(const NetworkConfig plain, Read(kClos));
  ASSERT_OK_AND_ASSIGN(
      const NetworkConfig under_key,
      Read(absl::StrCat("infrastructure:\n  ", indented, "\nannotations: { nodes: [] }\n")));
  EXPECT_EQ(Ends(under_key), Ends(plain));
  EXPECT_EQ(under_key.switches, plain.switches);
  EXPECT_THAT(under_key.unknown_keys, HasSubstr("annotations: not known and ignored"));
  ASSERT_OK_AND_ASSIGN(const NetworkConfig json, Read(R"({"devices": [{"name": "d",
      "components": [{"name": "xpu", "count": 2, "choice": "xpu"}], "links": [{"name": "l"}],
      "edges": [{"ep1": {"component": "xpu[0]"}, "ep2": {"component": "xpu[1]"},
                 "scheme": "one2one", "link": "l"}]}],
      "instances": [{"name": "d", "device": "d", "count": 1}]})"));
  EXPECT_THAT(Ends(json), ElementsAre(Pair(0, 1)));
}

TEST(InfraGraphTest, KnowsItsFilesByTheirKeys) {
  const auto is_infra_graph = [](const std::string& yaml) {
    return IsInfraGraph(ConfigValue::FromYaml(yaml, "n.yml", 1000, "a network").value());
  };
  EXPECT_TRUE(is_infra_graph("devices: []"));
  EXPECT_TRUE(is_infra_graph("infrastructure: { instances: [] }"));
  EXPECT_FALSE(is_infra_graph("topology: [ Links ]\nlinks: []\n"));
  EXPECT_FALSE(is_infra_graph("[ devices ]"));
  EXPECT_FALSE(is_infra_graph("7"));
}

TEST(InfraGraphTest, ALinkWithoutBandwidthHasTheLargestThatIsAllowed) {
  ASSERT_OK_AND_ASSIGN(NetworkConfig network, Read(OneDevice(Edge("xpu", "xpu", "ring"))));
  network.dimensions[0].shape = BlockShape::kRing;
  network.dimensions[0].bytes_per_ns = network.links[0].bytes_per_ns;
  network.links.clear();
  EXPECT_OK(CheckNetworkConfig(network));
  network.dimensions[0].bytes_per_ns *= 1.001;
  EXPECT_THAT(CheckNetworkConfig(network), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(InfraGraphTest, SchemesJoin) {
  // One to one ends with the shorter side.
  EXPECT_THAT(EndsAfterRing(Edge("xpu[0:2]", "xpu[4:8]", "one2one")),
              IsOkAndHolds(ElementsAre(Pair(0, 4), Pair(1, 5))));
  EXPECT_THAT(EndsAfterRing(Edge("xpu[0:2]", "xpu[4:6]", "many2many")),
              IsOkAndHolds(ElementsAre(Pair(0, 4), Pair(0, 5), Pair(1, 4), Pair(1, 5))));
  EXPECT_THAT(EndsAfterRing(Edge("xpu[0:8:2]", "xpu[0:8:2]", "ring")),
              IsOkAndHolds(ElementsAre(Pair(0, 2), Pair(2, 4), Pair(4, 6), Pair(6, 0))));
  EXPECT_THAT(EndsAfterRing(Edge("xpu[0]", "xpu[2:5:2]", "ring")),
              IsOkAndHolds(ElementsAre(Pair(0, 2), Pair(2, 4), Pair(4, 0))));
}

TEST(InfraGraphTest, TwoComponentsHaveOneLinkAndNoneHasOneToItself) {
  EXPECT_THAT(EndsAfterRing(Edge("xpu[0:8:3]", "xpu[0:8:3]", "many2many")),
              IsOkAndHolds(ElementsAre(Pair(0, 3), Pair(0, 6), Pair(3, 6))));
  EXPECT_THAT(EndsAfterRing(Edge("xpu[0]", "xpu[1]", "one2one")), IsOkAndHolds(IsEmpty()));
}

TEST(InfraGraphTest, SlicesAreThoseOfPython) {
  const auto selected = [](const std::string& slice) {
    std::vector<int> xpus;
    // Switch a.0 would be left out if it had one link only.
    const auto ends = EndsAfterRing(Edge("xpu[0:2]", "a[0]", "many2many") +
                                    Edge(absl::StrCat("xpu", slice), "a[1]", "many2many") +
                                    Edge("a[0]", "a[1]", "one2one"));
    for (const auto& [xpu, a] : ends.value()) {
      if (a == 9 && xpu < 8) xpus.push_back(xpu);
    }
    return xpus;
  };
  EXPECT_THAT(selected(""), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(selected("[:]"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(selected("[5]"), ElementsAre(5));
  EXPECT_THAT(selected("[-1]"), ElementsAre(7));
  EXPECT_THAT(selected("[2:4]"), ElementsAre(2, 3));
  EXPECT_THAT(selected("[6:]"), ElementsAre(6, 7));
  EXPECT_THAT(selected("[:2]"), ElementsAre(0, 1));
  EXPECT_THAT(selected("[:-6]"), ElementsAre(0, 1));
  EXPECT_THAT(selected("[1:8:3]"), ElementsAre(1, 4, 7));
  EXPECT_THAT(selected("[1:7:3]"), ElementsAre(1, 4));
  EXPECT_THAT(selected("[::-3]"), ElementsAre(7, 4, 1));
  EXPECT_THAT(selected("[4:1:-2]"), ElementsAre(4, 2));
}

TEST(InfraGraphTest, SlicesThatSelectNothingOrTooMuchAreErrors) {
  const auto expect_error = [](const std::string& slice, const std::string& reason) {
    ExpectError(OneDevice(Edge(slice, "a", "many2many")),
                absl::StrCat("n.yml:8: devices[0].edges[0].ep1.component: ", slice, ": ", reason));
  };
  expect_error("xpu[8]", "there are only 8");
  expect_error("xpu[-9]", "there are only 8");
  expect_error("xpu[0:9]", "there are only 8");
  expect_error("xpu[4:4]", "selects none of 8");
  expect_error("xpu[4:2]", "selects none of 8");
  expect_error("xpu[2:4:-1]", "selects none of 8");
  const std::string expected = "expected e.g. xpu, xpu[2] or xpu[0:8:2]";
  for (const char* slice : {"xpu[]", "xpu[", "xpu[1", "xpu[1]x", "xpu[a]", "xpu[0:1:2:3]",
                            "xpu[0:4:0]", "xpu[9999999999]", "xpu[1][2]"}) {
    expect_error(slice, expected);
  }
}

// Servers of two cards, of which each has two plugs: names are as deep as devices.
constexpr char kComposed[] = R"(devices:
  - name: server
    components:
      - { name: xpu, count: 2, choice: xpu }
      - { name: card, count: 2, choice: device }
    links: [ { name: pcie, physical: { bandwidth: { gigabytes_per_second: 64 } } } ]
    edges:
      - ep1: { component: xpu }
        ep2: { device: "card[0:2]", component: "chip[0]" }
        scheme: one2one
        link: pcie
  - name: card
    components:
      - { name: chip, count: 1, choice: custom, custom: { type: asic } }
      - { name: plug, count: 2, choice: device }
    links: [ { name: serdes } ]
    edges:
      - { ep1: { component: chip }, ep2: { component: plug.cage }, scheme: many2many, link: serdes }
  - name: plug
    components:
      - { name: cage, count: 1, choice: port }
      - { name: laser, count: 1, choice: port }
    links: [ { name: lane } ]
    edges:
      - { ep1: { component: cage }, ep2: { component: laser }, scheme: one2one, link: lane }
instances: [ { name: host, device: server, count: 2 } ]
links: [ { name: fibre, physical: { bandwidth: { gigabits_per_second: 200 } } } ]
edges:
  - ep1: { instance: "host[0]", component: "server.card.plug[0].laser" }
    ep2: { instance: "host[1]", component: "card.plug[0].laser[0]" }
    scheme: many2many
    link: fibre
)";

TEST(InfraGraphTest, DevicesMayBeComponents) {
  ASSERT_OK_AND_ASSIGN(const NetworkConfig network, Read(kComposed));
  EXPECT_EQ(network.npus(), 4);
  // Nothing is at the second plug of a card.
  EXPECT_THAT(network.switches,
              ElementsAre("host.0.card.0.chip.0", "host.0.card.0.plug.0.cage.0",
                          "host.0.card.0.plug.0.laser.0", "host.0.card.1.chip.0",
                          "host.0.card.1.plug.0.cage.0", "host.0.card.1.plug.0.laser.0",
                          "host.1.card.0.chip.0", "host.1.card.0.plug.0.cage.0",
                          "host.1.card.0.plug.0.laser.0", "host.1.card.1.chip.0",
                          "host.1.card.1.plug.0.cage.0", "host.1.card.1.plug.0.laser.0"));
  // In a server first what is in its cards, then its own; then the fibres.
  EXPECT_THAT(Ends(network),
              ElementsAre(Pair(5, 6), Pair(4, 5), Pair(8, 9), Pair(7, 8), Pair(0, 4), Pair(1, 7),
                          Pair(11, 12), Pair(10, 11), Pair(14, 15), Pair(13, 14), Pair(2, 10),
                          Pair(3, 13), Pair(6, 12), Pair(6, 15), Pair(9, 12), Pair(9, 15)));
  EXPECT_EQ(network.links[4].bytes_per_ns, 64);
  EXPECT_EQ(network.links[15].bytes_per_ns, 25);
}

TEST(InfraGraphTest, PathsMustEndAtAComponentOfADevice) {
  const auto with = [](const std::string& path) {
    return absl::StrReplaceAll(kComposed, {{"server.card.plug[0].laser", path}});
  };
  const std::string place = "n.yml:29: edges[0].ep1";
  ExpectError(with("card.plug"), place + ": device plug has components; add one, e.g. .cage");
  ExpectError(with("xpu.core"), place + ".component: xpu.core: what is before core is no device");
  ExpectError(with("card.wire"),
              place + ".component: component wire does not exist; there are chip, plug");
}

TEST(InfraGraphTest, DevicesAreInNoMoreThanFiveOthers) {
  ExpectError(absl::StrReplaceAll(
                  kComposed, {{"laser, count: 1, choice: port", "card, count: 1, choice: device"}}),
              "n.yml:22: devices[2].components[1]: device card is more than 5 devices deep; does "
              "it contain itself?");
  // Device d0 has two xpus, and each other one two of the device before it.
  const auto chain = [](int devices) {
    std::string text = "devices:\n";
    std::string path;
    for (int i = 0; i < devices; ++i) {
      const std::string name = i == 0 ? "xpu" : absl::StrCat("d", i - 1);
      path = path.empty() ? name : absl::StrCat(name, ".", path);
      absl::StrAppend(&text, "  - { name: d", i, ", components: [ { name: ", name,
                      ", count: 2, choice: ", i == 0 ? "xpu" : "device", " } ] }\n");
    }
    return absl::StrCat(text, "instances: [ { name: i, device: d", devices - 1,
                        ", count: 1 } ]\nlinks: [ { name: l } ]\nedges: [ { ep1: { instance: i, ",
                        "component: ", path, " }, ep2: { instance: i, component: ", path,
                        " }, scheme: ring, link: l } ]\n");
  };
  ASSERT_OK_AND_ASSIGN(const NetworkConfig network, Read(chain(5)));
  EXPECT_EQ(network.npus(), 32);
  EXPECT_THAT(network.links, SizeIs(32));
  ExpectError(chain(6),
              "n.yml:3: devices[1].components[0]: device d0 is more than 5 devices deep; does it "
              "contain itself?");
}

TEST(InfraGraphTest, SaysWhatIsThereInsteadOfWhatDoesNotExist) {
  ExpectError(Replaced("\"host[1]\"", "hosts"),
              "n.yml:46: edges[1].ep1.instance: instance hosts does not exist; there are host, "
              "leaf, spine");
  ExpectError(Replaced("\"port[7]\"", "plug"),
              "n.yml:48: edges[2].ep1.component: component plug does not exist; there are asic, "
              "port");
  ExpectError(Replaced("scheme: one2one, link: uplink", "scheme: one2one, link: nvlink"),
              "n.yml:49: edges[2].link: link nvlink does not exist; there are access, uplink");
  ExpectError(Replaced("links: [ { name: internal } ]", "links: []"),
              "n.yml:27: devices[1].edges[0].link: link internal does not exist; there is none");
  ExpectError(Replaced("device: server", "device: servers"),
              "n.yml:29: instances[0]: device servers does not exist; there are server, switch");
  ExpectError(Replaced("one2one, link: uplink", "mesh, link: uplink"),
              "n.yml:49: edges[2].scheme: expected one2one, many2many or ring");
  ExpectError(Replaced("choice: nic", "choice: card"),
              "n.yml:7: devices[0].components[2].choice: expected one of xpu, nic, switch, port, "
              "cpu, memory, custom, device");
  ExpectError(Replaced("    links: [ { name: internal } ]", "    wires: []"),
              "n.yml:25: devices[1].wires: not known; there are name, description, components, "
              "links, edges");
  ExpectError(Replaced("name: clos", "connections: []"),
              "n.yml:1: connections: not known; there are name, description, devices, links, "
              "instances, edges, infrastructure, annotations");
}

TEST(InfraGraphTest, NamesWhatIsMissingOrTwice) {
  ExpectError(Replaced("    scheme: one2one\n", ""), "n.yml:42: edges[0]: has no scheme");
  ExpectError(Replaced("    link: access\n", ""), "n.yml:42: edges[0]: has no link");
  ExpectError(Replaced("    ep2: { instance: \"leaf[0]\", component: port }\n", ""),
              "n.yml:42: edges[0]: has no ep2");
  ExpectError(Replaced("\"leaf[0]\", component: port", "\"leaf[0]\""),
              "n.yml:43: edges[0].ep2: has no component");
  ExpectError(Replaced("{ instance: \"host[0]\", component: nic }", "{ component: nic }"),
              "n.yml:42: edges[0].ep1: has no instance");
  ExpectError(Replaced("{ instance: \"host[0]\", component: nic }", "host"),
              "n.yml:42: edges[0].ep1: expected keys and values, each key once");
  ExpectError(Replaced("name: nic, ", ""), "n.yml:7: devices[0].components[2]: has no name");
  ExpectError(Replaced(", choice: nic", ""), "n.yml:7: devices[0].components[2]: has no choice");
  ExpectError(Replaced("name: nic, ", "name: nic, name: card, "),
              "n.yml:7: devices[0].components[2]: expected keys and values, each key once");
  ExpectError(Replaced("name: nic, ", "name: xpu, "),
              "n.yml:7: devices[0].components[2]: the name xpu is there twice");
  ExpectError(Replaced("name: spine", "name: leaf"),
              "n.yml:31: instances[2]: the name leaf is there twice");
  ExpectError(Replaced("name: uplink", "name: access"),
              "n.yml:37: links[1]: the name access is there twice");
  ExpectError(Replaced("  - name: switch\n", "  - name: server\n"),
              "n.yml:21: devices[1]: the name server is there twice");
  ExpectError("devices: []\ninstances: []\n", "n.yml:1: has no instances");
  ExpectError("devices: [ { name: d } ]\ninstances: [ { name: i, device: d, count: 1 } ]",
              "n.yml:1: devices[0]: has no components");
  ExpectError("devices: 7\n", "n.yml:1: devices: expected a list");
  ExpectError(Replaced("name: nvswitch", absl::StrCat("name: ", std::string(101, 'n'))),
              "n.yml:6: devices[0].components[1].name: expected 1 to 100 characters, all of them "
              "printable");
}

TEST(InfraGraphTest, BandwidthsAndLatenciesHaveOneUnitAndBounds) {
  const std::string bandwidth = "n.yml:35: links[0].physical.bandwidth: ";
  const std::string is = "{ gigabits_per_second: 100 }";
  ExpectError(Replaced(is, "{ gigatransfers_per_second: 16 }"),
              bandwidth +
                  "gigatransfers_per_second is no bandwidth: lanes and encoding are not known; "
                  "write gigabits_per_second instead, e.g. 252 for 16 lanes of PCIe at 16 GT/s");
  const std::string one_choice =
      "expected one choice of gigabits_per_second, gigabytes_per_second, gigatransfers_per_second";
  ExpectError(Replaced(is, "{ gigabits_per_second: 8, gigabytes_per_second: 1 }"),
              bandwidth + one_choice);
  ExpectError(Replaced(is, "{}"), bandwidth + one_choice);
  ExpectError(Replaced(is, "{ choice: bits, bits: 7 }"), bandwidth + one_choice);
  const std::string range = "gigabits_per_second: expected a number from 0.0078125 to 8e+12";
  ExpectError(Replaced(is, "{ choice: gigabits_per_second, gigabytes_per_second: 7 }"),
              bandwidth + range);
  for (const char* number : {"0", "-1", ".nan", "nan", "inf", "1e13", "100G"}) {
    ExpectError(Replaced(is, absl::StrCat("{ gigabits_per_second: ", number, " }")),
                bandwidth + range);
  }
  ExpectError(Replaced("{ us: 1.5 }", "{ us: -1 }"),
              "n.yml:36: links[0].physical.latency: us: expected a number from 0 to 1e+09");
  // An older form of the format; taken as it is, the link would not limit.
  ExpectError(Replaced("    physical:\n      bandwidth: " + is + "\n      latency: { us: 1.5 }",
                       "    bandwidth: " + is),
              "n.yml:34: links[0].bandwidth: not known; there are name, description, physical");
  EXPECT_OK(Read(Replaced(is,
                          "{ choice: gigabytes_per_second, gigabits_per_second: 8, "
                          "gigabytes_per_second: 1 }")));
}

TEST(InfraGraphTest, TwoLinksBetweenTheSameTwoMustBeTheSame) {
  const std::string ring = Edge("xpu", "xpu", "ring");
  EXPECT_OK(Read(OneDevice(ring + ring)));
  ExpectError(OneDevice(ring + absl::StrReplaceAll(ring, {{"fast", "slow"}})),
              "n.yml:9: devices[0].edges[1]: xpu.0 and xpu.1 are joined already, by a link with "
              "other values");
}

TEST(InfraGraphTest, EachNpuNeedsALinkThatLeadsOn) {
  ExpectError(OneDevice(Edge("xpu[0:7]", "xpu[0:7]", "ring")),
              "n.yml:9: instances: box.0.xpu.7 has no link that leads to another xpu");
  // All that xpu.7 has is a chain of switches with nothing at its end.
  ExpectError(OneDevice(Edge("xpu[0:7]", "xpu[0:7]", "ring") + Edge("xpu[7]", "a[0]", "one2one") +
                        Edge("a[0:3]", "a[1:4]", "one2one")),
              "n.yml:11: instances: box.0.xpu.7 has no link that leads to another xpu");
  ExpectError(OneDevice("      []\n"),
              "n.yml:9: instances: box.0.xpu.0 has no link that leads to another xpu");
  ExpectError(Replaced("count: 4, choice: xpu", "count: 4, choice: cpu"),
              "n.yml:29: instances: have 0 components of choice xpu; expected 2 to 1048576");
}

TEST(InfraGraphTest, CountsOfHostileFilesAreBounded) {
  const std::string expected = "expected a count from 1 on, and at most 4194304 components in all";
  for (const char* count :
       {"0", "-1", "4194305", "9223372036854775807", "99999999999999999999", "1.5", "many", "[]"}) {
    ExpectError(Replaced("count: 4, choice: xpu", absl::StrCat("count: ", count, ", choice: xpu")),
                absl::StrCat("n.yml:5: devices[0].components[0]: ", expected));
  }
  // 349526 servers of 12 components are more than 4194304, and each count alone is not.
  ExpectError(Replaced("device: server, count: 2", "device: server, count: 349526"),
              absl::StrCat("n.yml:29: instances[0]: ", expected));
  ExpectError(Replaced("count: 4, choice: nic", "count: 1100000, choice: xpu"),
              "n.yml:29: instances: have 2200008 components of choice xpu; expected 2 to 1048576");
  const auto box = [](const std::string& count, const std::string& edges) {
    return absl::StrReplaceAll(OneDevice(edges), {{"count: 8", "count: " + count}});
  };
  // 2000 * 1999 / 2 links are more than 2^20, 5000 * 5000 pairs more than anybody needs.
  ExpectError(box("2000", Edge("xpu", "xpu", "many2many")),
              "n.yml:8: devices[0].edges[0]: more than 1048576 links");
  ExpectError(box("5000", Edge("xpu", "xpu", "many2many")),
              "n.yml:8: devices[0].edges[0]: the lists and edges up to here make too many "
              "components and pairs");
  // 600000 links in each of two boxes.
  ExpectError(absl::StrReplaceAll(box("600000", Edge("xpu", "xpu", "ring")),
                                  {{"device: box, count: 1", "device: box, count: 2"}}),
              "n.yml:9: instances[0]: more than 1048576 links");
}

TEST(InfraGraphTest, AliasesOfHostileFilesAreBounded) {
  // 1000 instances of devices that have the same 1000 edges: a million of entries.
  std::string devices = "devices:\n";
  std::string instances = "instances:\n";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&devices, "  - { name: d", i, ", components: [ { name: xpu, count: 2, ",
                    "choice: xpu } ], links: [ { name: l } ], edges: ", i == 0 ? "&e [" : "*e");
    for (int edge = 0; i == 0 && edge < 1000; ++edge) {
      absl::StrAppend(&devices, edge == 0 ? "" : ", ", "{ ep1: { component: xpu }, ep2: { ",
                      "component: xpu }, scheme: ring, link: l }");
    }
    absl::StrAppend(&devices, i == 0 ? "] }\n" : " }\n");
    absl::StrAppend(&instances, "  - { name: i", i, ", device: d", i, ", count: 1 }\n");
  }
  EXPECT_THAT(Read(devices + instances),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("n.yml:"), HasSubstr("make too many components"))));
}

}  // namespace
}  // namespace meridian
