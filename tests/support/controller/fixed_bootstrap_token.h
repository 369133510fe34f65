#pragma once

#include <optional>

#include "controller/api/bootstrap_token.h"
#include "nodeagent/http/message.h"

namespace verger::test {

/// A bootstrap token that is the same in every life of a controller, for tests that have no tokens
/// of their own.
class FixedBootstrapToken final : public controller::BootstrapToken {
 public:
  static constexpr const char* kText = "verger_bootstrap_of-a-test";
  Result<std::string> take() override { return std::string(kText); }
  void drop() override { dropped = true; }
  Result<std::optional<controller::FirstToken>> first() override { return prepared; }
  [[nodiscard]] std::string place() const override { return "/data/bootstrap-token"; }
  /// As requested by a person at the controller's machine.
  static void sign(http::Request& request) {
    request.peer.address = "127.0.0.1";
    request.headers.set("Authorization", std::string("Bearer ") + kText);
  }
  /// One that keeps no state of its own outlives every controller.
  static FixedBootstrapToken& shared() {
    static FixedBootstrapToken token;
    return token;
  }
  bool dropped = false;
  std::optional<controller::FirstToken> prepared;  ///< as by `vergerd init`
};

}  // namespace verger::test
