#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/node/detail/node_context.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {

/// What `$scavenges` and `$scavenges-<id>` say of this node's scavenges (node-interface.md §6.1).
/// Entries are written one after the other, without waiting for them: as with the server,
/// one that finds no leader for long is lost.
class ScavengeHistory {
 public:
  ScavengeHistory(NodeContext& context, WriteFunction write)
      : context_(context), write_(std::move(write)) {}

  /// A run begins: its stream gets its metadata.
  void begin(const std::string& id);
  /// An entry about run `id`; with `link` also in `$scavenges`.
  void report(const std::string& id, std::string type, const nlohmann::ordered_json& data,
              bool link);
  /// Completes runs that a former process of this node left open. `running`: the id of the one that
  /// runs at the moment, or empty.
  void close_dead_runs(std::function<std::string()> running);
  /// Forgets what is not written yet.
  void abandon() { reports_.clear(); }

 private:
  /// An event to be written.
  struct Report {
    WriteRequest request;
    std::string link_to{};  ///< not empty: the run; $scavenges gets a link to the event
    std::chrono::milliseconds delay{0};
  };

  static net::awaitable<void> write_reports(std::shared_ptr<ScavengeHistory> history);
  /// False: it was not written. `number`: of the event.
  static net::awaitable<bool> write_one(std::shared_ptr<ScavengeHistory> history,
                                        WriteRequest request, EventNumber* number);
  static net::awaitable<void> complete_open_runs(std::shared_ptr<ScavengeHistory> history,
                                                 std::function<std::string()> running);

  NodeContext& context_;
  WriteFunction write_;
  std::deque<Report> reports_;
  bool reporting_ = false;
};

}  // namespace verger::node
