#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"
#include "nodeagent/http/message.h"
#include "nodeagent/http/tls.h"

namespace verger::external {

/// A warning where a server does not show the certificate that is in its file; empty where it does.
std::string not_reloaded(const http::CertificateInfo& served, const http::CertificateInfo& on_disk,
                         const std::string& file);

/// The certificate of a server: in its file, and as new connections see it. One executor.
class NodeCertificate {
 public:
  /// `file`: empty where the agent does not know it. `limit`: for each connection.
  NodeCertificate(net::any_io_executor executor, http::Endpoint node, std::string file,
                  std::chrono::milliseconds limit)
      : executor_(std::move(executor)),
        node_(std::move(node)),
        file_(std::move(file)),
        limit_(limit) {}

  /// Looks at what the server shows now; false: that could not be seen.
  net::awaitable<bool> look();
  /// For the agent's facts, as of the last look: {"onDisk", "served"}, each as it was read, or
  /// "onDiskProblem", "servedProblem". `warning` is set where the server shows another certificate
  /// than its file holds.
  [[nodiscard]] nlohmann::json facts(std::string& warning) const;

  /// The serial of the certificate that the server shows to new connections now. Errors:
  /// kUnavailable, kUnsupported (no TLS).
  [[nodiscard]] net::awaitable<Result<std::string>> served_serial() const;
  /// The serial of the leaf in the server's certificate file. Errors: those of read_certificates,
  /// kUnsupported (no file is configured).
  [[nodiscard]] Result<std::string> serial_on_disk() const;

 private:
  net::any_io_executor executor_;
  http::Endpoint node_;
  std::string file_;
  std::chrono::milliseconds limit_;
  std::optional<http::CertificateInfo> served_{};
  std::string served_problem_{};
};

}  // namespace verger::external
