#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace verger::controller {

/// Each may do what those before it may.
enum class ApiRole : std::uint8_t { kNobody, kViewer, kOperator, kAdmin };
std::string_view to_string(ApiRole role);

/// One operation of the API. The same table admits requests and makes the OpenAPI document, so that
/// neither can know a route that the other does not.
struct Route {
  std::string_view method;
  std::string_view path;  ///< below /api/v1, "/runs/{id}/pause"
  ApiRole role;           ///< the least one that may; kNobody: no token is needed
  std::string_view id;    ///< operationId
  std::string_view summary;
  int status;                 ///< of success
  std::string_view request;   ///< name of a schema; empty: no body
  std::string_view response;  ///< name of a schema; empty: no body
  std::string_view query;     ///< names of query parameters, separated by spaces
};

std::span<const Route> api_routes();

/// The parts of a route's path, "runs", "{id}", "pause"; those in braces are variables.
std::vector<std::string_view> path_parts(std::string_view path);
bool is_variable(std::string_view part);

/// The route for decoded segments below /api/v1; nullptr: none. `methods` gets those of the path,
/// so that a wrong method differs from an unknown path.
const Route* find_route(std::string_view method, std::span<const std::string> segments,
                        std::vector<std::string_view>& methods);

}  // namespace verger::controller
