#include "controller/journal/etcd_client.h"

#include <charconv>
#include <fmt/format.h>

#include "engine/base/json_depth.h"
#include "nodeagent/http/base64.h"

namespace verger::controller {

using nlohmann::json;

namespace {

constexpr std::string_view kEtcdPort = ":2379";

/// The gateway writes 64-bit numbers as texts, and leaves out zeros. Throws std::out_of_range.
std::int64_t etcd_number(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return 0;
  }
  const auto& text = found->get_ref<const std::string&>();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::out_of_range(fmt::format("{}: \"{}\" is not a number", name, text));
  }
  return value;
}

std::string etcd_bytes(const json& object, const char* name) {
  const auto decoded = http::base64_decode(object.value(name, std::string()));
  if (!decoded) {
    throw std::out_of_range(fmt::format("{} is not base64", name));
  }
  return *decoded;
}

std::vector<EtcdKeyValue> key_values(const json& range) {
  std::vector<EtcdKeyValue> out;
  for (const auto& each : range.value("kvs", json::array())) {
    out.push_back(EtcdKeyValue{.key = etcd_bytes(each, "key"),
                               .value = etcd_bytes(each, "value"),
                               .mod_revision = etcd_number(each, "mod_revision")});
  }
  return out;
}

/// Throws where it is none.
EtcdAnswer parse_transaction(const json& answer) {
  EtcdAnswer out;
  out.revision = etcd_number(answer.at("header"), "revision");
  out.succeeded = answer.value("succeeded", false);
  for (const auto& each : answer.value("responses", json::array())) {
    const auto range = each.find("response_range");
    out.read.push_back(range == each.end() ? std::vector<EtcdKeyValue>() : key_values(*range));
  }
  return out;
}

json encoded(std::string_view bytes) { return http::base64_encode(bytes); }

std::string said(const http::Response& response) {
  const auto body = json_depth(response.body) > kMaxJsonDepth
                        ? json()
                        : json::parse(response.body, nullptr, false);
  if (body.is_object()) {
    if (const auto found = body.find("message"); found != body.end() && found->is_string()) {
      return found->get<std::string>();
    }
  }
  return fmt::format("HTTP {}", response.status);
}

/// What an answer other than 200 means. Whether a 5xx was carried out is not known: etcd says so
/// too where it gave up waiting for its peers.
Error refusal(const http::Response& response) {
  auto text = said(response);
  switch (response.status) {
    case 400:
      return {Errc::kInvalidArgument, std::move(text)};
    case 401:
    case 403:
      return {Errc::kUnauthorized, std::move(text)};
    case 404:
      return {Errc::kNotFound, std::move(text)};
    case 429:
      return {text.contains("space") ? Errc::kNoSpace : Errc::kUnavailable, std::move(text)};
    default:
      return {Errc::kUnknownOutcome, std::move(text)};
  }
}

}  // namespace

Result<std::vector<http::Endpoint>> parse_etcd_endpoints(std::string_view urls) {
  std::vector<http::Endpoint> out;
  while (!urls.empty()) {
    const auto comma = urls.find(',');
    std::string url(urls.substr(0, comma));
    urls = comma == std::string_view::npos ? "" : urls.substr(comma + 1);
    while (url.ends_with('/')) {
      url.pop_back();
    }
    const auto host = url.find("//");
    if (host != std::string::npos &&
        url.find(':', std::max(host, url.find(']') == std::string::npos ? 0 : url.find(']'))) ==
            std::string::npos) {
      url += kEtcdPort;
    }
    auto endpoint = http::parse_endpoint(url);
    if (!endpoint) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("\"{}\" is not the URL of an etcd server; write it as "
                               "http://HOST:PORT or https://HOST:PORT, several with commas between",
                               url)};
    }
    out.push_back(*std::move(endpoint));
  }
  if (out.empty()) {
    return Error{Errc::kInvalidArgument, "no URL of an etcd server is given"};
  }
  return out;
}

namespace etcd {

json put(std::string_view key, std::string_view value, std::int64_t lease) {
  json out{{"key", encoded(key)}, {"value", encoded(value)}};
  if (lease != 0) {
    out["lease"] = std::to_string(lease);
  }
  return {{"request_put", std::move(out)}};
}

json remove(std::string_view key, std::string_view end) {
  json out{{"key", encoded(key)}};
  if (!end.empty()) {
    out["range_end"] = encoded(end);
  }
  return {{"request_delete_range", std::move(out)}};
}

json get(std::string_view key) { return {{"request_range", {{"key", encoded(key)}}}}; }

json get_range(std::string_view from, std::string_view end, std::size_t limit) {
  return {
      {"request_range",
       {{"key", encoded(from)}, {"range_end", encoded(end)}, {"limit", std::to_string(limit)}}}};
}

json is_absent(std::string_view key) {
  return {
      {"key", encoded(key)}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}};
}

json was_written_at(std::string_view key, std::int64_t mod_revision) {
  return {{"key", encoded(key)},
          {"target", "MOD"},
          {"result", "EQUAL"},
          {"mod_revision", std::to_string(mod_revision)}};
}

json has_value(std::string_view key, std::string_view value) {
  return {
      {"key", encoded(key)}, {"target", "VALUE"}, {"result", "EQUAL"}, {"value", encoded(value)}};
}

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFFU) {
    prefix.pop_back();
  }
  if (!prefix.empty()) {
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1U);
  }
  return prefix;
}

}  // namespace etcd

