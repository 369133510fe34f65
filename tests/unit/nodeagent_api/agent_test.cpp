#include "nodeagent/api/agent.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"
#include "nodeagent/api/problem.h"

namespace verger::api {
namespace {

OperationStatus failed_operation() {
  OperationStatus status;
  status.id = "run-1:2";
  status.kind = "scavenge";
  status.state = OperationState::kFailed;
  status.error_code = "no_space";
  status.error = "the disk is full";
  status.result_json = R"({"bytesSaved":5})";
  status.accepted_at = "2024-06-01T10:00:00Z";
  status.finished_at = "2024-06-01T10:05:00Z";
  return status;
}

TEST(AgentApi, ReadsBackTheFacts) {
  NodeFacts facts;
  facts.agent_version = "0.1.0";
  facts.node_instance_id = "5b1e0f4a-90b1-4a37-8ad1-2d7c1f0d6a11";
  facts.node_running = true;
  facts.node_version = "24.6.0";
  facts.node_state = "follower";
  facts.writer_checkpoint = 9'007'199'254'740'993;
  facts.epoch_number = 3;
  facts.disk_total_bytes = 1;
  facts.disk_free_bytes = 2;
  facts.database_bytes = 3;
  facts.chunk_file_count = 4;
  facts.largest_chunk_bytes = 5;
  facts.chunk_size = 6;
  facts.points = {{0, 10, "2024-06-01T10:00:00Z", 0}, {1, 20, "2024-06-02T10:00:00Z", -1}};
  facts.last_finished_point = facts.points[0];
  facts.unfinished = UnfinishedScavenge{facts.points[1], "Executing"};
  facts.running = RunningScavenge{"id", "Chunk execution Phase", 1, 2, 3};
  facts.operations = {failed_operation()};
  facts.highest_controller_epoch = 8;
  facts.taken_at = "2024-06-02T11:00:00Z";
  const auto text = to_text(facts);
  const auto back = parse_node_facts(text);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(to_text(*back), text);
  EXPECT_EQ(back->unfinished->point, facts.points[1]);
  EXPECT_EQ(back->writer_checkpoint, facts.writer_checkpoint);
  const auto empty = parse_node_facts(R"({"agentVersion":"0.2.0","later":[]})");
  ASSERT_TRUE(empty.has_value());
  EXPECT_EQ(to_text(*parse_node_facts(to_text(*empty))), to_text(*empty));
  EXPECT_FALSE(parse_node_facts("{}").has_value());
  EXPECT_FALSE(parse_node_facts(R"({"agentVersion":"1","unfinished":{}})").has_value());
  EXPECT_FALSE(parse_node_facts(R"({"agentVersion":"1","points":[{"number":1}]})").has_value());
}

TEST(AgentApi, ReadsBackAnOperation) {
  const auto status = failed_operation();
  const auto back = parse_operation_status(to_text(status));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->state, OperationState::kFailed);
  EXPECT_EQ(back->result_json, status.result_json);
  EXPECT_EQ(back->error_code, status.error_code);
  EXPECT_EQ(back->finished_at, status.finished_at);
  for (int i = 0; i <= static_cast<int>(OperationState::kCancelled); ++i) {
    EXPECT_EQ(parse_operation_state(to_string(static_cast<OperationState>(i))),
              static_cast<OperationState>(i));
  }
  EXPECT_FALSE(parse_operation_status(R"({"id":"a","state":"Done"})").has_value());
  EXPECT_FALSE(parse_operation_status(R"({"state":"done"})").has_value());
}

TEST(AgentApi, ReadsBackHowFarAnOperationIs) {
  auto status = failed_operation();
  status.state = OperationState::kActing;
  status.progress = OperationProgress{.phase = "reading the log",
                                      .done = 5,
                                      .total = 9'007'199'254'740'993,
                                      .unit = "bytes",
                                      .bytes = 5,
                                      .rate = 3'600,
                                      .since = "2024-06-01T10:01:00Z"};
  status.throttle = Throttle{.percent = 30, .bytes_per_second = 1'000'000};
  const auto back = parse_operation_status(to_text(status));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->progress, status.progress);
  EXPECT_EQ(back->throttle, status.throttle);
  EXPECT_FALSE(parse_operation_status(R"({"id":"a","state":"acting","throttle":{"percent":0}})")
                   .has_value());
  EXPECT_FALSE(
      parse_operation_status(R"({"id":"a","state":"acting","progress":{"done":"5"}})").has_value());
}

