#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/process.h"
#include "tests/support/processes/s3rver.h"
#include "tests/support/temp_directory.h"

/// Backups in an S3-compatible server of others.
namespace verger::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class ObjectStore : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto problem = server_.install();
    ASSERT_TRUE(problem.empty()) << problem;
    ASSERT_EQ(run_tool({"generate", database(), "--events", "30000", "--size", "200-2000",
                        "--chunk-size", "20000000", "--existence-filter-size", "20000"})
                  .status,
              0);
  }

  std::string database() const { return (directory_.path() / "db").string(); }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string endpoint(const std::string& scheme, const std::string& host) const {
    return fmt::format("{}://{}:{}", scheme, host, server_.port());
  }

  void start_server(const std::vector<std::string>& more = {}) {
    const auto problem = server_.start(more);
    ASSERT_TRUE(problem.empty()) << problem;
  }

  void write_private(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
    fs::permissions(path(name), fs::perms::owner_read | fs::perms::owner_write);
  }

  /// A program of the tree, with no credentials but those given.
  Finished run_tool(std::vector<std::string> arguments,
                    std::map<std::string, std::string> environment = {}) const {
    arguments.insert(arguments.begin(), program("verger-db"));
    for (const auto* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                             "AWS_ENDPOINT_URL_S3", "AWS_REGION"}) {
      environment.try_emplace(name, "");
    }
    return run(arguments, environment, seconds(120));
  }
  nlohmann::json create(const std::string& repository,
                        const std::map<std::string, std::string>& environment = {}) const {
    const auto made =
        run_tool({"-o", "json", "backup", "create", database(), "--to", repository, "--node", "n1"},
                 environment);
    EXPECT_EQ(made.status, 0) << made.err;
    return nlohmann::json::parse(made.out, nullptr, false);
  }

  /// Files of the server that hold content.
  std::vector<fs::path> blobs() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(server_.objects() / "backups")) {
      if (entry.path().string().contains("/blobs/") &&
          entry.path().string().ends_with("_S3rver_object")) {
        found.push_back(entry.path());
      }
    }
    return found;
  }

  TempDirectory directory_;
  S3rver server_{VERGER_OBJECT_STORE_TEST, directory_.path()};
};

TEST_F(ObjectStore, KeepsBackupsOverTls) {
  const OpensslAuthority authority(directory_.path() / "authority", "Verger test root");
  authority.issue(directory_.path() / "server", "object-storage", "IP:127.0.0.1");
  start_server({"--key", path("server.key"), "--cert", path("server.crt")});
  write_private("keys", "aws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n");
  nlohmann::json config = {{"location", "s3://backups/cluster/orders"},
                           {"endpoint", endpoint("https", "127.0.0.1")},
                           {"caFile", authority.root().string()},
                           {"credentialsFile", path("keys")}};
  const auto repository = path("orders.json");
  std::ofstream(repository) << config.dump();

  const auto first = create(repository);
  EXPECT_EQ(first["kind"], "full");
  const auto second = create(repository);
  EXPECT_EQ(second["kind"], "differential");
  EXPECT_GT(second["reusedBytes"].get<std::uint64_t>(), 16U << 20U) << "of more than one part";
  const auto listed = run_tool({"backup", "list", repository});
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr(first["id"].get<std::string>()));

  const auto verified = run_tool({"backup", "verify", repository});
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("no damage found"));

  const auto restored = run_tool({"restore", path("restored"), "--from", repository});
  EXPECT_EQ(restored.status, 0) << restored.err;
  const auto compared = run_tool({"diff", database(), path("restored")});
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;

  const auto deleted =
      run_tool({"backup", "delete", repository, first["id"].get<std::string>(), "--grace", "0"});
  EXPECT_EQ(deleted.status, 0) << deleted.err;
  EXPECT_EQ(run_tool({"backup", "delete", repository, "--grace", "0"}).status, 0);
  EXPECT_THAT(run_tool({"backup", "list", repository}).out,
              Not(HasSubstr(first["id"].get<std::string>())));
  EXPECT_EQ(run_tool({"backup", "verify", repository, "--bytes-only"}).status, 0);

  // One byte of the largest content.
  const auto files = blobs();
  ASSERT_FALSE(files.empty());
  const auto largest = *std::ranges::max_element(
      files, {}, [](const fs::path& file) { return fs::file_size(file); });
  {
    std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1'000'000);
    file.put('\xaa');
  }
  const auto damaged = run_tool({"backup", "verify", repository, "--bytes-only"});
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.out, HasSubstr("DAMAGE: chunk-000000.000000"));

  config.erase("caFile");
  std::ofstream(repository) << config.dump();
  const auto untrusted = run_tool({"backup", "list", repository});
  EXPECT_EQ(untrusted.status, 1);
  EXPECT_THAT(untrusted.err, HasSubstr("certificate"));
}

TEST_F(ObjectStore, IsNamedByItsUrl) {
  start_server();
  const std::map<std::string, std::string> environment = {
      {"AWS_ENDPOINT_URL", endpoint("http", "127.0.0.1")},
      {"AWS_ACCESS_KEY_ID", "S3RVER"},
      {"AWS_SECRET_ACCESS_KEY", "S3RVER"}};
  create("s3://backups", environment);
  const auto restored =
      run_tool({"restore", path("restored"), "--from", "s3://backups"}, environment);
  EXPECT_EQ(restored.status, 0) << restored.err;
  EXPECT_EQ(run_tool({"diff", database(), path("restored")}).status, 0);

  auto wrong = environment;
  wrong["AWS_ACCESS_KEY_ID"] = "wrong";  // the server does not compare signatures of version 4
  const auto refused = run_tool({"backup", "list", "s3://backups"}, wrong);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("InvalidAccessKeyId"));
  EXPECT_THAT(refused.err, HasSubstr("check the credentials"));
  const auto no_bucket =
      run_tool({"backup", "create", database(), "--to", "s3://other"}, environment);
  EXPECT_EQ(no_bucket.status, 64);
  EXPECT_THAT(no_bucket.err, HasSubstr("no bucket \"other\""));
  const auto none = run_tool({"backup", "list", "s3://backups"});
  EXPECT_EQ(none.status, 64);
  EXPECT_THAT(none.err, HasSubstr("AWS_ACCESS_KEY_ID"));
}

TEST_F(ObjectStore, HasBucketsInTheNamesOfHosts) {
  start_server();
  write_private("keys", "[default]\naws_access_key_id=S3RVER\naws_secret_access_key=S3RVER\n");
  const nlohmann::json config = {{"location", "s3://backups/orders"},
                                 {"endpoint", endpoint("http", "s3.localhost")},
                                 {"pathStyle", false},
                                 {"credentialsFile", path("keys")}};
  std::ofstream(path("orders.json")) << config.dump();
  create(path("orders.json"));
  EXPECT_EQ(run_tool({"backup", "verify", path("orders.json"), "--bytes-only"}).status, 0);
  fs::permissions(path("keys"), fs::perms::group_read, fs::perm_options::add);
  const auto open = run_tool({"backup", "list", path("orders.json")});
  EXPECT_EQ(open.status, 2);
  EXPECT_THAT(open.err, HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace verger::test
