#include "xla_profiler/xplane/xplane_rewriter.h"

#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/xplane/plane_metadata_merger.h"

namespace meridian {
namespace {

using ::tensorflow::profiler::XEvent;
using ::tensorflow::profiler::XLine;
using ::tensorflow::profiler::XPlane;
using ::tensorflow::profiler::XSpace;
using ::testing::HasSubstr;

class LambdaEditor : public XSpaceEditor {
 public:
  absl::Status EditPlane(const XPlaneVisitor& plane, PlaneEdit* edit) override {
    if (edit_plane) edit_plane(plane.Layout(), edit);
    return absl::OkStatus();
  }
  absl::Status EditLine(const XPlaneLayout&, const XLineHeader& line, RewritePass pass,
                        LineEdit* edit) override {
    passes.push_back(pass);
    if (edit_line) edit_line(line, edit);
    return absl::OkStatus();
  }

  std::function<void(const XPlaneLayout&, PlaneEdit*)> edit_plane;
  std::function<void(const XLineHeader&, LineEdit*)> edit_line;
  std::vector<RewritePass> passes;
};

// Takes nothing.
class FullSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view) override { return absl::ResourceExhaustedError("full"); }
};

class XPlaneRewriterTest : public ::testing::Test {
 protected:
  XPlaneRewriterTest() {
    space_.add_hostnames("host");
    XPlane* host = space_.add_planes();
    host->set_name("/host:CPU");
    XPlane* gpu = space_.add_planes();
    gpu->set_name("/device:GPU:0");
    (*gpu->mutable_event_metadata())[1].set_name("kernel");
    XLine* line = gpu->add_lines();
    line->set_name("Stream #1");
    line->set_timestamp_ns(10);
    for (int64_t offset_ps : {0, 500}) {
      auto* event = line->add_events();
      event->set_metadata_id(1);
      event->set_offset_ps(offset_ps);
      event->set_duration_ps(100);
    }
  }

  absl::StatusOr<XSpace> Rewrite() {
    bytes_ = space_.SerializeAsString();
    out_.clear();
    StringSink sink(&out_);
    RETURN_IF_ERROR(RewriteXSpace({bytes_, {}}, editor_, sink, options_));
    XSpace result;
    if (!result.ParseFromString(out_)) return absl::InternalError("libprotobuf refuses the result");
    return result;
  }

  XSpace space_;
  LambdaEditor editor_;
  RewriteOptions options_;
  std::string bytes_;
  std::string out_;
};

TEST_F(XPlaneRewriterTest, WithoutEditsTheBytesAreTheSame) {
  ASSERT_OK(Rewrite());
  EXPECT_EQ(out_, bytes_);
}

// What a reader refuses is not copied either, whether it is edited, renamed or left alone.
TEST_F(XPlaneRewriterTest, DamagedStatsAreNotCopied) {
  XPlane* gpu = space_.mutable_planes(1);
  (*gpu->mutable_stat_metadata())[2].set_name("bytes");
  // Messages as bytes of an unknown field would be; the stat of an event is field 4.
  const std::string kDamaged[] = {
      std::string("\x22\x03\x08\x02\x20", 5),          // The value is missing.
      std::string("\x22\x04\x08\x09\x20\x01", 6),      // Stat 9 is not defined.
      std::string("\x22\x04\x08\x02\x38\x09", 6),      // Refers to stat 9.
      std::string("\x22\x05\x08\x02\x2a\x01\xff", 7),  // Not UTF-8.
      std::string("\x22\x04\x08\x02\x07\x01", 6),      // No wire type.
  };
  const XSpace sound = space_;
  for (const std::string& damaged : kDamaged) {
    space_ = sound;
    auto* event = space_.mutable_planes(1)->mutable_lines(0)->mutable_events(1);
    std::string bytes = event->SerializeAsString() + damaged;
    // libprotobuf writes what it does not know as it was; so the event goes in as an unknown field.
    space_.mutable_planes(1)->mutable_lines(0)->mutable_events()->RemoveLast();
    auto* line = space_.mutable_planes(1)->mutable_lines(0);
    line->GetReflection()->MutableUnknownFields(line)->AddLengthDelimited(4, bytes);
    for (const bool edits_lines : {true, false}) {
      for (const uint64_t buffer_bytes : {uint64_t{0}, uint64_t{1} << 20}) {
        options_.buffer_bytes = buffer_bytes;
        editor_.edit_plane = [&](const XPlaneLayout&, PlaneEdit* edit) {
          edit->edit_lines = edits_lines;
        };
        EXPECT_THAT(Rewrite(), StatusIs(absl::StatusCode::kInvalidArgument))
            << absl::CHexEscape(damaged) << (edits_lines ? " edited" : " left alone");
      }
    }
  }
}

