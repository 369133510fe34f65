#pragma once

#include <memory>
#include <string>
#include <vector>

namespace verger::http::test {

/// Makes certificates for TLS tests: EC keys, valid for an hour.
class Authority {
 public:
  explicit Authority(const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// The root as PEM.
  [[nodiscard]] std::string root() const;
  struct Issued {
    std::string certificate;
    std::string key;
  };
  /// `names`: subject alternative names, "DNS:localhost" or "IP:127.0.0.1". `usages`: of the
  /// extension extendedKeyUsage, "serverAuth,clientAuth". Valid between the two times, in seconds
  /// from now.
  Issued issue(const std::string& common_name, const std::string& names,
               const std::string& usages = "serverAuth,clientAuth", long from = -60,
               long until = 3600);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verger::http::test
