// Repository files, and what a user gives as a repository.
#include "engine/backup/repository_config.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger::backup {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(std::string_view text) {
  const auto config = parse_repository_config(text);
  if (config) {
    return "accepted";
  }
  EXPECT_EQ(config.error().code, Errc::kInvalidArgument);
  return config.error().message;
}

TEST(RepositoryConfig, ReadsEveryMember) {
  const auto config = value(parse_repository_config(R"({
    "location": "s3://backups/orders", "endpoint": "https://minio.example:9000",
    "region": "eu-central-1", "caFile": "/etc/ca.pem", "credentialsFile": "/etc/keys",
    "pathStyle": false, "compression": "zstd", "keyFile": "/etc/backup.keys"})"));
  const RepositoryConfig expected{.location = "s3://backups/orders",
                                  .endpoint = "https://minio.example:9000",
                                  .region = "eu-central-1",
                                  .ca_file = "/etc/ca.pem",
                                  .credentials_file = "/etc/keys",
                                  .path_style = false,
                                  .compression = Compression::kZstd,
                                  .key_file = "/etc/backup.keys"};
  EXPECT_EQ(config, expected);
}

TEST(RepositoryConfig, NeedsOnlyTheLocation) {
  const auto directory = value(parse_repository_config(R"({"location": "/backup/orders"})"));
  EXPECT_EQ(directory, RepositoryConfig{.location = "/backup/orders"});
  EXPECT_FALSE(directory.is_object_store());
  EXPECT_TRUE(value(parse_repository_config(R"({"location": "s3://bucket"})")).is_object_store());
}

TEST(RepositoryConfig, TakesBucketsAsPathsOfAnOwnServerUnlessItSaysOtherwise) {
  const auto path_style = [](std::string_view text) {
    return value(parse_repository_config(text)).path_style;
  };
  EXPECT_FALSE(path_style(R"({"location": "s3://bucket"})"));
  EXPECT_TRUE(path_style(R"({"location": "s3://bucket", "endpoint": "http://minio:9000"})"));
  EXPECT_FALSE(path_style(
      R"({"location": "s3://bucket", "endpoint": "http://minio:9000", "pathStyle": false})"));
}

TEST(RepositoryConfig, RefusesWhatItDoesNotKnowAndNamesIt) {
  EXPECT_THAT(refusal_of(R"({"location": "/b", "keyfile": "/k"})"), HasSubstr("\"keyfile\""));
  EXPECT_THAT(refusal_of(R"({"location": 7})"), HasSubstr("location"));
  EXPECT_THAT(refusal_of(R"({"location": "s3://bucket", "pathStyle": "yes"})"),
              HasSubstr("pathStyle"));
  EXPECT_THAT(refusal_of(R"({"location": "/b", "compression": "gzip"})"),
              HasSubstr("\"gzip\" is neither"));
  EXPECT_THAT(refusal_of(R"({"location": "/b", "region": "x"})"), HasSubstr("region"));
  EXPECT_THAT(refusal_of(R"({"location": "s3://bucket", "endpoint": "minio:9000"})"),
              HasSubstr("https://"));
}

TEST(RepositoryConfig, RefusesPathsThatDependOnWhereItRuns) {
  EXPECT_THAT(refusal_of(R"({"location": "backup"})"), HasSubstr("absolute"));
  EXPECT_THAT(refusal_of(R"({"location": "/b", "keyFile": "keys"})"), HasSubstr("keyFile"));
  EXPECT_THAT(refusal_of(R"({"location": "s3://bucket", "caFile": "ca.pem"})"),
              HasSubstr("caFile"));
}

TEST(RepositoryConfig, RefusesWhatNamesNoBucket) {
  for (const auto* location : {"s3://", "s3:///prefix", "s3://Bucket/x", "s3://ab"}) {
    EXPECT_THAT(refusal_of(fmt::format(R"({{"location": "{}"}})", location)), HasSubstr("bucket"));
  }
}

TEST(RepositoryConfig, RefusesWhatIsNoObject) {
  EXPECT_THAT(refusal_of("[]"), HasSubstr("object"));
  EXPECT_THAT(refusal_of("{"), HasSubstr("object"));
  EXPECT_THAT(refusal_of(std::string(100'000, '[')), HasSubstr("object"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("location"));
}

TEST(RepositoryConfig, NamesTheFileThatIsWrong) {
  MemoryFileSystem disk;
  ok(disk.make_directories("/etc"));
  ok(write_file_durably(disk, "/etc/orders.json", as_bytes(R"({"location": "x"})")));
  EXPECT_THAT(read_repository_config(disk, "/etc/orders.json").error().message,
              HasSubstr("/etc/orders.json: location"));
  EXPECT_EQ(read_repository_config(disk, "/etc/none.json").error().code, Errc::kNotFound);
}

TEST(RepositoryConfig, IsADirectoryOrABucketOrAFileAsGiven) {
  MemoryFileSystem disk;
  ok(disk.make_directories("/backup/orders.json"));
  ok(write_file_durably(disk, "/backup/file.json", as_bytes(R"({"location": "/elsewhere"})")));
  const auto location = [&](std::string_view given) {
    return value(repository_config_of(disk, given)).location;
  };
  EXPECT_EQ(location("relative/directory"), "relative/directory");
  EXPECT_EQ(location("/backup/orders.json"), "/backup/orders.json");
  EXPECT_EQ(location("/backup/file.json"), "/elsewhere");
  EXPECT_EQ(location("s3://bucket/orders"), "s3://bucket/orders");
  EXPECT_EQ(repository_config_of(disk, "/backup/none.json").error().code, Errc::kNotFound);
}

TEST(RepositoryConfig, IsRefusedInsideTheDatabase) {
  const test::TempDirectory directory;
  const auto database = directory.path() / "db";
  std::filesystem::create_directories(database / "backup");
  std::filesystem::create_directory_symlink(database / "backup", directory.path() / "link");
  const auto refused = [&](const Path& location) {
    return !refuse_inside({.location = location.string()},
                          std::array<Path, 2>{database, directory.path() / "index"});
  };
  EXPECT_TRUE(refused(database));
  EXPECT_TRUE(refused(database / "backup"));
  EXPECT_TRUE(refused(directory.path() / "index" / "x" / "new"));
  EXPECT_TRUE(refused(directory.path() / "other" / ".." / "db"));
  EXPECT_TRUE(refused(directory.path() / "link"));
  EXPECT_FALSE(refused(directory.path() / "db-backup"));
  EXPECT_FALSE(refused(directory.path()));
  EXPECT_FALSE(refused("s3://backups/db"));
}

TEST(RepositoryConfig, TakesTheServerOfABucketFromTheEnvironmentOfTheAwsTools) {
  ASSERT_EQ(setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000", 1), 0);
  ASSERT_EQ(setenv("AWS_DEFAULT_REGION", "eu-west-1", 1), 0);
  MemoryFileSystem disk;
  const auto config = value(repository_config_of(disk, "s3://bucket"));
  EXPECT_EQ(config.endpoint, "http://127.0.0.1:9000");
  EXPECT_EQ(config.region, "eu-west-1");
  EXPECT_TRUE(config.path_style);
  unsetenv("AWS_ENDPOINT_URL");
  unsetenv("AWS_DEFAULT_REGION");
}

}  // namespace
}  // namespace verger::backup
