#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/certificates/change_support.h"
#include "controller/operations/certificates/sources.h"
#include "controller/operations/certificates/step_kinds.h"

namespace verger::controller::certificate_change {
namespace {

using nlohmann::json;
using steps::act_through_agent;
using steps::ask_agent;
using steps::done;
using steps::impossible;
using steps::ready;
using steps::verdict;

class StageStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kStage; }
  [[nodiscard]] bool can_undo() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto source = source_of(context);
    co_return source ? ready() : impossible(source.error().message);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const auto source = source_of(context);
    if (!source) {
      co_return ActAnswer{ActAnswer::Kind::kRefused, source.error().message};
    }
    const auto checked = checked_nodes(context.values);
    const auto found = checked.find(context.step.node);
    api::CertificateStage parameters{.change = context.run, .source = *source};
    if (found != checked.end()) {
      parameters.serial = found->second.serial;
      parameters.digest = found->second.digest;
    }
    co_return co_await act_through_agent(context, std::string(names::kStage),
                                         parameters_of(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await ask_agent(context, operation);
    if (auto open = unless_done(news, /*may_repeat=*/true)) {
      co_return *std::move(open);
    }
    const auto staged = api::parse_certificate_staged(news.result_text);
    if (!staged) {
      co_return verdict(Verdict::Kind::kUnknown, staged.error().message);
    }
    auto commands = json::object();
    for (const auto& phase : staged->change.phases) {
      commands[std::string(api::to_string(phase.phase))] = phase.restore_commands;
    }
    auto out = done({{"serial", staged->serial}, {"not_after", staged->not_after}});
    out.values[restore_value(context.step.node)] = commands.dump();
    co_return out;
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    co_return co_await act_through_agent(
        context, "certificate_discard",
        parameters_of(api::CertificateDiscard{.change = context.run}));
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    const auto operation = context.state.undo_operation;
    const auto news = co_await ask_agent(context, operation);
    if (auto open = unless_done(news, /*may_repeat=*/true)) {
      co_return *std::move(open);
    }
    co_return done(json::object());
  }

 private:
  static Result<api::CertificateSource> source_of(const StepContext& context) {
    return source_for(object_parameter(context.step, "source"), obtained_set(context),
                      context.step.node);
  }
};

}  // namespace

std::unique_ptr<StepKind> make_stage_step() { return std::make_unique<StageStep>(); }

}  // namespace verger::controller::certificate_change
