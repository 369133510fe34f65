#pragma once

#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/base/uuid.h"

namespace verger::node {

/// For readers of whole messages: throws, as nlohmann::json does, on anything but a UUID's text.
inline Uuid uuid_of(const nlohmann::json& value) {
  auto parsed = Uuid::parse(value.get<std::string>());
  if (!parsed) {
    throw std::invalid_argument(parsed.error().message);
  }
  return *parsed;
}

}  // namespace verger::node
