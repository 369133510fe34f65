#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "controller/executor/executor.h"
#include "controller/operations/operation_settings.h"
#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "tests/support/controller/fake_cluster.h"

namespace verger::test {

/// A controller's life after life on one disk, over a fake cluster called "prod".
class ControllerHarness {
 public:
  explicit ControllerHarness(int voters = 3, bool with_agents = true);
  ~ControllerHarness();

  /// A new controller on the journal as it is.
  void boot();
  /// The controller is gone from one instruction to the next, and the power with it.
  void crash();
  void register_cluster();
  /// As a person would: a plan, then its run. Fails the test otherwise.
  std::string start_scavenge(const planner::Policy& policy);
  /// Runs until `done`, at most `limit` of virtual time.
  bool run_until(const std::function<bool()>& done,
                 std::chrono::milliseconds limit = std::chrono::minutes(60));
  /// Also throws where an event of this life has a member that is not in snake_case.
  bool run_to_end(std::string_view run, std::chrono::milliseconds limit = std::chrono::minutes(60));
  /// Runs a coroutine to its result.
  template <class T>
  T wait_for(net::awaitable<T> work) {
    auto result = std::make_shared<std::optional<T>>();
    net::co_spawn(*context, keep(std::move(work), result), [](std::exception_ptr) {});
    run_until([result] { return result->has_value(); });
    return std::move(result->value());
  }
  [[nodiscard]] controller::RunState state(std::string_view run) const;
  /// What the run's alerts say; those that were cleared are among them.
  [[nodiscard]] std::vector<std::string> alerts(std::string_view run) const;
  /// Types of a run's events, or of those about one step.
  [[nodiscard]] std::vector<std::string> events(std::string_view run,
                                                std::string_view step = "") const;

  /// Short times: settling 300 ms, hold 300 ms.
  static planner::Policy quick_policy();

  VirtualTime time;
  MemoryFileSystem disk;
  FakeCluster cluster;
  controller::ExecutorOptions options;
  bool with_agents;
  Path journal_path = "/state/journal.db";

  // the present life
  std::unique_ptr<net::io_context> context;
  std::unique_ptr<controller::Journal> journal;
  std::unique_ptr<controller::Registry> registry;
  std::unique_ptr<controller::Executor> executor;
  /// Something was journaled since the last look; cheaper than looking at a state each time.
  bool news = false;
  /// Set before boot(): the source of the hours; nullptr: always open.
  std::function<const controller::WorkingHours*(controller::Journal&, controller::ControllerEpoch)>
      make_hours;
  [[nodiscard]] controller::Network network();
  controller::ControllerEpoch epoch;
  /// Set before boot(): what answers instead of `cluster`; outlives the harness's use.
  http::Client* client = nullptr;
  /// Set before boot(), with `scheme` "https": who looks at certificates.
  std::function<net::awaitable<Result<http::CertificateInfo>>(http::Endpoint)> served_certificate{};
  /// Set before boot(): what is logged; outlives the harness's use.
  Log* log = &null_log();
  std::vector<http::CertificateInfo> roots;  ///< that the cluster's certificates are trusted by
  std::string scheme = "http";
  std::chrono::milliseconds request_deadline{2'000};
  /// Set before boot(): what operations are configured with.
  controller::OperationSettings operations;
  /// Set before boot(): more kinds, for the tests.
  std::function<void(controller::StepKinds&)> more_kinds;

 private:
  template <class T>
  static net::awaitable<void> keep(net::awaitable<T> work, std::shared_ptr<std::optional<T>> into) {
    into->emplace(co_await std::move(work));
  }
  class NoCredentials final : public controller::CredentialStore {
   public:
    std::vector<std::string> anywhere{"10.0.0.1:*", "10.0.0.2:*", "10.0.0.3:*", "10.0.0.4:*",
                                      "10.0.0.5:*", "10.0.0.6:*", "10.0.0.7:*"};
    Result<controller::Credentials> find(std::string_view) override {
      return controller::Credentials{.user = "admin", .password = "secret", .hosts = anywhere};
    }
  };
  void check_members() const;

  controller::Sequence before_this_life_;
  controller::Journal::Subscription subscription_;
  NoCredentials credentials_;
  SeededRandom random_{7};
  controller::StepKinds kinds_;
};

}  // namespace verger::test
