#include "controller/operations/backup/repository_work.h"

#include <fmt/format.h>

namespace verger::controller::backups {

using nlohmann::json;
using steps::int_parameter;
using steps::OperationNews;
using steps::parsed_or_empty;
using steps::running;
using steps::text_parameter;
using steps::verdict;

namespace {

/// Without one the cause of a conflict is not over by waiting, and must not repeat for ever.
bool scavenge_is_seen(const StepContext& context) {
  const auto* node = context.node();
  return node != nullptr && node->scavenge_running.value_or(false);
}

}  // namespace

net::awaitable<Verdict> RepositoryWork::observe(StepContext context) {
  const auto operation = context.state.operation;
  const auto news = co_await steps::ask_agent(context, operation);
  switch (news.kind) {
    case OperationNews::Kind::kUnderWay:
      co_return running(news.progress.empty() ? json{{"phase", "at work"}} : news.progress);
    case OperationNews::Kind::kUnknown:
      co_return verdict(Verdict::Kind::kUnknown, news.reason);
    case OperationNews::Kind::kNotArrived:
      co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
    case OperationNews::Kind::kFailed:
      if (news.code == "stopped") {
        co_return verdict(Verdict::Kind::kStopped,
                          context.state.interrupting ? "stopped-by-us" : "stopped-by-someone",
                          "it was stopped; what was stored is known again");
      }
      if (news.code == api::kSourceBusyCode && scavenge_is_seen(context)) {
        // Nothing was kept: the step goes back to its gates, which wait for that one, at no cost.
        co_return verdict(Verdict::Kind::kStopped, news.code, news.reason);
      }
      co_return steps::judge_failed(news);
    case OperationNews::Kind::kDone:
      break;
  }
  co_return judge_done(context, news.result_text);
}

bool RepositoryWork::can_interrupt(const StepContext& context, Interrupt why) const {
  return steps::policy_lets_stop(context.step, why);
}

net::awaitable<void> RepositoryWork::interrupt(StepContext context) {
  const auto peers = context.peers;
  const auto node = context.step.node;
  const auto operation = context.state.operation;
  static_cast<void>(co_await peers->cancel_operation(node, operation));
}

void take_target(const StepContext& context, api::BackupTarget& target) {
  target.repository = text_parameter(context.step, "repository");
  target.repository_id = text_parameter(context.step, "repositoryId");
  target.throttle_percent =
      static_cast<std::int32_t>(int_parameter(context.step, "throttlePercent", 100));
  target.bytes_per_second = int_parameter(context.step, "bytesPerSecond", 0);
}

std::string generation_of(const StepContext& context) {
  const auto made = text_parameter(context.step, "made");
  if (made.empty()) {
    return text_parameter(context.step, "generation");
  }
  const auto found = context.values.find(std::string(names::kMadeValue) + made);
  return found == context.values.end()
             ? std::string()
             : parsed_or_empty(found->second).value("generation", std::string());
}

std::string by_of(const StepContext& context) {
  return fmt::format("vergerd, run {}", context.run);
}

std::optional<bool> passed(const StepContext& context, std::string_view prefix,
                           std::string_view generation) {
  const auto found = context.values.find(fmt::format("{}{}", prefix, generation));
  return found == context.values.end()
             ? std::nullopt
             : std::optional(parsed_or_empty(found->second).value("passed", false));
}

void keep_passed(Verdict& verdict, std::string_view prefix, std::string_view generation,
                 bool passed) {
  verdict.values[fmt::format("{}{}", prefix, generation)] = json{{"passed", passed}}.dump();
}

Verdict unreadable_result(const Error& error) {
  return verdict(Verdict::Kind::kNotHappened, "unreadable-result",
                 fmt::format("its agent's answer cannot be read: {}", error.message));
}

}  // namespace verger::controller::backups
