#include "tests/support/processes/https_caller.h"

#include <stdexcept>

namespace verger::test {

using std::chrono::seconds;

HttpsCaller::HttpsCaller(const std::filesystem::path& roots, std::chrono::milliseconds deadline)
    : deadline_(deadline) {
  http::BeastClientOptions options;
  if (!roots.empty()) {
    auto tls = http::TlsContext::client({.trusted_roots = roots.string()});
    if (!tls) {
      throw std::runtime_error(tls.error().message);
    }
    options.tls = *tls;
  }
  client_ = std::make_unique<http::BeastClient>(context_.get_executor(), options);
}

Result<http::Response> HttpsCaller::ask(const std::string& url, http::Request request,
                                        bool with_password) {
  if (with_password) {
    request.headers.set("Authorization", http::basic_authorization("admin", "changeit"));
  }
  return run(client_->send(*http::parse_endpoint(url), std::move(request), deadline_));
}

Result<http::Response> HttpsCaller::get(const std::string& url, const std::string& target) {
  return ask(url, {.method = "GET", .target = target});
}

Result<http::Response> HttpsCaller::post(const std::string& url, const std::string& target) {
  return ask(url, {.method = "POST", .target = target});
}

std::string HttpsCaller::served_serial(const std::string& url) {
  const auto seen = run(
      http::served_certificate(context_.get_executor(), *http::parse_endpoint(url), seconds(10)));
  return seen ? seen->serial : std::string();
}

}  // namespace verger::test
