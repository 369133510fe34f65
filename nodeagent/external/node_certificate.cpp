#include "nodeagent/external/node_certificate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/certificates/certificate_info.h"

namespace verger::external {

using nlohmann::json;

namespace {

json to_json(const http::CertificateInfo& certificate) {
  return {{"subject", certificate.subject},   {"issuer", certificate.issuer},
          {"serial", certificate.serial},     {"fingerprint", certificate.fingerprint},
          {"names", certificate.names},       {"notBefore", certificate.not_before},
          {"notAfter", certificate.not_after}};
}

}  // namespace

std::string not_reloaded(const http::CertificateInfo& served, const http::CertificateInfo& on_disk,
                         const std::string& file) {
  if (served.fingerprint == on_disk.fingerprint) {
    return "";
  }
  return fmt::format(
      "the server shows new connections the certificate {} (valid until {}), and {} holds {} "
      "(valid until {}): POST /admin/reloadconfig at the node makes it read the file; where that "
      "does not help, the server's log says why it refuses the file",
      served.serial, served.not_after, file, on_disk.serial, on_disk.not_after);
}

net::awaitable<bool> NodeCertificate::look() {
  auto seen = co_await http::served_certificate(executor_, node_, limit_);
  served_problem_ = seen ? std::string() : seen.error().message;
  served_ = seen ? std::optional(*std::move(seen)) : std::nullopt;
  co_return served_.has_value();
}

json NodeCertificate::facts(std::string& warning) const {
  auto out = json::object();
  if (!file_.empty()) {
    if (const auto read = certificates::read_certificates(file_)) {
      out["onDisk"] = to_json(read->front());
      if (served_) {
        warning = not_reloaded(*served_, read->front(), file_);
      }
    } else {
      out["onDiskProblem"] = read.error().message;
    }
  }
  if (served_) {
    out["served"] = to_json(*served_);
  } else if (!served_problem_.empty()) {
    out["servedProblem"] = served_problem_;
  }
  return out;
}

net::awaitable<Result<std::string>> NodeCertificate::served_serial() const {
  if (!node_.tls) {
    co_return Error{Errc::kUnsupported,
                    fmt::format("{}: without TLS there is no certificate", node_.url())};
  }
  VERGER_CO_TRY(const auto seen, co_await http::served_certificate(executor_, node_, limit_));
  co_return seen.serial;
}

Result<std::string> NodeCertificate::serial_on_disk() const {
  if (file_.empty()) {
    return Error{Errc::kUnsupported,
                 "the agent does not know where the node's certificate is (--certificate-file)"};
  }
  VERGER_TRY(const auto read, certificates::read_certificates(file_));
  return read.front().serial;
}

}  // namespace verger::external
