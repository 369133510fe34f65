#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/heal_parameter.h"
#include "controller/executor/stopped_server.h"
#include "controller/operations/redaction/agent_work.h"
#include "controller/operations/redaction/redaction_support.h"
#include "controller/operations/redaction/step_kinds.h"
#include "engine/base/clock.h"
#include "engine/base/quantities.h"

namespace verger::controller::redactions {
namespace {

using nlohmann::json;
using steps::done;
using steps::impossible;
using steps::int_parameter;
using steps::not_needed;
using steps::ready;
using steps::verdict;
using steps::wait;

/// Of the value that the node's check left.
json found_on(const StepContext& context) {
  const auto value = context.values.find(std::string(names::kFoundValue) + context.step.node);
  return value == context.values.end() ? json::object() : steps::parsed_or_empty(value->second);
}

/// What is not proven on the node, a sentence each.
json differences_of(const StepContext& context, const json& result) {
  const auto& node = context.step.node;
  auto out = json::array();
  const auto count = [&result](const char* name) { return result.value(name, std::int64_t{0}); };
  for (const auto& each : result.value("found", json::array())) {
    out.push_back(fmt::format("{}: {}", node, each.get<std::string>()));
  }
  for (const auto& each : result.value("held", json::array())) {
    out.push_back(fmt::format("{}: {} was removed, and is held open: end that process", node,
                              each.get<std::string>()));
  }
  // A scavenge between the look and the redaction may have removed some.
  const auto gone = std::ssize(result.value("missing", json::array())) -
                    std::ssize(found_on(context).value("missing", json::array()));
  const auto expected =
      found_on(context).value("to_do", std::int64_t{0}) - std::max<std::int64_t>(gone, 0);
  if (count("blanked") < expected) {
    out.push_back(fmt::format(
        "{}: {} of {} records were redacted by an attempt that did not come to its end: "
        "nothing was searched for their text; who has it can: verger-db redact "
        "DIRECTORY --prove --plaintext FILE",
        node, expected - count("blanked"), expected));
  } else if (count("unsearchable") > 0) {
    out.push_back(
        fmt::format("{}: {} texts are too short, or nothing but repetitions, to be searched for",
                    node, count("unsearchable")));
  }
  return out;
}

/// Of plans of restores and of new nodes, from now on.
std::string older_data_note(const StepContext& context) {
  const auto shown = context.run.substr(0, 12);
  return fmt::format(
      "run {} redacted {} on {}: a backup from before has their data. What Verger restores "
      "is redacted again before the server starts; verger run show {} has the list for what is "
      "restored by hand",
      shown, counted(std::ssize(agreed_list_of(context.values)), "record"),
      format_ticks(context.now).substr(0, 10), shown);
}

/// Of both ways: what the agents do differs, and what they show does not.
class RedactionStep : public AgentWork {
 public:
  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      co_return wait("its agent does not report of its node");
    }
    const auto agreed = agreed_list_of(context.values);
    if (agreed.empty()) {
      co_return impossible("the nodes have not agreed on a list");
    }
    const auto found = found_on(context);
    const auto own = parse_list(found.value("list", std::string()));
    if (context.state.attempt == 0 && own && own->size() == agreed.size() &&
        found.value("to_do", std::int64_t{-1}) == 0) {
      auto out = not_needed({{"not_needed", "all of the records are redacted there"},
                             {"records", agreed.size()},
                             {"already", agreed.size()}});
      // Restores redact again what was redacted by hand, too. Plans need no note of it.
      if (!context.values.contains(std::string(kOlderDataNoteValue))) {
        out.values[std::string(kOlderDataNoteValue)] = json{{"note", ""}}.dump();
      }
      co_return out;
    }
    json memo = *context.state.memo;
    co_await prepare_more(context, memo);
    co_return ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    json parameters{{"list", list_text(agreed_list_of(context.values))}};
    if (const auto deadline = int_parameter(context.step, "serviceDeadlineMs", 0); deadline > 0) {
      parameters["serviceDeadlineMs"] = deadline;
    }
    steps::pass_heal_filter(context.step, parameters);
    co_return co_await steps::act_through_agent(context, std::string(name()),
                                                std::move(parameters));
  }

  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return steps::policy_lets_stop(context.step, why);
  }

 private:
  /// Of the way alone, before it acts.
  virtual net::awaitable<void> prepare_more(StepContext /*context*/, json& /*memo*/) { co_return; }

  [[nodiscard]] Verdict judge_done(const StepContext& context, const json& shown) const override {
    const auto* node = context.node();
    if (node == nullptr || !node->answered || node->role == planner::Role::kOther) {
      return verdict(Verdict::Kind::kUnknown, "it is redacted; the node has not come back yet");
    }
    auto result = shown;
    if (auto differences = differences_of(context, result); !differences.empty()) {
      result[std::string(kDifferences)] = std::move(differences);
    }
    auto out = done(result);
    out.values[std::string(kOlderDataNoteValue)] = json{{"note", older_data_note(context)}}.dump();
    return out;
  }
};

class OfflineRedactionStep final : public RedactionStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kRedact; }
  [[nodiscard]] bool can_undo() const override { return true; }
  net::awaitable<ActAnswer> undo(StepContext context) override {
    co_return co_await steps::start_server(context);
  }
  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    return steps::start_server_command(context);
  }
  net::awaitable<Verdict> observe_undo(StepContext context) override {
    co_return co_await steps::observe_start(context);
  }

 private:
  net::awaitable<void> prepare_more(StepContext context, json& memo) override {
    co_await steps::note_start_command(context, memo);
  }
  [[nodiscard]] std::string_view without_progress() const override {
    return "its server is stopping, stopped, or starting";
  }
  [[nodiscard]] std::string_view where_it_stopped() const override {
    return "it was stopped, and the server started again";
  }
};

class OnlineRedactionStep final : public RedactionStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kRedactOnline; }

 private:
  [[nodiscard]] std::string_view where_it_stopped() const override {
    return "it was stopped between two chunk files; the server ran all the while";
  }
};

}  // namespace

std::unique_ptr<StepKind> make_redact_step() { return std::make_unique<OfflineRedactionStep>(); }
std::unique_ptr<StepKind> make_online_redact_step() {
  return std::make_unique<OnlineRedactionStep>();
}

}  // namespace verger::controller::redactions