TEST(AgentApi, ShowsACancelledOperationToOldControllersAsFailed) {
  auto status = failed_operation();
  status.state = OperationState::kCancelled;
  const auto text = to_text(status);
  EXPECT_EQ(nlohmann::json::parse(text).at("state"), "failed");
  const auto back = parse_operation_status(text);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->state, OperationState::kCancelled);
}

TEST(AgentApi, ReadsBackFilesAndThrottles) {
  const std::vector<StoredFile> files = {{std::string(64, 'a'), 5, "2024-06-01T10:01:00Z"}};
  EXPECT_EQ(parse_stored_files(to_text(files)), files);
  EXPECT_EQ(parse_stored_file(to_text(files[0])), files[0]);
  EXPECT_FALSE(parse_stored_file(R"({"bytes":1})"));
  const Throttle throttle{.percent = 5, .bytes_per_second = 7};
  EXPECT_EQ(parse_throttle(to_text(throttle)), throttle);
  EXPECT_EQ(parse_throttle("{}"), Throttle{});
  for (const auto* bad : {R"({"percent":101})", R"({"bytesPerSecond":-1})", "[]", ""}) {
    ASSERT_FALSE(parse_throttle(bad)) << bad;
    EXPECT_EQ(parse_throttle(bad).error().code, Errc::kInvalidArgument);
  }
}

TEST(AgentApi, RefusesRequestsThatCannotBeMeant) {
  OperationRequest request;
  request.id = "run-1:2";
  request.run = "run-1";
  request.step = "2";
  request.controller_epoch = 4;
  request.kind = "set_priority";
  request.parameters_json = R"({"priority":-1})";
  request.expected_instance_id = "x";
  const auto text = to_text(request);
  const auto back = parse_operation_request(text);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(to_text(*back), text);
  const std::vector<std::pair<std::string, nlohmann::json>> wrong = {
      {"id", ""},
      {"id", "a/b"},
      {"id", std::string(129, 'a')},
      {"id", nullptr},
      {"kind", ""},
      {"kind", 5},
      {"controllerEpoch", -1},
      {"controllerEpoch", "4"},
      {"parameters", "x"},
      {"parameters", nlohmann::json::array()}};
  for (const auto& [name, bad] : wrong) {
    auto changed = nlohmann::json::parse(text);
    changed[name] = bad;
    const auto refused = parse_operation_request(to_text(changed));
    ASSERT_FALSE(refused.has_value()) << changed;
    EXPECT_EQ(refused.error().code, Errc::kInvalidArgument) << changed;
    EXPECT_TRUE(refused.error().message.contains(name)) << refused.error().message;
  }
}

TEST(AgentApi, RefusesPermitsWithoutASensibleEnd) {
  const Permit permit{.controller_epoch = 3, .run = "r", .step = "s", .valid_for_ms = 5000};
  EXPECT_EQ(to_text(*parse_permit(to_text(permit))), to_text(permit));
  for (const std::string_view bad :
       {"{}", "[]", "x", R"({"controllerEpoch":1,"validForMs":-1})",
        R"({"controllerEpoch":1,"validForMs":86400001})", R"({"controllerEpoch":-1})"}) {
    EXPECT_EQ(parse_permit(bad).error().code, Errc::kInvalidArgument) << bad;
  }
}

TEST(AgentApi, ReadsBackADigest) {
  const Digest digest{1, 2, "aa", "bb", {"c0", "c1"}, 3, 4};
  EXPECT_EQ(to_text(*parse_digest(to_text(digest))), to_text(digest));
  EXPECT_FALSE(
      parse_digest(R"({"pointNumber":1,"logical":"a","readable":"b","chunks":[1]})").has_value());
  EXPECT_FALSE(parse_digest("{}").has_value());
}

TEST(Problems, CarryAnErrorAcross) {
  for (int i = 0; i <= static_cast<int>(Errc::kUnknownOutcome); ++i) {
    const Error error{static_cast<Errc>(i), "what happened"};
    const auto problem = parse_problem(to_text(to_json(to_problem(error))));
    ASSERT_TRUE(problem.has_value());
    EXPECT_EQ(to_error(*problem), error);
  }
  const auto stale = make_problem(409, "stale_epoch", "epoch 3 is older than 4");
  EXPECT_EQ(stale.type, "urn:verger:problem:stale_epoch");
  EXPECT_EQ(stale.title, "Stale epoch");
  EXPECT_EQ(to_error(stale).code, Errc::kConflict);
  EXPECT_EQ(to_error(Problem{.status = 500}).code, Errc::kUnknownOutcome);
  EXPECT_EQ(parse_problem("<html>").error().code, Errc::kCorruption);
}

}  // namespace
}  // namespace verger::api
