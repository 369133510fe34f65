#include "tests/support/processes/openssl_authority.h"

#include <stdexcept>
#include <vector>

#include "tests/support/processes/process.h"

namespace verger::test {
namespace {

Finished openssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  auto finished = run(arguments);
  if (finished.status != 0) {
    throw std::runtime_error("openssl: " + finished.err);
  }
  return finished;
}

const std::vector<std::string> kNewKey = {"-newkey", "ec",    "-pkeyopt", "ec_paramgen_curve:P-256",
                                          "-nodes",  "-days", "1"};

}  // namespace

OpensslAuthority::OpensslAuthority(std::filesystem::path directory, const std::string& name)
    : directory_(std::move(directory)) {
  std::filesystem::create_directories(directory_);
  std::vector<std::string> arguments{"req", "-x509"};
  arguments.insert(arguments.end(), kNewKey.begin(), kNewKey.end());
  arguments.insert(arguments.end(),
                   {"-keyout", (directory_ / "ca.key").string(), "-out", root().string(), "-subj",
                    "/CN=" + name, "-addext", "keyUsage=critical,keyCertSign,cRLSign"});
  openssl(std::move(arguments));
}

std::string OpensslAuthority::issue(const std::filesystem::path& base,
                                    const std::string& common_name, const std::string& names,
                                    const std::string& usages) const {
  const auto key = base.string() + ".key.new";
  const auto certificate = base.string() + ".crt.new";
  std::vector<std::string> arguments{"req",           "-x509",  "-CA",
                                     root().string(), "-CAkey", (directory_ / "ca.key").string()};
  arguments.insert(arguments.end(), kNewKey.begin(), kNewKey.end());
  arguments.insert(
      arguments.end(),
      {"-keyout", key, "-out", certificate, "-subj", "/CN=" + common_name, "-addext",
       "basicConstraints=critical,CA:FALSE", "-addext",
       "keyUsage=critical,digitalSignature,keyAgreement", "-addext", "extendedKeyUsage=" + usages});
  if (!names.empty()) {
    arguments.insert(arguments.end(), {"-addext", "subjectAltName=" + names});
  }
  openssl(std::move(arguments));
  auto serial = openssl({"x509", "-in", certificate, "-noout", "-serial"}).out;
  std::filesystem::rename(key, base.string() + ".key");
  std::filesystem::rename(certificate, base.string() + ".crt");
  serial = serial.substr(serial.find('=') + 1);
  return serial.substr(0, serial.find('\n'));
}

}  // namespace verger::test
