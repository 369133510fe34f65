#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/peers.h"
#include "engine/base/result.h"

/// Projections and persistent subscriptions, as the steps before and after a leader's move see
/// them.
namespace verger::controller::detail {

using WorkList = Result<std::vector<client::ServerWork>>;

/// What a node, normally the leader, says of both.
struct WorkSeen {
  WorkList projections = std::vector<client::ServerWork>();
  WorkList subscriptions = std::vector<client::ServerWork>();
};
net::awaitable<WorkSeen> look_at_work(std::shared_ptr<Peers> peers, std::string node);

/// The node may tell another time: it has no leader, is busy, or did not answer.
bool may_be_known_later(const WorkList& list);
/// In one word or sentence why there is no list: "not offered", "the user may not read them".
std::string why_not_seen(const WorkList& list);

/// Of what was noted, something that does not run.
struct MissingWork {
  std::string what;  ///< "projection", "subscription", or "projections": none of them can be seen
  std::string name;
  std::string status;
  std::string command;  ///< for a person
  [[nodiscard]] std::string text() const;
  [[nodiscard]] nlohmann::json to_json() const;
};

/// What the steps leave each other: names of what ran, or that it was not seen.
struct NotedWork {
  std::optional<std::vector<std::string>> projections;
  std::optional<std::vector<std::string>> subscriptions;

  [[nodiscard]] nlohmann::json to_json() const;
  static NotedWork parse(const std::string& text);
  [[nodiscard]] bool nothing() const;
  /// `url`: of the new leader, for the commands.
  [[nodiscard]] std::vector<MissingWork> missing(const WorkSeen& now, const std::string& url) const;
};

}  // namespace verger::controller::detail
