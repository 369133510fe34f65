#include "nodeagent/external/truncation_watch.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/log/pending_truncation.h"
#include "nodeagent/external/service_control.h"
#include "nodeagent/http/task_group.h"

namespace verger::external {
namespace {

using std::chrono::duration_cast;
using std::chrono::seconds;

/// How long the server may be without a process in all.
constexpr std::chrono::minutes kWithoutProcessLimit{15};
/// A start command returns before the server has its files open.
constexpr seconds kUntilSeen{15};
constexpr seconds kShortestPause{1};
constexpr seconds kLongestPause{60};
/// While all is well the process is looked for so seldom: it is the same until the server is gone.
constexpr seconds kBetweenSearches{60};

/// Bringing back a server that ended to cut its log.
struct Recovery {
  std::int64_t position = 0;
  Monotonic looked{};
  Monotonic without_process{0};
  int starts = 0;                          ///< after which a process had the files open
  int commands = 0;                        ///< that were given
  std::string error;                       ///< of the last command
  std::optional<Monotonic> awaited_until;  ///< a command was given, and no process was seen yet
  bool unseen = false;  ///< whether there is a process cannot be seen: nothing is started
  Monotonic next_start{};
  Monotonic pause = kShortestPause;
};

}  // namespace

class TruncationWatch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Path database, std::chrono::milliseconds interval, Environment environment)
      : database_(std::move(database)),
        interval_(interval),
        env_(std::move(environment)),
        tasks_(env_.executor, env_.log, "truncation watch") {}

  static net::awaitable<void> watch(std::shared_ptr<Impl> self) {
    while (!self->stopping_) {
      ServiceControl::reap_late_commands();
      co_await self->look();
      co_await self->env_.timers.sleep_for(self->interval_);
    }
  }

  void start() {
    load_given_up();
    tasks_.spawn(watch(shared_from_this()));
  }
  void stop() {
    stopping_ = true;
    tasks_.cancel();
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] bool has_given_up() const { return given_up_; }

 private:
  net::awaitable<void> look() {
    if (env_.answers()) {
      co_await look_at_answering();
      co_return;
    }
    const bool answered_before = std::exchange(answered_, false);
    if (env_.kept_stopped && env_.kept_stopped()) {
      if (recovery_) {
        recovery_.reset();
        problem_.clear();
      }
      co_return;
    }
    if (answered_before) {
      begin();
    }
    if (recovery_) {
      co_await bring_back();
    }
  }

  net::awaitable<void> look_at_answering() {
    const auto now = env_.clock.monotonic();
    if (recovery_) {
      env_.log.info("the server that had to cut its log answers",
                    {{"starts", std::to_string(recovery_->starts)}});
    }
    recovery_.reset();
    problem_.clear();
    if (std::exchange(given_up_, false)) {
      forget_given_up();
    }
    if (!std::exchange(answered_, true) || now >= next_search_) {
      next_search_ = now + kBetweenSearches;
      if (auto found = co_await env_.find()) {
        server_ = *found;
      }
    }
  }

  void begin() {
    const auto pending = log::pending_truncation(env_.files, database_);
    if (!pending || pending->value() < 0) {
      env_.log.info("the server does not answer; it did not end in order to cut its log",
                    {{"database", database_.string()}});
      return;
    }
    recovery_.emplace();
    recovery_->position = pending->value();
    recovery_->looked = env_.clock.monotonic();
    tell("it is started again");
    env_.log.warning(
        "the server ended in order to cut its log",
        {{"database", database_.string()}, {"position", std::to_string(pending->value())}});
  }

  void tell(const std::string& what) {
    problem_ = fmt::format("it ended in order to cut its log at position {}; {}",
                           recovery_->position, what);
  }

  net::awaitable<void> bring_back() {
    const auto gone = co_await process_is_gone();
    auto& now_at = *recovery_;
    const auto now = env_.clock.monotonic();
    const auto since = now - std::exchange(now_at.looked, now);
    if (!gone) {
      co_return;
    }
    now_at.without_process += since;
    if (now_at.awaited_until && now < *now_at.awaited_until) {
      co_return;
    }
    if (std::exchange(now_at.awaited_until, std::nullopt)) {
      env_.log.warning("the start of the server did nothing: no process has opened its files",
                       {{"database", database_.string()}});
    }
    if (now_at.without_process >= kWithoutProcessLimit) {
      give_up();
      co_return;
    }
    if (now_at.unseen || now < now_at.next_start) {
      co_return;
    }
    co_await start_server();
  }

  net::awaitable<bool> process_is_gone() {
    if (server_ && env_.runs(*server_)) {
      co_return false;
    }
    const auto found = co_await env_.find();
    recovery_->unseen = !found;
    if (!found) {
      tell(found.error().message);
      co_return true;  // time runs, so that this ends and a person looks
    }
    server_ = *found;
    if (!server_) {
      co_return true;
    }
    if (std::exchange(recovery_->awaited_until, std::nullopt)) {
      ++recovery_->starts;
      env_.log.info("the server that has to cut its log was started",
                    {{"process", std::to_string(server_->id)},
                     {"starts", std::to_string(recovery_->starts)}});
      tell(fmt::format("started {} times, process {} runs", recovery_->starts, server_->id));
    }
    co_return false;
  }

  net::awaitable<void> start_server() {
    const auto started = co_await env_.start();
    auto& now_at = *recovery_;
    const auto now = env_.clock.monotonic();
    ++now_at.commands;
    now_at.next_start = now + now_at.pause;
    now_at.pause = std::min<Monotonic>(2 * now_at.pause, kLongestPause);
    if (started) {
      now_at.error.clear();
      now_at.awaited_until = now + kUntilSeen;
      co_return;
    }
    if (now_at.error != started.error().message) {
      now_at.error = started.error().message;
      env_.log.error("the server that has to cut its log does not start",
                     {{"reason", now_at.error}});
      tell("it does not start: " + now_at.error);
    }
  }

  void give_up() {
    tell(
        fmt::format("it was started {} times ({} commands) and does not stay; the agent has given "
                    "up after {} min without a process{}{}: start it by hand, and see its log",
                    recovery_->starts, recovery_->commands,
                    duration_cast<std::chrono::minutes>(recovery_->without_process).count(),
                    recovery_->error.empty() ? "" : "; the last start: ", recovery_->error));
    env_.log.error("the server that has to cut its log stays down", {{"reason", problem_}});
    recovery_.reset();
    given_up_ = true;
    if (!env_.given_up_file.empty()) {
      warn_unless(write_file_durably(env_.files, env_.given_up_file, as_bytes(problem_)));
    }
  }

  void load_given_up() {
    if (env_.given_up_file.empty()) {
      return;
    }
    const auto exists = env_.files.exists(env_.given_up_file);
    if (!exists || !*exists) {
      warn_unless(exists);
      return;
    }
    const auto kept = read_file(env_.files, env_.given_up_file);
    warn_unless(kept);
    given_up_ = kept.has_value();
    problem_ = kept ? std::string(as_text(*kept)) : "";
  }

  void forget_given_up() {
    if (!env_.given_up_file.empty()) {
      warn_unless(env_.files.remove(env_.given_up_file));
    }
  }

  template <class T>
  void warn_unless(const Result<T>& done) {
    if (!done) {
      env_.log.warning("the file that says that the agent has given up starting its server",
                       {{"file", env_.given_up_file.string()}, {"error", done.error().message}});
    }
  }

  Path database_;
  std::chrono::milliseconds interval_;
  Environment env_;
  bool stopping_ = false;
  bool answered_ = false;
  bool given_up_ = false;
  std::optional<ServerProcess> server_;  ///< that had the database open at the last look
  Monotonic next_search_{};
  std::optional<Recovery> recovery_;
  std::string problem_;
  http::TaskGroup tasks_;
};

TruncationWatch::TruncationWatch(Path database, std::chrono::milliseconds interval,
                                 Environment environment)
    : impl_(std::make_shared<Impl>(std::move(database), interval, std::move(environment))) {}

TruncationWatch::~TruncationWatch() { impl_->stop(); }

void TruncationWatch::start() { impl_->start(); }

bool TruncationWatch::has_given_up() const { return impl_->has_given_up(); }
std::string TruncationWatch::problem() const { return impl_->problem(); }

}  // namespace verger::external
