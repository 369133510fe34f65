#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
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

inline constexpr std::string_view kAda =
    "Ada Lovelace, St James's Square 12, London, born 1815-12-10";
inline constexpr std::string_view kErika =
    "Erika Mustermann, Heidestrasse 17, 51147 Koeln, born 1964";
inline constexpr std::string_view kActive =
    "Alan Turing, Adlington Road 43, Wilmslow, born 1912-06-23";

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
inline testing::SimHost* online_dying_host = nullptr;  // NOLINT: of one test at a time
inline std::string online_dies_at;                     // NOLINT
inline std::vector<std::string> passed_points;         // NOLINT

inline void die_online(std::string_view name) {
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

  /// What the agent keeps of the texts.
  std::vector<std::string> noted_files() {
    std::vector<std::string> out;
    const auto there = host_.disk().exists("/agent/redaction");
    if (there && *there) {
      for (const auto& entry : value(host_.disk().list("/agent/redaction"))) {
        out.push_back(entry.name);
      }
    }
    return out;
  }

  CopiedNode node_{"/db"};
  SeededRandom random_{7};
  ModelServer server_{.files = host_.disk()};
  std::unique_ptr<ModelAccess> access_;
};

}  // namespace verger::agent
