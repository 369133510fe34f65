#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/result.h"
#include "nodeagent/api/json_view.h"

namespace verger::api {

/// Reads the members of one object and remembers the first that has the wrong shape. A member that
/// is missing or null leaves the default; unknown members are of no interest.
class Fields {
 public:
  /// `where` names the object in messages: "gossip.members[2]".
  Fields(JsonView object, std::string where, Errc code = Errc::kCorruption)
      : members_(object), where_(std::move(where)), code_(code) {
    if (!object.is_object()) {
      error_ = Error{code_, where_ + ": an object was expected"};
    }
  }

  [[nodiscard]] bool has(std::string_view name) const { return find(name).has_value(); }

  /// Text, a truth, or a whole number: a position that went through a double may be another one.
  template <class T>
  void read(std::string_view name, T& into) {
    if (const auto value = find(name)) {
      read_value(name, *value, into);
    }
  }
  /// The same of a member that has to be there.
  template <class T>
  void need(std::string_view name, T& into) {
    if (const auto value = find(name)) {
      read_value(name, *value, into);
    } else {
      wrong(name, "is missing");
    }
  }
  /// The member, of any type; nullopt where it is missing or null.
  [[nodiscard]] std::optional<JsonView> find(std::string_view name) const {
    const auto found = members_.find(name);
    return found && found->is_null() ? std::nullopt : found;
  }
  void require(std::string_view name) {
    if (!has(name)) {
      wrong(name, "is missing");
    }
  }
  void wrong(std::string_view name, std::string_view why) {
    if (!error_.has_value()) {
      error_ = Error{code_, where_ + "." + std::string(name) + ": " + std::string(why)};
    }
  }
  /// Calls `each(element, "where.name[3]") -> Result<void>` for the elements of an array.
  template <class Each>
  void each(std::string_view name, Each work) {
    const auto value = find(name);
    if (!value) {
      return;
    }
    if (!value->is_array()) {
      wrong(name, "an array was expected");
      return;
    }
    const auto values = value->values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto done = work(values[i], where_ + "." + std::string(name) + "[" + std::to_string(i) + "]");
      if (!done.has_value()) {
        take(std::move(done).error());
      }
    }
  }
  void take(Error error) {
    if (!error_.has_value()) {
      error_ = std::move(error);
    }
  }
  [[nodiscard]] Result<void> result() const {
    if (error_.has_value()) {
      return *error_;
    }
    return {};
  }

 private:
  void read_value(std::string_view name, JsonView value, std::string& into) {
    if (value.is_string()) {
      into = value.string();
    } else {
      wrong(name, "a string was expected");
    }
  }
  void read_value(std::string_view name, JsonView value, bool& into) {
    if (value.is_boolean()) {
      into = value.boolean();
    } else {
      wrong(name, "true or false was expected");
    }
  }
  template <std::integral T>
  void read_value(std::string_view name, JsonView value, T& into) {
    if (!value.is_integer()) {
      wrong(name, "a whole number was expected");
    } else if (const auto positive = value.unsigned_number();
               positive && !std::in_range<T>(*positive)) {
      wrong(name, "the number is too large");
    } else if (positive) {
      into = static_cast<T>(*positive);
    } else if (const auto number = value.signed_number(); !number || !std::in_range<T>(*number)) {
      wrong(name, "the number is out of range");
    } else {
      into = static_cast<T>(*number);
    }
  }

  JsonMembers members_;
  std::string where_;
  Errc code_;
  std::optional<Error> error_;
};

}  // namespace verger::api
