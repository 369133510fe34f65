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

TEST(ArchiveSettings, AreFoundInTheServersSectionOfAJsonFile) {
  for (const auto* text : {
           R"({"KurrentDB": {"Archive": {"Enabled": true}}})",
           R"({"EventStore": {"archive": {"enabled": "True", "StorageType": "S3"}}})",
           R"({"KurrentDB:Archive:Enabled": true})",
           R"({"KurrentDB": {"Archive:Enabled": true}})",
           "{ // cold data\n  \"KurrentDB\": {\"Archiver\": true /* here */}}",
       }) {
    EXPECT_NE(value(archive_in_json(text)), "") << text;
  }
  EXPECT_EQ(value(archive_in_json(R"({"KurrentDB": {"Archive": {"Enabled": true}}})")),
            "KurrentDB:Archive:Enabled");
  for (const auto* text : {
           "{}",
           R"({"Archive": {"Enabled": true}})",
           R"({"KurrentDB": {"Archive": {"Enabled": false}}})",
           R"({"KurrentDB": {"Archive": {"S3": {"Enabled": true}}}})",
           R"({"KurrentDB": {"Connectors": {"Enabled": true}}})",
           R"({"KurrentDB": {"Archiver": null}})",
       }) {
    EXPECT_EQ(value(archive_in_json(text)), "") << text;
  }
  EXPECT_EQ(archive_in_json("KurrentDB:\n  Archiver: true\n").error().code, Errc::kCorruption);
}

TEST(ArchiveSettings, AreReadInTheJsonFilesThatTheServerReads) {
  const auto on = as_bytes(R"({"KurrentDB": {"Archive": {"Enabled": true}}})");
  const StartOptions installed{.arguments = {"--config", "/etc/own.conf"},
                               .program = "/opt/kurrentdb/kurrentd"};
  for (const Path directory : {"/etc/kurrentdb", "/etc/eventstore", "/opt/kurrentdb"}) {
    MemoryFileSystem files;
    ok(files.make_directories("/etc"));
    ok(write_file_durably(files, "/etc/own.conf", as_bytes("Db: /db\n")));
    ok(files.make_directories(directory / "config"));
    ok(write_file_durably(files, directory / "config" / "archive.json.old", on));
    ok(write_file_durably(files, directory / "archive.json", on));
    EXPECT_EQ(archive_problem(files, installed, {}), "") << directory;
    ok(write_file_durably(files, directory / "config" / "archive.json", on));
    EXPECT_THAT(archive_problem(files, installed, {}),
                HasSubstr("config/archive.json: KurrentDB:Archive:Enabled"))
        << directory;
    ok(write_file_durably(files, directory / "config" / "archive.json", as_bytes("{,")));
    EXPECT_THAT(archive_problem(files, installed, {}), HasSubstr("cannot be seen")) << directory;
  }
}

TEST(ArchiveSettings, OfAServerThatDotnetRunsAreBesideItsAssembly) {
  EXPECT_EQ(application_directory({.arguments = {"app/KurrentDB.dll", "--dev"},
                                   .directory = "/srv",
                                   .program = "/usr/share/dotnet/dotnet"}),
            "/srv/app");
  EXPECT_EQ(application_directory({.arguments = {"--dev"}, .program = "/opt/k/kurrentd"}),
            "/opt/k");
  EXPECT_EQ(application_directory({}), "");
}

}  // namespace
}  // namespace verger::external
