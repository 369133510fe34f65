#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/executor/run_snapshot.h"
#include "controller/operations/redaction/redaction_module.h"
#include "controller/operations/redaction/redaction_support.h"
#include "planner/redaction/redaction_policy.h"
#include "tests/support/controller/controller_harness.h"

/// Runs of redactions over agents that find and redact what the test says.
namespace verger::test {

using controller::redactions::ListedEvent;

inline ListedEvent listed(std::int64_t number, std::int64_t position) {
  return {.stream = "customer-7",
          .number = number,
          .position = position,
          .metadata = false,
          .digest = fmt::format("{:064x}", number)};
}

/// What a node's agent finds, and what its redaction shows.
struct RedactedNode {
  std::vector<ListedEvent> has{listed(12, 100), listed(13, 200)};
  std::vector<std::string> refused{};
  std::vector<std::string> missing{};
  std::size_t to_do = 2;
  std::vector<std::string> found{};  ///< by the search
  bool filled_again = false;         ///< after its redaction, from a node that had the data
  /// After its redaction its look is refused so, or fails.
  std::vector<std::string> refused_later{};
  bool fails_later = false;
  bool is_redacted = false;
  int stays = 0;  ///< so many of its redactions are under way until they are stopped
};

class RedactionRun : public ::testing::Test {
 protected:
  using json = nlohmann::json;

  void SetUp() override {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    for (auto& node : h_.cluster.nodes) {
      node.online_problem = "it offers no socket";
    }
    h_.cluster.operate_more = [this](FakeNode& node, FakeOperation& operation) {
      return operate(node, operation);
    };
    h_.boot();
    h_.register_cluster();
  }

  bool operate(FakeNode& node, FakeOperation& operation) {
    const auto& kind = operation.request.kind;
    auto& of = nodes_[node.name];
    if (kind == "redaction_check") {
      const auto asked = json::parse(operation.request.parameters_json);
      done_.push_back((asked.contains("list") ? "look again " : "check ") + node.name);
      if (of.fails_later && of.is_redacted) {
        operation.status.state = api::OperationState::kFailed;
        operation.status.error_code = "io";
        operation.status.error = "/db: no such device";
        return true;
      }
      operation.status.result_json = json{
          {"list", controller::redactions::list_text(of.has)},
          {"toDo", of.to_do},
          {"missing", of.missing},
          {"refused", of.is_redacted && !of.refused_later.empty() ? of.refused_later : of.refused},
          {"obstacles", json::array()}}.dump();
    } else if (kind == "offline_redaction" || kind == "online_redaction") {
      done_.push_back((kind == "online_redaction" ? "redact running " : "redact ") + node.name);
      lists_.insert(json::parse(operation.request.parameters_json).at("list").get<std::string>());
      if (of.stays > 0) {
        --of.stays;
        operation.status.state = api::OperationState::kActing;
        return true;
      }
      operation.status.result_json = json{
          {"records", of.has.size()},
          {"blanked", of.to_do},
          {"already", of.has.size() - of.to_do},
          {"missing", of.missing},
          {"chunks", json::array()},
          {"removed", json::array()},
          {"texts", of.to_do},
          {"unsearchable", 0},
          {"searchedFiles", 9},
          {"searchedBytes", 4'096},
          {"found", of.found},
          {"held", json::array()},
          {"proven", of.found.empty()}}.dump();
      of.to_do = of.filled_again ? 2 : 0;
      of.is_redacted = true;
    } else if (kind == "restored_redaction") {
      done_.push_back("again " + node.name);
      lists_.insert(json::parse(operation.request.parameters_json).at("list").get<std::string>());
      operation.status.result_json =
          json{{"records", 2},       {"blanked", 2},      {"readBlank", 2},
               {"searchedFiles", 9}, {"found", of.found}, {"proven", of.found.empty()}}
              .dump();
    } else {
      return false;
    }
    operation.status.state = api::OperationState::kDone;
    return true;
  }

  static planner::Policy wanted_policy() {
    auto policy = ControllerHarness::quick_policy();
    planner::RedactionPolicy wanted;
    wanted.events = "12@customer-7,13@customer-7";
    wanted.reason = "request 4711";
    policy.operation = std::move(wanted);
    return policy;
  }

  std::string run() {
    auto id = h_.start_scavenge(wanted_policy());
    EXPECT_TRUE(h_.run_to_end(id, std::chrono::hours(1)))
        << controller::snapshot_of(h_.state(id)).state;
    return id;
  }
  json report(const std::string& id) {
    return controller::redactions::report(h_.state(id), json::object());
  }
  /// What was done to nodes' files.
  std::vector<std::string> redacted() const {
    std::vector<std::string> out;
    std::ranges::copy_if(done_, std::back_inserter(out),
                         [](const auto& each) { return each.starts_with("redact"); });
    return out;
  }

  ControllerHarness h_;
  std::map<std::string, RedactedNode> nodes_;
  std::vector<std::string> done_;
  std::set<std::string> lists_;  ///< that agents were given
};

}  // namespace verger::test
