#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "engine/log/pending_truncation.h"
#include "engine/redaction/redaction_list.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"
#include "tests/unit/nodeagent_operations/restore_case.h"

/// What was redacted is redacted in restored files before their server runs.
namespace verger::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kAgain = "Erika Mustermann, Heidestrasse 17, 51147 Koeln, born 1964";
constexpr std::string_view kUnlisted = "Alan Turing, Adlington Road 43, Wilmslow, born 1912-06-23";

RestoreCase* dying_case = nullptr;  // NOLINT: of one test at a time
std::string dies_again_at;          // NOLINT

void die_again(std::string_view name) {
  if (dying_case != nullptr && name == dies_again_at) {
    std::exchange(dying_case, nullptr)->die(/*power=*/true);
  }
}

/// Files as a restore leaves them: a truncation is pending where their log ends.
class RestoredFiles : public ::testing::Test {
 protected:
  RestoredFiles() {
    test::DatabaseBuilder builder(of_.host_.disk(), "/restored");
    builder.write("customer-7", {event_with(builder, kAgain)});
    for (int i = 0; i < 25; ++i) {
      builder.write("stream", 2, 400);
    }
    builder.write("customer-8", {event_with(builder, kUnlisted)});  // in the active chunk
    end_ = builder.database().transaction_log().checkpoints().chaser;
    builder.close();
    for (const auto& entry : value(of_.host_.disk().list("/db"))) {
      if (!entry.is_directory) {
        ok(of_.host_.disk().remove(Path("/db") / entry.name));
      }
    }
    move_all("/restored", "/db");
    ok(log::note_truncation(of_.host_.disk(), "/db", end_));
    of_.host_.crash(/*power=*/false);
    of_.host_.set_disk(of_.host_.disk().clone());
    of_.open();
  }
  ~RestoredFiles() override {
    set_failpoint_hook(nullptr);
    dying_case = nullptr;
  }
  static streams::NewEvent event_with(test::DatabaseBuilder& builder, std::string_view text) {
    auto event = builder.event();
    const auto bytes = as_bytes(text);
    event.data.assign(bytes.begin(), bytes.end());
    return event;
  }
  void move_all(const Path& from, const Path& to) {
    ok(of_.host_.disk().make_directories(to));
    for (const auto& entry : value(of_.host_.disk().list(from))) {
      if (entry.is_directory) {
        for (const auto& old : value(of_.host_.disk().list(to / entry.name))) {
          if (!old.is_directory) {
            ok(of_.host_.disk().remove(to / entry.name / old.name));
          }
        }
        move_all(from / entry.name, to / entry.name);
      } else {
        ok(of_.host_.disk().rename(from / entry.name, to / entry.name));
      }
    }
  }
  std::string list_of(std::vector<std::string> events) {
    redaction::RedactionRequest request;
    for (const auto& event : events) {
      request.events.push_back(value(redaction::parse_event_name(event)));
    }
    return redaction::encode_list(value(test::plan(of_.host_.disk(), "/db", request)).to_list());
  }
  std::vector<std::string> files_with_text(std::string_view text = kAgain) {
    return test::files_with(of_.host_.disk(), "/db", text);
  }

  RestoreCase of_;
  LogPosition end_;
};

