#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/looking_step.h"
#include "controller/operations/restore/restore_support.h"
#include "controller/operations/restore/step_kinds.h"
#include "engine/base/clock.h"

namespace verger::controller::cluster_restore {
namespace {

using nlohmann::json;

/// The line between the way back and the new history. All files are restored when it is reached;
/// here they are seen not to be in use yet.
class CommitStep final : public steps::LookingStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kCommit; }

 private:
  net::awaitable<Verdict> look(StepContext context) override {
    if (auto why = runs_again(context); !why.empty()) {
      co_return steps::verdict(Verdict::Kind::kFailed, "runs-again", std::move(why));
    }
    for (const auto& name : steps::list_parameter(context.step, "nodes")) {
      if (auto why = why_not_seen_stopped(context.snapshot.find(name), name); !why.empty()) {
        co_return steps::running({{"phase", why}});
      }
    }
    const json noted{{"at", format_ticks(context.now)}};
    auto out = steps::done(noted);
    out.values[committed_value(context.step)] = noted.dump();
    co_return out;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_commit_step() { return std::make_unique<CommitStep>(); }

}  // namespace verger::controller::cluster_restore
