#pragma once

#include <filesystem>

namespace verger::bench {

/// The same database scavenged by the servers, by agents beside them, and by agents while they are
/// stopped, each in a cluster of its own: how long each node takes, and what a client that writes
/// and reads notices, against one without a scavenge right before. Prints a table.
void measure_strategies(const std::filesystem::path& files);

}  // namespace verger::bench
