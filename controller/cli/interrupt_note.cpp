#include "controller/cli/interrupt_note.h"

#include <atomic>
#include <unistd.h>
#include <utility>

namespace verger::cli {
namespace {

/// What the handler may look at; a lock-free atomic is all it may touch.
std::atomic<const std::string*> note_to_write{nullptr};

/// write() and raise() are safe in a handler; SA_RESETHAND has put the default back already.
void write_note(int signal) {
  if (const auto* text = note_to_write.load(); text != nullptr) {
    static_cast<void>(::write(STDERR_FILENO, text->data(), text->size()));
  }
  static_cast<void>(::raise(signal));
}

}  // namespace

InterruptNote::InterruptNote(std::string text) : text_(std::move(text)) {
  note_to_write = &text_;
  struct sigaction action{};
  action.sa_handler = write_note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &before_);
}

InterruptNote::~InterruptNote() {
  ::sigaction(SIGINT, &before_, nullptr);
  note_to_write = nullptr;
}

}  // namespace verger::cli
