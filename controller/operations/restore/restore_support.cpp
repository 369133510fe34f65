#include "controller/operations/restore/restore_support.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "controller/executor/stopped_server.h"
#include "controller/operations/report_support.h"
#include "nodeagent/http/message.h"

namespace verger::controller::cluster_restore {

using nlohmann::json;
using steps::OperationNews;

namespace {

constexpr const char* kDirectory = "directory";  ///< of the database, in a memo

}  // namespace

bool of_whole_cluster(const planner::Step& step) {
  return steps::text_parameter(step, "scope") == "cluster";
}

std::string committed_value(const planner::Step& step) {
  return of_whole_cluster(step) ? std::string(names::kCommittedValue)
                                : fmt::format("{}/{}", names::kCommittedValue, step.node);
}

bool is_committed(const StepContext& context) {
  return context.values.contains(committed_value(context.step));
}

net::awaitable<ActAnswer> act_on_server(StepContext context, std::string kind, json parameters) {
  for (auto& node : context.snapshot.nodes) {
    if (node.name == context.step.node) {
      node.instance_id.clear();
      if (!node.answered) {
        context.step.gates.clear();
      }
    }
  }
  co_return co_await steps::act_through_agent(context, std::move(kind), std::move(parameters));
}

std::optional<Verdict> unless_done(const StepContext& context, const OperationNews& news,
                                   std::string_view phase) {
  switch (news.kind) {
    case OperationNews::Kind::kDone:
      return std::nullopt;
    case OperationNews::Kind::kNotArrived:
      return steps::verdict(Verdict::Kind::kNotArrived, "the agent never got it");
    case OperationNews::Kind::kUnderWay:
      return steps::running(news.progress.empty() ? json{{"phase", phase}} : news.progress);
    case OperationNews::Kind::kUnknown:
      return steps::verdict(Verdict::Kind::kUnknown, news.reason);
    case OperationNews::Kind::kFailed:
      break;
  }
  if (news.code == "stopped") {
    // An attempt all the same, which has to be undone: it has copied files, or its server is on its
    // way down.
    return steps::verdict(Verdict::Kind::kNotHappened,
                          context.state.interrupting ? "stopped-by-us" : "stopped-by-someone",
                          "it was stopped");
  }
  return steps::judge_failed(news);
}

net::awaitable<std::expected<api::OperationStatus, Verdict>> undo_by_agent(
    const StepContext& context, std::string_view under_way) {
  const auto not_undone = [](Verdict::Kind kind, std::string reason) {
    return std::unexpected(steps::verdict(kind, std::move(reason)));
  };
  const auto operation = context.state.undo_operation;
  auto status = co_await context.peers->operation(context.step.node, operation);
  if (!status) {
    co_return status.error().code == Errc::kNotFound
        ? not_undone(Verdict::Kind::kNotHappened, "the agent never got it")
        : not_undone(Verdict::Kind::kRunning, status.error().message);
  }
  switch (status->state) {
    case api::OperationState::kFailed:
    case api::OperationState::kCancelled:
      co_return not_undone(Verdict::Kind::kNotHappened,
                           fmt::format("{}: {}", status->error_code, status->error));
    case api::OperationState::kAccepted:
    case api::OperationState::kActing:
    case api::OperationState::kUnknown:
      co_return not_undone(Verdict::Kind::kRunning, std::string(under_way));
    case api::OperationState::kDone:
      break;
  }
  co_return *std::move(status);
}

bool is_seen_stopped(const planner::NodeSnapshot& node) {
  return node.agent_answered && node.stopped && !node.answered;
}

std::string why_not_seen_stopped(const planner::NodeSnapshot* node, const std::string& name) {
  if (node == nullptr) {
    return fmt::format("{} is no longer registered", name);
  }
  if (is_seen_stopped(*node)) {
    return {};
  }
  if (node->answered) {
    return fmt::format("{} runs", name);
  }
  return fmt::format("{} is not seen stopped: {}", name,
                     node->agent_problem.empty() ? "its agent does not tell" : node->agent_problem);
}

std::string runs_again(const StepContext& context) {
  std::vector<const planner::NodeSnapshot*> concerned{context.node()};
  if (of_whole_cluster(context.step)) {
    for (const auto& node : context.snapshot.nodes) {
      concerned.push_back(&node);
    }
  }
  for (const auto* node : concerned) {
    if (node != nullptr && node->answered) {
      return fmt::format(
          "{} runs, although it was stopped: something starts it by itself, such as a service "
          "manager or an operator; see to it that nothing does, and begin anew",
          node->name);
    }
  }
  return {};
}

bool has_committed(const planner::NodeSnapshot& node, const planner::NodeSnapshot& leader) {
  return node.writer_checkpoint > leader.last_commit_position ||
         (node.writer_checkpoint >= leader.writer_checkpoint && node.writer_checkpoint >= 0);
}

std::string lacks_committed(const StepContext& context) {
  const auto* own = context.node();
  const auto* leader = context.snapshot.leader();
  if (own == nullptr || own->read_only_replica) {
    return {};
  }
  if (leader == nullptr) {
    return "there is no leader that says what is committed";
  }
  const auto committed = leader->last_commit_position;
  // A new leader may not know yet that what it has was committed under the former one. Who has its
  // epoch has all that came before it.
  const auto having = static_cast<std::size_t>(
      std::ranges::count_if(context.snapshot.nodes, [&](const planner::NodeSnapshot& node) {
        return !node.read_only_replica && node.name != own->name && node.answered && node.alive &&
               node.epoch_number == leader->epoch_number && node.epoch_id == leader->epoch_id &&
               has_committed(node, *leader);
      }));
  return having >= context.snapshot.quorum()
             ? std::string()
             : fmt::format(
                   "{} other voters have all that is committed (position {}), {} are "
                   "needed",
                   having, committed, context.snapshot.quorum());
}

net::awaitable<void> note_machine(StepContext context, json& memo) {
  co_await steps::note_start_command(context, memo);
  if (memo.contains(kDirectory)) {
    co_return;
  }
  const auto facts = co_await context.peers->facts(context.step.node);
  if (facts && !facts->database_directory.path.empty()) {
    memo[kDirectory] = facts->database_directory.path;
  }
}

std::string on_machine(const StepContext& context, std::string_view what) {
  const auto* node = context.node();
  const auto agent = node == nullptr ? Result<http::Endpoint>(Error{Errc::kNotFound, ""})
                                     : http::parse_endpoint(node->agent_url);
  return fmt::format("on {}: {}", agent ? agent->host : context.step.node, what);
}

std::string revert_command(const StepContext& context) {
  const json memo = *context.state.memo;
  return on_machine(context, fmt::format("verger-db restore {} --revert {}",
                                         memo.value(kDirectory, std::string("DATABASE")),
                                         steps::text_parameter(context.step, "generation")));
}

std::map<std::string, std::int64_t> positions_before(
    const std::map<std::string, std::string>& values) {
  std::map<std::string, std::int64_t> out;
  for (const auto& [name, value] : values) {
    if (!name.starts_with(names::kBeforeValue)) {
      continue;
    }
    const auto nodes = steps::parsed_or_empty(value);
    for (const auto& [node, seen] : nodes.items()) {
      out[node] = seen.is_object() ? seen.value("writer", std::int64_t{-1}) : -1;
    }
  }
  return out;
}

void note_redacted_again(const RunState& run, json& notes) {
  reports::each_step(run, [&notes](const planner::Step& step, const StepState* state) {
    if (step.kind != names::kRedactAgain || state == nullptr ||
        state->status != StepStatus::kDone || state->result->contains("not_needed")) {
      return;
    }
    const auto& result = *state->result;
    const auto count = [&result](const char* name) { return result.value(name, std::int64_t{0}); };
    auto text = fmt::format(
        "{}: of the events that runs have redacted the restored files had {}: {} "
        "redacted again, {} read as blank",
        step.node, count("records"), count("blanked"), count("read_blank"));
    if (count("searched_files") > 0) {
      text += fmt::format("; {} files were searched for their texts: {}", count("searched_files"),
                          result.value("proven", false) ? "no text is left" : "NOT PROVEN");
    } else {
      text += "; nothing was searched, as no text is known";
    }
    notes.push_back(std::move(text));
  });
}

}  // namespace verger::controller::cluster_restore
