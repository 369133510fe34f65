#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "engine/redaction/chunk_switch.h"
#include "engine/redaction/record_blanking.h"
#include "engine/redaction/redaction_list.h"
#include "nodeagent/external/online_access.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"
#include "tests/unit/nodeagent_operations/agent_fixture.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"

/// Events that are redacted beside their running server, in virtual time. The server is a model: it
/// has the lock, names positions, and switches files in as servers do.
namespace verger::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kAda = "Ada Lovelace, St James's Square 12, London, born 1815-12-10";
constexpr std::string_view kErika = "Erika Mustermann, Heidestrasse 17, 51147 Koeln, born 1964";
constexpr std::string_view kActive = "Alan Turing, Adlington Road 43, Wilmslow, born 1912-06-23";

/// What the server is asked, and what it does with it.
struct ModelServer {
  FileSystem& files;
  Path database = "/db";
  std::string problem{};  ///< of the look
  int lock_busy_for = 0;  ///< so many requests of the lock are refused
  int locks = 0;          ///< given
  bool locked = false;
  std::string refuses_switch{};  ///< its reason; empty: it switches
  int loses_connection = 0;      ///< at so many switches, after having made them
  int loses_requests = 0;        ///< so many switches before: not made, and then a scavenge ran
  bool gives_data = false;       ///< to readers, of redacted events
  int away_for = 0;              ///< so many connections fail once one was lost
  bool keeps_former = false;     ///< it does not remove what was replaced
  int switches = 0;

  Result<std::vector<client::EventPosition>> positions_of(const client::EventToFind& event) const {
    VERGER_TRY(const auto database_open, test::open_to_read(files, database));
    VERGER_TRY(
        const auto plan,
        redaction::plan_redaction(files, *database_open,
                                  {.events = {{.stream = event.stream, .number = event.number}}}));
    std::vector<client::EventPosition> out;
    Bytes buffer;
    for (const auto& record : plan.records) {
      VERGER_TRY(const auto read, database_open->transaction_log().read(record.position, buffer));
      out.push_back(
          {.position = record.position,
           .chunk_file = record.chunk_file,
           .chunk_completed = !(plan.has_active() && plan.chunks.back().file == record.chunk_file),
           .file_offset = read.file_offset});
    }
    return out;
  }
  Result<std::optional<std::size_t>> data_of(const client::EventToFind& event) const {
    VERGER_TRY(const auto database_open, test::open_to_read(files, database));
    VERGER_TRY(
        const auto plan,
        redaction::plan_redaction(files, *database_open,
                                  {.events = {{.stream = event.stream, .number = event.number}}}));
    if (plan.records.empty()) {
      return std::optional<std::size_t>();
    }
    const auto& record = plan.records.front();
    return std::optional<std::size_t>(record.already && !gives_data ? 0 : record.data_bytes);
  }
  void switch_in(const std::string& target, const std::string& new_file) {
    auto name = log::parse_chunk_file_name(target).value();
    ++name.version;
    ok(files.rename(database / new_file,
                    database / log::chunk_file_name(name.start, name.version)));
    if (!keeps_former) {
      ok(files.remove(database / target));
    }
    ++switches;
  }
  /// A scavenge rewrites a chunk file, and keeps the record.
  void scavenge(const std::string& target) {
    auto name = log::parse_chunk_file_name(target).value();
    ++name.version;
    ok(files.rename(database / target, database / log::chunk_file_name(name.start, name.version)));
  }
};

class ModelLock final : public client::HeldChunkLock {
 public:
  explicit ModelLock(ModelServer& server) : server_(server) { server_.locked = true; }
  ~ModelLock() override { server_.locked = false; }
  net::awaitable<client::Outcome<client::Nothing>> switch_chunk(std::string target,
                                                                std::string new_file) override {
    if (!server_.refuses_switch.empty()) {
      co_return client::refused<client::Nothing>("switch_refused", server_.refuses_switch);
    }
    if (server_.loses_requests > 0) {
      --server_.loses_requests;
      server_.scavenge(target);
      co_return client::unknown<client::Nothing>("no_answer", "the connection ended");
    }
    server_.switch_in(target, new_file);
    if (server_.loses_connection > 0) {
      --server_.loses_connection;
      co_return client::unknown<client::Nothing>("no_answer", "the connection ended");
    }
    co_return client::done(client::Nothing{});
  }
  net::awaitable<client::Outcome<client::Nothing>> release() override {
    co_return client::done(client::Nothing{});
  }