TEST_F(RestoredFiles, AreRedactedAndStayAsTheRestoreLeftThem) {
  const auto list = list_of({"0@customer-7"});
  of_.running = false;
  const auto status = of_.run("restored_redaction", {{"list", list}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 1);
  EXPECT_EQ(status["result"]["found"], json::array());
  EXPECT_EQ(status["result"]["texts"], 1);
  EXPECT_EQ(status["result"]["readBlank"], 1);
  EXPECT_GT(status["result"]["searchedFiles"], 3);
  EXPECT_EQ(status["result"]["proven"], true) << status;
  EXPECT_EQ(status["result"]["chunks"][0]["to"], "chunk-000000.000001");
  EXPECT_THAT(files_with_text(), IsEmpty());
  EXPECT_EQ(files_with_text(kUnlisted).size(), 1U) << "the one that is not listed";
  EXPECT_EQ(value(log::pending_truncation(of_.host_.disk(), "/db")), end_)
      << "the server's to carry out";
  EXPECT_FALSE(of_.running);
  EXPECT_EQ(list_of({"0@customer-7"}), list);
}

TEST_F(RestoredFiles, SayWhatCannotBeRedactedYet) {
  const auto list = list_of({"0@customer-7", "0@customer-8"});
  of_.running = false;
  const auto status = of_.run("restored_redaction", {{"list", list}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 1);
  ASSERT_EQ(status["result"]["found"].size(), 1U);
  EXPECT_THAT(status["result"]["found"][0].get<std::string>(), HasSubstr("still written to"));
  EXPECT_EQ(status["result"]["proven"], false);
}

TEST_F(RestoredFiles, ThatAreBlankAlreadyAreReadAndNotSearched) {
  const auto list = list_of({"0@customer-7"});
  of_.running = false;
  ASSERT_EQ(of_.run("restored_redaction", {{"list", list}}).value("state", ""), "done");
  const auto status = of_.run("restored_redaction", {{"list", list}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["already"], 1);
  EXPECT_EQ(status["result"]["readBlank"], 1);
  EXPECT_EQ(status["result"]["searchedFiles"], 0);
  EXPECT_EQ(status["result"]["proven"], false) << "no text is known";
}

TEST_F(RestoredFiles, ACopyOfTheTextBesideTheChunksIsFound) {
  const auto list = list_of({"0@customer-7"});
  ok(write_file_durably(of_.host_.disk(), "/db/kept-by-hand", as_bytes(kAgain)));
  of_.running = false;
  const auto status = of_.run("restored_redaction", {{"list", list}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["proven"], false);
  EXPECT_THAT(status["result"]["found"].dump(), HasSubstr("/db/kept-by-hand"));
}

TEST_F(RestoredFiles, OfAnotherHistoryAreLeftAndNamed) {
  auto list = value(redaction::decode_list(list_of({"0@customer-7"})));
  list.front().digest.front() ^= std::byte{1};
  of_.running = false;
  const auto status = of_.run("restored_redaction", {{"list", redaction::encode_list(list)}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 0);
  EXPECT_THAT(status["result"]["found"].dump(), HasSubstr("another"));
}

TEST_F(RestoredFiles, AreLeftAloneWhileTheServerRuns) {
  const auto list = list_of({"0@customer-7"});
  of_.running = true;
  const auto status = of_.run("restored_redaction", {{"list", list}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("has to be stopped first"));
  EXPECT_EQ(files_with_text().size(), 1U);
}

class RestoredFilesAtDeath : public RestoredFiles,
                             public ::testing::WithParamInterface<const char*> {};

TEST_P(RestoredFilesAtDeath, AreRedactedByTheNextAgent) {
  const auto list = list_of({"0@customer-7"});
  of_.running = false;
  dying_case = &of_;
  dies_again_at = GetParam();
  set_failpoint_hook(&die_again);
  const auto id = of_.begin("restored_redaction", {{"list", list}});
  of_.world_.run_for(std::chrono::milliseconds(10'000));
  ASSERT_EQ(dying_case, nullptr) << "it was never there";
  set_failpoint_hook(nullptr);
  of_.open();
  const auto status = of_.ended(id);
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_THAT(files_with_text(), IsEmpty());
  EXPECT_EQ(status["result"]["blanked"], 1) << status;
  EXPECT_EQ(status["result"]["proven"], true) << "what the former agent had noted was searched for";
  EXPECT_EQ(value(log::pending_truncation(of_.host_.disk(), "/db")), end_);
}

INSTANTIATE_TEST_SUITE_P(AtEachStep, RestoredFilesAtDeath,
                         ::testing::Values("agent.restored-redaction.noted",
                                           "agent.restored-redaction.copied",
                                           "agent.restored-redaction.renamed",
                                           "agent.restored-redaction.switched"),
                         [](const auto& each) {
                           const std::string_view name = each.param;
                           return std::string(name.substr(name.rfind('.') + 1));
                         });

}  // namespace
}  // namespace verger::agent
