#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/detail/server_work.h"
#include "controller/executor/step_kinds.h"
#include "controller/executor/step_support.h"

namespace verger::controller {
namespace {

using detail::look_at_work;
using detail::may_be_known_later;
using detail::NotedWork;
using detail::why_not_seen;
using detail::WorkList;
using nlohmann::json;
using steps::not_needed;
using steps::verdict;
using steps::wait;

/// A calm leader answers at once; what cannot be noted by then holds up no run.
constexpr std::chrono::seconds kNotingLimit{60};

/// Only looks, and leaves what it saw for the step after the move.
class NoteServerWorkStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "note_server_work"; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* leader = context.snapshot.leader();
    if (leader == nullptr) {
      co_return wait("no node leads");
    }
    if (leader->name != context.step.node) {
      co_return not_needed({{"not_needed", fmt::format("{} leads", leader->name)}});
    }
    const auto peers = context.peers;
    const auto node = context.step.node;
    const auto seen = co_await look_at_work(peers, node);
    for (const auto& [what, list] : {std::pair("projections", &seen.projections),
                                     std::pair("persistent subscriptions", &seen.subscriptions)}) {
      if (context.in_state >= kNotingLimit) {
        break;
      }
      if (may_be_known_later(*list)) {
        co_return wait(
            fmt::format("{} does not tell which {} run: {}", node, what, list->error().message));
      }
      if (*list && std::ranges::any_of(**list, [](const client::ServerWork& each) {
            return each.continuous && each.state == client::WorkState::kStarting;
          })) {
        co_return wait(fmt::format("{} are still starting", what));
      }
    }
    NotedWork noted;
    noted.projections = running(seen.projections);
    noted.subscriptions = running(seen.subscriptions);
    auto result = json{{"projections", count(noted.projections)},
                       {"subscriptions", count(noted.subscriptions)}};
    const auto why = fmt::format("projections: {}; persistent subscriptions: {}",
                                 what_of(seen.projections, noted.projections),
                                 what_of(seen.subscriptions, noted.subscriptions));
    if (!seen.projections && !seen.subscriptions) {
      result["not_needed"] = why;
    } else {
      result["why"] = why;
    }
    auto out = not_needed(result);
    out.values["server_work"] = noted.to_json().dump();
    co_return out;
  }

  net::awaitable<ActAnswer> act(StepContext) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }
  net::awaitable<Verdict> observe(StepContext) override {
    co_return verdict(Verdict::Kind::kNotHappened, "this step changes nothing on the node");
  }

 private:
  using Names = std::optional<std::vector<std::string>>;

  static Names running(const WorkList& list) {
    if (!list) {
      return std::nullopt;
    }
    std::vector<std::string> out;
    for (const auto& each : *list) {
      if (each.continuous && each.state == client::WorkState::kRunning) {
        out.push_back(each.name);
      }
    }
    return out;
  }
  static json count(const Names& names) { return names ? json(names->size()) : json(); }
  static std::string what_of(const WorkList& list, const Names& names) {
    return names ? fmt::format("{} of {} run", names->size(), list->size()) : why_not_seen(list);
  }
};

}  // namespace

std::unique_ptr<StepKind> make_note_server_work_step() {
  return std::make_unique<NoteServerWorkStep>();
}

}  // namespace verger::controller
