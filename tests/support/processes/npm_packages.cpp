#include "tests/support/processes/npm_packages.h"

#include "tests/support/processes/process.h"

namespace verger::test {

std::string install_npm_packages(const std::filesystem::path& from,
                                 const std::filesystem::path& directory) {
  if (run({"/bin/sh", "-c", "command -v npm && command -v node"}).status != 0) {
    return "npm is not here; `./dev test` installs it (Debian packages nodejs and npm)";
  }
  std::filesystem::create_directories(directory);
  for (const auto* file : {"package.json", "package-lock.json"}) {
    std::filesystem::copy_file(from / file, directory / file);
  }
  const auto installed = run({"npm", "ci", "--prefix", directory.string(), "--omit=dev",
                              "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"},
                             {}, std::chrono::seconds(180));
  return installed.status == 0
             ? ""
             : "npm ci failed; this test needs the npm registry (npm config get registry), is it "
               "reachable?\n" +
                   installed.out + installed.err;
}

}  // namespace verger::test
