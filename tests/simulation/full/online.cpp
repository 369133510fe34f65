#include "tests/simulation/full/online.h"

#include <utility>

#include "engine/redaction/chunk_switch.h"
#include "nodeagent/node/detail/core.h"

namespace verger::sim {
namespace {

using client::Nothing;
using client::Outcome;
using std::chrono::milliseconds;

/// One call in so many breaks its connection, on either side of what it asks for.
constexpr std::uint64_t kBreaksOneIn = 4;

/// What a client of one node shares with its lock.
struct Line {
  std::string name;
  http::Timers& timers;
  std::function<std::shared_ptr<node::Core>()> node;
  Random& random;
  OnlineWork& work;

  /// A call is on its way. False: its connection broke.
  net::awaitable<bool> carry(std::uint64_t& broken) const {
    co_await timers.sleep_for(milliseconds(1 + random.below(4)));
    if (work.disturbed && random.below(kBreaksOneIn) == 0) {
      ++broken;
      co_return false;
    }
    co_return true;
  }
};

class SimChunkLock final : public client::HeldChunkLock {
 public:
  SimChunkLock(std::shared_ptr<Line> line, node::ChunkLock::Held held)
      : line_(std::move(line)), held_(std::move(held)) {
    line_->work.locked.insert(line_->name);
  }
  ~SimChunkLock() override { give_back(); }
  SimChunkLock(const SimChunkLock&) = delete;
  SimChunkLock& operator=(const SimChunkLock&) = delete;

  net::awaitable<Outcome<Nothing>> switch_chunk(std::string target, std::string new_file) override {
    const auto line = line_;
    if (!held_ || !co_await line->carry(line->work.broken_before)) {
      give_back();
      co_return client::unknown<Nothing>("no_answer", "the connection broke");
    }
    const auto core = line->node();
    if (core == nullptr) {
      give_back();
      co_return client::unknown<Nothing>("no_answer", "the node is gone");
    }
    const auto job =
        std::make_shared<redaction::ChunkSwitchJob>(core->env.files, core->log(), target, new_file);
    const auto held = held_;  // the node's call lives on where its client has gone
    const auto ended = co_await core->env.jobs.run(job, std::make_shared<node::StopFlag>());
    const auto result = ended ? job->result() : redaction::SwitchResult::kUnexpectedError;
    const bool done = result == redaction::SwitchResult::kSuccess;
    line->work.switches += done ? 1 : 0;
    if (!co_await line->carry(line->work.broken_after)) {
      give_back();
      co_return client::unknown<Nothing>("no_answer", "the connection broke before the answer");
    }
    if (!done) {
      give_back();
      co_return client::refused<Nothing>("switch_refused",
                                         std::string(redaction::reason_of(result)));
    }
    co_return client::done(Nothing{});
  }

  net::awaitable<Outcome<Nothing>> release() override {
    give_back();
    co_return client::done(Nothing{});
  }

 private:
  void give_back() {
    if (std::exchange(held_, nullptr) != nullptr) {
      line_->work.locked.erase(line_->name);
    }
  }
  std::shared_ptr<Line> line_;
  node::ChunkLock::Held held_;
};

class SimRedactionClient final : public client::RedactionClient {
 public:
  explicit SimRedactionClient(std::shared_ptr<Line> line) : line_(std::move(line)) {}

  /// Asked for in order to see that the connection lives.
  net::awaitable<Outcome<std::vector<std::vector<client::EventPosition>>>> positions(
      std::vector<client::EventToFind> events) override {
    using Found = std::vector<std::vector<client::EventPosition>>;
    const auto line = line_;
    if (!co_await line->carry(line->work.broken_before) || line->node() == nullptr) {
      co_return client::unknown<Found>("no_answer", "the connection broke");
    }
    co_return client::done(Found(events.size()));
  }

  net::awaitable<Outcome<std::unique_ptr<client::HeldChunkLock>>> lock() override {
    using Lock = std::unique_ptr<client::HeldChunkLock>;
    const auto line = line_;
    if (!co_await line->carry(line->work.broken_before)) {
      co_return client::unknown<Lock>("no_answer", "the connection broke");
    }
    const auto core = line->node();
    if (core == nullptr) {
      co_return client::refused<Lock>("unreachable", "the node is gone");
    }
    auto held = core->chunk_lock.try_take();
    if (held == nullptr) {
      co_return client::refused<Lock>("chunk_lock_held", "another has the chunk lock");
    }
    co_return client::done<Lock>(std::make_unique<SimChunkLock>(line, std::move(held)));
  }

 private:
  std::shared_ptr<Line> line_;
};

}  // namespace

SimOnlineAccess::SimOnlineAccess(std::string name, external::OfflineMachine machine,
                                 http::Timers& timers,
                                 std::function<std::shared_ptr<node::Core>()> node,
                                 OnlineWork& work)
    : OnlineAccess({.database = "/db", .index = {}}, machine, timers, [] { return "24.6.0"; }),
      name_(std::move(name)),
      timers_(timers),
      node_(std::move(node)),
      work_(work) {}

external::OnlineLook SimOnlineAccess::look() const {
  return {.problem = node_() == nullptr ? "the server does not answer" : std::string(),
          .one_file_system = true};
}

Result<std::shared_ptr<client::RedactionClient>> SimOnlineAccess::connect(
    const net::any_io_executor& /*executor*/) const {
  if (node_() == nullptr) {
    return Error{Errc::kUnavailable, "the node is gone"};
  }
  return std::shared_ptr<client::RedactionClient>(std::make_shared<SimRedactionClient>(
      std::make_shared<Line>(Line{name_, timers_, node_, machine().random, work_})));
}

}  // namespace verger::sim
