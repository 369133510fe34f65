#include "controller/cluster/prometheus.h"

#include <cmath>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "engine/base/number_from_text.h"
#include "nodeagent/http/loopback.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using planner::QueryBlocker;
using planner::QueryResult;

/// Prometheus' numbers: "0.5", "NaN", "+Inf".
std::optional<double> number_of(std::string_view text) {
  if (text == "+Inf" || text == "Inf") {
    return HUGE_VAL;
  }
  if (text == "-Inf") {
    return -HUGE_VAL;
  }
  if (text == "NaN") {
    return std::nan("");
  }
  return number_from_text<double>(text);
}

Result<std::vector<double>> values_of(const http::Response& response) {
  const auto body = json::parse(response.body, nullptr, false);
  const Error strange{Errc::kCorruption,
                      fmt::format("the answer ({}) is none of Prometheus'", response.status)};
  if (!body.is_object()) {
    return strange;
  }
  if (body.value("status", std::string()) != "success") {
    const auto why = body.value("error", std::string());
    return why.empty() ? strange : Error{Errc::kInvalidArgument, why};
  }
  const auto data = body.value("data", json::object());
  if (!data.is_object() || !data.contains("result") || !data["result"].is_array()) {
    return strange;
  }
  const auto type = data.value("resultType", std::string());
  if (type != "vector" && type != "scalar") {
    return Error{Errc::kInvalidArgument,
                 fmt::format("the query gives a {}; a vector or a scalar is needed", type)};
  }
  std::vector<double> out;
  const auto take = [&out](const json& pair) {
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_string()) {
      return false;
    }
    const auto value = number_of(pair[1].get<std::string>());
    if (value) {
      out.push_back(*value);
    }
    return value.has_value();
  };
  if (type == "scalar") {
    return take(data["result"]) ? Result<std::vector<double>>(std::move(out)) : strange;
  }
  for (const auto& series : data["result"]) {
    if (!series.is_object() || !series.contains("value") || !take(series["value"])) {
      return strange;
    }
  }
  return out;
}

net::awaitable<QueryResult> ask_one(Network network, QueryBlocker query) {
  QueryResult out;
  out.name = query.name;
  const auto least = number_of(query.at_least);
  const auto most = number_of(query.at_most);
  out.limit = least && most ? fmt::format("{} to {}", query.at_least, query.at_most)
              : least       ? fmt::format("at least {}", query.at_least)
                            : fmt::format("at most {}", query.at_most);
  const auto values = co_await instant_query(std::move(network), query.url, query.query);
  if (!values) {
    out.problem = fmt::format("{}: {}", query.url, values.error().message);
    co_return out;
  }
  if (values->empty()) {
    out.problem = fmt::format("{}: the answer has no values", query.url);
    co_return out;
  }
  // NaN keeps to no bound.
  const auto keeps = [&](double value) {
    return (!least || value >= *least) && (!most || value <= *most);
  };
  out.holds = true;
  out.value = fmt::format("{}", values->front());
  for (const auto value : *values) {
    if (!keeps(value)) {
      out.holds = false;
      out.value = fmt::format("{}", value);
      break;
    }
  }
  co_return out;
}

}  // namespace

net::awaitable<Result<std::vector<double>>> instant_query(Network network, std::string url,
                                                          std::string query) {
  VERGER_CO_TRY(auto endpoint, http::parse_endpoint(url, 0));
  if (!endpoint.tls && !http::is_loopback(endpoint.host)) {
    co_return Error{Errc::kInvalidArgument, "plain HTTP is for loopback addresses only"};
  }
  http::Request request;
  request.target = "/api/v1/query?query=" + http::percent_encode(query);
  request.headers.set("Accept", "application/json");
  VERGER_CO_TRY(const auto response,
                co_await network.for_services().send(std::move(endpoint), std::move(request),
                                                     network.request_deadline));
  co_return values_of(response);
}

net::awaitable<std::vector<QueryResult>> ask_queries(Network network,
                                                     std::vector<QueryBlocker> queries) {
  std::vector<net::awaitable<QueryResult>> questions;
  questions.reserve(queries.size());
  for (auto& query : queries) {
    questions.push_back(ask_one(network, std::move(query)));
  }
  co_return co_await gather(std::move(questions));
}

}  // namespace verger::controller
