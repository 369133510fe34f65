#pragma once

#include "controller/api/bootstrap_token.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace verger::controller {

/// The bootstrap token in a file of the data directory, mode 0600 from its first byte on: who can
/// read vergerd's files may begin to use its API, and no other user of the machine. One that others
/// could have read is replaced.
class BootstrapTokenFile final : public BootstrapToken {
 public:
  BootstrapTokenFile(Path file, Random& random, Log& log)
      : file_(std::move(file)), random_(random), log_(log) {}
  Result<std::string> take() override;
  void drop() override;
  [[nodiscard]] std::string place() const override { return file_.string(); }

 private:
  [[nodiscard]] std::string kept() const;

  Path file_;
  Random& random_;
  Log& log_;
};

}  // namespace verger::controller
