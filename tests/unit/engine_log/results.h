#pragma once

#include <stdexcept>
#include <string>

#include "engine/base/result.h"

namespace verger::log {

/// The value, or a failing test that shows the error.
template <class T>
T value(Result<T> result) {
  if (!result) {
    throw std::runtime_error(std::string(to_string(result.error().code)) + ": " +
                             result.error().message);
  }
  return *std::move(result);
}
inline void ok(const Result<void>& result) {
  if (!result) {
    throw std::runtime_error(std::string(to_string(result.error().code)) + ": " +
                             result.error().message);
  }
}

}  // namespace verger::log