 private:
  ModelServer& server_;
};

class ModelClient final : public client::RedactionClient {
 public:
  explicit ModelClient(ModelServer& server) : server_(server) {}
  net::awaitable<client::Outcome<std::vector<std::vector<client::EventPosition>>>> positions(
      std::vector<client::EventToFind> events) override {
    std::vector<std::vector<client::EventPosition>> out;
    for (const auto& event : events) {
      out.push_back(value(server_.positions_of(event)));
    }
    co_return client::done(std::move(out));
  }
  net::awaitable<client::Outcome<std::unique_ptr<client::HeldChunkLock>>> lock() override {
    using Held = std::unique_ptr<client::HeldChunkLock>;
    if (server_.lock_busy_for > 0 || server_.locked) {
      --server_.lock_busy_for;
      co_return client::refused<Held>("chunk_lock_held", "Failed to acquire lock for redaction.");
    }
    ++server_.locks;
    co_return client::done<Held>(std::make_unique<ModelLock>(server_));
  }
  net::awaitable<client::Outcome<std::vector<std::optional<std::size_t>>>> data_sizes(
      std::vector<client::EventToFind> events) override {
    std::vector<std::optional<std::size_t>> out;
    for (const auto& event : events) {
      out.push_back(value(server_.data_of(event)));
    }
    co_return client::done(std::move(out));
  }

 private:
  ModelServer& server_;
};

class ModelAccess final : public external::OnlineAccess {
 public:
  ModelAccess(ModelServer& server, external::OfflineMachine machine, http::Timers& timers)
      : OnlineAccess({.database = "/db", .index = {}}, machine, timers, {}), server_(server) {}
  [[nodiscard]] external::OnlineLook look() const override { return {.problem = server_.problem}; }
  [[nodiscard]] Result<std::shared_ptr<client::RedactionClient>> connect(
      const net::any_io_executor& /*executor*/) const override {
    if (!server_.problem.empty()) {
      return Error{Errc::kRefused, server_.problem};
    }
    if (server_.switches > 0 && server_.away_for > 0) {
      --server_.away_for;
      return Error{Errc::kRefused, "no process listens there"};
    }
    return std::shared_ptr<client::RedactionClient>(std::make_shared<ModelClient>(server_));
  }

 private:
  ModelServer& server_;
};

/// The process in which failpoints are passed_points.
testing::SimHost* online_dying_host = nullptr;  // NOLINT: of one test at a time
std::string online_dies_at;                     // NOLINT
std::vector<std::string> passed_points;         // NOLINT

void die_online(std::string_view name) {
  passed_points.emplace_back(name);
  if (online_dying_host != nullptr && name == online_dies_at && !online_dying_host->dying()) {
    online_dying_host->die(/*power=*/false);
  }
}

class AnOnlineRedaction : public AgentFixture {
 protected:
  AnOnlineRedaction() {
    test::DatabaseBuilder builder(host_.disk(), "/db");
    builder.write("customer-7", {event_with(builder, kAda)});
    fill_a_chunk(builder);
    builder.write("customer-8", {event_with(builder, kErika)});
    fill_a_chunk(builder);
    builder.write("customer-9", {event_with(builder, kActive)});
    builder.close();
    open();
  }
  ~AnOnlineRedaction() override {
    set_failpoint_hook(nullptr);
    online_dying_host = nullptr;
    agent_ = nullptr;
  }

