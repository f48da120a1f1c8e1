#include "chakra_export/pytorch/host_device_link.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class HostDeviceLinkTest : public ::testing::Test {
 protected:
  HostDeviceLink Link(const HostTraceText& host, const KinetoText& device) {
    host_text_ = host.Text();
    device_text_ = device.Text();
    const absl::StatusOr<HostTrace> trace = ReadHostTrace(host_text_, "et.json");
    const absl::StatusOr<TraceJsonTable> table = LoadTraceJson(device_text_, "kineto.json");
    EXPECT_OK(trace);
    EXPECT_OK(table);
    return LinkHostTrace(*trace, table->table, device_text_);
  }

  std::string host_text_;
  std::string device_text_;
};

TEST_F(HostDeviceLinkTest, LinksByRecordFunctionId) {
  const HostDeviceLink link = Link(HostTraceText().Op(3, 1, "a").Op(4, 1, "b").Op(5, 1, "c"),
                                   KinetoText().Op("b", 1, 0, 5, 4).Op("a", 1, 10, 5, 3));
  EXPECT_EQ(link.method, LinkMethod::kRecordFunctionId);
  EXPECT_THAT(link.op_of_row, ElementsAre(1, 0));
  EXPECT_THAT(link.row_of_op, ElementsAre(1, 0, kNoRow));
  EXPECT_EQ(link.linked, 2);
  EXPECT_THAT(link.unlinked_ops, ElementsAre(Pair("no such event in the profile", 1)));
  EXPECT_THAT(link.unlinked_rows, IsEmpty());
}

TEST_F(HostDeviceLinkTest, SaysWhyAnEventIsNotLinked) {
  const HostDeviceLink link = Link(HostTraceText().Op(3, 1, "a").Op(4, 1, "b").Op(5, 1, "c"),
                                   KinetoText()
                                       .Op("a", 1, 0, 5, 3)
                                       .Op("a", 1, 10, 5, 3)
                                       .Op("b", 1, 20, 5, 4)
                                       .Op("other", 1, 30, 5, 5)
                                       .Op("unknown", 1, 40, 5, 99)
                                       .Op("without", 1, 50, 5));
  EXPECT_EQ(link.linked, 2);
  EXPECT_THAT(link.unlinked_rows, ElementsAre(Pair("an earlier event has the same id", 1),
                                              Pair("no operator of that id in the host trace", 1),
                                              Pair("the event has no id", 1),
                                              Pair("the operator of that id has another name", 1)));
}

TEST_F(HostDeviceLinkTest, LinksByExternalIdWhenThereIsNoOther) {
  const HostDeviceLink link =
      Link(HostTraceText("1.0.1").Op(3, 1, "a").Op(4, 1, "b"),
           KinetoText().Op("a", 1, 0, 5, 3, "External id").Op("b", 1, 10, 5, 4, "External id"));
  EXPECT_EQ(link.method, LinkMethod::kExternalId);
  EXPECT_THAT(link.op_of_row, ElementsAre(0, 1));
}

TEST_F(HostDeviceLinkTest, FindsWhatAThreadCalledInALongerProfile) {
  HostTraceText host("1.0.1");
  host.Op(3, 1, "x", 1).Op(4, 1, "y", 1).Op(5, 1, "z", 1).Op(6, 1, "p", 2).Op(7, 1, "q", 2);
  KinetoText device;
  // Two threads; the first one's calls come after others. External ids count something else.
  int64_t ts = 0;
  for (const char* name : {"x", "w", "x", "y", "z", "x"}) {
    ts += 10;
    device.Op(name, 50, ts, 5, 900 + ts, "External id");
  }
  device.Op("p", 60, 100, 5).Op("q", 60, 110, 5);
  const HostDeviceLink link = Link(host, device);
  EXPECT_EQ(link.method, LinkMethod::kOpNames);
  EXPECT_THAT(link.op_of_row, ElementsAre(kNoHostOp, kNoHostOp, 0, 1, 2, kNoHostOp, 3, 4));
  EXPECT_THAT(link.unlinked_rows,
              ElementsAre(Pair("no thread of the host trace called it here", 3)));
}

TEST_F(HostDeviceLinkTest, TellsEventsOfOneMicrosecondApartByTheirOrder) {
  HostTraceText host("1.0.1");
  host.Op(3, 1, "a").Op(4, 1, "b");
  const HostDeviceLink link = Link(host, KinetoText().Op("a", 1, 10, 0).Op("b", 1, 10, 7));
  EXPECT_THAT(link.op_of_row, ElementsAre(0, 1));
}

}  // namespace
}  // namespace meridian
