#include "astra_bridge/calibration/simulation_check_csv.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

template <typename Row>
Row* SetTimes(Row* row) {
  row->set_measured_ns(1000);
  row->set_simulated_ns(1250);
  row->set_signed_error(0.25);
  return row;
}

TEST(SimulationCheckCsvTest, EveryRowSaysWhatItIs) {
  SimulationCheckReport report;
  CheckedCell* cell = SetTimes(report.add_cells());
  cell->set_kind("all-reduce");
  cell->set_bytes(64);
  cell->set_group("{0,1} of 4");
  cell->add_reasons("computing beside");
  cell->add_reasons("met other collectives");
  CheckedCollective* collective = SetTimes(report.add_collectives());
  collective->set_run("run \"a\"");
  collective->set_kind("p2p");
  collective->set_bytes(64);
  collective->set_group("2 pairs from {0,1} of 4");
  collective->set_start_ns(7);
  collective->set_overlapped(true);
  CheckedSnapshot* snapshot = SetTimes(report.add_snapshots());
  snapshot->set_run("b");
  snapshot->set_start_ns(8);
  snapshot->set_members(2);
  snapshot->set_collectives("all-reduce 64 {0,1} of 4 + p2p 8 {2,3} of 4");
  SetTimes(report.add_steps())->set_run("b");
  SetTimes(report.add_steps())->set_step(3);
  EXPECT_EQ(SimulationCheckCsv(report),
            "what,run,name,bytes,group,start_ns,measured_ns,simulated_ns,signed_error,reasons\n"
            "cell,\"\",\"all-reduce\",64,\"{0,1} of 4\",0,1000.000,1250.000,0.250000,"
            "\"computing beside; met other collectives\"\n"
            "collective,\"run \"\"a\"\"\",\"p2p\",64,\"2 pairs from {0,1} of 4\",7,1000.000,"
            "1250.000,0.250000,\"met other collectives\"\n"
            "snapshot,\"b\",\"all-reduce 64 {0,1} of 4 + p2p 8 {2,3} of 4\",0,\"\",8,1000.000,"
            "1250.000,0.250000,\"\"\n"
            "step,\"b\",\"all\",0,\"\",0,1000.000,1250.000,0.250000,\"\"\n"
            "step,\"\",\"3\",0,\"\",0,1000.000,1250.000,0.250000,\"\"\n");
}

}  // namespace
}  // namespace meridian
