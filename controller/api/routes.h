#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "controller/api/access.h"
#include "controller/api/role.h"
#include "nodeagent/http/router.h"

namespace verger::controller {

struct ApiParts;

/// A request that was admitted: with its route's {names} and its caller.
struct Call : http::RoutedRequest {
  Principal caller;
  /// What stood for {name} in the route's path.
  [[nodiscard]] std::string named(std::string_view name) const {
    return std::string(parameter(name));
  }
  [[nodiscard]] const std::string& body() const { return request.body; }
  [[nodiscard]] const std::string& by() const { return caller.name; }
};

/// What answers a route: a coroutine, or a function. Both look at the parts alone. Where it gives a
/// Result, an error is answered with problem_of().
class RouteAnswer {
 public:
  template <class Answer>
  using Later = net::awaitable<Answer> (*)(const ApiParts& parts, Call call);
  template <class Answer>
  using Now = Answer (*)(const ApiParts& parts, const Call& call);

  template <class Answer>
  constexpr RouteAnswer(Later<Answer> later) : answer_(later) {}  // NOLINT: functions convert
  template <class Answer>
  constexpr RouteAnswer(Now<Answer> now) : answer_(now) {}  // NOLINT
  [[nodiscard]] net::awaitable<http::Response> operator()(const ApiParts& parts, Call call) const;

 private:
  std::variant<Later<http::Response>, Later<Result<http::Response>>, Now<http::Response>,
               Now<Result<http::Response>>>
      answer_;
};

/// How a request is put on record.
enum class OnRecord : std::uint8_t {
  kByMethod,  ///< GET: not at all; others: as kAudited, and the answer is kept for its key
  kNever,     ///< a POST that only reads
  kAudited,   ///< what is asked and how it ended; the answer holds a secret and is not kept
  /// A caller without a token must not be able to fill the journal: what succeeds records itself.
  kByItself,
};

/// In place of a schema's name: the body is a file, of any content.
inline constexpr std::string_view kFileRequest = "File";

/// One operation of the API, in one place: who may, what answers it, and its line in the OpenAPI
/// document.
struct Route {
  std::string_view method;
  std::string_view path;  ///< below /api/v1, "/runs/{id}/pause", as http::Router takes it
  ApiRole role;           ///< the least one that may; kNobody: no token is needed
  std::string_view id;    ///< operationId
  std::string_view summary;
  int status;                 ///< of success
  std::string_view request;   ///< name of a schema; empty: no body
  std::string_view response;  ///< name of a schema; empty: no body
  std::string_view query;     ///< names of query parameters, separated by spaces
  RouteAnswer answer;
  OnRecord on_record = OnRecord::kByMethod;
};

/// All of them: those of the sources below.
const std::vector<Route>& api_routes();

// Each in the source of its name, next to what answers them.
std::span<const Route> cluster_routes();
std::span<const Route> cluster_overview_routes();
std::span<const Route> cluster_update_routes();
std::span<const Route> plan_routes();
std::span<const Route> run_routes();
std::span<const Route> policy_routes();
std::span<const Route> event_routes();
std::span<const Route> access_routes();
std::span<const Route> journal_routes();
std::span<const Route> agent_routes();
std::span<const Route> certificate_routes();
std::span<const Route> backup_routes();
std::span<const Route> discovery_routes();

}  // namespace verger::controller
