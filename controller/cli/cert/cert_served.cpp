#include "controller/cli/cert/cert_served.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/unix_time.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/http_date.h"
#include "nodeagent/http/served_chain.h"
#include "nodeagent/http/tls.h"

namespace verger::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kAnswerDeadline{10};

template <class T>
T run_to_end(boost::asio::io_context& context, net::awaitable<T> work) {
  auto result = boost::asio::co_spawn(context, std::move(work), boost::asio::use_future);
  context.restart();
  context.run();
  return result.get();
}

}  // namespace

Result<std::string> served_by(const std::string& url) {
  VERGER_TRY(const auto node, http::parse_endpoint(url));
  if (!node.tls) {
    return Error{Errc::kInvalidArgument, url + ": it takes an https URL"};
  }
  boost::asio::io_context context{1};
  return run_to_end(context, http::served_chain(context.get_executor(), node, kAnswerDeadline));
}

std::vector<std::string> advertised_in(const std::string& gossip, const std::string& host,
                                       std::uint16_t port) {
  std::vector<std::string> out;
  const auto parsed = json::parse(gossip, nullptr, false);
  const auto members = parsed.is_object() ? parsed.value("members", json::array()) : json::array();
  const auto text = [](const json& member, const char* name) {
    const auto found = member.find(name);
    return found != member.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  for (const auto& member : members) {
    const auto found =
        member.is_object() ? member.find("httpEndPointPort") : json::const_iterator();
    if (!member.is_object() || found == member.end() || !found->is_number() ||
        found->get<int>() != port ||
        (members.size() > 1 && text(member, "httpEndPointIp") != host)) {
      continue;
    }
    for (const auto* name : {"httpEndPointIp", "internalTcpIp", "externalTcpIp"}) {
      const auto address = text(member, name);
      if (!address.empty() && std::ranges::find(out, address) == out.end()) {
        out.push_back(address);
      }
    }
  }
  return out;
}

NodeAnswers ask_node(const std::string& url, const std::string& roots) {
  NodeAnswers out;
  const auto node = http::parse_endpoint(url);
  auto tls = http::TlsContext::client({.trusted_roots = roots});
  if (!node || !tls) {
    out.problems.push_back(node ? tls.error().message : node.error().message);
    return out;
  }
  boost::asio::io_context context{1};
  http::BeastClient client(context.get_executor(), {.tls = *tls});
  const auto get = [&](const char* target) {
    return run_to_end(context, client.send(*node, http::Request{.method = "GET", .target = target},
                                           kAnswerDeadline));
  };
  const auto gossip = get("/gossip");
  if (!gossip || gossip->status != 200) {
    out.problems.push_back(fmt::format(
        "{}: which addresses gossip advertises is not known ({}); --address NAME=… gives them", url,
        gossip ? fmt::format("status {}", gossip->status) : gossip.error().message));
  } else {
    out.addresses = advertised_in(gossip->body, node->host, node->port);
    const auto date = http::parse_http_date(std::string(gossip->headers.get("Date").value_or("")));
    if (date) {
      out.clock_ahead = std::chrono::seconds(
          (date->value() - ticks_at_unix(std::time(nullptr)).value()) / kTicksPerSecond);
    }
  }
  const auto info = get("/info");
  const auto parsed = info ? json::parse(info->body, nullptr, false) : json();
  if (parsed.is_object()) {
    out.version = parsed.value("esVersion", parsed.value("dbVersion", ""));
  }
  if (out.version.empty()) {
    out.problems.push_back(url + ": its version is not known; --server-version gives it");
  }
  return out;
}

}  // namespace verger::cli
