#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/api/bootstrap_token.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace verger::controller {

/// The first admin's token as `vergerd init` leaves it: its text on the first line, its name on the
/// second, mode 0600. vergerd reads it while its journal has no token; the file is the admin's, and
/// is neither changed nor removed here.
class FirstTokenFile {
 public:
  static Path in(const Path& data_directory) { return data_directory / "admin-token"; }
  /// Makes one. Errors: kExists, kIo, kNoSpace.
  static Result<void> make(const Path& file, std::string_view name, Random& random);
  /// nullopt: there is no such file. Errors: kRefused (others may read it), kCorruption (no token).
  static Result<std::optional<FirstToken>> read(const Path& file);
};

/// The bootstrap token in a file of the data directory, mode 0600 from its first byte on: who can
/// read vergerd's files may begin to use its API, and no other user of the machine. One that others
/// could have read is replaced.
class BootstrapTokenFile final : public BootstrapToken {
 public:
  /// `first`: see FirstTokenFile; empty: none is looked for.
  BootstrapTokenFile(Path file, Random& random, Log& log, Path first = {})
      : file_(std::move(file)), first_(std::move(first)), random_(random), log_(log) {}
  Result<std::string> take() override;
  void drop() override;
  Result<std::optional<FirstToken>> first() override;
  [[nodiscard]] std::string place() const override { return file_.string(); }

 private:
  [[nodiscard]] std::string kept() const;

  Path file_;
  Path first_;
  Random& random_;
  Log& log_;
};

}  // namespace verger::controller
