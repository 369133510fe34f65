#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nodeagent/http/message.h"

namespace verger::http {

/// A request together with what its route says about it.
struct RoutedRequest {
  Request request;
  Target target;
  /// The segments that stood for {name} in the pattern, decoded.
  std::vector<std::pair<std::string, std::string>> parameters{};
  /// Empty where the pattern has no such name.
  [[nodiscard]] std::string_view parameter(std::string_view name) const;
};

using RouteHandler = std::function<net::awaitable<Response>(RoutedRequest)>;

/// A table of method and pattern. Which of 404 and 405 a known path with another method gets is the
/// caller's choice: the node interface answers both, by route (node-interface.md, 1.1).
///
/// Filled before use, then only read: safe from any thread.
class Router {
 public:
  /// "/admin/scavenge/{id}": {id} takes exactly one segment that is not empty; a last "{rest*}"
  /// takes one segment or more, joined by '/'. Literals beat {names}. Segments compare decoded and
  /// with case; a trailing slash does not match.
  void add(std::string method, std::string_view pattern, RouteHandler handler);

  enum class Verdict : std::uint8_t { kFound, kNoPath, kNoMethod };
  struct Match {
    Verdict verdict = Verdict::kNoPath;
    const RouteHandler* handler = nullptr;
    std::vector<std::pair<std::string, std::string>> parameters;
    /// With kNoMethod: the methods the path has, each once, for the Allow header: "GET, HEAD".
    std::string allow;
    /// With kNoMethod: the method of each route that fits the path; those with {names} first.
    std::vector<std::string> methods;
  };
  [[nodiscard]] Match find(std::string_view method, const Target& target) const;

  /// Answers a request: 400 for a target that cannot be read, `no_path` and `no_method` for the
  /// others (by default 404 and 405 with Allow, both with an empty body).
  [[nodiscard]] net::awaitable<Response> answer(Request request) const;
  std::function<Response(const Request&)> no_path;
  std::function<Response(const Request&, const Target&, const Match&)> no_method;

 private:
  struct Segment {
    std::string text;  ///< the literal, or the parameter's name
    bool is_parameter = false;
    bool takes_rest = false;
  };
  struct Route {
    std::string method;
    std::vector<Segment> segments;
    RouteHandler handler;
  };
  static constexpr int kMaxSegments = 31;

  /// 0 where the path does not have the route's form. Otherwise higher the earlier a segment is a
  /// literal rather than a {name}: two bits for each segment, the first segment's highest.
  static std::uint64_t fit(const Route& route, const std::vector<std::string>& segments);
  static std::vector<std::pair<std::string, std::string>> parameters_of(
      const Route& route, const std::vector<std::string>& segments);

  std::vector<Route> routes_;
};

}  // namespace verger::http
