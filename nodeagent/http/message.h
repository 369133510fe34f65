#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "engine/base/result.h"

namespace verger {
namespace net = boost::asio;
}  // namespace verger

namespace verger::http {

/// Header fields in order; names compare without case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}
  void set(std::string_view name, std::string value);
  void add(std::string_view name, std::string value);
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& all() const {
    return fields_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Who is at the other end, as far as the transport knows.
struct Peer {
  std::string address;
  /// It is on this machine, and reached us by a Unix domain socket.
  bool is_local_socket = false;
  /// Subject common name and SANs of a client certificate that chains to our roots.
  std::optional<std::string> certificate_common_name;
  std::vector<std::string> certificate_names;
  /// Usages as TLS verified them: both server and client authentication allowed.
  bool certificate_is_node = false;
};

struct Request {
  std::string method = "GET";
  /// Path and query as sent, percent-encoded: "/streams/%24scavenges?embed=body".
  std::string target = "/";
  Headers headers{};
  std::string body{};
  Peer peer{};  ///< filled by the server
};

struct Response {
  int status = 200;
  std::string reason{};  ///< empty: the standard phrase of the status
  Headers headers{};
  std::string body{};
  /// Set for an endless answer (server-sent events): called for the next piece until it gives an
  /// empty one or an error; `body` is then unused.
  std::function<net::awaitable<Result<std::string>>()> stream{};
};

/// Answers one request. Runs on the server's executor; exceptions become 500.
using Handler = std::function<net::awaitable<Response>(Request)>;

/// The decoded path and query of a target. Errors: kInvalidArgument.
struct Target {
  std::string path;                   ///< percent-decoded
  std::vector<std::string> segments;  ///< decoded, without the empty first one
  std::vector<std::pair<std::string, std::string>> query;
  /// The last value of a parameter; names compare without case.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};
Result<Target> parse_target(std::string_view target);
std::string percent_encode(std::string_view text);
/// The reverse. Error: kInvalidArgument.
Result<std::string> percent_decode(std::string_view text);

/// "Basic dXNlcjpwYXNz"
std::string basic_authorization(std::string_view user, std::string_view password);
std::string_view standard_reason(int status);

}  // namespace verger::http
