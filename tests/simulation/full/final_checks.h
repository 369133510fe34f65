#pragma once

#include "tests/simulation/full/clients.h"
#include "tests/simulation/full/watcher.h"

namespace verger::sim {

/// After everything healed and the run ended, the machines still up: what they have is compared
/// with what was acknowledged, reported and journaled. Disks are read as they are.
void check_end(Cluster& cluster, Watcher& watcher, const Writer& writer, const Person& person,
               bool faults);

}  // namespace verger::sim
