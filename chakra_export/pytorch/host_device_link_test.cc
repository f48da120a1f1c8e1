#include "chakra_export/pytorch/host_device_link.h"

#include <string>

#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

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
  EXPECT_THAT(link.op_of_row, ElementsAre(1, 0));
  EXPECT_THAT(link.row_of_op, ElementsAre(1, 0, kNoRow));
  EXPECT_EQ(link.linked, 2);
  EXPECT_EQ(link.host_events, 2);
}

TEST_F(HostDeviceLinkTest, LinksNeitherOtherNamesNorAnIdTwice) {
  const HostDeviceLink link = Link(HostTraceText().Op(3, 1, "a").Op(4, 1, "b").Op(5, 1, "c"),
                                   KinetoText()
                                       .Op("a", 1, 0, 5, 3)
                                       .Op("a", 1, 10, 5, 3)
                                       .Op("b", 1, 20, 5, 4)
                                       .Op("other", 1, 30, 5, 5)
                                       .Op("unknown", 1, 40, 5, 99)
                                       .Op("without", 1, 50, 5));
  EXPECT_THAT(link.op_of_row, ElementsAre(0, kNoHostOp, 1, kNoHostOp, kNoHostOp, kNoHostOp));
  EXPECT_EQ(link.linked, 2);
  EXPECT_EQ(link.host_events, 6);
}

}  // namespace
}  // namespace meridian
