// `verger-db backup` and `verger-db restore`, killed with SIGKILL at each named step that a run
// passes, the first and the second time that it comes there: the next run completes, and the
// restored database is the same. The names come from a run that is not killed.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

namespace verger {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;

constexpr int kKilled = 128 + SIGKILL;
using Arguments = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

class BackupKills : public ::testing::TestWithParam<bool> {
 protected:
  BackupKills() {
    generate("db", "4000");
    repository_ = place("orders.json");
    write_repository_file();
  }

  std::string place(const std::string& name) const { return (directory_.path() / name).string(); }
  void generate(const std::string& name, const std::string& events) {
    expect_done({"generate", place(name), "--events", events, "--streams", "40", "--chunk-size",
                 "150000", "--existence-filter-size", "20000", "--max-mem-table-size", "1500"});
  }

  static test::Finished run(Arguments arguments, const Environment& environment = {}) {
    arguments.insert(arguments.begin(), test::program("verger-db"));
    return test::run(arguments, environment);
  }
  static std::string expect_done(const Arguments& arguments, const Environment& environment = {}) {
    const auto outcome = run(arguments, environment);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    return outcome.out;
  }

  /// A repository as the test's parameter says: a plain directory, or compressed and encrypted.
  void write_repository_file() {
    nlohmann::json file = {{"location", place("repository")}};
    if (GetParam()) {
      expect_done({"backup", "key", "create", place("keys")});
      file["keyFile"] = place("keys");
      file["compression"] = "zstd";
    }
    std::ofstream(repository_) << file.dump();
  }
  void start_anew() { std::filesystem::remove_all(place("repository")); }

  Arguments create() const {
    return {"backup",    "create", place("db"), "--to",
            repository_, "--node", "n1",        "--assume-stopped"};
  }
  Arguments restore(const std::string& where) const {
    return {"restore", place(where), "--from", repository_, "--keep-old", "--assume-stopped"};
  }

  /// The names of the steps that a command passes.
  std::vector<std::string> steps_of(const Arguments& arguments) const {
    const auto log = place("steps");
    std::filesystem::remove(log);
    expect_done(arguments, {{"VERGER_FAILPOINT_LOG", log}});
    std::vector<std::string> names;
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      names.push_back(line);
    }
    return names;
  }

  /// Prepares, runs the command so that it is killed, and checks; at each step. How many it was
  /// killed at.
  int kill_at_each(const std::vector<std::string>& steps, const Arguments& arguments,
                   const std::function<void()>& prepare, const std::function<void()>& check) {
    int killed = 0;
    for (const auto& step : steps) {
      for (const auto* which : {":1", ":2"}) {
        SCOPED_TRACE(step + which);
        prepare();
        const auto outcome = run(arguments, {{"VERGER_FAILPOINT", step + which}});
        if (outcome.status == 0) {
          EXPECT_STREQ(which, ":2") << "was not reached";
          continue;
        }
        EXPECT_EQ(outcome.status, kKilled) << outcome.err;
        ++killed;
        check();
      }
    }
    return killed;
  }

  void expect_sound_and_equal(const std::string& where) {
    expect_done({"diff", place("db"), place(where)});
    expect_done({"verify", place(where)});
  }

  test::TempDirectory directory_;
  std::string repository_;
};

INSTANTIATE_TEST_SUITE_P(, BackupKills, ::testing::Bool(), [](const auto& info) {
  return info.param ? "CompressedAndEncrypted" : "Plain";
});

TEST_P(BackupKills, ABackupThatWasKilledIsCompletedByTheNext) {
  const auto steps = steps_of(create());
  EXPECT_THAT(
      steps, IsSupersetOf({"backup.after-session", "backup.after-index", "backup.after-checkpoints",
                           "backup.after-chunk", "backup.before-manifest", "backup.after-manifest",
                           "store.blob.before-rename", "store.blob.after-rename"}));
  const int killed = kill_at_each(
      steps, create(), [this] { start_anew(); },
      [this] {
        // What is listed is whole.
        const auto listed = run({"-o", "json", "backup", "list", repository_});
        if (listed.status == 0 && !listed.out.empty()) {
          expect_done({"backup", "verify", repository_});
        }
        expect_done(create());
        expect_done({"backup", "verify", repository_});
        std::filesystem::remove_all(place("restored"));
        expect_done(restore("restored"));
        expect_sound_and_equal("restored");
      });
  EXPECT_GE(killed, 10);
}

TEST_P(BackupKills, ADifferentialBackupThatWasKilledHarmsNoOther) {
  expect_done(create());
  std::filesystem::copy(place("repository"), place("before"),
                        std::filesystem::copy_options::recursive);
  const auto steps = steps_of(create());
  kill_at_each(
      steps, create(),
      [this] {
        start_anew();
        std::filesystem::copy(place("before"), place("repository"),
                              std::filesystem::copy_options::recursive);
      },
      [this] {
        expect_done({"backup", "verify", repository_});
        expect_done(create());
        const auto listed = expect_done({"-o", "json", "backup", "list", repository_});
        EXPECT_GE(std::ranges::count(listed, '\n'), 2);
        std::filesystem::remove_all(place("restored"));
        expect_done(restore("restored"));
        expect_sound_and_equal("restored");
      });
}

TEST_P(BackupKills, ASnapshotsBackupThatWasKilledLeavesNoSnapshot) {
  std::ofstream(place("program")) << R"(#!/bin/sh
set -eu
snapshot=$(dirname "$0")/snapshots/$VERGER_SNAPSHOT_ID
case $1 in
  create) mkdir -p "$snapshot" && cp -r "$VERGER_SNAPSHOT_DATABASE" "$snapshot/db" &&
    echo "database=$snapshot/db" ;;
  delete) rm -rf "$snapshot" ;;
