#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::external {

/// The order that a server stays stopped. It is in a file, so that it outlives the agent. It lapses
/// once someone else has started the server. One thread.
class StopOrder {
 public:
  /// With an empty path it is kept in memory alone.
  StopOrder(FileSystem& files, Path file) : files_(&files), file_(std::move(file)) {}

  /// Replaces another one. `by`: not empty, one line. `instance`: of the server that is to be
  /// stopped; empty: none runs. Error: the file cannot be written; then nothing is changed.
  Result<void> give(std::string_view by, std::string_view instance);
  Result<void> lift();
  /// A server answers: true where it is another one than was to be stopped, so that the order is to
  /// be lifted.
  [[nodiscard]] bool has_lapsed(std::string_view running_instance) const;
  /// Who gave it; empty: there is none. Where the file cannot be read there is one: "(FILE: why)".
  [[nodiscard]] std::string given_by() const;

 private:
  /// Who, and the instance; nullopt: there is no order.
  [[nodiscard]] std::optional<std::pair<std::string, std::string>> read() const;

  FileSystem* files_;
  Path file_;
  std::string in_memory_;
};

}  // namespace verger::external
