#include "nodeagent/operations/server_return.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/external/offline_server.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// A start command returns some time before the server has its files open.
constexpr std::chrono::seconds kShortestPause{30};
constexpr std::chrono::seconds kLongestStartPause{300};

/// A server that cuts its log ends by itself after its start, from 24.6 twice
/// (node-interface.md §3.8): each time it is started again this long after its end was seen, so
/// that a service manager that does so as well may come first. One that ends more often fails, and
/// the pauses grow.
constexpr std::chrono::seconds kAfterItsEnd{2};
constexpr std::int64_t kEndsOfTruncation = 2;

/// What the memory says of a server that does not answer. Times are wall-clock ticks: they outlive
/// the agent.
struct Down {
  std::int64_t since = 0;
  std::int64_t starts = 0;
  std::int64_t next_start = 0;  ///< not before
  bool opened = false;          ///< since the last start a process had the files open
  std::int64_t ends = 0;        ///< of such processes, as far as they were seen
  std::string error{};          ///< of the last start

  static Down read(const json& memory, std::int64_t now) {
    const auto stored = memory.value("down", json::object());
    Down out{.since = stored.value("since", now),
             .starts = stored.value("starts", std::int64_t{0}),
             .next_start = stored.value("next_start", std::int64_t{0}),
             .opened = stored.value("opened", false),
             .ends = stored.value("ends", std::int64_t{0}),
             .error = stored.value("error", std::string())};
    if (out.since > now) {  // the clock was set back
      out.since = now;
      out.next_start = 0;
    }
    return out;
  }
  void write(json& memory) const {
    memory["down"] = {{"since", since},   {"starts", starts}, {"next_start", next_start},
                      {"opened", opened}, {"ends", ends},     {"error", error}};
  }
  void count_start(std::int64_t now) {
    const auto pause =
        std::min(kShortestPause * (1 << std::min<std::int64_t>(starts, 8)), kLongestStartPause);
    ++starts;
    opened = false;
    next_start = now + std::chrono::seconds(pause).count() * kTicksPerSecond;
  }
  /// A look at the files. `now`: ticks.
  void see(bool open, std::int64_t now) {
    if (open) {
      opened = starts > 0;
    } else if (opened) {
      opened = false;
      ++ends;
      if (ends <= kEndsOfTruncation) {
        next_start = std::min(next_start, now + kAfterItsEnd.count() * kTicksPerSecond);
      }
    }
  }
};

void journal_now(const LocalNode& node, const json& memory) {
  if (node.remember) {
    node.remember(memory.dump());
  }
}

}  // namespace

Result<std::chrono::milliseconds> service_deadline(const OperationRecord& record) {
  const auto asked = json::parse(record.request.parameters_json, nullptr, false);
  const auto deadline = asked.is_object()
                            ? asked.value(kServiceDeadlineParameter, json(kServiceDeadline.count()))
                            : json();
  if (!deadline.is_number_integer() || deadline < 1) {
    return Error{Errc::kInvalidArgument, "serviceDeadlineMs must be 1 or more"};
  }
  return std::chrono::milliseconds(deadline.get<std::int64_t>());
}

Result<void> needs_service_control(const LocalNode& node) {
  if (node.offline == nullptr || !node.offline->configured()) {
    return Error{Errc::kUnsupported,
                 "the agent has no way to start and stop its server (--service-unit, or "
                 "--start-command and --stop-command)"};
  }
  return {};
}

net::awaitable<Result<void>> start_server(LocalNode node, json& memory) {
  const auto before = memory;
  const auto now = node.clock.now().value();
  Down down{.since = now};
  down.count_start(now);
  down.write(memory);
  journal_now(node, memory);
  auto started = co_await node.offline->start();
  if (!started) {
    memory = before;
  }
  co_return started;
}

net::awaitable<Observation> await_server(LocalNode node, json& memory,
                                         std::chrono::milliseconds deadline) {
  const auto looked = node.clock.now().value();
  auto down = Down::read(memory, looked);
  const auto waited = (looked - down.since) / kTicksPerSecond;
  const auto free = co_await node.offline->files_are_free();
  std::string text;
  if (free) {
    down.see(!*free, node.clock.now().value());
  }
  if (!free) {
    text = free.error().message;
  } else if (!*free) {
    text = down.starts > 0 ? fmt::format("the server is starting ({} s)", waited)
                           : fmt::format("the server is shutting down ({} s)", waited);
  } else if (node.clock.now().value() >= down.next_start) {
    down.count_start(node.clock.now().value());
    down.write(memory);
    journal_now(node, memory);
    const auto started = co_await node.offline->start();
    down.error = started ? std::string() : started.error().message;
  }
  if (text.empty()) {
    text = down.error.empty()
               ? fmt::format("the server is starting ({} s)", waited)
               : fmt::format("the server is stopped and does not start: {}", down.error);
  }
  down.write(memory);
  if (std::chrono::seconds(waited) >= deadline) {
    co_return Observation{
        .kind = Observation::Kind::kFailed,
        .code = "no_answer",
        .text = fmt::format("the server has not answered for {} s and {} starts; the last that was "
                            "seen: {}. Start it by hand, and see its log",
                            waited, down.starts, text)};
  }
  const bool trouble = !free || !down.error.empty();
  co_return Observation{.kind = trouble ? Observation::Kind::kUnknown : Observation::Kind::kRunning,
                        .code = {},
                        .text = std::move(text)};
}

}  // namespace verger::agent