TEST_F(XPlaneRewriterTest, MoreLinesThanAreReadAreNotWritten) {
  XPlane plane;
  for (int i = 0; i < 1 << 17; ++i) plane.add_lines();
  const std::string payload = plane.SerializeAsString();
  const XSpaceSource source{payload, {}};
  StringSink sink(&out_);
  XSpaceWriter writer(&sink);
  ASSERT_OK(writer.WritePlane({&source, payload, &editor_, ""}));
  ASSERT_OK(writer.WritePlane({&source, payload, &editor_, ""}));
  EXPECT_THAT(writer.WritePlane({&source, payload, &editor_, ""}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 65536 planes or "
                                                                     "262144 lines")));
}

TEST_F(XPlaneRewriterTest, RenamesAndAddsToPlanes) {
  XPlane additions;
  additions.add_stats()->set_metadata_id(3);
  (*additions.mutable_stat_metadata())[3].set_name("node_id");
  editor_.edit_plane = [&](const XPlaneLayout& plane, PlaneEdit* edit) {
    if (plane.name == "/host:CPU") return;
    edit->name = "/device:GPU:17";
    edit->additions = additions.SerializeAsString();
  };
  ASSERT_OK_AND_ASSIGN(const XSpace result, Rewrite());
  ASSERT_EQ(result.planes_size(), 2);
  EXPECT_EQ(result.planes(0).name(), "/host:CPU");
  EXPECT_EQ(result.planes(0).stats_size(), 0);
  EXPECT_EQ(result.planes(1).name(), "/device:GPU:17");
  EXPECT_EQ(result.planes(1).stats(0).metadata_id(), 3);
  EXPECT_EQ(result.planes(1).stat_metadata().at(3).name(), "node_id");
  EXPECT_EQ(result.planes(1).lines(0).events_size(), 2);
  EXPECT_EQ(result.hostnames(0), "host");
}

TEST_F(XPlaneRewriterTest, EditsEveryPartOfALine) {
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor_.edit_line = [](const XLineHeader&, LineEdit* edit) {
    edit->id = -1;
    edit->timestamp_ns = 1794701340994277835;
    edit->display_name = std::string(300, 'n');
    edit->times = {{0, 0, false}, {-7, 1 << 20, false}};
  };
  ASSERT_OK_AND_ASSIGN(const XSpace result, Rewrite());
  const XLine& line = result.planes(1).lines(0);
  EXPECT_EQ(line.id(), -1);
  EXPECT_EQ(line.name(), "Stream #1");
  EXPECT_EQ(line.timestamp_ns(), 1794701340994277835);
  EXPECT_EQ(line.display_name(), std::string(300, 'n'));
  ASSERT_EQ(line.events_size(), 2);
  EXPECT_EQ(line.events(0).offset_ps(), 0);
  EXPECT_EQ(line.events(0).duration_ps(), 0);
  EXPECT_EQ(line.events(1).offset_ps(), -7);
  EXPECT_EQ(line.events(1).duration_ps(), 1 << 20);
  EXPECT_EQ(line.events(1).metadata_id(), 1);
}

