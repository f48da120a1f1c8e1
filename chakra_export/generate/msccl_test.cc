#include "chakra_export/generate/msccl.h"

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "chakra_export/et/et_attributes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::string_view kPair = R"(<?xml version="1.0"?>
<!-- Every type of step. -->
<algo name="pair" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="1" i_chunks="2"/>
  <gpu id="0" i_chunks="2">
    <tb id="0" send="1" recv="1" chan="3">
      <step s="0" type="s" cnt="1" depid="1" deps="1" hasdep="0"/>
      <step s="1" type="rrcs" cnt="2" depid="-1" deps="-1" hasdep="1"></step>
      <step s="2" type="rcs" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="3" type="rrc" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="1" send='-1' recv="-1" chan="-1">
      <step s="0" type="nop" cnt="0" depid="0" deps="1" hasdep="0"/>
      <step s="1" type="cpy" cnt="1" depid="0" deps="2" hasdep="0"/>
      <step s="2" type="re" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
)";

// E.g. "2 receive_tb0_step1 0>1 tag 3 512 bytes after 0".
std::string Describe(const Node& node) {
  std::string text = absl::StrCat(node.id(), " ", node.name());
  if (node.type() != ChakraProtoMsg::COMP_NODE) {
    const auto number = [&](absl::string_view name) {
      return GetIntAttribute(node.attr(), name).value().value_or(-1);
    };
    absl::StrAppend(&text, " ", number(kCommSrcAttribute), ">", number(kCommDstAttribute), " tag ",
                    number(kCommTagAttribute), " ", number(kCommSizeAttribute), " bytes");
  }
  if (node.data_deps_size() == 0) return text;
  return absl::StrCat(text, " after ", absl::StrJoin(node.data_deps(), " "));
}

std::vector<std::string> NodesOf(absl::string_view xml, int64_t gpu, int64_t bytes) {
  const absl::StatusOr<MscclAlgorithm> algorithm = ParseMsccl(xml, "a.xml");
  EXPECT_OK(algorithm);
  const absl::StatusOr<std::vector<Node>> nodes = MscclNodes(*algorithm, gpu, bytes);
  EXPECT_OK(nodes);
  std::vector<std::string> described;
  for (const Node& node : *nodes) described.push_back(Describe(node));
  return described;
}

TEST(MscclTest, StepsBecomeReceivesComputationsAndSends) {
  EXPECT_THAT(
      NodesOf(kPair, 0, 1024),
      ElementsAre("0 send_tb0_step0 0>1 tag 3 512 bytes after 8",
                  "1 receive_tb0_step1 1>0 tag 3 1024 bytes after 0", "2 rrcs_tb0_step1 after 1",
                  "3 send_tb0_step1 0>1 tag 3 1024 bytes after 2",
                  "4 receive_tb0_step2 1>0 tag 3 512 bytes after 3",
                  "5 send_tb0_step2 0>1 tag 3 512 bytes after 4",
                  "6 receive_tb0_step3 1>0 tag 3 512 bytes after 5", "7 rrc_tb0_step3 after 6",
                  // The nop waited for step 1.
                  "8 cpy_tb1_step1 after 3 5", "9 re_tb1_step2 after 8"));
  EXPECT_THAT(NodesOf(kPair, 1, 1024), ElementsAre("0 idle"));
}

// 64 bytes a rank are 128 of the buffer, in two chunks.
TEST(MscclTest, SizesOfAnAllGatherAreShards) {
  const std::string xml = absl::StrReplaceAll(kPair, {{"allreduce", "allgather"}});
  EXPECT_THAT(NodesOf(xml, 0, 64)[0], HasSubstr(" 64 bytes"));
}

