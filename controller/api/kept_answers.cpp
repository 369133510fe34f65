#include "controller/api/kept_answers.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/access.h"
#include "controller/api/answers.h"
#include "engine/base/digest.h"

namespace verger::controller {
namespace {

constexpr std::string_view kAnswerKept = "answer-kept";  ///< {request, status, type, body}

/// Two requests with one key must be the same.
std::string print_of(const http::Request& request) {
  return to_hex(
      sha256(as_bytes(fmt::format("{} {}\n{}", request.method, request.target, request.body))));
}

}  // namespace

KeptAnswers::UnderWay::UnderWay(KeptAnswers& of, std::string stream)
    : of_(of), stream_(std::move(stream)) {
  of_.under_way_.insert(stream_);
}
KeptAnswers::UnderWay::~UnderWay() { of_.under_way_.erase(stream_); }

std::string KeptAnswers::stream_of(const std::string& caller, const std::string& key) {
  return fmt::format("{}{}", kAnswerStreams,
                     to_hex(sha256(as_bytes(fmt::format("{}\n{}", caller, key)))));
}

std::optional<http::Response> KeptAnswers::find(const http::Request& request,
                                                const std::string& stream) {
  if (under_way_.contains(stream)) {
    return problem(409, "in_progress", "a request with this Idempotency-Key is being carried out");
  }
  const auto events = journal_.read(stream);
  if (!events) {
    return problem_of(events.error());
  }
  if (events->empty()) {
    return std::nullopt;
  }
  const auto data = nlohmann::json::parse(events->front().data, nullptr, false);
  if (!data.is_object() || data.value("request", std::string()) != print_of(request)) {
    return problem(422, "idempotency_mismatch",
                   "this Idempotency-Key was used for another request; take a new one");
  }
  http::Response out;
  out.status = data.value("status", 500);
  out.headers.set("Content-Type", data.value("type", std::string()));
  out.headers.set("Idempotency-Replayed", "true");
  out.body = data.value("body", std::string());
  return out;
}

void KeptAnswers::keep(const http::Request& request, const std::string& stream,
                       const http::Response& response) {
  if (response.status >= 500 || response.stream) {
    return;
  }
  const nlohmann::json data{{"request", print_of(request)},
                            {"status", response.status},
                            {"type", response.headers.get("Content-Type").value_or("")},
                            {"body", response.body}};
  // What an answer holds may not be UTF-8; it must not make the request fail that it answers.
  const auto text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (const auto kept =
          journal_.append(stream, Revision(0), {NewEvent{std::string(kAnswerKept), text}}, epoch_);
      !kept) {
    log_.warning("the answer to a request is not kept for its Idempotency-Key",
                 {{"target", request.target}, {"error", kept.error().message}});
  }
}

}  // namespace verger::controller
