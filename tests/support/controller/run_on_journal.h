#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "controller/executor/detail/run_context.h"
#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "tests/support/controller/fake_cluster.h"

namespace verger::test {

/// A run under which a part of the executor is tried by itself: a real journal in memory, a fake
/// cluster "prod" of three nodes, virtual time, and nothing that drives the run. Without agents
/// where `cluster.agents` is not set before start().
class RunOnJournal {
 public:
  RunOnJournal();
  ~RunOnJournal();
  RunOnJournal(const RunOnJournal&) = delete;
  RunOnJournal& operator=(const RunOnJournal&) = delete;

  /// With the kinds that have been added.
  void start(std::vector<planner::Stage> stages);
  /// Types of the events about a step.
  [[nodiscard]] std::vector<std::string> types(std::string_view step) const;
  /// Runs a coroutine to its end.
  template <class T>
  T wait_for(net::awaitable<T> work) {
    const auto result = std::make_shared<std::optional<T>>();
    net::co_spawn(context, keep(std::move(work), result), [](std::exception_ptr failure) {
      if (failure) {
        std::rethrow_exception(failure);
      }
    });
    time.run(context, [result] { return result->has_value(); }, std::chrono::hours(2));
    return std::move(result->value());
  }
  void wait_for(net::awaitable<void> work);

  VirtualTime time;
  net::io_context context;
  MemoryFileSystem disk;
  FakeCluster cluster;
  controller::StepKinds kinds;
  std::unique_ptr<controller::Journal> journal;
  std::unique_ptr<controller::Registry> registry;
  std::shared_ptr<controller::detail::RunContext> run;

 private:
  template <class T>
  static net::awaitable<void> keep(net::awaitable<T> work, std::shared_ptr<std::optional<T>> into) {
    into->emplace(co_await std::move(work));
  }
  static net::awaitable<bool> then_true(net::awaitable<void> work);
  class NoCredentials final : public controller::CredentialStore {
   public:
    Result<controller::Credentials> find(std::string_view) override {
      return Error{Errc::kNotFound, "there are none"};
    }
  };

  NoCredentials credentials_;
  SeededRandom random_{7};
};

}  // namespace verger::test
