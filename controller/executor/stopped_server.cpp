#include "controller/executor/stopped_server.h"

#include <fmt/format.h>

#include "nodeagent/http/message.h"

namespace verger::controller::steps {

using nlohmann::json;

namespace {

constexpr const char* kStartCommand = "start_command";

/// For the shell of another machine, which reads it once more: quoted where it is more than words.
std::string for_remote_shell(const std::string& command) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 @%+=:,./_-";
  if (command.find_first_not_of(kPlain) == std::string::npos) {
    return command;
  }
  std::string out = "'";
  for (const char c : command) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

}  // namespace

net::awaitable<void> note_start_command(const StepContext& context, json& memo) {
  if (memo.contains(kStartCommand)) {
    co_return;
  }
  const auto peers = context.peers;
  const auto node = context.step.node;
  const auto facts = co_await peers->facts(node);
  if (facts && !facts->start_command.empty()) {
    memo[kStartCommand] = facts->start_command;
  }
}

std::string start_server_command(const StepContext& context) {
  const auto* node = context.node();
  const auto agent = node == nullptr ? Result<http::Endpoint>(Error{Errc::kNotFound, ""})
                                     : http::parse_endpoint(node->agent_url);
  const auto host = agent ? agent->host : context.step.node;
  const auto start = context.state.memo->value(kStartCommand, std::string());
  return start.empty()  // an agent of a former version
             ? fmt::format(
                   "ssh {} systemctl start eventstore  # the unit is ServiceUnit of its agent",
                   host)
             : fmt::format("ssh {} {}", host, for_remote_shell(start));
}

net::awaitable<ActAnswer> start_server(const StepContext& context) {
  co_return co_await act_through_agent(context, "start_service", json::object());
}

net::awaitable<Verdict> observe_start(const StepContext& context) {
  const auto* node = context.node();
  if (node != nullptr && node->answered && node->alive) {
    co_return done(json::object());
  }
  const auto operation = context.state.undo_operation;
  const auto news = co_await ask_agent(context, operation);
  switch (news.kind) {
    case OperationNews::Kind::kNotArrived:
      co_return verdict(Verdict::Kind::kNotHappened, "the agent never got it");
    case OperationNews::Kind::kFailed:
      co_return verdict(Verdict::Kind::kNotHappened, fmt::format("{}: {}", news.code, news.reason));
    case OperationNews::Kind::kUnderWay:
    case OperationNews::Kind::kUnknown:
    case OperationNews::Kind::kDone:
      break;
  }
  co_return verdict(Verdict::Kind::kRunning, "the node does not answer yet");
}

}  // namespace verger::controller::steps
