#include "cluster/probe/probe_hosts.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ProbeHostsTest, ReadsHostFiles) {
  ASSERT_OK_AND_ASSIGN(const std::vector<ProbeHost> hosts,
                       ParseProbeHosts("# the job\ngpu01 slots=8 max_slots=9\n\ngpu02:99  # spare\n"
                                       "[::1]:5,fe80::1\n",
                                       "hosts", {"", 7321, 0, 4}));
  ASSERT_EQ(hosts.size(), 4u);
  EXPECT_EQ(hosts[0].name, "gpu01");
  EXPECT_EQ(hosts[0].port, 7321);
  EXPECT_EQ(hosts[0].nodes, 8);
  EXPECT_EQ(hosts[1].name, "gpu02");
  EXPECT_EQ(hosts[1].port, 99);
  EXPECT_EQ(hosts[1].first_node, 8);
  EXPECT_EQ(hosts[2].name, "::1");
  EXPECT_EQ(hosts[2].port, 5);
  EXPECT_EQ(hosts[2].first_node, 12);
  EXPECT_EQ(hosts[3].name, "fe80::1");
  EXPECT_EQ(hosts[3].port, 7321);
}

TEST(ProbeHostsTest, SaysWhichLineIsNoHost) {
  for (const char* bad : {"a:0", "a:70000", "a:x", ":5", "[::1", "[::1]5", "a slots=0", "a,,b"}) {
    EXPECT_THAT(ParseProbeHosts(std::string("good\n") + bad, "file", {"", 1}),
                StatusIs(kInvalid, HasSubstr("file:2: ")))
        << bad;
  }
  EXPECT_THAT(ParseProbeHosts("alone", "file", {"", 1}),
              StatusIs(kInvalid, HasSubstr("1 host(s)")));
}

TEST(ProbeHostsTest, FindsItselfByFlagLauncherOrName) {
  ASSERT_OK_AND_ASSIGN(const std::vector<ProbeHost> hosts,
                       ParseProbeHosts("a.lan,b.lan,c", "hosts", {"", 1}));
  EXPECT_THAT(FindThisHost(hosts, 1, {}, "c"), IsOkAndHolds(1u));
  EXPECT_THAT(FindThisHost(hosts, 3, {}, "c"), StatusIs(kInvalid, HasSubstr("3 hosts")));
  EXPECT_THAT(FindThisHost(hosts, -1, {"2", "", ""}, "a"), IsOkAndHolds(2u));
  EXPECT_THAT(FindThisHost(hosts, -1, {"2", "1", "3"}, "a"), IsOkAndHolds(1u));
  EXPECT_THAT(FindThisHost(hosts, -1, {"", "1", "24"}, "a"),
              StatusIs(kInvalid, HasSubstr("ppr:1:node")));
  EXPECT_THAT(FindThisHost(hosts, -1, {}, "b.lan"), IsOkAndHolds(1u));
  EXPECT_THAT(FindThisHost(hosts, -1, {}, "b"), IsOkAndHolds(1u));
  EXPECT_THAT(FindThisHost(hosts, -1, {}, "d"), StatusIs(kInvalid, HasSubstr("--host_index")));
}

TEST(NeighboursTest, AreFewEquallyManyAndConnectAll) {
  for (const size_t hosts : {2, 3, 4, 5, 16, 100, 1024}) {
    std::vector<size_t> asked(hosts, 0);
    std::vector<std::vector<size_t>> around(hosts);
    const size_t degree = NeighboursOf(0, hosts, 7).size();
    size_t log2 = 1;
    while ((size_t{1} << log2) < hosts) ++log2;
    EXPECT_LE(degree, log2);
    for (size_t i = 0; i < hosts; ++i) {
      const std::vector<size_t> neighbours = NeighboursOf(i, hosts, 7);
      EXPECT_EQ(neighbours.size(), degree);
      EXPECT_EQ(std::set<size_t>(neighbours.begin(), neighbours.end()).size(), degree);
      for (const size_t j : neighbours) {
        EXPECT_NE(j, i);
        ++asked[j];
        around[i].push_back(j);
        around[j].push_back(i);
      }
    }
    for (const size_t count : asked) EXPECT_EQ(count, degree);
    for (size_t i = 0; i < hosts; ++i) {
      for (const size_t asker : AskersOf(i, hosts, 7)) {
        EXPECT_THAT(NeighboursOf(asker, hosts, 7), testing::Contains(i));
      }
      EXPECT_EQ(AskersOf(i, hosts, 7).size(), degree);
    }
    std::set<size_t> reached = {0};
    for (std::vector<size_t> next = {0}; !next.empty();) {
      const size_t host = next.back();
      next.pop_back();
      for (const size_t j : around[host]) {
        if (reached.insert(j).second) next.push_back(j);
      }
    }
    EXPECT_EQ(reached.size(), hosts);
  }
  EXPECT_NE(NeighboursOf(0, 1024, 7), NeighboursOf(0, 1024, 8));
}

}  // namespace
}  // namespace meridian