  static void fill_a_chunk(test::DatabaseBuilder& builder) {
    for (int i = 0; i < 25; ++i) {
      builder.write("stream", 2, 400);
    }
  }
  static streams::NewEvent event_with(test::DatabaseBuilder& builder, std::string_view text) {
    auto event = builder.event();
    const auto bytes = as_bytes(text);
    event.data.assign(bytes.begin(), bytes.end());
    return event;
  }
  /// Again: in place of the former agent, which ends as in a crash.
  void open() {
    agent_ = nullptr;
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers());
    access_ = std::make_unique<ModelAccess>(
        server_,
        external::OfflineMachine{
            .files = host_.disk(), .clock = host_.clock(), .random = random_, .log = null_log()},
        host_.timers());
    online_ = access_.get();
    open_agent([this] { return &node_; });
    ASSERT_EQ(permit(1, 86'400'000), "204");
  }
  /// From now on the agent's process is gone at that failpoint, as by SIGKILL.
  void die_at(std::string_view failpoint) {
    host_.keep(std::shared_ptr<Agent>(std::move(agent_)));  // goes with its process
    online_dying_host = &host_;
    online_dies_at = failpoint;
    passed_points.clear();
    set_failpoint_hook(&die_online);
  }
  void come_back() {
    online_dying_host = nullptr;
    set_failpoint_hook(nullptr);
    host_.boot();
    open();
  }
  std::string list_of(const std::vector<std::string>& events) {
    redaction::RedactionRequest request;
    for (const auto& event : events) {
      request.events.push_back(value(redaction::parse_event_name(event)));
    }
    return redaction::encode_list(value(test::plan(host_.disk(), "/db", request)).to_list());
  }
  std::string both() { return list_of({"0@customer-7", "0@customer-8"}); }
  json redact(const std::string& list, json more = json::object()) {
    json parameters{{"list", list}};
    parameters.update(more);
    EXPECT_EQ(operate("o1", "online_redaction", parameters, 1), "202") << answer_;
    return ended("o1");
  }
  std::vector<std::string> files_with(std::string_view text) {
    return test::files_with(host_.disk(), "/db", text);
  }

  CopiedNode node_{"/db"};
  SeededRandom random_{7};
  ModelServer server_{.files = host_.disk()};
  std::unique_ptr<ModelAccess> access_;
};

TEST_F(AnOnlineRedaction, BlanksReadsBackAndSearches) {
  const auto list = both();
  const auto status = redact(list);
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_EQ(result["online"], true);
  EXPECT_EQ(result["records"], 2);
  EXPECT_EQ(result["blanked"], 2);
  EXPECT_EQ(result["readBack"], 2);
  EXPECT_EQ(result["texts"], 2);
  EXPECT_EQ(result["chunks"].size(), 2U);
  EXPECT_GT(result["searchedFiles"], 3);
  EXPECT_EQ(result["proven"], true) << result;
  EXPECT_EQ(server_.locks, 1);
  EXPECT_FALSE(server_.locked);
  EXPECT_THAT(files_with(kAda), IsEmpty());
  EXPECT_THAT(files_with(kErika), IsEmpty());
  EXPECT_EQ(both(), list) << "the digests are those of the redacted records";
  EXPECT_THAT(status.dump(), Not(HasSubstr("Lovelace")));
}

