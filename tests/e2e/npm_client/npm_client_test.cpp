#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/npm_packages.h"
#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

/// An independent client library, from the npm registry, against an embedded node.
namespace verger::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(NpmClient, AppendsToAndReadsStreamsOfTheEmbeddedNode) {
  const TempDirectory directory;
  const auto packages = directory.path() / "client";
  if (const auto problem = install_npm_packages(VERGER_NPM_CLIENT, packages); !problem.empty()) {
    FAIL() << problem;
  }
  // Modules are looked for beside the script.
  fs::copy_file(fs::path(VERGER_NPM_CLIENT) / "client.js", packages / "client.js");
  const OpensslAuthority authority(directory.path() / "authority", "Verger test root");
  authority.issue(directory.path() / "node", "verger-node", "IP:127.0.0.1");
  const PortLease ports(2);
  const auto base = (directory.path() / "node").string();
  Process node({.command = {program("verger-agent"),
                            "--role",
                            "node",
                            "--db",
                            (directory.path() / "db").string(),
                            "--init",
                            "--node-port",
                            std::to_string(ports[0]),
                            "--replication-port",
                            std::to_string(ports[1]),
                            "--certificate-file",
                            base + ".crt",
                            "--certificate-private-key-file",
                            base + ".key",
                            "--trusted-root-certificates-path",
                            authority.root().string(),
                            "--enable-atom-pub-over-http",
                            "--fast-timings",
                            "--end-after-seconds",
                            "300"},
                .environment = {},
                .output = directory.path() / "node.log"});
  const auto url = fmt::format("https://127.0.0.1:{}", ports[0]);
  HttpsCaller caller(authority.root());
  ASSERT_TRUE(eventually(seconds(30), [&] {
    const auto answer = caller.get(url, "/info");
    return answer && answer->status == 200 && answer->body.contains("\"leader\"");
  })) << file_text(directory.path() / "node.log");

  const auto reported =
      run({"node", (packages / "client.js").string()},
          {{"NODE_URL", url}, {"NODE_EXTRA_CA_CERTS", authority.root().string()}}, seconds(60));
  EXPECT_EQ(reported.status, 0) << reported.out << reported.err
                                << file_text(directory.path() / "node.log");
  EXPECT_THAT(reported.out, HasSubstr("all good"));
  // What it wrote is there for others too.
  const auto head = caller.get(url, "/streams/orders-npm/head/backward/1");
  ASSERT_TRUE(head.has_value());
  EXPECT_THAT(head->body, HasSubstr("23@orders-npm"));
}

}  // namespace
}  // namespace verger::test
