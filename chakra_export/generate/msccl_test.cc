#include "chakra_export/generate/msccl.h"

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  <gpu id="1" i_chunks="2"/>
</algo>
)";

// E.g. "2 r_tb0_step1 0>1 tag 3 512 bytes after 0".
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
      ElementsAre("0 s_tb0_step0 0>1 tag 3 512 bytes after 8",
                  "1 rrcs_tb0_step1 1>0 tag 3 1024 bytes after 0", "2 rrcs_tb0_step1 after 1",
                  "3 rrcs_tb0_step1 0>1 tag 3 1024 bytes after 2",
                  "4 rcs_tb0_step2 1>0 tag 3 512 bytes after 3",
                  "5 rcs_tb0_step2 0>1 tag 3 512 bytes after 4",
                  "6 rrc_tb0_step3 1>0 tag 3 512 bytes after 5", "7 rrc_tb0_step3 after 6",
                  // The nop waited for step 1.
                  "8 cpy_tb1_step1 after 3 5", "9 re_tb1_step2 after 8"));
  EXPECT_THAT(NodesOf(kPair, 1, 1024), ElementsAre("0 idle"));
  // A byte order mark.
  EXPECT_THAT(NodesOf(absl::StrCat("\xEF\xBB\xBF", kPair), 1, 1024), ElementsAre("0 idle"));
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
      {{{"type=\"re\"", "type=\"x\""}}, "type \"x\" is unknown"},
      {{{"type=\"re\"", "type=\"r\""}}, "its <tb> has no other GPU or no channel"},
      {{{"type=\"re\" ", ""}}, "<step> has no type"},
      {{{"<step s=\"2\" type=\"re\"", "<step s=\"4\" type=\"re\""}}, "s is \"4\"; expected"},
      {{{"recv=\"1\"", "recv=\"2\""}}, "recv is \"2\"; expected a number from -1 to 1"},
      {{{"recv=\"1\"", "recv=\"0\""}}, "its <tb> has no other GPU"},
      {{{"id=\"1\" i_chunks", "id=\"0\" i_chunks"}}, "id is \"0\"; expected 1"},
      {{{"ngpus=\"2\"", "ngpus=\"3\""}}, "ngpus is 3, but it has 2 <gpu>"},
      {{{"nchunksperloop=\"2\"", "nchunksperloop=\"0\""}}, "nchunksperloop is \"0\""},
      {{{"cnt=\"2\"", "cnt=\"0\""}}, "cnt is \"0\""},
      {{{"cnt=\"2\"", "cnt=\"2147483648\""}}, "cnt is \"2147483648\""},
      {{{"type=\"cpy\"", "type=\"cpy\" srcbuf=\"x\""}}, "srcbuf is \"x\"; expected i, o or s"},
      {{{"type=\"cpy\"", "type=\"cpy\" srcbuf=\"i\" srcoff=\"2\""}},
       "srcoff 2 and cnt 1 are beyond the 2 chunks of its GPU (i_chunks)"},
      {{{"type=\"rrcs\"", "type=\"rrcs\" dstbuf=\"i\" dstoff=\"1\""}},
       "dstoff 1 and cnt 2 are beyond the 2 chunks of its GPU (i_chunks)"},
      {{{"deps=\"2\"", "deps=\"9\""}}, "waits for step 9 of thread block 0, which does not exist"},
      {{{"depid=\"1\" deps=\"1\"", "depid=\"1\" deps=\"0\""}},
       "step 0 of thread block 1, which is a nop"},
      {{{"</algo>", ""}}, "expected an element"},
      {{{"</algo>", "</algo><algo>"}}, "the document has ended before"},
      {{{"<algo", "<b"}, {"</algo", "</b"}}, "expected an algorithm of MSCCL"},
      {{{"<gpu id=\"1\" i_chunks=\"2\"/>", "<tb/>"}}, "expected <gpu>, not <tb>"},
      {{{"</tb>", "</gpu>"}}, "expected </tb>"},
      {{{"</step>", "<x/></step>"}}, "is nested too deeply"},
      {{{"<?xml version=\"1.0\"?>", "<!DOCTYPE algo [<!ENTITY a \"b\">]>"}},
       "<!DOCTYPE> is not read; remove it"},
      {{{"<?xml version=\"1.0\"?>", "\xFF\xFE<"}}, "is UTF-16; expected UTF-8"},
      {{{"<?xml version=\"1.0\"?>", "{"}}, "is JSON; plans of MSCCL++ are not read"},
      {{{"chan=\"3\"", "chan=\"500000000\""}},
       "chan is \"500000000\"; expected a number from -1 to 499999999"},
      {{{"chan=\"3\"", "chan=\"3\" chan=\"3\""}}, "<tb> has two values of chan"},
      {{{"coll=\"allreduce\"", "coll=\"allgathr\""}},
       "coll is \"allgathr\"; expected one of allreduce, allgather, reduce, "},
      {{{"<gpu id=\"0\" i_chunks=\"2\">", "<!--"}, {"<gpu id=\"1\" i_chunks=\"2\"/>", "-->"}},
       "has 0 <gpu>; expected 1 to"},
      {{{"-->", ""}}, "there is no -->"},
      {{{"</tb>", "text</tb>"}}, "expected an element"},
      {{{"type=\"re\"", "type=re"}}, "expected a value in quotes"},
  };
  for (const auto& test : cases) {
    const std::string xml = absl::StrReplaceAll(kPair, test.edits);
    const absl::StatusOr<MscclAlgorithm> algorithm = ParseMsccl(xml, "a.xml");
    EXPECT_THAT(algorithm.ok() ? MscclNodes(*algorithm, 0, 2).status() : algorithm.status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("a.xml: offset "), HasSubstr(test.message))))
        << test.message;
  }
}

