#include <gtest/gtest.h>

#include "tests/unit/nodeagent_operations/certificate_machine.h"

/// Agents that die in the middle of a change of certificates.
namespace verger::agent {
namespace {

using std::chrono::milliseconds;

/// What became of a switch whose agent, or whose whole machine, died at an operation on its disk.
std::string outcome_of_death(std::uint64_t nth, bool power, api::CertificatePhase phase,
                             bool& reached) {
  CertificateMachine machine;
  const bool trust = phase != api::CertificatePhase::kLeaf;
  EXPECT_EQ(machine
                .stage(machine.bring(trust ? machine.new_leaf_ : machine.same_root_,
                                     trust ? machine.new_.root() : machine.old_.root()))
                .value("state", ""),
            "done");
  auto& disk = machine.host_.disk();
  disk.reset_count();
  reached = false;
  disk.set_fault_hook([&, nth, power](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number < nth || reached) {
      return reached ? std::optional(Error{Errc::kIo, "dead"}) : std::nullopt;
    }
    reached = true;
    machine.host_.die(power, power ? std::optional(nth) : std::nullopt);
    return Error{Errc::kIo, "dead"};
  });
  const auto id =
      machine.begin("certificate_switch", api::to_text(api::CertificateSwitch{"run-1", phase}));
  machine.world_.run_for(milliseconds(1'000));
  disk.set_fault_hook(nullptr);
  if (reached) {
    EXPECT_FALSE(machine.host_.up());
    machine.boot();
  }
  auto status = machine.ended(id);
  const auto state = status.value("state", "never arrived");
  const bool is_done = state == "done";
  EXPECT_TRUE(is_done || state == "failed" || status.value("code", "") == "not_found") << status;
  EXPECT_NE(status.value("errorCode", ""), "not_restored") << status;
  if (!is_done) {
    EXPECT_EQ(machine.servers(), machine.before_) << status;
    EXPECT_EQ(machine.server_.served(), machine.old_leaf_.certificate) << status;
    EXPECT_EQ(machine.server_.roots(), machine.old_.root()) << status;
  } else {
    EXPECT_NE(machine.servers(), machine.before_);
    EXPECT_EQ(machine.server_.served(),
              trust ? machine.old_leaf_.certificate : machine.same_root_.certificate);
    EXPECT_EQ(machine.server_.roots() == machine.old_.root(), !trust);
  }
  return is_done ? "done" : status.value("errorCode", "not_found");
}

/// The same of a switch that the server does not take: while its files are being restored, too.
bool undo_with_death(std::uint64_t nth, bool power) {
  CertificateMachine machine;
  EXPECT_EQ(
      machine.stage(machine.bring(machine.same_root_, machine.old_.root())).value("state", ""),
      "done");
  machine.server_.ignores_reloads = true;
  auto& disk = machine.host_.disk();
  disk.reset_count();
  bool reached = false;
  disk.set_fault_hook([&, nth, power](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number == nth && !reached) {
      reached = true;
      machine.host_.die(power, power ? std::optional(nth) : std::nullopt);
    }
    return reached ? std::optional(Error{Errc::kIo, "dead"}) : std::nullopt;
  });
  const auto id =
      machine.begin("certificate_switch",
                    api::to_text(api::CertificateSwitch{"run-1", api::CertificatePhase::kLeaf}));
  machine.world_.run_for(milliseconds(40'000));
  disk.set_fault_hook(nullptr);
  if (reached) {
    machine.boot();
  }
  const auto status = machine.ended(id);
  EXPECT_TRUE(status.value("state", "") == "failed" || status.value("code", "") == "not_found")
      << status;
  EXPECT_EQ(machine.servers(), machine.before_) << status;
  EXPECT_EQ(machine.run("certificate_discard", R"({"change":"run-1"})").value("state", ""), "done");
  EXPECT_EQ(machine.node_.content(), machine.before_) << "no copy is left";
  return reached;
}

TEST(CertificateSwitch, OfAnAgentThatDiesWhileItRestoresIsRestoredByTheNext) {
  for (const bool power : {true, false}) {
    std::uint64_t nth = 0;
    for (; undo_with_death(nth, power); ++nth) {
      ASSERT_FALSE(::testing::Test::HasFailure()) << nth;
      ASSERT_LT(nth, 500U);
    }
    EXPECT_GT(nth, 20U);
  }
}

/// The same of a restore; false: nothing was reached, it ran to its end.
bool restore_with_death(std::uint64_t nth) {
  CertificateMachine machine;
  EXPECT_EQ(
      machine.stage(machine.bring(machine.same_root_, machine.old_.root())).value("state", ""),
      "done");
  EXPECT_EQ(machine.switch_over(api::CertificatePhase::kLeaf).value("state", ""), "done");
  auto& disk = machine.host_.disk();
  disk.reset_count();
  bool reached = false;
  disk.set_fault_hook([&, nth](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number == nth && !reached) {
      reached = true;
      machine.host_.die(/*power=*/true, nth);
    }
    return reached ? std::optional(Error{Errc::kIo, "dead"}) : std::nullopt;
  });
  const auto id =
      machine.begin("certificate_restore",
                    api::to_text(api::CertificateRestore{"run-1", api::CertificatePhase::kLeaf}));
  machine.world_.run_for(milliseconds(1'000));
  disk.set_fault_hook(nullptr);
  if (reached) {
    machine.boot();
  }
  auto status = machine.ended(id);
  if (status.value("state", "") != "done") {
    // It had not acted yet; a controller requests it again.
    EXPECT_TRUE(status.value("errorCode", "") == "not_happened" ||
                status.value("code", "") == "not_found")
        << status;
    status = machine.restore(api::CertificatePhase::kLeaf);
  }
  EXPECT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(machine.servers(), machine.before_);
  EXPECT_EQ(machine.server_.served(), machine.old_leaf_.certificate);
  EXPECT_EQ(machine.run("certificate_discard", R"({"change":"run-1"})").value("state", ""), "done");
  EXPECT_EQ(machine.node_.content(), machine.before_) << "no copy is left";
  return reached;
}

TEST(CertificateRestore, OfAnAgentThatDiesAnywhereIsFinishedByTheNext) {
  std::uint64_t nth = 0;
  for (; restore_with_death(nth); ++nth) {
    ASSERT_FALSE(::testing::Test::HasFailure()) << nth;
    ASSERT_LT(nth, 500U);
  }
  EXPECT_GT(nth, 10U);
}

TEST(CertificateSwitch, OfAnAgentThatDiesAnywhereEndsOnOneSideOrTheOther) {
  for (const auto phase : {api::CertificatePhase::kTrust, api::CertificatePhase::kLeaf}) {
    std::map<std::string, int> outcomes;
    for (const bool power : {true, false}) {
      bool reached = true;
      for (std::uint64_t nth = 0; reached; ++nth) {
        SCOPED_TRACE(fmt::format("{} {} {}", api::to_string(phase), power ? "power" : "kill", nth));
        ++outcomes[outcome_of_death(nth, power, phase, reached)];
        ASSERT_FALSE(::testing::Test::HasFailure());
        ASSERT_LT(nth, 500U);
      }
    }
    EXPECT_GT(outcomes["done"], 1) << "some died after the proof could be had";
    EXPECT_GT(outcomes["interrupted"], 1) << "some in the middle";
  }
}

}  // namespace
}  // namespace verger::agent