esac
)";
  std::filesystem::permissions(place("program"), std::filesystem::perms(0755));
  const Arguments create_of_snapshot{"backup",        "create", place("db"), "--to",
                                     repository_,     "--node", "n1",        "--snapshot-command",
                                     place("program")};
  const auto steps = steps_of(create_of_snapshot);
  EXPECT_THAT(steps, IsSupersetOf({"backup.snapshot.before-create", "backup.snapshot.after-create",
                                   "backup.snapshot.after-delete", "backup.after-chunk",
                                   "backup.after-manifest"}));
  const int killed = kill_at_each(
      steps, create_of_snapshot, [this] { start_anew(); },
      [&] {
        expect_done(create_of_snapshot);
        expect_done({"backup", "verify", repository_});
        EXPECT_TRUE(std::filesystem::is_empty(place("snapshots")));
        for (const auto& left : std::filesystem::directory_iterator(place("db/verger-snapshots"))) {
          EXPECT_NE(left.path().extension(), ".json") << left.path();
        }
      });
  EXPECT_GE(killed, 10);
  expect_done(restore("restored"));
  expect_sound_and_equal("restored");
}

TEST_P(BackupKills, ARestoreThatWasKilledIsCompletedByTheSameCommand) {
  expect_done(create());
  generate("other", "1000");
  const auto again = [this] {
    std::filesystem::remove_all(place("node"));
    std::filesystem::copy(place("other"), place("node"), std::filesystem::copy_options::recursive);
  };
  again();
  const auto steps = steps_of(restore("node"));
  EXPECT_THAT(steps,
              IsSupersetOf({"restore.after-file", "restore.before-switch", "restore.switch-noted",
                            "restore.after-old", "restore.after-checkpoint", "restore.after-chunk",
                            "restore.after-switch", "restore.before-finish"}));
  const int killed = kill_at_each(steps, restore("node"), again, [this] {
    expect_done(restore("node"));
    expect_sound_and_equal("node");
    EXPECT_FALSE(std::filesystem::exists(place("node/verger-restore")));
    // The old files are those that were there.
    std::vector<std::string> kept;
    for (const auto& entry : std::filesystem::directory_iterator(place("node"))) {
      if (entry.path().filename().string().starts_with("old-before-")) {
        kept.push_back(entry.path().string());
      }
    }
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(test::file_text(kept[0] + "/chunk-000000.000000"),
              test::file_text(place("other/chunk-000000.000000")));
  });
  EXPECT_GE(killed, 12);
}

TEST_P(BackupKills, ADeletionThatWasKilledIsRepeated) {
  expect_done(create());
  generate("more", "6000");
  std::filesystem::remove_all(place("db"));
  std::filesystem::rename(place("more"), place("db"));
  auto full = create();
  full.emplace_back("--full");
  expect_done(full);
  std::filesystem::copy(place("repository"), place("before"),
                        std::filesystem::copy_options::recursive);
  // Both phases: the first marks, the second removes.
  const Arguments mark = {"backup", "delete", repository_, "--keep-last", "1"};
  const Arguments sweep = {"backup", "delete", repository_, "--grace", "0"};
  const auto anew = [this] {
    start_anew();
    std::filesystem::copy(place("before"), place("repository"),
                          std::filesystem::copy_options::recursive);
  };
  const auto check = [&] {
    expect_done({"backup", "verify", repository_});
    expect_done(mark);
    expect_done(sweep);
    expect_done(sweep);
    const auto listed = expect_done({"-o", "json", "backup", "list", repository_});
    EXPECT_EQ(std::ranges::count(listed, '\n'), 1);
    expect_done({"backup", "verify", repository_});
  };
  const auto marks = steps_of(mark);
  EXPECT_THAT(marks, Contains("backup.delete.after-mark"));
  EXPECT_GE(kill_at_each(marks, mark, anew, check), 1);
  const auto anew_marked = [&] {
    anew();
    expect_done(mark);
  };
  anew_marked();
  const auto sweeps = steps_of(sweep);
  EXPECT_THAT(sweeps, Contains("backup.sweep.after-blob"));
  EXPECT_GE(kill_at_each(sweeps, sweep, anew_marked, check), 2);
}

TEST_P(BackupKills, ARekeyThatWasKilledIsContinued) {
  if (!GetParam()) {
    EXPECT_EQ(run({"backup", "rekey", repository_}).status, 64);
    return;
  }
  expect_done(create());
  expect_done({"backup", "key", "add", place("keys")});
  std::filesystem::copy(place("repository"), place("before"),
                        std::filesystem::copy_options::recursive);
  const auto both = test::file_text(place("keys"));
  const Arguments rekey = {"backup", "rekey", repository_};
  const auto steps = steps_of(rekey);
  EXPECT_THAT(steps, IsSupersetOf({"backup.rekey.after-blob", "backup.rekey.after-document"}));
  kill_at_each(
      steps, rekey,
      [&] {
        start_anew();
        std::ofstream(place("keys")) << both;
        std::filesystem::copy(place("before"), place("repository"),
                              std::filesystem::copy_options::recursive);
      },
      [&] {
        expect_done({"backup", "verify", repository_});
        expect_done(rekey);
        // The second key of the file is the old one: without it all can be read.
        const auto ids = expect_done({"backup", "key", "list", place("keys")});
        const auto line =
            both.find(ids.substr(ids.find('\n') + 1, std::string("key-").size() + 12));
        auto without = both;
        without.erase(line, without.find('\n', line) + 1 - line);
        std::ofstream(place("keys")) << without;
        expect_done({"backup", "verify", repository_});
      });
}

}  // namespace
}  // namespace verger
