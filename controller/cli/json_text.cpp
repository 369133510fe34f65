#include "controller/cli/json_text.h"

namespace verger::cli {

using nlohmann::json;

std::string text_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t number_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number() ? found->get<std::int64_t>() : 0;
}

bool is_true(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

json list_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_array() ? *found : json::array();
}

json object_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_object() ? *found : json::object();
}

std::string optional_number(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number() ? with_separators(found->get<std::int64_t>())
                                                     : "-";
}

std::string optional_bytes(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number() ? human_bytes(found->get<std::int64_t>())
                                                     : "-";
}

std::string verdict(const json& object, const char* name, const char* yes, const char* no,
                    const char* unknown) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end() || !found->is_boolean()) {
    return unknown;
  }
  return found->get<bool>() ? yes : no;
}

}  // namespace verger::cli
