// Servers that keep chunks in an archive, recognised by their settings.
#include "nodeagent/external/archive_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/results.h"

namespace verger::external {
namespace {

using ::testing::HasSubstr;

TEST(ArchiveSettings, AreFoundInAConfigurationFile) {
  EXPECT_EQ(archive_in_config("Db: /db\nArchive:\n  Enabled: true\n  StorageType: S3\n"),
            "Archive: Enabled: true, line 3");
  EXPECT_EQ(archive_in_config("archive: # cold\r\n\r\n    # here\r\n    enabled: 'True'\r\n"),
            "Archive: Enabled: true, line 4");
  EXPECT_EQ(archive_in_config("Archive: {StorageType: S3, Enabled: true}\n"),
            "Archive: Enabled: true, line 1");
  EXPECT_EQ(archive_in_config("Archive:Enabled: true"), "Archive: Enabled: true, line 1");
  EXPECT_EQ(archive_in_config("ReadOnlyReplica: true\nArchiver: true"), "Archiver: true, line 2");
}

TEST(ArchiveSettings, OfOtherThingsAreNone) {
  for (const auto* text :
       {"", "Archive:\n  Enabled: false\n  RetainAtLeast:\n    Days: 30\n", "Archiver: false\n",
        "# Archiver: true\n", "Connectors:\n  Enabled: true\nArchive:\n  StorageType: S3\n",
        "Archive:\n  StorageType: S3\nConnectors:\n  Enabled: true\n", "Sub:\n  Archiver: true\n",
        "Archive: {Enabled: false}\n", "Archiver\n"}) {
    EXPECT_EQ(archive_in_config(text), "") << text;
  }
}

TEST(ArchiveSettings, AreFoundInOptionsAndVariables) {
  EXPECT_EQ(archive_at_start({.arguments = {"--db", "/db", "--archiver", "--insecure"}}),
            "--archiver --insecure");
  EXPECT_EQ(archive_at_start({.arguments = {"--archiver=false"}}), "");
  EXPECT_EQ(archive_at_start({.arguments = {"--archive:enabled=true"}}), "--archive:enabled=true");
  EXPECT_EQ(archive_at_start({.environment = {"KURRENTDB__ARCHIVE__ENABLED=true"}}),
            "KURRENTDB__ARCHIVE__ENABLED=true");
  EXPECT_EQ(archive_at_start({.environment = {"EVENTSTORE_ARCHIVER=false", "PATH=/bin"}}), "");
}

TEST(ArchiveSettings, AreThoseOfTheFileThatTheServerReads) {
  MemoryFileSystem files;
  ok(files.make_directories("/etc/kurrentdb"));
  ok(write_file_durably(files, "/etc/kurrentdb/kurrentdb.conf", as_bytes("Archiver: true\n")));
  ok(write_file_durably(files, "/etc/own.conf", as_bytes("Db: /db\n")));
  const StartOptions own{.arguments = {"--config", "/etc/own.conf"}};
  EXPECT_EQ(archive_problem(files, own, {}), "");
  EXPECT_EQ(archive_problem(files, std::nullopt, "/etc/own.conf"), "");
  EXPECT_THAT(archive_problem(files, std::nullopt, {}),
              HasSubstr("(/etc/kurrentdb/kurrentdb.conf: Archiver: true, line 1)"));
  EXPECT_THAT(archive_problem(files, StartOptions{.arguments = {"--archiver"}}, "/etc/own.conf"),
              HasSubstr("(--archiver)"));
  ok(files.remove("/etc/kurrentdb/kurrentdb.conf"));
  EXPECT_EQ(archive_problem(files, std::nullopt, {}), "");
}

}  // namespace
}  // namespace verger::external