net::awaitable<Result<EtcdAnswer>> EtcdClient::transact(json compare, json success, json failure) {
  const json request{{"compare", std::move(compare)},
                     {"success", std::move(success)},
                     {"failure", std::move(failure)}};
  VERGER_CO_TRY(const auto answer, co_await ask("/v3/kv/txn", request.dump(), true));
  try {
    co_return parse_transaction(answer);
  } catch (const std::exception& error) {
    co_return Error{Errc::kUnknownOutcome,
                    fmt::format("etcd's answer is not one to a transaction: {}", error.what())};
  }
}

net::awaitable<Result<EtcdAnswer>> EtcdClient::read(json gets) {
  const json request{{"success", std::move(gets)}};
  VERGER_CO_TRY(const auto answer, co_await ask("/v3/kv/txn", request.dump(), false));
  try {
    co_return parse_transaction(answer);
  } catch (const std::exception& error) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("etcd's answer is not one to a transaction: {}", error.what())};
  }
}

net::awaitable<Result<std::int64_t>> EtcdClient::grant_lease(std::chrono::seconds ttl) {
  const json request{{"TTL", std::to_string(ttl.count())}};
  VERGER_CO_TRY(const auto answer, co_await ask("/v3/lease/grant", request.dump(), true));
  try {
    co_return etcd_number(answer, "ID");
  } catch (const std::exception& error) {
    co_return Error{Errc::kUnknownOutcome,
                    fmt::format("etcd's answer has no lease: {}", error.what())};
  }
}

net::awaitable<Result<void>> EtcdClient::keep_lease(std::int64_t lease) {
  const json request{{"ID", std::to_string(lease)}};
  // Repeating it does no harm: it is sent as if it only read.
  VERGER_CO_TRY(const auto answer, co_await ask("/v3/lease/keepalive", request.dump(), false));
  try {
    if (etcd_number(answer.at("result"), "TTL") > 0) {
      co_return Result<void>{};
    }
  } catch (const std::exception& error) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("etcd's answer is not one about a lease: {}", error.what())};
  }
  co_return Error{Errc::kNotFound, "the lease is over"};
}

net::awaitable<Result<void>> EtcdClient::revoke_lease(std::int64_t lease) {
  const json request{{"ID", std::to_string(lease)}};
  VERGER_CO_RETURN_IF_ERROR(co_await ask("/v3/lease/revoke", request.dump(), true));
  co_return Result<void>{};
}

net::awaitable<Result<EtcdSize>> EtcdClient::size() {
  VERGER_CO_TRY(const auto answer, co_await ask("/v3/maintenance/status", "{}", false));
  try {
    co_return EtcdSize{.bytes = etcd_number(answer, "dbSize"),
                       .bytes_in_use = etcd_number(answer, "dbSizeInUse")};
  } catch (const std::exception& error) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("etcd's answer is not one about its size: {}", error.what())};
  }
}

net::awaitable<Result<void>> EtcdClient::compact(std::int64_t revision) {
  const json request{{"revision", std::to_string(revision)}};
  // Repeating it does no harm: it is sent as if it only read.
  const auto answer = co_await ask("/v3/kv/compaction", request.dump(), false);
  if (answer) {
    co_return Result<void>{};
  }
  const bool done = answer.error().message.contains("has been compacted");
  co_return done ? Error{Errc::kNotFound, answer.error().message} : answer.error();
}

std::string EtcdClient::urls() const {
  std::string out;
  for (const auto& endpoint : endpoints_) {
    out += (out.empty() ? "" : ",") + endpoint.url();
  }
  return out;
}

net::awaitable<Result<json>> EtcdClient::ask(std::string path, std::string body, bool writes) {
  const auto end = std::chrono::steady_clock::now() + deadline_;
  const auto first = preferred_;
  Error last{Errc::kUnavailable, "no time was left"};
  for (std::size_t tried = 0; tried < endpoints_.size(); ++tried) {
    const auto at = (first + tried) % endpoints_.size();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      break;
    }
    // One that hangs leaves time for another.
    const auto limit = tried + 1 < endpoints_.size() ? left / 2 : left;
    http::Request request{.method = "POST", .target = path, .body = body};
    request.headers.set("Content-Type", "application/json");
    auto response = co_await client_.send(endpoints_[at], std::move(request), limit);
    if (response && response->status == 200) {
      auto answer = json_depth(response->body) > kMaxJsonDepth
                        ? json()
                        : json::parse(response->body, nullptr, false);
      if (answer.is_object()) {
        preferred_ = at;
        co_return answer;
      }
      last = Error{Errc::kUnknownOutcome, "the answer is not a JSON object"};
    } else {
      last = response ? refusal(*response) : response.error();
    }
    last = last.within(fmt::format("etcd at {}", endpoints_[at].url()));
    preferred_ = (at + 1) % endpoints_.size();
    if (last.code == Errc::kUnknownOutcome && writes) {
      co_return last;
    }
    if (last.code != Errc::kUnknownOutcome && last.code != Errc::kUnavailable) {
      co_return last;  // its peers would say the same
    }
  }
  co_return Error{Errc::kUnavailable, last.message};
}

}  // namespace verger::controller
