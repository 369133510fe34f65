#include "nodeagent/operations/resize/size_operations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "nodeagent/client/judge.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/heal/drop_filter_job.h"
#include "nodeagent/operations/jobs/job_control.h"
#include "nodeagent/operations/resign_first.h"
#include "nodeagent/operations/server_return.h"
#include "nodeagent/operations/waiting_limit.h"

namespace verger::agent {
namespace {

using nlohmann::json;
using Kind = Observation::Kind;
using Side = ServerConfigFile::Side;

/// Of the memory: the server is being restarted, or was.
constexpr const char* kRestarted = "restarted";
/// Of the memory: why it was not done, and the code.
constexpr const char* kWhy = "error";
constexpr const char* kWhyCode = "code";

/// For a server that answers, to say what its size is.
constexpr std::chrono::seconds kReportLimit{60};

Observation size_outcome(Observation::Kind kind, std::string code, std::string text) {
  return {.kind = kind, .code = std::move(code), .text = std::move(text)};
}

/// The bracket: resign, stop, another file, start, and see what the server reports.
class SizeOperation : public Operation {
 public:
  explicit SizeOperation(std::shared_ptr<ServerConfigFile> file) : file_(std::move(file)) {}
  [[nodiscard]] bool works_on_files() const final { return true; }
  [[nodiscard]] bool blocks_shutdown() const final { return true; }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) final {
    VERGER_CO_TRY(const auto needed, co_await needs_restart(node, record));
    if (!needed) {
      co_return Result<void>();
    }
    VERGER_CO_TRY(const auto deadline, service_deadline(record));
    VERGER_CO_RETURN_IF_ERROR(keep(record));
    auto memory = memory_of(record);
    memory[kRestarted] = true;
    record.memory_json = memory.dump();
    if (node.remember) {
      node.remember(record.memory_json);
    }
    VERGER_FAILPOINT("agent.server-size.before-stop");
    co_await resign_first(node);
    // Nothing of this agent starts it in between; the deadline is that of a stop.
    auto held = node.offline->hold_files();
    auto worked = co_await node.offline->stop(deadline, node.control->stop_flag());
    if (worked) {
      VERGER_FAILPOINT("agent.server-size.stopped");
      worked = put(record);
    }
    if (worked) {
      co_await drop_filter_if_asked(node, record);
    }
    held.reset();
    if (!worked && worked.error().code != Errc::kCancelled) {
      memory[kWhy] = worked.error().message;
      memory[kWhyCode] = std::string(to_string(worked.error().code));
    }
    VERGER_FAILPOINT("agent.server-size.before-start");
    const auto free = co_await node.offline->files_are_free();
    if (free && *free) {
      static_cast<void>(co_await start_server(node, memory));  // observe() tries again
    }
    VERGER_FAILPOINT("agent.server-size.started");
    record.memory_json = memory.dump();
    co_return Result<void>();
  }

  net::awaitable<bool> cancel(LocalNode node, OperationRecord& /*record*/, bool keep) final {
    node.control->cancel(keep);
    co_return true;
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) final {
    if (node.offline == nullptr) {
      co_return size_outcome(Kind::kUnknown, {},
                             "the agent no longer knows how to start its server");
    }
    auto memory = memory_of(record);
    if (node.inspection() == nullptr && node.control->cancelled()) {
      co_return size_outcome(Kind::kFailed, "stopped", "it was stopped before the server answered");
    }
    if (node.inspection() == nullptr) {
      auto seen =
          co_await await_server(node, memory, service_deadline(record).value_or(kServiceDeadline));
      record.memory_json = memory.dump();
      co_return seen;
    }
    const auto settings = client::to_result(co_await node.client.settings());
    if (!settings || settings->cluster_size == 0) {
      const auto why = settings ? std::string("the server does not report its cluster size")
                                : settings.error().message;
      co_return waited_longer_than(kReportLimit, node.clock.now(), record)
          ? size_outcome(Kind::kFailed, "no_answer", why)
          : size_outcome(Kind::kUnknown, {}, why);
    }
    const auto side = file_->side(change_of(record));
    if (!side) {
      co_return size_outcome(Kind::kUnknown, {}, side.error().message);
    }
    const auto* running = node.inspection();
    if (running == nullptr) {
      co_return size_outcome(Kind::kRunning, {}, "the server ended meanwhile");
    }
    co_return judge(record, *side,
                    {.size = settings->cluster_size,
                     .instance = running->instance_id(),
                     .seeds = seeds_of(memory),
                     .restarted = memory.value(kRestarted, false)});
  }

