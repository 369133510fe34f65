#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/base/result.h"

namespace verger {

/// What must be there for a test to continue; without it the test ends with the error's text.
template <class T>
T value(Result<T> result) {
  if (!result) {
    throw std::runtime_error(std::string(to_string(result.error().code)) + ": " +
                             result.error().message);
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

inline void ok(const Result<void>& result) { value(result); }

}  // namespace verger
