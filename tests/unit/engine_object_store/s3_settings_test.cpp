// Where a bucket is and who speaks to it.
#include "engine/object_store/s3_settings.h"

#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/base/private_file.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger::object_store {
namespace {

using ::testing::HasSubstr;

class S3SettingsTest : public ::testing::Test {
 protected:
  S3SettingsTest() {
    ok(disk.make_directories("/etc"));
    ok(write_file_durably(disk, "/etc/keys",
                          as_bytes("# of the backup\n[other]\naws_access_key_id = other\n"
                                   "[default]\r\naws_access_key_id = key-id \r\n"
                                   "aws_secret_access_key=se=cret\n\naws_session_token = token\n"
                                   "[more]\naws_secret_access_key = other")));
  }
  Result<S3Settings> settings_of(backup::RepositoryConfig config) {
    config.credentials_file = "/etc/keys";
    return s3_settings_of(disk, config);
  }
  MemoryFileSystem disk;
};

TEST_F(S3SettingsTest, TakeBucketPrefixAndServerFromTheConfiguration) {
  const auto own = value(settings_of({.location = "s3://backups/cluster/orders/",
                                      .endpoint = "https://minio.example:9000/",
                                      .region = "eu-central-1",
                                      .ca_file = "/etc/ca.pem",
                                      .path_style = true}));
  EXPECT_EQ(own.bucket, "backups");
  EXPECT_EQ(own.prefix, "cluster/orders/");
  EXPECT_EQ(own.endpoint, "https://minio.example:9000");
  EXPECT_EQ(own.region, "eu-central-1");
  EXPECT_EQ(own.ca_file, "/etc/ca.pem");
  EXPECT_TRUE(own.path_style);
  const auto aws = value(settings_of({.location = "s3://backups", .region = "eu-west-1"}));
  EXPECT_EQ(aws.prefix, "");
  EXPECT_EQ(aws.endpoint, "https://s3.eu-west-1.amazonaws.com");
}

TEST_F(S3SettingsTest, RefuseAPrefixThatAUrlWritesInAnotherWay) {
  for (const auto* location : {"s3://backups/a b", "s3://backups/a//b", "s3://backups/../b",
                               "s3://backups/ä", "s3://backups/a?b"}) {
    const auto settings = settings_of({.location = location});
    ASSERT_FALSE(settings) << location;
    EXPECT_EQ(settings.error().code, Errc::kInvalidArgument);
  }
}

TEST_F(S3SettingsTest, ReadTheDefaultCredentialsOfAFile) {
  const auto credentials = value(read_credentials(disk, "/etc/keys"));
  EXPECT_EQ(credentials.access_key, "key-id");
  EXPECT_EQ(credentials.secret_key, "se=cret");
  EXPECT_EQ(credentials.session_token, "token");
  EXPECT_EQ(read_credentials(disk, "/etc/none").error().code, Errc::kNotFound);
  ok(write_file_durably(disk, "/etc/half", as_bytes("aws_access_key_id = key-id\n")));
  EXPECT_THAT(read_credentials(disk, "/etc/half").error().message,
              HasSubstr("aws_secret_access_key"));
}

TEST_F(S3SettingsTest, RefuseCredentialsThatOthersMayRead) {
  const test::TempDirectory directory;
  const auto path = directory.path() / "keys";
  std::ofstream(path) << "aws_access_key_id = a\naws_secret_access_key = b\n";
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  const auto refused = read_credentials(posix_file_system(), path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("chmod 600"));
  ok(make_private(path));
  EXPECT_EQ(value(read_credentials(posix_file_system(), path)).secret_key, "b");
}

TEST_F(S3SettingsTest, TakeCredentialsFromTheEnvironmentOtherwise) {
  unsetenv("AWS_ACCESS_KEY_ID");
  const auto none = s3_settings_of(disk, {.location = "s3://backups"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("AWS_ACCESS_KEY_ID"));
  setenv("AWS_ACCESS_KEY_ID", "id", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  const auto settings = value(s3_settings_of(disk, {.location = "s3://backups"}));
  EXPECT_EQ(settings.credentials.access_key, "id");
  EXPECT_EQ(settings.credentials.secret_key, "secret");
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
}

}  // namespace
}  // namespace verger::object_store
