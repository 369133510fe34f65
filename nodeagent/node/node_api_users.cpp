// /users and /admin/login: node-interface.md §1.8, §1.13.
#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/lenient_words.h"
#include "nodeagent/node/node_api.h"
#include "nodeagent/node/users.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

constexpr std::string_view kAll = "GET, POST, OPTIONS";
constexpr std::string_view kOne = "GET, PUT, DELETE, OPTIONS";
constexpr std::string_view kCurrentUser = "GET, PUT, DELETE, GET, OPTIONS";
const std::vector<Format> kJson = {Format::kJson};
/// Of /admin/login, which answers in JSON whichever of these is requested.
const std::vector<Format> kLogin = {Format::kText, Format::kJson, Format::kXml};

// What the server's message numbers are in 24.6; they mean nothing to a client, but are there.
constexpr int kUpdateResult = 260;
constexpr int kDetails = 261;
constexpr int kAllDetails = 262;
constexpr int kCurrentUserDetails = 263;

std::string_view name_of(UserError error) {
  switch (error) {
    case UserError::kSuccess:
      return "Success";
    case UserError::kNotFound:
      return "NotFound";
    case UserError::kConflict:
      return "Conflict";
    case UserError::kUnauthorized:
      return "Unauthorized";
    case UserError::kTryAgain:
      return "TryAgain";
    case UserError::kError:
      return "Error";
  }
  return "Error";
}

int status_of(UserError error) {
  switch (error) {
    case UserError::kSuccess:
      return 200;
    case UserError::kNotFound:
      return 404;
    case UserError::kConflict:
      return 409;
    case UserError::kUnauthorized:
      return 401;
    case UserError::kTryAgain:
      return 408;
    case UserError::kError:
      return 500;
  }
  return 500;
}

Response json_response(const ordered_json& body, UserError error, std::string_view methods) {
  auto response = formatted({Format::kJson, "application/json"}, indented(body), methods);
  response.status = status_of(error);
  if (error == UserError::kUnauthorized) {
    response.headers.set("WWW-Authenticate", "BasicCustom realm=\"ES\"");
  }
  return response;
}

Response update_result(const std::string& login, UserError error, std::string_view methods) {
  return json_response({{"loginName", login},
                        {"success", error == UserError::kSuccess},
                        {"error", name_of(error)},
                        {"msgTypeId", kUpdateResult},
                        {"label", "Other"}},
                       error, methods);
}

/// What the server answers when a handler fails on a body: 200, empty, and nothing was done.
Response nothing_done() { return Response{}; }

ordered_json details(const User& user, const std::string& base) {
  const auto url = fmt::format("{}/users/{}", base, http::percent_encode(user.login));
  const auto link = [](std::string href, const char* rel) {
    return ordered_json({{"href", std::move(href)}, {"rel", rel}});
  };
  return {
      {"loginName", user.login},
      {"fullName", user.full_name},
      {"groups", user.groups},
      {"dateLastUpdated", nullptr},
      {"disabled", user.disabled},
      {"links", ordered_json::array({link(url + "/command/reset-password", "reset-password"),
                                     link(url + "/command/change-password", "change-password"),
                                     link(url, "edit"), link(url, "delete"),
                                     user.disabled ? link(url + "/command/enable", "enable")
                                                   : link(url + "/command/disable", "disable")})}};
}

std::optional<std::string> text_member(const ordered_json& json, const char* name) {
  const auto* found = member_of(json, name);
  return found != nullptr && found->is_string() ? std::optional(found->get<std::string>())
                                                : std::nullopt;
}

std::vector<std::string> groups_of(const ordered_json& json) {
  std::vector<std::string> groups;
  if (const auto* found = member_of(json, "groups"); found != nullptr && found->is_array()) {
    for (const auto& group : *found) {
      if (group.is_string()) {
        groups.push_back(group.get<std::string>());
      }
    }
  }
  return groups;
}

net::awaitable<Response> create(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  const auto body = ordered_json::parse(routed.request.body, nullptr, false);
  const auto login = text_member(body, "loginName");
  const auto password = text_member(body, "password");
  if (!login || login->empty() || !password) {
    co_return nothing_done();
  }
  User user{.login = *login,
            .full_name = text_member(body, "fullName").value_or(""),
            .groups = groups_of(body)};
  const auto error = co_await create_user(core, std::move(user), *password);
  auto response = update_result(*login, error, kAll);
  if (error == UserError::kSuccess) {
    response.status = 201;
    response.headers.set("Location", fmt::format("{}/users/{}", base_url(*core, routed.request),
                                                 http::percent_encode(*login)));
  }
  co_return response;
}

net::awaitable<Response> list(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  const auto users = all_users(core->db());
  if (!users) {
    core->env.log.error("users cannot be read", {{"reason", users.error().message}});
    co_return Response{.status = 500};
  }
  auto data = ordered_json::array();
  for (const auto& user : *users) {
    data.push_back(details(user, base_url(*core, routed.request)));
  }
  co_return json_response({{"data", std::move(data)},
                           {"success", true},
                           {"error", "Success"},
                           {"msgTypeId", kAllDetails},
                           {"label", "Other"}},
                          UserError::kSuccess, kAll);
}

net::awaitable<Response> show(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  const auto found = find_user(core->db(), routed.parameter("login"));
  const auto error = !found    ? UserError::kError
                     : !*found ? UserError::kNotFound
                               : UserError::kSuccess;
  ordered_json body = {{"data", nullptr},
                       {"success", error == UserError::kSuccess},
                       {"error", name_of(error)},
                       {"msgTypeId", kDetails},
                       {"label", "Other"}};
  if (error == UserError::kSuccess) {
    body["data"] = details((*found)->user, base_url(*core, routed.request));
  }
  co_return json_response(body, error, kOne);
}

