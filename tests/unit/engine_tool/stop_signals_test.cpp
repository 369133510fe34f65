#include "engine/tool/stop_signals.h"

#include <gtest/gtest.h>

namespace verger::tool {
namespace {

TEST(StopSignals, SetTheFlagOfAJobAtOnce) {
  const StopSignals signals;
  std::atomic<bool> flag = false;
  {
    const StopSignals::Forward forward(flag);
    EXPECT_FALSE(flag);
    std::raise(SIGTERM);
    EXPECT_TRUE(flag);
    EXPECT_TRUE(StopSignals::requested());
  }
  flag = false;
  std::raise(SIGINT);
  EXPECT_FALSE(flag) << "the job is gone";
  const StopSignals::Forward late(flag);
  EXPECT_TRUE(flag) << "the signal came before the job";
}

}  // namespace
}  // namespace verger::tool