TEST(MscclTest, RefusesSizesThatCannotBe) {
  ASSERT_OK_AND_ASSIGN(const MscclAlgorithm algorithm, ParseMsccl(kPair, "a.xml"));
  const auto error = [&](int64_t bytes) {
    return std::string(MscclNodes(algorithm, 0, bytes).status().message());
  };
  EXPECT_THAT(error(3), HasSubstr("--bytes=3 does not divide by nchunksperloop=2"));
  EXPECT_THAT(error(0), HasSubstr("--bytes=0: expected 1 to"));
  EXPECT_EQ(error(int64_t{1} << 42), "");
}

TEST(MscclTest, DamageIsRefusedOrHarmless) {
  for (size_t size = 0; size < kPair.size(); ++size) {
    EXPECT_EQ(ParseMsccl(kPair.substr(0, size), "a.xml").ok(), size + 1 == kPair.size()) << size;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string xml = Damage(std::string(kPair), random);
    const absl::StatusOr<MscclAlgorithm> algorithm = ParseMsccl(xml, "a.xml");
    if (algorithm.ok()) MscclNodes(*algorithm, 0, algorithm->chunks).IgnoreError();
  }
}

// GPU 0 has these steps, and GPU 1 those; each is a type.
absl::Status WriteTwo(const TemporaryDirectory& directory, const std::vector<std::string>& first,
                      const std::vector<std::string>& second,
                      ChakraWorkloadReport* report = nullptr) {
  std::string xml = "<algo coll=\"custom\" ngpus=\"2\" nchunksperloop=\"1\">";
  for (const int gpu : {0, 1}) {
    absl::StrAppend(&xml, "<gpu id=\"", gpu, "\"><tb id=\"0\" send=\"", 1 - gpu, "\" recv=\"",
                    1 - gpu, "\" chan=\"0\">");
    int number = 0;
    for (const std::string& step : gpu == 0 ? first : second) {
      absl::StrAppend(&xml, "<step s=\"", number++, "\" ", step, "/>");
    }
    absl::StrAppend(&xml, "</tb></gpu>");
  }
  const absl::StatusOr<ChakraWorkloadReport> written =
      WriteMscclTraces(FileSystem::Posix(), directory.Write("a.xml", xml + "</algo>"), {}, 1024,
                       directory.PathOf("et"));
  if (written.ok() && report != nullptr) *report = *written;
  return written.status();
}

constexpr char kSend[] = R"(type="s" cnt="1" depid="-1" deps="-1")";
constexpr char kSendTwo[] = R"(type="s" cnt="2" depid="-1" deps="-1")";
constexpr char kReceive[] = R"(type="r" cnt="1" depid="-1" deps="-1")";
constexpr char kWaitsForItself[] = R"(type="cpy" cnt="1" depid="0" deps="0")";

TEST(MscclTest, WritesATracePerGpu) {
  const TemporaryDirectory directory;
  ChakraWorkloadReport report;
  ASSERT_OK(WriteTwo(directory, {kSend, kReceive, kSend}, {kSend, kReceive, kReceive}, &report));
  ASSERT_THAT(report.ranks(), SizeIs(2));
  EXPECT_EQ(report.ranks(0).nodes(), 3);
  EXPECT_EQ(report.ranks(0).comm_nodes(), 3);
}

TEST(MscclTest, RefusesWhatNeverEnds) {
  const TemporaryDirectory directory;
  const auto error = [&](const std::vector<std::string>& first,
                         const std::vector<std::string>& second) {
    return std::string(WriteTwo(directory, first, second).message());
  };
  EXPECT_THAT(error({kSend}, {}), AllOf(HasSubstr("a.xml: "), HasSubstr("no receive")));
  EXPECT_THAT(error({kSendTwo}, {kReceive}), HasSubstr("1024"));
  EXPECT_THAT(error({kReceive, kSend}, {kReceive, kSend}), HasSubstr("deadlock"));
  EXPECT_THAT(error({kWaitsForItself}, {}), HasSubstr("waits for"));
  EXPECT_FALSE(FileSystem::Posix().Kind(directory.PathOf("et.0.et")).ok());
}

}  // namespace
}  // namespace meridian
