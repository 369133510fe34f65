#pragma once

#include <csignal>
#include <string>

namespace verger::cli {

/// While it lives, SIGINT writes a note to standard error before it ends the process as it would
/// have anyway. One at a time.
class InterruptNote {
 public:
  explicit InterruptNote(std::string text);
  ~InterruptNote();
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;

 private:
  std::string text_;
  struct sigaction before_{};
};

}  // namespace verger::cli