TEST_F(AnOnlineRedaction, DoesNothingWhereAllIsRedacted) {
  ASSERT_EQ(redact(both()).value("state", ""), "done");
  EXPECT_EQ(operate("o2", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  const auto status = ended("o2");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["already"], 2);
  EXPECT_EQ(status["result"]["blanked"], 0);
  EXPECT_EQ(status["result"]["searchedFiles"], 0) << "no text is known";
  EXPECT_EQ(server_.switches, 2);
}

TEST_F(AnOnlineRedaction, WaitsForTheChunkLockAndSaysSo) {
  server_.lock_busy_for = 4;
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  world_.run_for(milliseconds(2'000));
  EXPECT_THAT(look("o1").dump(), HasSubstr("waiting for the chunk lock"));
  EXPECT_EQ(server_.switches, 0);
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "done") << status;
  EXPECT_THAT(files_with(kAda), IsEmpty());
}

TEST_F(AnOnlineRedaction, GivesUpTheLockAtItsDeadline) {
  server_.lock_busy_for = 1'000'000;
  const auto status = redact(both(), {{"lockDeadlineMs", 20'000}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_EQ(status.value("errorCode", ""), "timeout") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("nothing was changed"));
  EXPECT_EQ(files_with(kAda).size(), 1U);
}

TEST_F(AnOnlineRedaction, PassesEachRefusalOfASwitchOnAndChangesNothing) {
  using redaction::SwitchResult;
  const auto list = both();
  for (int n = static_cast<int>(SwitchResult::kTargetNameInvalid);
       n <= static_cast<int>(SwitchResult::kTargetFormatNotSupported); ++n) {
    const std::string reason(redaction::reason_of(static_cast<SwitchResult>(n)));
    ASSERT_NE(reason, "") << n;
    server_.refuses_switch = reason;
    const auto id = "o" + std::to_string(n + 10);
    EXPECT_EQ(operate(id, "online_redaction", {{"list", list}}, 1), "202") << answer_;
    const auto status = ended(id);
    EXPECT_EQ(status.value("state", ""), "failed") << reason;
    EXPECT_THAT(status.value("error", ""), HasSubstr(reason));
    EXPECT_EQ(files_with(kAda).size(), 1U) << "the copy is gone, the chunk as it was";
    EXPECT_FALSE(server_.locked);
  }
  EXPECT_EQ(server_.switches, 0);
}

TEST_F(AnOnlineRedaction, FindsOutWhatBecameOfASwitchWhoseAnswerWasLost) {
  server_.loses_connection = 1;
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 2);
  EXPECT_EQ(status["result"]["proven"], true) << "the texts are known all the while";
  EXPECT_EQ(server_.locks, 2);
  EXPECT_EQ(server_.switches, 2) << "none is made twice";
}

TEST_F(AnOnlineRedaction, EndsWhereTheConnectionIsLostAgainAndAgain) {
  // Each switch is answered by the end of the connection: two chunks, and then nothing is left.
  server_.loses_connection = 5;
  const auto status = redact(both());
  EXPECT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(server_.switches, 2);
}

TEST_F(AnOnlineRedaction, ProvesAlsoWhereTheServerWasKilledInTheMiddleAndCameBack) {
  server_.loses_connection = 1;
  server_.away_for = 12;  // some minutes
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(server_.away_for, 0);
  EXPECT_EQ(status["result"]["blanked"], 2);
  EXPECT_EQ(status["result"]["texts"], 2) << "the texts are known all the while";
  EXPECT_EQ(status["result"]["proven"], true) << status;
  const auto& chunks = status["result"]["chunks"];
  ASSERT_EQ(chunks.size(), 2U) << "the one whose answer was lost is in the report, too: " << status;
  EXPECT_EQ(chunks[0]["from"], "chunk-000000.000000");
  EXPECT_EQ(chunks[0]["to"], "chunk-000000.000001");
  EXPECT_EQ(chunks[0]["records"], 1);
  EXPECT_NE(chunks[0]["md5Before"], chunks[0]["md5After"]);
  EXPECT_EQ(server_.switches, 2) << "none is made twice";
}

TEST_F(AnOnlineRedaction, ReportsNoSwitchThatWasNotMade) {
  server_.loses_requests = 1;
  server_.loses_connection = 1;
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 2);
  const auto& chunks = status["result"]["chunks"];
  ASSERT_EQ(chunks.size(), 2U) << status;
  EXPECT_EQ(chunks[0]["from"], "chunk-000000.000001") << "as the scavenge has left it";
  EXPECT_EQ(chunks[0]["to"], "chunk-000000.000002");
  EXPECT_EQ(chunks[1]["from"], "chunk-000001.000000");
}

TEST_F(AnOnlineRedaction, EndsWhereTheServerDoesNotComeBack) {
  server_.loses_connection = 1;
  server_.away_for = 1'000'000;
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  world_.run_for(milliseconds(400'000));
  EXPECT_THAT(look("o1").dump(), HasSubstr("waiting for the server"));
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "failed") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("no process listens there"));
  EXPECT_EQ(server_.switches, 1);
}

TEST_F(AnOnlineRedaction, AFormerFileThatTheServerDoesNotRemoveIsFoundBySearch) {
  server_.keeps_former = true;
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 2);
  EXPECT_EQ(status["result"]["proven"], false);
  EXPECT_THAT(status["result"]["found"].dump(), HasSubstr("chunk-000000.000000")) << status;
}

TEST_F(AnOnlineRedaction, RefusesTheListOfAnotherHistory) {
  auto list = value(redaction::decode_list(both()));
  list.front().digest.front() ^= std::byte{1};
  const auto status = redact(redaction::encode_list(list));
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("belongs to another database"));
  EXPECT_EQ(server_.switches, 0);
}

TEST_F(AnOnlineRedaction, RefusesAnEventInTheActiveChunk) {
  const auto status = redact(list_of({"0@customer-7", "0@customer-9"}));
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_EQ(server_.switches, 0) << "and not the other one either";
}

TEST_F(AnOnlineRedaction, NeedsAServerThatOffersIt) {
  server_.problem = "neither eventstore.sock nor kurrent.sock is there";
  const auto status = redact(both());
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("kurrent.sock"));
  EXPECT_EQ(ask("GET", "/agent/v1/facts"), "200");
  EXPECT_EQ(answer_.value("onlineProblem", ""), server_.problem);
}

