#include "controller/executor/json_object.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

const std::shared_ptr<const nlohmann::json>& empty_object() {
  static const auto kEmpty = std::make_shared<const nlohmann::json>(nlohmann::json::object());
  return kEmpty;
}

}  // namespace

JsonObject::JsonObject() : value_(empty_object()) {}

JsonObject::JsonObject(nlohmann::json value)
    : value_(value.is_object() && !value.empty()
                 ? std::make_shared<const nlohmann::json>(std::move(value))
                 : empty_object()) {}

JsonObject JsonObject::parse(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}

JsonObject JsonObject::merged_with(const JsonObject& more) const {
  if (more->empty()) {
    return *this;
  }
  auto merged = *value_;
  merged.update(*more);
  return merged;
}

bool operator==(const JsonObject& one, const JsonObject& other) {
  return one.value_ == other.value_ || *one == *other;
}

}  // namespace verger::controller
