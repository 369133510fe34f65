#pragma once

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "controller/journal/journal.h"

namespace verger::controller::detail {

/// Who wants to hear of appends, as Journal::subscribe promises.
class Listeners {
 public:
  Journal::Subscription add(Journal::Listener listener) {
    auto kept = std::make_shared<Journal::Listener>(std::move(listener));
    listeners_.push_back(kept);
    return kept;
  }
  void tell(Sequence last) {
    std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
    // A listener may subscribe another one, so the list is copied first.
    for (const auto& weak : std::vector(listeners_.begin(), listeners_.end())) {
      if (const auto listener = weak.lock()) {
        (*listener)(last);
      }
    }
  }

 private:
  std::list<std::weak_ptr<Journal::Listener>> listeners_;
};

}  // namespace verger::controller::detail
