#include "tests/support/processes/s3rver.h"

#include <chrono>

#include "tests/support/processes/npm_packages.h"

namespace verger::test {

std::string S3rver::install() const { return install_npm_packages(lock_, directory_ / "packages"); }

std::string S3rver::start(const std::vector<std::string>& more) {
  const auto log = directory_ / "server.log";
  std::vector<std::string> command = {"node",
                                      (directory_ / "packages/node_modules/.bin/s3rver").string(),
                                      "--directory",
                                      objects().string(),
                                      "--address",
                                      "127.0.0.1",
                                      "--port",
                                      std::to_string(port()),
                                      "--service-endpoint",
                                      "localhost"};
  command.insert(command.end(), more.begin(), more.end());
  command.insert(command.end(), {"--configure-bucket", "backups"});
  process_.emplace(Process::Options{.command = command, .environment = {}, .output = log});
  return eventually(std::chrono::seconds(30), [&] { return file_text(log).contains("listening"); })
             ? std::string()
             : "s3rver does not listen: " + file_text(log);
}

}  // namespace verger::test
