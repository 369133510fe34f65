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

  /// Replaces another one. `by`: not empty, one line. Error: the file cannot be written; then
  /// nothing is changed.
  Result<void> give(std::string_view by);
  /// As give(), of a server that may run and is about to be stopped. `instance`: which one that is;
  /// empty: that is not known yet.
  Result<void> give_to_running(std::string_view by, std::string_view instance);
  /// Where that server may still run: it has stopped, so that one that answers from now on was
  /// started after it. Error: the file cannot be written.
  Result<void> note_stopped();
  Result<void> lift();
  /// A server answers as this instance: true where it is another one than was stopped, so that the
  /// order is to be lifted. Until note_stopped() it is the one that is being stopped, also where it
  /// was not seen before. Error: that cannot be noted.
  Result<bool> has_lapsed(std::string_view running_instance);
  /// Who gave it; empty: there is none. Where the file cannot be read there is one: "(FILE: why)".
  [[nodiscard]] std::string given_by() const;

 private:
  /// A line each in the file.
  struct Order {
    std::string by{};
    std::string instance{};  ///< of the server that was to be stopped; empty: none was seen
    bool may_run = false;  ///< that server; in the file "may run", or no line
  };
  /// nullopt: there is no order.
  [[nodiscard]] std::optional<Order> read() const;
  Result<void> write(const Order& order);

  FileSystem* files_;
  Path file_;
  std::string in_memory_;
};

}  // namespace verger::external
