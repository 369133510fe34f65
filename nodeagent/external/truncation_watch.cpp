#include "nodeagent/external/truncation_watch.h"

#include <fmt/format.h>

#include "engine/log/pending_truncation.h"
#include "nodeagent/http/task_group.h"

namespace verger::external {
namespace {

constexpr int kMostStarts = 3;
/// How long a server that was started may take until it answers, or has ended again.
constexpr std::chrono::minutes kPatience{10};
/// A start command returns before the server has its files open.
constexpr std::chrono::seconds kUntilSeen{10};

}  // namespace

class TruncationWatch::Impl {
 public:
  Impl(Path database, const ServiceOptions& service, std::chrono::milliseconds interval,
       Environment environment)
      : database_(std::move(database)),
        interval_(interval),
        env_(std::move(environment)),
        service_(service, env_.timers),
        tasks_(env_.executor, env_.log, "truncation watch") {}

  static net::awaitable<void> watch(std::shared_ptr<Impl> self) {
    while (!self->stopping_) {
      co_await self->look();
      co_await self->env_.timers.sleep_for(self->interval_);
    }
  }

  http::TaskGroup& tasks() { return tasks_; }
  void stop() {
    stopping_ = true;
    tasks_.cancel();
  }

 private:
  net::awaitable<void> look() {
    if (env_.answers()) {
      answered_ = true;
      starts_left_ = 0;
      co_return;
    }
    if (std::exchange(answered_, false)) {
      const auto pending = log::pending_truncation(env_.files, database_);
      if (!pending || pending->value() < 0) {
        env_.log.info("the server does not answer; it did not end in order to cut its log",
                      {{"database", database_.string()}});
        co_return;
      }
      starts_left_ = kMostStarts;
      next_start_ = Monotonic{};
      until_ = env_.clock.monotonic() + kPatience;
      env_.log.warning(
          "the server ended in order to cut its log",
          {{"database", database_.string()}, {"position", std::to_string(pending->value())}});
    }
    if (starts_left_ == 0 || env_.clock.monotonic() > until_) {
      co_return;
    }
    if (!log::check_nobody_writes(database_)) {
      next_start_ = Monotonic{};
      co_return;  // it has not ended yet, or it has been started
    }
    if (env_.clock.monotonic() < next_start_) {
      co_return;
    }
    --starts_left_;
    next_start_ = env_.clock.monotonic() + kUntilSeen;
    if (const auto started = co_await service_.start(); !started) {
      env_.log.error("the server that has to cut its log does not start",
                     {{"reason", started.error().message}});
    } else {
      env_.log.info("started the server that has to cut its log",
                    {{"startsLeft", std::to_string(starts_left_)}});
    }
  }

  Path database_;
  std::chrono::milliseconds interval_;
  Environment env_;
  ServiceControl service_;
  bool stopping_ = false;
  bool answered_ = false;
  int starts_left_ = 0;
  Monotonic until_{};
  Monotonic next_start_{};  ///< not before, unless it was seen at work since the last start
  http::TaskGroup tasks_;
};

TruncationWatch::TruncationWatch(Path database, ServiceOptions service,
                                 std::chrono::milliseconds interval, Environment environment)
    : impl_(
          std::make_shared<Impl>(std::move(database), service, interval, std::move(environment))) {}

TruncationWatch::~TruncationWatch() { impl_->stop(); }

void TruncationWatch::start() { impl_->tasks().spawn(Impl::watch(impl_)); }

}  // namespace verger::external