TEST_F(XPlaneRewriterTest, AnAggregatedEventKeepsItsOccurrences) {
  auto* event = space_.mutable_planes(1)->mutable_lines(0)->mutable_events(1);
  event->set_num_occurrences(6);
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor_.edit_line = [](const XLineHeader&, LineEdit* edit) {
    edit->times = {{1, 1, false}, {99, 2, false}};
  };
  ASSERT_OK_AND_ASSIGN(const XSpace result, Rewrite());
  const auto& rewritten = result.planes(1).lines(0).events(1);
  EXPECT_EQ(rewritten.num_occurrences(), 6);
  EXPECT_EQ(rewritten.duration_ps(), 2);
}

TEST_F(XPlaneRewriterTest, TheEditorSeesTheTimesAsTheyAre) {
  auto* line = space_.mutable_planes(1)->mutable_lines(0);
  auto* aggregated = line->add_events();
  aggregated->set_metadata_id(1);
  aggregated->set_num_occurrences(3);
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor_.edit_line = [](const XLineHeader&, LineEdit* edit) {
    ASSERT_EQ(edit->times.size(), 3u);
    EXPECT_EQ(edit->times[1].offset_ps, 500);
    EXPECT_EQ(edit->times[1].duration_ps, 100);
    EXPECT_FALSE(edit->times[1].is_aggregated);
    EXPECT_TRUE(edit->times[2].is_aggregated);
  };
  ASSERT_OK(Rewrite());
  EXPECT_EQ(out_, bytes_);
}

TEST_F(XPlaneRewriterTest, ReplacesAStatOfAPlaneInItsPlace) {
  XPlane* host = space_.mutable_planes(0);
  for (int id : {1, 2, 3}) host->add_stats()->set_metadata_id(id);
  editor_.edit_plane = [](const XPlaneLayout& plane, PlaneEdit* edit) {
    if (plane.name != "/host:CPU") return;
    ::tensorflow::profiler::XStat stat;
    stat.set_metadata_id(2);
    stat.set_uint64_value(1794701451406144825);
    edit->replacements[plane.stats[1].data()] = stat.SerializeAsString();
  };
  ASSERT_OK_AND_ASSIGN(const XSpace result, Rewrite());
  ASSERT_EQ(result.planes(0).stats_size(), 3);
  EXPECT_EQ(result.planes(0).stats(0).metadata_id(), 1);
  EXPECT_EQ(result.planes(0).stats(1).uint64_value(), 1794701451406144825u);
  EXPECT_EQ(result.planes(0).stats(2).metadata_id(), 3);
}

TEST_F(XPlaneRewriterTest, AddsStatsToEvents) {
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor_.edit_line = [](const XLineHeader&, LineEdit* edit) {
    edit->event_additions = [](size_t event, std::string* fields) {
      if (event != 1) return;
      ::tensorflow::profiler::XEvent additions;
      additions.add_stats()->set_metadata_id(77);
      additions.AppendToString(fields);
    };
  };
  ASSERT_OK_AND_ASSIGN(const XSpace result, Rewrite());
  const XLine& line = result.planes(1).lines(0);
  EXPECT_EQ(line.events(0).stats_size(), 0);
  ASSERT_EQ(line.events(1).stats_size(), 1);
  EXPECT_EQ(line.events(1).stats(0).metadata_id(), 77);
  EXPECT_EQ(line.events(1).offset_ps(), 500);
}

TEST_F(XPlaneRewriterTest, AWrongNumberOfTimesIsOurMistakeAndSaysSo) {
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor_.edit_line = [](const XLineHeader&, LineEdit* edit) { edit->times.resize(1); };
  EXPECT_THAT(Rewrite().status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("2 events but was given 1 times")));
}

TEST_F(XPlaneRewriterTest, LinesThatDoNotFitTheBufferAreMeasuredFirst) {
  XLine* second = space_.mutable_planes(1)->add_lines();
  *second = space_.planes(1).lines(0);
  // Room for the first line, at twice its size, and not for the second.
  options_.buffer_bytes = 2 * second->ByteSizeLong();
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor_.edit_line = [](const XLineHeader&, LineEdit* edit) {
    edit->timestamp_ns = int64_t{1} << 40;
    edit->times[1].offset_ps = int64_t{1} << 41;
  };
  ASSERT_OK_AND_ASSIGN(const XSpace result, Rewrite());
  EXPECT_THAT(editor_.passes, ::testing::ElementsAre(RewritePass::kWrite, RewritePass::kMeasure,
                                                     RewritePass::kWrite));
  ASSERT_EQ(result.planes(1).lines_size(), 2);
  for (const XLine& line : result.planes(1).lines()) {
    EXPECT_EQ(line.name(), "Stream #1");
    EXPECT_EQ(line.timestamp_ns(), int64_t{1} << 40);
    EXPECT_EQ(line.events(1).offset_ps(), int64_t{1} << 41);
  }
}

