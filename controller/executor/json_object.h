#pragma once

#include <memory>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace verger::controller {

/// A JSON object that never changes: parsed or made once, shared by its copies, so that no reader
/// parses a text again or has to think of texts that are no object. Safe from any thread.
class JsonObject {
 public:
  JsonObject();  ///< {}
  /// What is no object is {}: journals and agents of other versions may hold anything.
  JsonObject(nlohmann::json value);  // NOLINT(google-explicit-constructor): a value of that type
  /// The same of what is no JSON at all.
  [[nodiscard]] static JsonObject parse(std::string_view text);

  [[nodiscard]] const nlohmann::json& operator*() const { return *value_; }
  [[nodiscard]] const nlohmann::json* operator->() const { return value_.get(); }
  /// With the members of `more` in place of its own.
  [[nodiscard]] JsonObject merged_with(const JsonObject& more) const;
  friend bool operator==(const JsonObject& one, const JsonObject& other);

 private:
  std::shared_ptr<const nlohmann::json> value_;  ///< never nullptr
};

}  // namespace verger::controller
