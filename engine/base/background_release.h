#pragma once

#include <memory>
#include <utility>

#include "engine/base/background_stage.h"

namespace verger {

/// Destroys objects in a thread of its own, at the latest with its own end: for what holds the last
/// reference to deleted files, of which a file system can take a tenth of a second to free 256 MiB.
/// One thread uses it.
class BackgroundRelease {
 public:
  void release(std::shared_ptr<const void> object) {
    while (objects_.take_done() != nullptr) {
    }
    objects_.give(std::make_unique<std::shared_ptr<const void>>(std::move(object)));
  }

 private:
  using Object = std::shared_ptr<const void>;

  BackgroundStage<Object> objects_{[](Object& object) { object.reset(); }};
};

}  // namespace verger
