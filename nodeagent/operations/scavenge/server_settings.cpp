#include "nodeagent/operations/scavenge/server_settings.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/number_from_text.h"

namespace verger::agent {
namespace {

/// The value of an option, in lower case: servers write numbers and booleans as texts or as such.
std::string text_of(const nlohmann::json& value) {
  auto text = value.is_string() ? value.get<std::string>() : value.dump();
  std::ranges::transform(text, text.begin(),
                         [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
  return text;
}

net::awaitable<Result<ScavengeSettings>> query_options(http::Client* client, http::Endpoint node,
                                                       client::SharedCredentials credentials,
                                                       std::chrono::milliseconds deadline) {
  http::Request request{.method = "GET", .target = "/info/options"};
  request.headers.set("Accept", "application/json");
  if (credentials != nullptr && !credentials->user.empty()) {
    request.headers.set("Authorization",
                        http::basic_authorization(credentials->user, credentials->password));
  }
  const auto answer = co_await client->send(std::move(node), std::move(request), deadline);
  if (!answer) {
    co_return Error{Errc::kUnavailable, answer.error().message};
  }
  if (answer->status != 200) {
    co_return Error{answer->status == 401 ? Errc::kUnauthorized : Errc::kUnavailable,
                    fmt::format("GET /info/options: HTTP {}", answer->status)};
  }
  co_return parse_scavenge_settings(answer->body);
}

}  // namespace

Result<ScavengeSettings> parse_scavenge_settings(std::string_view body) {
  const auto options = nlohmann::json::parse(body, nullptr, false);
  if (!options.is_array()) {
    return Error{Errc::kCorruption, "options: not a list"};
  }
  ScavengeSettings out;
  for (const auto& option : options) {
    if (!option.is_object() || !option.contains("name") || !option.contains("value")) {
      continue;
    }
    const auto name = text_of(option.at("name"));
    const auto value = text_of(option.at("value"));
    if (name == "scavengebackendpagesize") {
      out.page_size = number_from_text<int>(value).value_or(0);
    } else if (name == "unsafeignoreharddelete") {
      out.ignores_hard_deletes = value == "true";
    }
  }
  return out;
}

QuerySettings query_settings_of(http::Client& client, http::Endpoint node,
                                client::SharedCredentials credentials,
                                std::chrono::milliseconds deadline) {
  return [&client, node = std::move(node), credentials = std::move(credentials), deadline] {
    return query_options(&client, node, credentials, deadline);
  };
}

}  // namespace verger::agent
