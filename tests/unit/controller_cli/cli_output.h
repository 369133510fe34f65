#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/cli/api_client.h"
#include "controller/cli/commands.h"

/// What the command line writes.
namespace verger::cli {

struct Said {
  int status = 0;
  std::string out, err;
};

inline Said verger(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "verger");
  std::ostringstream out;
  std::ostringstream err;
  const int status = run_verger(static_cast<int>(arguments.size()), arguments.data(), out, err);
  return {status, out.str(), err.str()};
}

/// Nothing listens on port 1.
inline Said verger_without_vergerd(std::vector<const char*> arguments) {
  arguments.insert(arguments.end(), {"--controller", "http://127.0.0.1:1"});
  return verger(std::move(arguments));
}

/// What `print` writes, as into a pipe or on a terminal.
inline std::string said(void (*print)(const CliContext&, const nlohmann::json&),
                        const nlohmann::json& value,
                        std::optional<std::size_t> width = std::nullopt) {
  std::ostringstream out;
  std::ostringstream err;
  ApiClient api({.controllers = {http::parse_endpoint("http://127.0.0.1:1").value()}}, err);
  print({.api = api, .out = out, .err = err, .json = false, .width = width}, value);
  return out.str();
}

}  // namespace verger::cli
