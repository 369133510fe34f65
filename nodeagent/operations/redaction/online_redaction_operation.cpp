#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <boost/asio/this_coro.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "nodeagent/external/online_access.h"
#include "nodeagent/operations/jobs/beside_server_operation.h"
#include "nodeagent/operations/redaction/noted_texts.h"
#include "nodeagent/operations/redaction/online_redaction_job.h"
#include "nodeagent/operations/redaction/redaction_look.h"
#include "nodeagent/operations/redaction/redaction_operations.h"
#include "nodeagent/redaction/online_redaction.h"

namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kLockDeadline = "lockDeadlineMs";
constexpr milliseconds kUsualLockDeadline{600'000};
constexpr milliseconds kFirstWait{1'000};
constexpr milliseconds kLongestWait{5'000};
/// How long in all a server that went away in the middle may take to be back, as one that was
/// killed: the texts are known all the while.
constexpr milliseconds kReturnLimit{600'000};
/// How long readers of the server may hold a file that was replaced.
constexpr milliseconds kHeldLimit{120'000};

struct OnlineRedactionParameters {
  std::vector<redaction::ListedRedaction> list;
  milliseconds lock_deadline = kUsualLockDeadline;
};

Result<OnlineRedactionParameters> online_redaction_parameters_of(const OperationRecord& record) {
  OnlineRedactionParameters out;
  VERGER_TRY(out.list, list_in(record));
  const auto asked = json::parse(record.request.parameters_json, nullptr, false);
  const auto deadline = asked.value(kLockDeadline, json(kUsualLockDeadline.count()));
  if (!deadline.is_number_integer() || deadline.get<std::int64_t>() < 0) {
    return Error{Errc::kInvalidArgument,
                 "parameters of online_redaction: \"lockDeadlineMs\" must be a number of "
                 "milliseconds"};
  }
  out.lock_deadline = milliseconds(deadline.get<std::int64_t>());
  return out;
}

/// Waits a while, longer each time.
class OnlineBackOff {
 public:
  explicit OnlineBackOff(http::Timers& timers) : timers_(timers) {}
  net::awaitable<void> wait(std::shared_ptr<JobControl> control) {
    // In pieces, so that a cancellation counts at once.
    for (milliseconds waited{0}; waited < next_ && !control->stopping(); waited += kFirstWait) {
      co_await timers_.sleep_for(kFirstWait);
      total_ += kFirstWait;
    }
    next_ = std::min(next_ * 2, kLongestWait);
  }
  [[nodiscard]] milliseconds total() const { return total_; }

 private:
  http::Timers& timers_;
  milliseconds next_ = kFirstWait;
  milliseconds total_{0};
};

Error online_stopped() { return {Errc::kCancelled, "the redaction was stopped"}; }

using HeldLock = std::shared_ptr<client::HeldChunkLock>;

/// A scavenge of the server, or another redaction, may have it for long.
net::awaitable<Result<HeldLock>> wait_for_lock(LocalNode node,
                                               std::shared_ptr<client::RedactionClient> client,
                                               milliseconds deadline) {
  const auto control = node.control;
  OnlineBackOff back_off(node.timers);
  while (!control->stopping()) {
    auto got = co_await client->lock();
    if (got.done()) {
      co_return HeldLock(std::move(*got.value));
    }
    if (got.code != "chunk_lock_held") {
      co_return client::to_error(got.verdict, got.code, got.why);
    }
    if (back_off.total() >= deadline) {
      co_return Error{Errc::kTimeout,
                      fmt::format("waited {} s for the chunk lock of the server: {}; nothing was "
                                  "changed",
                                  back_off.total().count() / 1'000, got.why)};
    }
    control->report({.phase = "waiting for the chunk lock, which a scavenge of the server or "
                              "another redaction has"});
    co_await back_off.wait(control);
  }
  co_return online_stopped();
}

class OnlineRedactionOperation final : public BesideServerOperation {
 public:
  explicit OnlineRedactionOperation(std::shared_ptr<NotedTextStore> texts)
      : texts_(std::move(texts)) {}
  [[nodiscard]] std::string_view kind() const override { return "online_redaction"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {kListMember, kLockDeadline, kThrottleParameter, kBytesParameter};
  }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(co_await BesideServerOperation::look(node, record));
    const auto problem = node.online == nullptr ? std::string("this agent is not set up for it")
                                                : node.online->look().problem;
    if (!problem.empty()) {
      co_return Error{Errc::kRefused,
                      fmt::format("not redacted while the server runs: {}", problem)};
    }
    co_return Result<void>();
  }

 protected:
  Result<void> check(node::NodeInspection& /*inspection*/, const OperationRecord& record) override {
    VERGER_RETURN_IF_ERROR(online_redaction_parameters_of(record));
    return {};
  }

  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node, node::NodeInspection& /*inspection*/,
                                               const OperationRecord& record) override {
    if (node.online == nullptr) {
      return Error{Errc::kRefused, "this agent is not set up for it"};
    }
    VERGER_TRY(auto asked, online_redaction_parameters_of(record));
    return std::shared_ptr<MeteredJob>(std::make_shared<OnlineRedactionJob>(
        node.online->place(), node.online->machine(), std::move(asked.list), texts_));
  }

  net::awaitable<Result<void>> run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                   const OperationRecord& record) override {
    const auto work = std::dynamic_pointer_cast<OnlineRedactionJob>(job);
    VERGER_CO_TRY(const auto asked, online_redaction_parameters_of(record));
    // The lock goes with the connection, and each chunk file is the former or the redacted one:
    // what is left is found anew.
    OnlineBackOff back_off(node.timers);
    const auto report = std::make_shared<online::OnlineReport>();
    const auto executor = co_await net::this_coro::executor;
    for (bool first = true;; first = false) {
      const auto client = node.online->connect(executor);
      const auto redacted =
          client ? co_await redact_once(node, work, *client, report, asked.lock_deadline)
                 : Result<void>(client.error());
      if (redacted) {
        break;
      }
      const auto code = redacted.error().code;
      const bool is_away =
          code == Errc::kUnavailable || code == Errc::kUnknownOutcome || (!client && !first);
      if (!is_away || back_off.total() >= kReturnLimit || node.control->stopping()) {
        co_return redacted.error();
      }
      node.log.warning("the redaction begins again with a new connection",
                       {{"reason", redacted.error().message}});
      node.control->report({.phase = "waiting for the server, whose connection was lost"});
      co_await back_off.wait(node.control);
    }
    // Also what was switched when the answer was lost.
    auto& result = work->result();
    result.blanked = result.records - result.already;
    if (!work->has_texts()) {
      co_return Result<void>();
    }
    work->begin_search();
    VERGER_CO_RETURN_IF_ERROR(co_await run_paced(node, work));
    co_return co_await search_held(node, work);
  }

  std::string result_of(const MeteredJob& job) override {
    return to_json(dynamic_cast<const OnlineRedactionJob&>(job).result())
        .dump(-1, ' ', false, json::error_handler_t::replace);
  }

 private:
  net::awaitable<Result<void>> redact_once(LocalNode node, std::shared_ptr<OnlineRedactionJob> work,
                                           std::shared_ptr<client::RedactionClient> client,
                                           std::shared_ptr<online::OnlineReport> report,
                                           milliseconds lock_deadline) {
    const auto control = node.control;
    VERGER_CO_TRY(const auto lock, co_await wait_for_lock(node, client, lock_deadline));
    // From here on no scavenge begins: what is found stays where it is.
    work->begin_look();
    VERGER_CO_RETURN_IF_ERROR(co_await run_paced(node, work));
    auto redacted = Result<void>();
    if (!work->events().empty()) {
      redacted = co_await online::redact_while_locked(
          client, lock,
          {.directory = node.online->place().database,
           .events = work->events(),
           .metadata = work->metadata(),
           .positions = work->positions(),
           .former_may_stay = true},  // the search reads it, and the texts are known here alone
          {.files = node.online->machine().files,
           .random = node.online->machine().random,
           .jobs = *node.jobs,
           .timers = node.timers,
           .log = node.log,
           .progress =
               [control](std::size_t done, std::size_t total) {
                 control->report({.phase = "redacting",
                                  .done = static_cast<std::int64_t>(done),
                                  .total = static_cast<std::int64_t>(total),
                                  .unit = "chunk files"});
               }},
          report, control->stop_flag());
    }
    take(*report, work->result());
    if (!redacted) {
      co_return redacted;
    }
    VERGER_CO_RETURN_IF_ERROR(co_await read_back(client, work));
    if (const auto released = co_await lock->release(); !released.done()) {
      node.log.warning("the chunk lock was not given back in order", {{"reason", released.why}});
    }
    co_return Result<void>();
  }

  static void take(online::OnlineReport& report, RedactionResult& into) {
    std::ranges::move(std::exchange(report.chunks, {}), std::back_inserter(into.chunks));
    std::ranges::move(std::exchange(report.removed, {}), std::back_inserter(into.removed));
  }

  /// As a reader sees them: a redacted event has no data.
  static net::awaitable<Result<void>> read_back(std::shared_ptr<client::RedactionClient> client,
                                                std::shared_ptr<OnlineRedactionJob> work) {
    const auto events = work->events();
    std::vector<client::EventToFind> wanted;
    wanted.reserve(events.size());
    for (const auto& event : events) {
      wanted.push_back({.stream = event.stream, .number = event.number});
    }
    VERGER_CO_TRY(const auto sizes,
                  client::to_result(co_await client->data_sizes(std::move(wanted))));
    work->result().read_back = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].value_or(0) > 0) {
        co_return Error{
            Errc::kCorruption,
            fmt::format("{}: the server still gives readers {} bytes of it",
                        redaction::name_of(events[i].stream, events[i].number), *sizes[i])};
      }
      work->result().read_back += sizes[i] ? 1U : 0U;
    }
    co_return Result<void>();
  }

  /// Readers of the server may have the former files open for a while.
  net::awaitable<Result<void>> search_held(LocalNode node,
                                           std::shared_ptr<OnlineRedactionJob> work) const {
    OnlineBackOff back_off(node.timers);
    while (true) {
      work->begin_held();
      VERGER_CO_RETURN_IF_ERROR(co_await run_paced(node, work));
      if (work->held().empty() || back_off.total() >= kHeldLimit) {
        co_return Result<void>();
      }
      if (node.control->stopping()) {
        co_return online_stopped();
      }
      node.control->report({.phase = "waiting until removed files are closed"});
      co_await back_off.wait(node.control);
    }
  }

  std::shared_ptr<NotedTextStore> texts_;
};

}  // namespace

std::unique_ptr<Operation> make_online_redaction_operation(std::shared_ptr<NotedTextStore> texts) {
  return std::make_unique<OnlineRedactionOperation>(std::move(texts));
}

}  // namespace verger::agent