 protected:
  [[nodiscard]] virtual std::string change_of(const OperationRecord& record) const = 0;
  virtual net::awaitable<Result<bool>> needs_restart(LocalNode node, OperationRecord& record) = 0;
  /// Before the server is touched.
  virtual Result<void> keep(const OperationRecord& /*record*/) { return {}; }
  /// While it is stopped.
  virtual Result<void> put(const OperationRecord& record) = 0;
  /// Of a server that answers.
  virtual Observation judge(const OperationRecord& record, Side side,
                            api::ServerSizeChanged seen) = 0;

  static std::string seeds_of(const json& memory) { return memory.value("seeds", std::string()); }
  /// Of an operation that was not done.
  static Observation not_done(const OperationRecord& record, std::string_view otherwise) {
    const auto memory = memory_of(record);
    const auto why = memory.value(kWhy, std::string());
    return why.empty()
               ? size_outcome(Kind::kNotHappened, {}, std::string(otherwise))
               : size_outcome(Kind::kFailed, memory.value(kWhyCode, std::string("io")), why);
  }
  std::shared_ptr<ServerConfigFile> file_;
};

class ServerSizeOperation final : public SizeOperation {
 public:
  using SizeOperation::SizeOperation;
  [[nodiscard]] std::string_view kind() const override { return api::kServerSizeKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    auto out = api::server_size_parameters();
    out.push_back(kHealFilterParameter);
    return out;
  }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto asked, api::parse_server_size(record.request.parameters_json));
    VERGER_CO_RETURN_IF_ERROR(heals_filter(record));
    VERGER_CO_RETURN_IF_ERROR(needs_service_control(node));
    const auto seen = co_await ServerConfigFile::look(file_, node.client);
    VERGER_CO_TRY(const auto side, file_->side(asked.change));
    // What an attempt before this one has left counts as its own.
    if (side != Side::kAfter && !seen.problem.empty()) {
      co_return Error{Errc::kConflict, seen.problem};
    }
    if (side != Side::kAfter && seen.cluster_size != asked.from) {
      co_return Error{Errc::kConflict, fmt::format("{}: ClusterSize is {}, not {}", seen.path,
                                                   seen.cluster_size, asked.from)};
    }
    auto memory = json::object();
    memory["seeds"] = !seen.seeds_from.empty() ? "given by " + seen.seeds_from
                      : seen.seeds.empty()     ? std::string("not in the file")
                                               : std::string("changed");
    record.memory_json = memory.dump();
    co_return Result<void>();
  }

 protected:
  [[nodiscard]] std::string change_of(const OperationRecord& record) const override {
    const auto asked = api::parse_server_size(record.request.parameters_json);
    return asked ? asked->change : std::string();
  }
  net::awaitable<Result<bool>> needs_restart(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto asked, api::parse_server_size(record.request.parameters_json));
    VERGER_CO_TRY(const auto side, file_->side(asked.change));
    if (side != Side::kAfter) {
      co_return true;
    }
    const auto settings = client::to_result(co_await node.client.settings());
    co_return !settings || settings->cluster_size != asked.to;
  }
  Result<void> keep(const OperationRecord& record) override {
    VERGER_TRY(const auto asked, api::parse_server_size(record.request.parameters_json));
    return file_->keep(asked);
  }
  Result<void> put(const OperationRecord& record) override {
    return file_->put(change_of(record), /*after=*/true);
  }

  Observation judge(const OperationRecord& record, Side side,
                    api::ServerSizeChanged seen) override {
    const auto asked = api::parse_server_size(record.request.parameters_json);
    const auto to = asked ? asked->to : 0;
    if (side == Side::kAfter && seen.size == to) {
      return size_outcome(Kind::kDone, {}, api::to_text(seen));
    }
    if (side == Side::kAfter) {
      // Something else than the file says how large the cluster is, or something else has started
      // the server before the file was changed: it runs as before, and so is the file.
      const auto back = file_->put(asked->change, /*after=*/false);
      return size_outcome(
          Kind::kFailed, "no_effect",
          fmt::format("the server was restarted with ClusterSize {} in its file, and "
                      "reports {}: {}",
                      to, seen.size,
                      back ? "the former file is in place again" : back.error().message));
    }
    return not_done(record, "the agent ended before the file was changed");
  }
};

