#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/credentials.h"
#include "controller/cluster/registry.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/http/tls.h"
#include "planner/snapshot.h"

namespace verger::controller {

namespace net = boost::asio;

/// Nodes end a handshake with a certificate that their own roots do not know, agents one without:
/// so each kind has a client of its own.
struct ClusterClients {
  http::Client* nodes = nullptr;
  http::Client* agents = nullptr;
};

/// What everything that talks to nodes needs. The objects outlive the coroutines that use them, or
/// are never touched again once their executor is gone.
struct Network {
  http::Client& client;
  http::Timers& timers;
  Clock& clock;
  CredentialStore& credentials;
  Log& log;
  /// Of webhooks and Prometheus servers, which other authorities vouch for; null: `client`.
  http::Client* services = nullptr;
  /// Each request to a peer; an answer that comes later counts as unknown.
  std::chrono::milliseconds request_deadline{15'000};
  /// The certificate that a server shows to new connections; empty: not looked at.
  std::function<net::awaitable<Result<http::CertificateInfo>>(http::Endpoint)> served_certificate{};
  /// The chain that a TLS server shows to a new connection, PEM, leaf first, trusted or not; empty:
  /// not looked at.
  std::function<net::awaitable<Result<std::string>>(http::Endpoint)> served_chain{};
  /// The certificates of a cluster's trusted roots, by ClusterConfig::trusted_roots; empty: they
  /// are not known.
  std::function<std::vector<http::CertificateInfo>(const std::string& trusted_roots)> roots_of{};
  /// The clients of one cluster by its trusted roots (ClusterConfig::trusted_roots). Errors: those
  /// of http::TlsContext. Empty: `client` is for all clusters and servers.
  std::function<Result<ClusterClients>(const std::string& trusted_roots)> clients_of{};

  [[nodiscard]] http::Client& for_services() const {
    return services != nullptr ? *services : client;
  }
};

/// What to say where an agent has taken orders of a controller with a newer epoch: it takes none of
/// this one. Empty: none has.
std::string newer_controller(const planner::ClusterSnapshot& snapshot, ControllerEpoch epoch);
inline constexpr std::string_view kNewerControllerHint =
    "ask that vergerd; if it no longer exists, because its journal was lost or restored from a "
    "copy, start this one once with --epoch-above";

/// How much a look requests of the nodes.
enum class Depth : std::uint8_t {
  kGossip,    ///< what the nodes say of themselves and of each other: who is there, who leads
  kSurvey,    ///< and what their agents say; certificates may be up to ten minutes old
  kStep,      ///< and what shows how far things are there
  kQuick,     ///< and whether the server scavenges by itself
  kThorough,  ///< all that gates look at: before something is planned or done
};

/// Takes snapshots: queries every member about itself, side by side, each with a deadline. It
/// remembers for each cluster how long the leader has been the same. One executor. Needs no stop:
/// it has no coroutines of its own.
class Observer {
 public:
  explicit Observer(Network network);
  ~Observer();

  /// Before a cluster is registered: kUnauthorized where its credentials are not for one of its
  /// nodes' hosts. Credentials that cannot be read are reported by a look.
  [[nodiscard]] Result<void> check_credentials(const ClusterConfig& config) const;
  /// The next thorough look at `config` sees certificates as they are served then, and not as they
  /// were within the last minute.
  void forget_certificates(const ClusterConfig& config);
  /// Never fails: what did not answer is in the snapshot as such. With a `limit` it takes no longer
  /// than that: of a late node the snapshot holds what it reported until then. Such a look leaves
  /// no trace in what is remembered of the leader.
  net::awaitable<planner::ClusterSnapshot> take(
      ClusterConfig config, Depth depth = Depth::kThorough,
      std::optional<std::chrono::milliseconds> limit = std::nullopt);
  /// The same while something is done at `node`: of it kStep, of the others kGossip. With `limits`
  /// the others cannot delay it, and it leaves no trace in what is remembered of the leader.
  struct WatchLimits {
    std::chrono::milliseconds node;
    std::chrono::milliseconds others;
  };
  net::awaitable<planner::ClusterSnapshot> watch(ClusterConfig config, std::string node,
                                                 std::optional<WatchLimits> limits = std::nullopt);
  /// What the newest look of kSurvey or kThorough at a cluster showed; nullptr: there was none.
  [[nodiscard]] std::shared_ptr<const planner::ClusterSnapshot> last_seen(
      const std::string& cluster) const;
  /// Forgets that of all others.
  void keep_last_seen_of(const std::set<std::string>& clusters);
  /// The database's identity as all members tell it; empty where it cannot be had.
  net::awaitable<std::string> identity(ClusterConfig config);

 private:
  struct State;
  static net::awaitable<planner::ClusterSnapshot> look(std::shared_ptr<State> state,
                                                       ClusterConfig config, Depth depth,
                                                       std::optional<WatchLimits> limits,
                                                       std::string closely_at);
  static net::awaitable<planner::ClusterSnapshot> picture(std::shared_ptr<State> state,
                                                          ClusterConfig config, Depth depth,
                                                          std::optional<WatchLimits> limits,
                                                          std::string closely_at);
  std::shared_ptr<State> state_;
};

}  // namespace verger::controller
