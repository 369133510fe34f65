#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"

namespace verger::test {

/// The configuration file of a node of a FakeCluster, as far as another cluster size changes it.
struct FakeSize {
  int running = 3;  ///< as the server was started
  int in_file = 3;
  int by_flag = 0;  ///< of its service, which counts more than the file; 0: there is none
  std::vector<std::string> seeds{"10.0.0.1:2113"};
  // what the agent keeps of a change
  std::string change{};
  int before = 0;
  std::vector<std::string> seeds_before{};
  struct Restarting {
    std::string operation;
    Monotonic ends{};
  };
  std::optional<Restarting> restarting{};

  std::string problem{};  ///< why the size cannot be changed in the file
  bool known = true;      ///< false: an agent of an older version
  int failing = 0;        ///< so many of the next changes have no effect
  int failing_restores = 0;
  int changes = 0;   ///< of the file
  int restores = 0;  ///< of the former one
};

}  // namespace verger::test
