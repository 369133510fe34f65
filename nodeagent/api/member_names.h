#pragma once

#include <string>

namespace verger::api {

/// A JSON object's text with its members in the names of the agent interface: "sync_only" becomes
/// "syncOnly", at any depth. What controllers and agents' journals of version 0.1 have in
/// snake_case reads the same. What is no JSON is returned as it is.
std::string in_camel_case(std::string json_text);

}  // namespace verger::api
