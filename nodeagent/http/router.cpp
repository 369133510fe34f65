#include "nodeagent/http/router.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "engine/base/assert.h"

namespace verger::http {

std::string_view RoutedRequest::parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

void Router::add(std::string method, std::string_view pattern, RouteHandler handler) {
  VERGER_ASSERT(pattern.starts_with('/'));
  VERGER_ASSERT(std::ranges::count(pattern, '/') <= kMaxSegments);
  Route route{.method = std::move(method), .segments = {}, .handler = std::move(handler)};
  pattern.remove_prefix(1);
  while (!pattern.empty()) {
    const auto slash = pattern.find('/');
    auto text = pattern.substr(0, slash);
    Segment segment;
    if (text.starts_with('{') && text.ends_with('}')) {
      text = text.substr(1, text.size() - 2);
      segment.is_parameter = true;
      segment.takes_rest = text.ends_with('*');
      if (segment.takes_rest) {
        text.remove_suffix(1);
        VERGER_ASSERT(slash == std::string_view::npos);
      }
    }
    segment.text = text;
    route.segments.push_back(std::move(segment));
    if (slash == std::string_view::npos) {
      break;
    }
    pattern.remove_prefix(slash + 1);
  }
  routes_.push_back(std::move(route));
}

std::uint64_t Router::fit(const Route& route, const std::vector<std::string>& segments) {
  const bool takes_rest = !route.segments.empty() && route.segments.back().takes_rest;
  if (takes_rest ? segments.size() < route.segments.size()
                 : segments.size() != route.segments.size()) {
    return 0;
  }
  std::uint64_t rank = 0;
  std::size_t used = 0;
  for (const auto& segment : route.segments) {
    const auto& text = segments[used];
    if (!segment.is_parameter
            ? text != segment.text
            : text.empty() && (!segment.takes_rest || used + 1 == segments.size())) {
      return 0;
    }
    rank |= std::uint64_t{segment.is_parameter ? 1U : 2U} << (62U - 2 * used);
    ++used;
  }
  return rank | 1U;
}

std::vector<std::pair<std::string, std::string>> Router::parameters_of(
    const Route& route, const std::vector<std::string>& segments) {
  std::vector<std::pair<std::string, std::string>> parameters;
  for (std::size_t i = 0; i < route.segments.size(); ++i) {
    const auto& segment = route.segments[i];
    if (!segment.is_parameter) {
      continue;
    }
    auto text = segments[i];
    for (auto rest = i + 1; segment.takes_rest && rest < segments.size(); ++rest) {
      text += '/';
      text += segments[rest];
    }
    parameters.emplace_back(segment.text, std::move(text));
  }
  return parameters;
}

Router::Match Router::find(std::string_view method, const Target& target) const {
  const Route* best = nullptr;
  std::uint64_t best_rank = 0;
  for (const auto& route : routes_) {
    if (route.method == method) {
      if (const auto rank = fit(route, target.segments); rank > best_rank) {
        best = &route;
        best_rank = rank;
      }
    }
  }
  Match match;
  if (best != nullptr) {
    match.verdict = Verdict::kFound;
    match.handler = &best->handler;
    match.parameters = parameters_of(*best, target.segments);
    return match;
  }
  std::vector<std::string> allowed;
  std::multimap<std::uint64_t, std::string> fitting;
  for (const auto& route : routes_) {
    if (const auto rank = fit(route, target.segments); rank > 0) {
      fitting.emplace(rank, route.method);
      if (std::ranges::find(allowed, route.method) == allowed.end()) {
        allowed.push_back(route.method);
      }
    }
  }
  if (!allowed.empty()) {
    match.verdict = Verdict::kNoMethod;
    match.allow = fmt::format("{}", fmt::join(allowed, ", "));
    for (const auto& [ignored, name] : fitting) {
      match.methods.push_back(name);
    }
  }
  return match;
}

net::awaitable<Response> Router::answer(Request request) const {
  auto target = parse_target(request.target);
  if (!target.has_value()) {
    co_return Response{
        .status = 400, .headers = {{"Content-Type", "text/plain"}}, .body = target.error().message};
  }
  auto match = find(request.method, *target);
  switch (match.verdict) {
    case Verdict::kFound:
      co_return co_await (*match.handler)(RoutedRequest{.request = std::move(request),
                                                        .target = std::move(*target),
                                                        .parameters = std::move(match.parameters)});
    case Verdict::kNoPath:
      co_return no_path ? no_path(request) : Response{.status = 404};
    case Verdict::kNoMethod:
      break;
  }
  if (no_method) {
    co_return no_method(request, *target, match);
  }
  co_return Response{.status = 405, .headers = {{"Allow", std::move(match.allow)}}};
}

}  // namespace verger::http
