#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/redaction/redaction_list.h"
#include "nodeagent/operations/redaction/held_files.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/nodeagent_operations/disk_agent_fixture.h"

/// Events that are redacted while their server is stopped, on the machine's disk.
namespace verger::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kSecret = "Erika Mustermann, Heidestrasse 17, 51147 Koeln, born 1964";

class ARedaction : public DiskAgentFixture {
 protected:
  ARedaction() {
    test::DatabaseBuilder builder(posix_file_system(), database());
    builder.write("customer-7", {secret_event(builder)});
    for (int i = 0; i < 30; ++i) {
      builder.write("stream", 2, 400);
    }
    builder.write("customer-8", {secret_event(builder)});  // in the active chunk
    builder.close();
    open_agent();
  }

  static streams::NewEvent secret_event(test::DatabaseBuilder& builder) {
    auto event = builder.event();
    const auto text = as_bytes(kSecret);
    event.data.assign(text.begin(), text.end());
    return event;
  }
  [[nodiscard]] std::string list_of(std::string_view event) const {
    const auto plan = value(test::plan(posix_file_system(), database(),
                                       {.events = {value(redaction::parse_event_name(event))}}));
    return redaction::encode_list(plan.to_list());
  }
  /// As verger-db digest computes it.
  [[nodiscard]] std::string first_chunk_digest() const {
    const auto read = value(test::open_to_read(posix_file_system(), database()));
    const auto& log = read->transaction_log();
    streams::DigestJob job(*read, log.chunks().front()->end_position(), test::kTestTime,
                           {.readable = false});
    while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
    }
    return to_hex(job.digest().chunks.front());
  }
  [[nodiscard]] std::vector<std::string> files_with_secret() const {
    return test::files_with(posix_file_system(), database(), kSecret);
  }
};

TEST_F(ARedaction, StopsTheServerBlanksSearchesAndStartsIt) {
  const auto list = list_of("0@customer-7");
  const auto before = first_chunk_digest();
  const auto status = run("offline_redaction", {{"list", list}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(deeds(), "stop\nstart\n");
  const auto& result = status["result"];
  EXPECT_EQ(result["blanked"], 1);
  EXPECT_EQ(result["records"], 1);
  EXPECT_EQ(result["texts"], 1);
  ASSERT_EQ(result["chunks"].size(), 1U);
  EXPECT_NE(result["chunks"][0]["md5Before"], result["chunks"][0]["md5After"]);
  EXPECT_EQ(result["chunks"][0]["digestBefore"], before);
  EXPECT_EQ(result["chunks"][0]["digestAfter"], first_chunk_digest());
  EXPECT_NE(before, first_chunk_digest());
  EXPECT_GT(result["searchedFiles"], 3);
  EXPECT_EQ(list_of("0@customer-7"), list) << "the digest is that of the redacted record";
  // The other customer has the same text, and is not redacted: the search finds it, in an event's
  // record, whole.
  EXPECT_EQ(result["proven"], false);
  ASSERT_EQ(result["found"].size(), 1U) << result;
  EXPECT_THAT(result["found"][0].get<std::string>(), HasSubstr("chunk-"));
  EXPECT_EQ(files_with_secret().size(), 1U);
  EXPECT_THAT(status.dump(), ::testing::Not(HasSubstr("Mustermann")));
}

TEST_F(ARedaction, RefusesAnEventInTheActiveChunkWhileTheServerRuns) {
  const auto status = run("offline_redaction", {{"list", list_of("0@customer-8")}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("run a scavenge of the cluster"));
  EXPECT_EQ(deeds(), "");
}

TEST_F(ARedaction, RefusesTheListOfAnotherHistory) {
  auto list = value(redaction::decode_list(list_of("0@customer-7")));
  list.front().digest.front() ^= std::byte{1};
  const auto status = run("offline_redaction", {{"list", redaction::encode_list(list)}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("belongs to another database"));
  EXPECT_EQ(deeds(), "");
}

TEST_F(ARedaction, CheckingFindsTheEventsAndChangesNothing) {
  const auto status =
      run("redaction_check",
          {{"events", {"0@customer-7", "9@customer-7", "0@customer-8"}}, {"metadata", false}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_EQ(result["toDo"], 2);
  const auto list = value(redaction::decode_list(result["list"].get<std::string>()));
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list.front().stream, "customer-7");
  ASSERT_EQ(result["missing"].size(), 1U);
  EXPECT_THAT(result["missing"][0].get<std::string>(), HasSubstr("9@customer-7"));
  EXPECT_THAT(result["refused"], IsEmpty());
  ASSERT_EQ(result["obstacles"].size(), 1U);
  EXPECT_THAT(result["obstacles"][0].get<std::string>(), HasSubstr("is still written to"));
  EXPECT_EQ(deeds(), "");
  EXPECT_EQ(files_with_secret().size(), 2U);
}

TEST(HeldFiles, NamesWhatIsRemovedAndOpen) {
  const test::TempDirectory directory;
  const auto path = directory.path() / "chunk-000000.000000";
  std::ofstream held(path);
  held << "text";
  held.flush();
  EXPECT_THAT(removed_and_held(directory.path()), IsEmpty());
  value(posix_file_system().remove(path));
  EXPECT_THAT(removed_and_held(directory.path()),
              ElementsAre(HasSubstr("chunk-000000.000000 (process ")));
}

}  // namespace
}  // namespace verger::agent
