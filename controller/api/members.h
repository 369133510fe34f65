#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"

namespace verger::controller {

/// Reads members of a request's body. One that is missing or null has the default; for the first
/// that is of another type finish() fails, which is called before anything is done.
class Members {
 public:
  /// `object` outlives this. `where` is for messages: "nodes[2]"; empty: the body itself.
  explicit Members(const nlohmann::json& object, std::string where = {});

  std::string text(const char* name, std::string fallback = {});
  bool flag(const char* name, bool fallback = false);
  /// A whole number of 64 bits.
  std::int64_t number(const char* name, std::int64_t fallback);
  /// Null where it is missing.
  const nlohmann::json* array(const char* name);
  const nlohmann::json* object(const char* name);
  /// An object whose members are texts.
  std::map<std::string, std::string> texts(const char* name);
  /// Once all that is known has been read. Errors: kInvalidArgument: a member is of another type,
  /// or unknown: it was meant to have an effect.
  [[nodiscard]] Result<void> finish() const;

 private:
  const nlohmann::json* find(const char* name);
  void complain(const char* name, const char* expected);
  const nlohmann::json& object_;
  std::string where_;
  std::optional<Error> wrong_;
  std::vector<std::string> known_;
};

}  // namespace verger::controller
