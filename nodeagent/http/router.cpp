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

Router::Match Router::find(std::string_view method, const Target& target) const {
  Match best;
  std::vector<bool> best_literals;
  std::vector<std::string> allowed;
  std::multimap<std::vector<bool>, std::string> fitting;
  for (const auto& route : routes_) {
    std::vector<bool> literals;
    std::vector<std::pair<std::string, std::string>> parameters;
    std::size_t used = 0;
    bool fits = true;
    for (const auto& segment : route.segments) {
      if (used >= target.segments.size()) {
        fits = false;
        break;
      }
      const auto& text = target.segments[used];
      if (!segment.is_parameter) {
        fits = text == segment.text;
        ++used;
      } else if (segment.takes_rest) {
        std::string rest = text;
        for (++used; used < target.segments.size(); ++used) {
          rest += '/';
          rest += target.segments[used];
        }
        fits = !rest.empty();
        parameters.emplace_back(segment.text, std::move(rest));
      } else {
        fits = !text.empty();
        parameters.emplace_back(segment.text, text);
        ++used;
      }
      if (!fits) {
        break;
      }
      literals.push_back(!segment.is_parameter);
    }
    if (!fits || used != target.segments.size()) {
      continue;
    }
    fitting.emplace(literals, route.method);
    if (route.method != method) {
      if (std::ranges::find(allowed, route.method) == allowed.end()) {
        allowed.push_back(route.method);
      }
    } else if (best.handler == nullptr || literals > best_literals) {
      best.verdict = Verdict::kFound;
      best.handler = &route.handler;
      best.parameters = std::move(parameters);
      best_literals = std::move(literals);
    }
  }
  if (best.handler == nullptr && !allowed.empty()) {
    best.verdict = Verdict::kNoMethod;
    best.allow = fmt::format("{}", fmt::join(allowed, ", "));
    for (const auto& [ignored, name] : fitting) {
      best.methods.push_back(name);
    }
  }
  return best;
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