class ServerSizeRestoreOperation final : public SizeOperation {
 public:
  using SizeOperation::SizeOperation;
  [[nodiscard]] std::string_view kind() const override { return api::kServerSizeRestoreKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return api::server_size_restore_parameters();
  }
  /// An undo.
  [[nodiscard]] bool needs_own_directories() const override { return false; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY([[maybe_unused]] const auto asked,
                  api::parse_server_size_restore(record.request.parameters_json));
    co_return needs_service_control(node);
  }

 protected:
  [[nodiscard]] std::string change_of(const OperationRecord& record) const override {
    const auto asked = api::parse_server_size_restore(record.request.parameters_json);
    return asked ? asked->change : std::string();
  }
  /// Where the file is the former one the server was perhaps not started with it yet.
  net::awaitable<Result<bool>> needs_restart(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto side, file_->side(change_of(record)));
    if (side == Side::kForeign) {
      co_return Error{Errc::kConflict,
                      "the server's configuration file was changed by someone else meanwhile, and "
                      "is left as it is"};
    }
    if (side != Side::kBefore) {
      co_return side == Side::kAfter;
    }
    const auto seen = co_await ServerConfigFile::look(file_, node.client);
    co_return seen.reported != 0 && seen.reported != seen.cluster_size;
  }
  Result<void> put(const OperationRecord& record) override {
    return file_->put(change_of(record), /*after=*/false);
  }

  Observation judge(const OperationRecord& record, Side side,
                    api::ServerSizeChanged seen) override {
    if (side == Side::kForeign) {
      return size_outcome(
          Kind::kFailed, "conflict",
          "the server's configuration file was changed by someone else meanwhile, and is "
          "left as it is");
    }
    if (side == Side::kAfter) {
      return not_done(record, "the agent ended before the former file was in place");
    }
    const auto size = file_->size();
    if (side == Side::kBefore && size && *size != seen.size) {
      return not_done(record, "the former file is in place, and the server runs with the other");
    }
    return size_outcome(Kind::kDone, {}, api::to_text(seen));
  }
};

}  // namespace

std::unique_ptr<Operation> make_server_size_operation(std::shared_ptr<ServerConfigFile> file) {
  return std::make_unique<ServerSizeOperation>(std::move(file));
}
std::unique_ptr<Operation> make_server_size_restore_operation(
    std::shared_ptr<ServerConfigFile> file) {
  return std::make_unique<ServerSizeRestoreOperation>(std::move(file));
}

std::vector<std::unique_ptr<Operation>> size_operations(
    const std::shared_ptr<ServerConfigFile>& file) {
  std::vector<std::unique_ptr<Operation>> out;
  out.push_back(make_server_size_operation(file));
  out.push_back(make_server_size_restore_operation(file));
  return out;
}

}  // namespace verger::agent
