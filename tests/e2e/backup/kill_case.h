#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>

#include "tests/e2e/backup/backup_case.h"

namespace verger::test {

struct Kill {
  enum class Who : std::uint8_t { kController, kAgents } who;
  const char* failpoint;  ///< "name" or "name:nth"
};
inline void PrintTo(const Kill& kill, std::ostream* out) { *out << kill.failpoint; }

/// A BackupCase in which a process dies at the failpoint of the parameter.
class KillCase : public BackupCase, public ::testing::WithParamInterface<Kill> {
 protected:
  /// From now on the first process that comes there dies; started again, it does not.
  void arm() {
    const auto [who, failpoint] = GetParam();
    const Environment deadly{{"VERGER_FAILPOINT", failpoint},
                             {"VERGER_FAILPOINT_LOG", reached().string()}};
    if (who == Kill::Who::kController) {
      cluster_.controller().kill();
      cluster_.start_controller(deadly);
    } else {
      for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
        cluster_.agent(i).kill();
        cluster_.start_agent(i, deadly);
      }
    }
  }
  void expect_reached() const {
    const std::string armed = GetParam().failpoint;
    EXPECT_NE(file_text(reached()).find(armed.substr(0, armed.find(':'))), std::string::npos)
        << "never reached: " << armed;
  }
  std::filesystem::path reached() const { return directory_.path() / "reached"; }

  /// Starts the restore of the whole cluster from a backup that was made under load and has events
  /// after it; armed. Into `run_` its id.
  void start_whole_restore() {
    start();
    SteadyWriter writer(cluster_, {});
    ASSERT_TRUE(writer.wait_for(10)) << cluster_.logs();
    acknowledged_ = writer.written();
    a_backup();
    ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
    writer.stop();
    arm();
    ASSERT_EQ(cluster_.wait_until_settled(), "");
    run_ = start_restore({"--scope", "cluster"});
  }
  /// That all nodes have what was acknowledged before that backup, one history, and accept events.
  void expect_whole_restore(const nlohmann::json& run) {
    EXPECT_EQ(run.at("report").value("outcome", ""), "restored") << run.dump(1);
    expect_events_everywhere(acknowledged_);
    expect_equal_digests();
    expect_writes();
  }
  std::string run_;

  TempDirectory directory_;

 private:
  int acknowledged_ = 0;  ///< before the backup
};

}  // namespace verger::test