TEST_F(XPlaneRewriterTest, LongLinesInOrderComeInParts) {
  XLine* line = space_.mutable_planes(1)->mutable_lines(0);
  line->clear_events();
  const auto add = [&](int64_t offset_ps, int64_t duration_ps) {
    auto* event = line->add_events();
    event->set_metadata_id(1);
    event->set_offset_ps(offset_ps);
    event->set_duration_ps(duration_ps);
    return event;
  };
  add(0, 1000);
  add(500, 100);
  add(500, 50);
  add(500, 50);
  // Stands for several, and is at no time.
  add(0, 100)->set_num_occurrences(7);
  add(651, 49);
  add(800, 100);
  options_.part_events = 3;
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  std::vector<std::pair<uint64_t, size_t>> parts;
  editor_.edit_line = [&](const XLineHeader& header, LineEdit* edit) {
    parts.push_back({edit->first_event, edit->times.size()});
    edit->timestamp_ns = header.timestamp_ns + 1;
    edit->event_additions = [first = edit->first_event](size_t event, std::string* fields) {
      XEvent additions;
      additions.add_stats()->set_int64_value(static_cast<int64_t>(first + event));
      additions.AppendToString(fields);
    };
  };
  for (const uint64_t buffer_bytes : {uint64_t{0}, uint64_t{1} << 20}) {
    options_.buffer_bytes = buffer_bytes;
    parts.clear();
    ASSERT_OK_AND_ASSIGN(const XSpace result, Rewrite());
    std::vector<std::pair<uint64_t, size_t>> wanted = {{0, 3}, {3, 3}, {6, 1}};
    // Without room they are measured first.
    if (buffer_bytes == 0) wanted.insert(wanted.end(), wanted.begin(), wanted.begin() + 3);
    EXPECT_EQ(parts, wanted);
    const XLine& rewritten = result.planes(1).lines(0);
    EXPECT_EQ(rewritten.timestamp_ns(), 11);
    ASSERT_EQ(rewritten.events_size(), 7);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(rewritten.events(i).stats(0).int64_value(), i);
  }
  // One that starts before another, or is around one, but comes after it, leaves no parts.
  for (const auto& [offset_ps, duration_ps] : {std::pair(799, 5), std::pair(800, 101)}) {
    add(offset_ps, duration_ps);
    parts.clear();
    ASSERT_OK(Rewrite());
    EXPECT_EQ(parts, (std::vector<std::pair<uint64_t, size_t>>{{0, 8}}));
    line->mutable_events()->RemoveLast();
  }
}

TEST_F(XPlaneRewriterTest, PartsChangeNothingInWhatIsWritten) {
  std::mt19937 random(5);
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor_.edit_line = [](const XLineHeader& header, LineEdit* edit) {
    edit->timestamp_ns = header.timestamp_ns + 5;
    for (EventTimes& times : edit->times) times.offset_ps += times.offset_ps % 3;
  };
  for (int round = 0; round < 50; ++round) {
    XLine* line = space_.mutable_planes(1)->mutable_lines(0);
    line->clear_events();
    int64_t time_ps = 0;
    for (int i = 0; i < 40; ++i) {
      auto* event = line->add_events();
      event->set_metadata_id(1);
      time_ps += random() % 30;
      event->set_offset_ps(round % 5 == 0 ? random() % 500 : time_ps);
      event->set_duration_ps(random() % 200);
    }
    options_.buffer_bytes = round % 2 == 0 ? 0 : 1 << 20;
    options_.part_events = 1 << 16;
    ASSERT_OK(Rewrite());
    const std::string whole = out_;
    options_.part_events = 1 + random() % 6;
    ASSERT_OK(Rewrite());
    ASSERT_EQ(out_, whole);
  }
}

