#pragma once

#include <cstdint>
#include <string>

#include "nodeagent/client/node_client.h"

namespace verger::external {

/// How far a scavenge on a server is, counted from its log as it grows: each entry is read once.
class ScavengeCount {
 public:
  /// Begins anew for another scavenge. What could not be read whole counts the next time.
  net::awaitable<void> look(const client::NodeClient& client, std::string id);
  [[nodiscard]] std::int64_t chunks_done() const { return chunks_done_; }
  [[nodiscard]] std::int64_t bytes_saved() const { return bytes_saved_; }

 private:
  std::string id_;
  std::int64_t next_ = 0;  ///< number of the first entry that has not been counted
  std::int64_t chunks_done_ = 0;
  std::int64_t bytes_saved_ = 0;
};

}  // namespace verger::external