TEST_F(AnOnlineRedaction, IsNotDoneWhileReadersGetTheData) {
  server_.gives_data = true;
  const auto status = redact(both());
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("still gives readers"));
}

TEST_F(AnOnlineRedaction, FindsACopyOfTheTextThatLiesBeside) {
  value(write_file_durably(host_.disk(), "/db/notes", as_bytes(kAda)));
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["proven"], false);
  EXPECT_THAT(status["result"]["found"].dump(), HasSubstr("/db/notes"));
}

TEST_F(AnOnlineRedaction, SearchesOnceMoreWhatIsWrittenMeanwhile) {
  runner_ =
      std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 1}, milliseconds(50));
  open_agent([this] { return &node_; });
  ASSERT_EQ(permit(1, 86'400'000), "204");
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  for (int looks = 0; looks < 1'000 && server_.switches < 2; ++looks) {
    world_.run_for(milliseconds(10));
  }
  for (int looks = 0; looks < 1'000 && !look("o1").dump().contains("searching"); ++looks) {
    world_.run_for(milliseconds(5));
  }
  // By another process, after the directory was listed.
  value(write_file_durably(host_.disk(), "/db/late.tmp", as_bytes(kErika)));
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_GT(status["result"]["searchRounds"], 1) << status;
  EXPECT_EQ(status["result"]["proven"], false);
  EXPECT_THAT(status["result"]["found"].dump(), HasSubstr("late.tmp"));
}

TEST_F(AnOnlineRedaction, StopsBetweenTwoChunkFiles) {
  runner_ = std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 1},
                                                    milliseconds(100));
  open_agent([this] { return &node_; });
  ASSERT_EQ(permit(1, 86'400'000), "204");
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  for (int looks = 0; looks < 1'000 && server_.switches < 1; ++looks) {
    world_.run_for(milliseconds(5));
  }
  ASSERT_EQ(server_.switches, 1);
  EXPECT_EQ(ask("POST", "/agent/v1/operations/o1/cancel"), "202");
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_EQ(status.value("errorCode", ""), "stopped");
  EXPECT_EQ(server_.switches, 1);
  EXPECT_THAT(files_with(kAda), IsEmpty());
  EXPECT_EQ(files_with(kErika).size(), 1U);
  EXPECT_FALSE(server_.locked);
}

TEST_F(AnOnlineRedaction, RemovesTheCopyThatAnInterruptedOneLeft) {
  value(write_file_durably(host_.disk(), "/db/0f.redact.tmp", as_bytes(kAda)));
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["removed"], json::array({"0f.redact.tmp"}));
  EXPECT_EQ(status["result"]["proven"], true) << status;
}

TEST_F(AnOnlineRedaction, ChecksWithoutServiceControl) {
  EXPECT_EQ(operate("o1", "redaction_check", {{"events", {"0@customer-7"}}, {"online", true}}, 1),
            "202")
      << answer_;
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["toDo"], 1);
  EXPECT_EQ(operate("o2", "redaction_check", {{"events", {"0@customer-7"}}}, 1), "202") << answer_;
  EXPECT_EQ(ended("o2").value("state", ""), "failed") << "it cannot stop its server";
}

class AnOnlineRedactionDies : public AnOnlineRedaction,
                              public ::testing::WithParamInterface<const char*> {};

TEST_P(AnOnlineRedactionDies, AndTheNextAgentEndsIt) {
  const auto list = both();
  server_.lock_busy_for = 1;  // it waits a second before it does anything
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", list}}, 1), "202") << answer_;
  die_at(GetParam());
  world_.run_for(milliseconds(60'000));
  ASSERT_THAT(passed_points, ::testing::Contains(std::string(GetParam()))) << "it was never there";
  come_back();
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_EQ(result["records"], 2);
  EXPECT_EQ(result["blanked"].get<int>() + result["already"].get<int>(), 2) << result;
  EXPECT_THAT(files_with(kAda), IsEmpty());
  EXPECT_THAT(files_with(kErika), IsEmpty());
  EXPECT_EQ(both(), list);
  EXPECT_FALSE(server_.locked);
}

INSTANTIATE_TEST_SUITE_P(AtEachStep, AnOnlineRedactionDies,
                         ::testing::Values("online-redaction.locked", "online-redaction.copied",
                                           "online-redaction.switched",
                                           "agent.online-redaction.noted",
                                           "agent.online-redaction.searched"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
                           return name;
                         });

}  // namespace
}  // namespace verger::agent
