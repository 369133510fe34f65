#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "nodeagent/http/client.h"

namespace verger::agent {

/// How an agent makes drills: where it restores to is BackupAccess::scratch.
struct DrillSettings {
  /// A program that is an embedded node with the options of verger-agent.
  Path node_program;
  /// For /bin/sh: starts a server of your own in place of the embedded node, and stays with it.
  /// What it gets in its environment: docs/operations/backup.md, "Drills". Empty: the embedded
  /// node.
  std::string command{};
  http::Client* client = nullptr;
  std::chrono::milliseconds start_limit{std::chrono::hours(1)};
  std::chrono::milliseconds stop_limit{std::chrono::minutes(2)};
};

}  // namespace verger::agent
