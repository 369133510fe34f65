#pragma once

#include <chrono>

namespace verger::bench {

/// What a real vergerd costs that looks after so many nodes with enrolled agents in clusters of
/// three, nothing being done there: over TLS and real connections of 127.0.0.1, `/metrics` scraped
/// every 15 s. Nodes and agents are answered for by this process. Prints processor time as a share
/// of one core, memory, and messages. Throws where something does not work.
void tls_fleet(int agents, std::chrono::seconds window);

}  // namespace verger::bench