net::awaitable<Response> current_user(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  const auto identity = identity_of(*core, routed.request);
  co_return json_response({{"data",
                            {{"loginName", identity.login},
                             {"fullName", identity.full_name},
                             {"groups", identity.groups},
                             {"dateLastUpdated", format_ticks(core->env.clock.now())},
                             {"disabled", false}}},
                           {"success", true},
                           {"error", "Success"},
                           {"msgTypeId", kCurrentUserDetails},
                           {"label", "Other"}},
                          UserError::kSuccess, kCurrentUser);
}

net::awaitable<Response> login(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto identity = identity_of(*core, routed.request);
  // The writer of this route drops what is null or default, and says +00:00 where others say Z.
  auto now = format_ticks(core->env.clock.now());
  if (now.ends_with('Z')) {
    now.replace(now.size() - 1, 1, "+00:00");
  }
  const ordered_json body = {{"data",
                              {{"loginName", identity.login},
                               {"fullName", identity.login},
                               {"groups", identity.groups},
                               {"dateLastUpdated", now}}},
                             {"success", true},
                             {"msgTypeId", kCurrentUserDetails},
                             {"label", "Other"}};
  co_return formatted({Format::kJson, "application/json"}, indented(body), "GET, OPTIONS");
}

/// Changes an existing user by `change`; the login is the path's.
net::awaitable<Response> change(std::shared_ptr<Core> core, RoutedRequest routed,
                                std::string_view methods,
                                std::function<UserError(User&, bool& new_password)> apply) {
  const std::string name(routed.parameter("login"));
  auto found = find_user(core->db(), name);
  if (!found) {
    co_return update_result(name, UserError::kError, methods);
  }
  if (!*found) {
    co_return update_result(name, UserError::kNotFound, methods);
  }
  bool new_password = false;
  auto user = (*found)->user;
  auto error = apply(user, new_password);
  if (error == UserError::kSuccess) {
    error = co_await update_user(core, std::move(user), new_password);
  }
  co_return update_result(name, error, methods);
}

net::awaitable<Response> update(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  const auto body = ordered_json::parse(routed.request.body, nullptr, false);
  if (!body.is_object()) {
    co_return nothing_done();
  }
  co_return co_await change(core, std::move(routed), kOne, [body](User& user, bool&) {
    user.full_name = text_member(body, "fullName").value_or("");
    user.groups = groups_of(body);
    return UserError::kSuccess;
  });
}

net::awaitable<Response> remove_user(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  const std::string name(routed.parameter("login"));
  co_return update_result(name, co_await delete_user(core, name), kOne);
}

net::awaitable<Response> set_disabled(std::shared_ptr<Core> core, RoutedRequest routed,
                                      bool disabled) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  co_return co_await change(core, std::move(routed), methods::kPost, [disabled](User& user, bool&) {
    user.disabled = disabled;
    return UserError::kSuccess;
  });
}

net::awaitable<Response> set_password(std::shared_ptr<Core> core, RoutedRequest routed, bool own) {
  if (own) {
    const auto identity = identity_of(*core, routed.request);
    if (identity.kind == Identity::Kind::kUser && identity.login != routed.parameter("login")) {
      co_return not_allowed();
    }
  }
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  const auto body = ordered_json::parse(routed.request.body, nullptr, false);
  const auto fresh = text_member(body, "newPassword");
  const auto old = text_member(body, "currentPassword");
  if (!fresh || (own && !old)) {
    co_return nothing_done();
  }
  auto* chance = &core->env.random;
  co_return co_await change(core, std::move(routed), methods::kPost,
                            [fresh, old, own, chance](User& user, bool& new_password) {
                              if (own && !password_matches(user.password, *old)) {
                                return UserError::kUnauthorized;
                              }
                              user.password = hash_password(*fresh, *chance);
                              new_password = true;
                              return UserError::kSuccess;
                            });
}

}  // namespace

void add_user_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  if (!core->options.disable_admin_ui) {
    add_route(router, core, "GET", "/admin/login", {.need = Need::kUser, .formats = kLogin}, login);
  }
  if (core->options.insecure) {
    return;
  }
  const auto with = [](auto handler, bool flag) {
    return [handler, flag](std::shared_ptr<Core> node, RoutedRequest request) {
      return handler(std::move(node), std::move(request), flag);
    };
  };
  const RouteRule plain{.need = Need::kAdmin, .formats = kJson};
  const RouteRule with_body{.need = Need::kAdmin, .formats = kJson, .bodies = kJson};
  const RouteRule anybody{.need = Need::kUser, .formats = kJson};
  const RouteRule anybody_with_body{.need = Need::kUser, .formats = kJson, .bodies = kJson};
  add_route(router, core, "GET", "/users", plain, list);
  add_route(router, core, "POST", "/users", with_body, create);
  add_route(router, core, "GET", "/users/$current", anybody, current_user);
  add_route(router, core, "GET", "/users/{login}", plain, show);
  add_route(router, core, "PUT", "/users/{login}", with_body, update);
  add_route(router, core, "DELETE", "/users/{login}", plain, remove_user);
  add_route(router, core, "POST", "/users/{login}/command/enable", plain,
            with(set_disabled, false));
  add_route(router, core, "POST", "/users/{login}/command/disable", plain,
            with(set_disabled, true));
  add_route(router, core, "POST", "/users/{login}/command/reset-password", with_body,
            with(set_password, false));
  add_route(router, core, "POST", "/users/{login}/command/change-password", anybody_with_body,
            with(set_password, true));
}

}  // namespace verger::node
