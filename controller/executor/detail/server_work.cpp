#include "controller/executor/detail/server_work.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include "controller/cluster/gather.h"
#include "controller/executor/step_support.h"
#include "nodeagent/http/message.h"

namespace verger::controller::detail {
namespace {

using nlohmann::json;

json names_or_null(const std::optional<std::vector<std::string>>& names) {
  return names ? json(*names) : json();
}

std::optional<std::vector<std::string>> names_in(const json& from, const char* member) {
  const auto found = from.find(member);
  if (found == from.end() || !found->is_array()) {
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (const auto& each : *found) {
    if (each.is_string()) {
      out.push_back(each.get<std::string>());
    }
  }
  return out;
}

struct OneList {
  WorkList list = std::vector<client::ServerWork>();
};

net::awaitable<OneList> ask_for_work(std::shared_ptr<Peers> peers, std::string node,
                                     bool projections) {
  OneList out;
  out.list = projections ? co_await peers->projections(node) : co_await peers->subscriptions(node);
  co_return out;
}

/// Of one kind of work: what is noted and not seen running.
void add_missing(std::vector<MissingWork>& out, std::string_view what,
                 const std::vector<std::string>& noted, const WorkList& now,
                 const std::string& url) {
  const bool projections = what == "projection";
  const auto restart_all = projections ? steps::post_command(url, "/projections/restart",
                                                             "-H 'Content-Type: application/json' ")
                                       : steps::post_command(url, "/subscriptions/restart", "");
  if (noted.empty()) {
    return;
  }
  if (!now) {
    out.push_back({fmt::format("{}s", what), "", why_not_seen(now), restart_all});
    return;
  }
  for (const auto& name : noted) {
    const auto found = std::ranges::find(*now, name, &client::ServerWork::name);
    if (found != now->end() && found->state == client::WorkState::kRunning) {
      continue;
    }
    out.push_back(
        {std::string(what), name, found == now->end() ? std::string("not listed") : found->status,
         projections
             ? steps::post_command(
                   url, fmt::format("/projection/{}/command/enable", http::percent_encode(name)),
                   "")
             : restart_all});
  }
}

}  // namespace

net::awaitable<WorkSeen> look_at_work(std::shared_ptr<Peers> peers, std::string node) {
  std::vector<net::awaitable<OneList>> questions;
  questions.push_back(ask_for_work(peers, node, true));
  questions.push_back(ask_for_work(peers, node, false));
  auto answers = co_await gather(std::move(questions));
  WorkSeen out;
  out.projections = std::move(answers[0].list);
  out.subscriptions = std::move(answers[1].list);
  co_return out;
}

bool may_be_known_later(const WorkList& list) {
  return !list && list.error().code != Errc::kUnsupported &&
         list.error().code != Errc::kUnauthorized;
}

std::string why_not_seen(const WorkList& list) {
  if (list) {
    return "";
  }
  if (list.error().code == Errc::kUnsupported) {
    return "not offered";
  }
  return list.error().message;
}

std::string MissingWork::text() const {
  return name.empty() ? fmt::format("{}: {}", what, status)
                      : fmt::format("{} {}: {}", what, name, status);
}

json MissingWork::to_json() const {
  return {{"what", what}, {"name", name}, {"status", status}, {"command", command}};
}

json NotedWork::to_json() const {
  return {{"projections", names_or_null(projections)},
          {"subscriptions", names_or_null(subscriptions)}};
}

NotedWork NotedWork::parse(const std::string& text) {
  const auto from = steps::parsed_or_empty(text);
  return {.projections = names_in(from, "projections"),
          .subscriptions = names_in(from, "subscriptions")};
}

bool NotedWork::nothing() const {
  return (!projections || projections->empty()) && (!subscriptions || subscriptions->empty());
}

std::vector<MissingWork> NotedWork::missing(const WorkSeen& now, const std::string& url) const {
  std::vector<MissingWork> out;
  add_missing(out, "projection", projections.value_or(std::vector<std::string>()), now.projections,
              url);
  add_missing(out, "subscription", subscriptions.value_or(std::vector<std::string>()),
              now.subscriptions, url);
  return out;
}

}  // namespace verger::controller::detail