TEST_F(XPlaneRewriterTest, ALineOfManyPiecesIsWrittenWhole) {
  (*space_.mutable_planes(1)->mutable_stat_metadata())[0].set_name("text");
  auto* line = space_.mutable_planes(1)->mutable_lines(0);
  for (int i = 0; i < 100000; ++i) {
    auto* event = line->add_events();
    event->set_metadata_id(1);
    event->set_offset_ps(i);
    if (i % 10000 == 0) event->add_stats()->set_str_value(std::string(300000, 'x'));
  }
  editor_.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor_.edit_line = [](const XLineHeader&, LineEdit* edit) {
    for (EventTimes& times : edit->times) times.offset_ps += 1 << 30;
  };
  for (uint64_t buffer_bytes : {0, 1 << 30}) {
    options_.buffer_bytes = buffer_bytes;
    ASSERT_OK_AND_ASSIGN(const XSpace result, Rewrite());
    const XLine& rewritten = result.planes(1).lines(0);
    ASSERT_EQ(rewritten.events_size(), 100002);
    EXPECT_EQ(rewritten.events(100001).offset_ps(), 99999 + (1 << 30));
    EXPECT_EQ(rewritten.events(2).stats(0).str_value().size(), 300000u);
  }
}

TEST_F(XPlaneRewriterTest, TheSinksErrorComesBack) {
  FullSink sink;
  bytes_ = space_.SerializeAsString();
  EXPECT_THAT(RewriteXSpace({bytes_, {}}, editor_, sink),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

// Two planes whose metadata ids clash: id 1 is another event and another stat in each.
class JoinedPlaneTest : public ::testing::Test {
 protected:
  static XSpace MakeSpace(const std::string& event_name, const std::string& stat_name) {
    XSpace space;
    XPlane* plane = space.add_planes();
    plane->set_name("/host:CPU");
    auto& event_metadata = (*plane->mutable_event_metadata())[1];
    event_metadata.set_id(1);
    event_metadata.set_name(event_name);
    for (int64_t id : {1, 2}) {
      auto& stat_metadata = (*plane->mutable_stat_metadata())[id];
      stat_metadata.set_id(id);
      stat_metadata.set_name(id == 1 ? stat_name : "a value of " + stat_name);
    }
    XLine* line = plane->add_lines();
    line->set_id(7);
    line->set_name("python3");
    auto* event = line->add_events();
    event->set_metadata_id(1);
    event->set_offset_ps(500);
    event->set_duration_ps(100);
    auto* stat = event->add_stats();
    stat->set_metadata_id(1);
    stat->set_ref_value(2);
    auto* number = event->add_stats();
    number->set_metadata_id(2);
    number->set_uint64_value(42);
    return space;
  }

  // Joins both under one head and returns what is read back.
  XPlane Join(const RewriteOptions& options = {}) {
    const std::vector<XSpace> spaces = {MakeSpace("first", "x"), MakeSpace("second", "y")};
    XPlane head;
    head.set_name("/host:CPU");
    PlaneMetadataMerger merger(&head);
    std::vector<std::string> bytes;
    std::vector<MetadataIds> ids;
    for (const XSpace& space : spaces) {
      bytes.push_back(space.SerializeAsString());
      ids.push_back(merger.Merge(space.planes(0)));
    }
    std::vector<XSpaceSource> sources;
    std::vector<LambdaEditor> editors(2);
    std::vector<EditedPlane> parts;
    for (size_t i = 0; i < 2; ++i) sources.push_back({bytes[i], {}});
    for (size_t i = 0; i < 2; ++i) {
      editors[i].edit_line = [&ids, i](const XLineHeader&, LineEdit* edit) {
        edit->id = static_cast<int64_t>(i);
        edit->times[0].offset_ps += 1000;
        edit->ids.metadata = &ids[i];
      };
      parts.push_back({&sources[i], ReadXSpaceLayout(sources[i])->planes[0], &editors[i], ""});
    }
    std::string joined;
    StringSink sink(&joined);
    XSpaceWriter writer(&sink, options);
    EXPECT_OK(writer.WriteJoinedPlane(head.SerializeAsString(), parts));
    EXPECT_OK(writer.Finish());
    XSpace space;
    EXPECT_TRUE(space.ParseFromString(joined));
    return space.planes(0);
  }
};

TEST_F(JoinedPlaneTest, EventsKeepTheirMeaningUnderNewIds) {
  const XPlane plane = Join();
  ASSERT_EQ(plane.lines_size(), 2);
  const std::vector<std::string> names = {"first", "second"}, stats = {"x", "y"};
  for (int i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(plane.lines(i).id(), i);
    const auto& event = plane.lines(i).events(0);
    EXPECT_EQ(plane.event_metadata().at(event.metadata_id()).name(), names[i]);
    EXPECT_EQ(event.offset_ps(), 1500);
    EXPECT_EQ(event.duration_ps(), 100);
    const auto& stat = event.stats(0);
    EXPECT_EQ(plane.stat_metadata().at(stat.metadata_id()).name(), stats[i]);
    EXPECT_EQ(plane.stat_metadata().at(stat.ref_value()).name(), "a value of " + stats[i]);
    EXPECT_EQ(event.stats(1).uint64_value(), 42u);
  }
}

TEST_F(JoinedPlaneTest, IsTheSameWhenNoLineFitsTheBuffer) {
  RewriteOptions tiny;
  tiny.buffer_bytes = 0;
  EXPECT_EQ(Join(tiny).SerializeAsString().size(), Join().SerializeAsString().size());
  EXPECT_EQ(Join(tiny).lines(1).SerializeAsString(), Join().lines(1).SerializeAsString());
}

TEST_F(XPlaneRewriterTest, ReplacesTheValuesOfOneStat) {
  XSpace space;
  XPlane* plane = space.add_planes();
  (*plane->mutable_event_metadata())[0].set_name("event");
  for (int id : {3, 4}) (*plane->mutable_stat_metadata())[id].set_name("stat");
  XLine* line = plane->add_lines();
  for (const auto& [id, value] :
       std::vector<std::pair<int64_t, uint64_t>>{{3, 5}, {4, 5}, {3, 6}}) {
    auto* stat = line->add_events()->add_stats();
    stat->set_metadata_id(id);
    stat->set_uint64_value(value);
  }
  const absl::flat_hash_map<uint64_t, uint64_t> values = {{5, 500}};
  LambdaEditor editor;
  editor.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor.edit_line = [&](const XLineHeader&, LineEdit* edit) {
    edit->ids.values = &values;
    edit->ids.values_stat_id = 3;
  };
  const std::string bytes = space.SerializeAsString();
  std::string rewritten;
  StringSink sink(&rewritten);
  ASSERT_OK(RewriteXSpace({bytes, {}}, editor, sink));
  ASSERT_TRUE(space.ParseFromString(rewritten));
  const auto value = [&](int event) {
    return space.planes(0).lines(0).events(event).stats(0).uint64_value();
  };
  EXPECT_EQ(value(0), 500u);
  EXPECT_EQ(value(1), 5u);
  EXPECT_EQ(value(2), 6u);
}

TEST_F(XPlaneRewriterTest, AnIdThatItsPlaneDoesNotDefineIsAnError) {
  const MetadataIds none;
  LambdaEditor editor;
  editor.edit_plane = [](const XPlaneLayout&, PlaneEdit* edit) { edit->edit_lines = true; };
  editor.edit_line = [&](const XLineHeader&, LineEdit* edit) { edit->ids.metadata = &none; };
  const std::string bytes = space_.SerializeAsString();
  std::string rewritten;
  StringSink sink(&rewritten);
  EXPECT_THAT(RewriteXSpace({bytes, {}}, editor, sink),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("event metadata id 1")));
}

}  // namespace
}  // namespace meridian
