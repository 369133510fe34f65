#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "engine/base/result.h"

namespace verger::api {

/// Reads the members of one object and remembers the first that has the wrong shape. A member that
/// is missing or null leaves the default; unknown members are of no interest.
class Fields {
 public:
  /// `where` names the object in messages: "gossip.members[2]".
  Fields(const nlohmann::json& object, std::string where, Errc code = Errc::kCorruption)
      : object_(object), where_(std::move(where)), code_(code) {
    if (!object_.is_object()) {
      error_ = Error{code_, where_ + ": an object was expected"};
    }
  }

  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  void read(std::string_view name, std::string& into) {
    if (const auto* value = find(name); value != nullptr) {
      if (value->is_string()) {
        into = value->get<std::string>();
      } else {
        wrong(name, "a string was expected");
      }
    }
  }
  void read(std::string_view name, bool& into) {
    if (const auto* value = find(name); value != nullptr) {
      if (value->is_boolean()) {
        into = value->get<bool>();
      } else {
        wrong(name, "true or false was expected");
      }
    }
  }
  /// Whole numbers only: a position that went through a double may be another position.
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  void read(std::string_view name, T& into) {
    const auto* value = find(name);
    if (value == nullptr) {
      return;
    }
    if (!value->is_number_integer()) {
      wrong(name, "a whole number was expected");
    } else if (value->is_number_unsigned() &&
               value->get<std::uint64_t>() >
                   static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
      wrong(name, "the number is too large");
    } else if (const auto number = value->get<std::int64_t>();
               number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      wrong(name, "the number is out of range");
    } else {
      into = static_cast<T>(number);
    }
  }
  /// The member, whatever it is; null where it is missing.
  [[nodiscard]] const nlohmann::json* find(std::string_view name) const {
    if (!object_.is_object()) {
      return nullptr;
    }
    const auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void require(std::string_view name) {
    if (find(name) == nullptr) {
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
    const auto* value = find(name);
    if (value == nullptr) {
      return;
    }
    if (!value->is_array()) {
      wrong(name, "an array was expected");
      return;
    }
    for (std::size_t i = 0; i < value->size(); ++i) {
      auto done =
          work((*value)[i], where_ + "." + std::string(name) + "[" + std::to_string(i) + "]");
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
  const nlohmann::json& object_;
  std::string where_;
  Errc code_;
  std::optional<Error> error_;
};

}  // namespace verger::api
