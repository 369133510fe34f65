#include "controller/web/sessions.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::controller::web {
namespace {

/// "<id>.<secret>"
constexpr char kBetween = '.';

}  // namespace

Sessions::Opened Sessions::open(std::string token) {
  forget_old();
  auto made = make_secret(random_);
  const auto csrf = make_secret(random_).secret;
  const auto cookie = fmt::format("{}{}{}", made.id, kBetween, made.secret);
  sessions_[made.id] = Kept{.secret = std::move(made.kept),
                            .session = {.token = std::move(token), .csrf = csrf},
                            .ends = clock_.monotonic() + kSessionLifetime};
  return {.cookie = cookie, .csrf = csrf};
}

std::optional<Session> Sessions::find(std::string_view cookie) const {
  const auto end = cookie.find(kBetween);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto found = sessions_.find(cookie.substr(0, end));
  if (found == sessions_.end() || !found->second.secret.matches(cookie.substr(end + 1)) ||
      found->second.ends <= clock_.monotonic()) {
    return std::nullopt;
  }
  return found->second.session;
}

void Sessions::close(std::string_view cookie) {
  if (find(cookie)) {
    sessions_.erase(sessions_.find(cookie.substr(0, cookie.find(kBetween))));
  }
}

void Sessions::forget_old() {
  std::erase_if(sessions_,
                [now = clock_.monotonic()](const auto& each) { return each.second.ends <= now; });
  while (!sessions_.empty() && sessions_.size() >= limit_) {
    sessions_.erase(
        std::ranges::min_element(sessions_, {}, [](const auto& each) { return each.second.ends; }));
  }
}

}  // namespace verger::controller::web
