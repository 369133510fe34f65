#include "nodeagent/operations/certificates/certificate_routes.h"

#include <nlohmann/json.hpp>

#include "nodeagent/operations/answers.h"
#include "nodeagent/operations/certificates/restoring.h"

namespace verger::agent {
namespace {

using Desk = CertificateDesk::Self;

net::awaitable<http::Response> answer_certificates(Desk desk, http::Request /*request*/) {
  const auto seen = co_await CertificateDesk::look(std::move(desk));
  co_return seen ? json_text_answer(200, api::to_text(*seen)) : problem_of(seen.error());
}

net::awaitable<http::Response> answer_candidate(Desk desk, http::Request request) {
  const auto source = api::parse_certificate_source(request.body);
  if (!source) {
    co_return problem_of(source.error());
  }
  const auto found = desk->candidate(*source);
  co_return found ? json_text_answer(200, api::to_text(*found)) : problem_of(found.error());
}

net::awaitable<http::Response> answer_request(Desk desk, http::Request request) {
  const auto asked = api::parse_certificate_key_request(request.body);
  if (!asked) {
    co_return problem_of(asked.error());
  }
  const auto made = co_await CertificateDesk::request(std::move(desk), *asked);
  co_return made ? json_answer(200, nlohmann::json{{"request", *made}}) : problem_of(made.error());
}

net::awaitable<http::Response> answer_handshakes(Desk desk, http::Request request) {
  const auto asked = api::parse_handshakes_request(request.body);
  if (!asked) {
    co_return problem_of(asked.error());
  }
  const auto seen = co_await CertificateDesk::handshakes(std::move(desk), *asked);
  co_return seen ? json_text_answer(200, api::to_text(*seen)) : problem_of(seen.error());
}

net::awaitable<http::Response> answer_unknown() {
  co_return problem(404, "not_found", no_certificates_known().message);
}

}  // namespace

void add_certificate_routes(http::Router& router, CertificateDesk::Self desk) {
  const auto add = [&](std::string method, std::string_view pattern,
                       net::awaitable<http::Response> (*answer)(Desk, http::Request)) {
    router.add(std::move(method), pattern,
               [desk, answer](http::RoutedRequest request) -> net::awaitable<http::Response> {
                 return desk ? answer(desk, std::move(request.request)) : answer_unknown();
               });
  };
  add("GET", "/agent/v1/certificates", &answer_certificates);
  add("POST", "/agent/v1/certificates/candidate", &answer_candidate);
  add("POST", "/agent/v1/certificates/request", &answer_request);
  add("POST", "/agent/v1/certificates/handshakes", &answer_handshakes);
}

}  // namespace verger::agent