TEST(MscclTest, RefusesWhatIsNoAlgorithm) {
  const struct {
    std::vector<std::pair<absl::string_view, absl::string_view>> edits;
    std::string message;
  } cases[] = {
      {{{"type=\"re\"", "type=\"x\""}}, "type \"x\" is unknown; expected one of s, r, "},
      {{{"type=\"re\"", "type=\"r\""}}, "type r needs a peer"},
      {{{"type=\"re\" ", ""}}, "<step> has no type"},
      {{{"<step s=\"2\" type=\"re\"", "<step s=\"4\" type=\"re\""}}, "s is \"4\"; expected"},
      {{{"recv=\"1\"", "recv=\"2\""}}, "recv is \"2\"; expected a number from -1 to 1"},
      {{{"recv=\"1\"", "recv=\"0\""}}, "exchanges messages with itself"},
      {{{"id=\"1\" i_chunks", "id=\"0\" i_chunks"}}, "GPU 0 is there twice"},
      {{{"ngpus=\"2\"", "ngpus=\"3\""}}, "has 2 of 3 <gpu>"},
      {{{"ngpus=\"2\"", "ngpus=\"99999999\""}}, "ngpus is \"99999999\""},
      {{{"nchunksperloop=\"2\"", "nchunksperloop=\"0\""}}, "nchunksperloop is \"0\""},
      {{{"cnt=\"2\"", "cnt=\"0\""}}, "cnt is \"0\""},
      {{{"</algo>", ""}}, "the text ends before </algo>"},
      {{{"</algo>", "</algo><algo>"}}, "<algo> is not expected here"},
      {{{"<gpu id=\"1\" i_chunks=\"2\"/>", "<tb/>"}}, "<tb> is not expected here"},
      {{{"</tb>", "</gpu>"}}, "</gpu> closes nothing"},
      {{{"<?xml version=\"1.0\"?>", "<!DOCTYPE algo [<!ENTITY a \"b\">]>"}},
       "offset 1: expected the name of a tag"},
      {{{"</tb>", "text</tb>"}}, "expected a tag"},
      {{{"type=\"re\"", "type=re"}}, "expected a value in quotes"},
  };
  for (const auto& test : cases) {
    const std::string xml = absl::StrReplaceAll(kPair, test.edits);
    EXPECT_THAT(ParseMsccl(xml, "a.xml"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("a.xml: offset "), HasSubstr(test.message))))
        << test.message;
  }
}

TEST(MscclTest, RefusesWaitsAndSizesThatCannotBe) {
  const auto error = [](absl::string_view from, absl::string_view to, int64_t bytes) {
    const absl::StatusOr<MscclAlgorithm> algorithm =
        ParseMsccl(absl::StrReplaceAll(kPair, {{from, to}}), "a.xml");
    EXPECT_OK(algorithm);
    return std::string(MscclNodes(*algorithm, 0, bytes).status().message());
  };
  EXPECT_EQ(error("deps=\"2\"", "deps=\"9\"", 2),
            "a.xml: GPU 0: tb1_step1: waits for step 9 of thread block 0, which does not exist");
  EXPECT_THAT(error("depid=\"1\" deps=\"1\"", "depid=\"1\" deps=\"0\"", 2),
              HasSubstr("tb0_step0: waits for step 0 of thread block 1, which is a nop"));
  EXPECT_THAT(error("", "", 3), HasSubstr("--bytes=3 does not divide by nchunksperloop=2"));
  EXPECT_THAT(error("", "", 0), HasSubstr("--bytes=0: expected 1 to"));
  EXPECT_THAT(error("cnt=\"2\"", "cnt=\"2000000000\"", int64_t{1} << 40),
              HasSubstr("a message of 2000000000 chunks"));
}

TEST(MscclTest, DamageIsRefusedOrHarmless) {
  for (size_t size = 0; size < kPair.size(); ++size) {
    EXPECT_EQ(ParseMsccl(kPair.substr(0, size), "a.xml").ok(), size + 1 == kPair.size()) << size;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const absl::StatusOr<MscclAlgorithm> algorithm =
        ParseMsccl(Damage(std::string(kPair), random), "a.xml");
    if (algorithm.ok()) MscclNodes(*algorithm, 0, algorithm->chunks).IgnoreError();
  }
}

TEST(MscclTest, WritesATracePerGpu) {
  const TemporaryDirectory directory;
  directory.Write("a.xml", kPair);
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report,
                       WriteMscclTraces(FileSystem::Posix(), directory.PathOf("a.xml"), {}, 1024,
                                        directory.PathOf("et")));
  ASSERT_THAT(report.ranks(), SizeIs(2));
  EXPECT_EQ(report.ranks(0).nodes(), 10);
  EXPECT_EQ(report.ranks(0).comm_nodes(), 6);
}

}  // namespace
}  // namespace meridian
