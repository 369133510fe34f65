#pragma once

#include <cstdint>
#include <string>

#include "nodeagent/api/node.h"

namespace verger::client {

/// What a node of some version can do and how it says it (node-interface.md, 0).
struct NodeDialect {
  api::Version version{24, 6, 0};
  bool scavenge_parameters = true;     ///< threshold, throttlePercent, syncOnly; 22.10
  bool resumes_scavenges = true;       ///< points, state, resuming where it stopped; 22.10
  bool current_scavenge = true;        ///< GET current, DELETE current; 22.10.1
  bool last_scavenge = false;          ///< GET last; 24.10
  bool stop_waits = true;              ///< the 200 of DELETE comes after the end; 22.10.1
  bool running_id_in_refusal = false;  ///< 400 of POST scavenge carries the running id; up to 22.10
  bool reload = true;                  ///< 20.6.1
  /// A reload takes changed option values (paths), not only changed files; not 21.x to 22.10.2.
  bool reload_takes_new_paths = true;
  bool resign = true;                       ///< resign, priority, login; 20.6
  bool prefers_other_after_resign = false;  ///< 24.10
  bool metrics = true;                      ///< 23.6
  bool anonymous_stats = false;             ///< before 23.6
  /// The own positions in a single node's gossip are those of its last state change: 20.6 to 24.6.
  bool stale_single_gossip = true;
  bool may_auto_scavenge = false;  ///< 24.10
  std::int32_t threads_max = 4;    ///< more is never useful, and fails a run up to 24.10

  friend bool operator==(const NodeDialect&, const NodeDialect&) = default;
  static NodeDialect of(api::Version version);
  /// Of the text in /info or gossip; nullopt where it is a placeholder: read /info of that node.
  static std::optional<NodeDialect> of_text(std::string_view version);
};

}  // namespace verger::client
