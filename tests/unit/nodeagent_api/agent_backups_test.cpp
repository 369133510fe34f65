#include "nodeagent/api/agent_backups.h"

#include <algorithm>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/backup_operations.h"

namespace verger::api {
namespace {

using nlohmann::json;

BackupGeneration whole_generation() {
  BackupGeneration out;
  out.id = "20261123t031704z-1a2b3c4d";
  out.parent = "20261122t031704z-1a2b3c4d";
  out.node = "n1";
  out.cluster = "orders";
  out.host = "db1.example";
  out.server_version = "24.10.0";
  out.state = "live";
  out.started_at = kUnixEpoch;
  out.checkpoints_at = Ticks(kUnixEpoch.value() + kTicksPerSecond);
  out.finished_at = Ticks(kUnixEpoch.value() + 2 * kTicksPerSecond + 1);
  out.end_position = 9'007'199'254'740'993;
  out.writer_position = 9'007'199'254'741'000;
  out.epoch_number = 0;
  out.epoch_id = "5b1e0f4a-90b1-4a37-8ad1-2d7c1f0d6a11";
  out.chunk_size = 268'435'456;
  out.stored_bytes = 5;
  out.restored_bytes = 6;
  out.reused_bytes = 4;
  out.files = 3;
  out.logical_digest = "ab";
  out.readable_digest = "cd";
  out.warnings = {"one", "t\"wo"};
  out.last_verify =
      BackupCheckSummary{.at = kUnixEpoch, .passed = true, .summary = "3 files", .duration_ms = 12};
  out.last_drill =
      BackupCheckSummary{.at = kUnixEpoch, .passed = false, .summary = "differs", .duration_ms = 0};
  return out;
}

TEST(AgentBackups, AGenerationIsReadBack) {
  const auto whole = whole_generation();
  const auto back = parse_backup_generation(to_text(whole));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(*back, whole);
  const auto sent = json::parse(to_text(whole));
  EXPECT_EQ(sent.at("startedAt"), "1970-01-01T00:00:00Z");
  EXPECT_EQ(sent.at("lastDrill").at("passed"), false);
  EXPECT_EQ(sent.at("epochNumber"), 0);
}

TEST(AgentBackups, WhatIsNotKnownIsNotSent) {
  BackupGeneration damaged;
  damaged.id = "20261123t031704z-1a2b3c4d";
  damaged.damage = "its manifest is cut";
  EXPECT_EQ(json::parse(to_text(damaged)), json({{"id", damaged.id}, {"damage", damaged.damage}}));
  EXPECT_EQ(*parse_backup_generation(to_text(damaged)), damaged);
}

TEST(AgentBackups, ListsAreReadBack) {
  const std::vector<BackupGeneration> generations{whole_generation(), whole_generation()};
  const auto back = parse_backup_generations(to_text(generations));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(*back, generations);
  const std::vector<BackupRepository> repositories{{.name = "nightly",
                                                    .location = "/backup/orders",
                                                    .id = "5b1e0f4a-90b1-4a37-8ad1-2d7c1f0d6a11",
                                                    .encrypted = true,
                                                    .compression = "zstd",
                                                    .free_bytes = 0,
                                                    .generations = 2,
                                                    .drills = true},
                                                   {.name = "s3", .error = "cannot be reached"}};
  const auto listed = parse_backup_repositories(to_text(repositories));
  ASSERT_TRUE(listed.has_value()) << listed.error().message;
  EXPECT_EQ(*listed, repositories);
}

TEST(AgentBackups, AWrongShapeIsRefusedWithItsPlace) {
  EXPECT_EQ(parse_backup_generations("{}").error().message, "backups.generations: is missing");
  const auto place = [](std::string_view body) {
    const auto read = parse_backup_generations(body);
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(place(R"({"generations":[{}]})"), "backups.generations[0].id: is missing");
  EXPECT_EQ(place(R"({"generations":[{"id":"a","startedAt":"noon"}]})"),
            "backups.generations[0].startedAt: a time was expected");
  EXPECT_EQ(place(R"({"generations":[{"id":"a","lastVerify":{"passed":true}}]})"),
            "backups.generations[0].lastVerify.at: is missing");
  EXPECT_EQ(place(R"({"generations":[{"id":"a","warnings":[1]}]})"),
            "backups.generations[0].warnings[0]: a string was expected");
  EXPECT_EQ(place(R"({"generations":[{"id":"a","files":-1}]})"),
            "backups.generations[0].files: the number is out of range");
  EXPECT_EQ(parse_backup_generations("[").error().code, Errc::kCorruption);
  EXPECT_EQ(place(R"({"generations":[{"id":"a","later":{}}]})"), "") << "a newer agent's";
}

TEST(AgentBackups, ParametersAreReadBackAndNamed) {
  BackupParameters backup;
  backup.repository = "nightly";
  backup.repository_id = "id";
  backup.node = "n1";
  backup.cluster = "orders";
  backup.full = true;
  backup.threads = 4;
  backup.digests = "readable";
  backup.service_deadline_ms = 5;
  backup.throttle_percent = 20;
  backup.bytes_per_second = 7;
  EXPECT_EQ(*parse_backup_parameters<BackupParameters>(to_text(backup)), backup);
  const auto names = backup_parameter_names<BackupParameters>();
  for (const auto& [name, value] : json::parse(to_text(backup)).items()) {
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
  EXPECT_EQ(names.size(), json::parse(to_text(backup)).size());

  BackupRetainParameters retain;
  retain.repository = "nightly";
  retain.keep_daily = 7;
  retain.generations = {"a", "b"};
  EXPECT_EQ(*parse_backup_parameters<BackupRetainParameters>(to_text(retain)), retain);

  RestoreParameters restore;
  restore.repository = "nightly";
  restore.generation = "a";
  restore.keep_old = true;
  restore.other_node = true;
  EXPECT_EQ(*parse_backup_parameters<RestoreParameters>(to_text(restore)), restore);
  EXPECT_EQ(json::parse(to_text(RestoredGeneration{.generation = "a"})),
            json({{"generation", "a"}}));
}

TEST(AgentBackups, ParametersOfTheWrongShapeAreTheCallersMistake) {
  const auto missing = parse_backup_parameters<BackupCheckParameters>(R"({"repository":"r"})");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(missing.error().message, "parameters.generation: is missing");
  EXPECT_EQ(
      parse_backup_parameters<BackupParameters>(R"({"repository":"r","full":1})").error().message,
      "parameters.full: true or false was expected");
  EXPECT_EQ(parse_backup_parameters<BackupParameters>("").error().code, Errc::kInvalidArgument);
}

TEST(AgentBackups, ResultsAreReadBack) {
  const BackupVerified verified{.generation = "a",
                                .passed = false,
                                .bytes = 7,
                                .damage = {{.path = "chunk-000000.000000", .text = "is missing"}},
                                .duration_ms = 3};
  EXPECT_EQ(*parse_backup_result<BackupVerified>(to_text(verified)), verified);
  const BackupRetained retained{
      .deleted = {"a"}, .blobs = 2, .bytes = 3, .postponed = "a backup runs"};
  EXPECT_EQ(*parse_backup_result<BackupRetained>(to_text(retained)), retained);
  const BackupDrilled drilled{.generation = "a", .passed = true, .restore_ms = 1, .events = 0};
  EXPECT_EQ(*parse_backup_result<BackupDrilled>(to_text(drilled)), drilled);
  const Restored restored{.bytes = 1, .duration_ms = 2, .end_position = 3, .old_files = "/db/old"};
  EXPECT_EQ(*parse_backup_result<Restored>(to_text(restored)), restored);
  EXPECT_EQ(parse_backup_result<Restored>("{}").error().code, Errc::kCorruption);
}

}  // namespace
}  // namespace verger::api
