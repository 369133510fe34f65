#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "nodeagent/http/message.h"

namespace verger::client::test {

/// One HTTP exchange with a real server 24.6, as tests/fixtures/node-interface has it.
struct Recording {
  std::string file;
  std::string title;
  std::string method;
  std::string path;
  std::string accept;
  std::string credentials;
  http::Response response{};
  /// The body was cut for the file, so that it is not what the server sent.
  bool is_cut = false;
  [[nodiscard]] std::string name() const { return file + ": " + title; }
};

/// All of them; fails the test when a file cannot be read.
std::vector<Recording> all_recordings();
/// Those with that title.
std::vector<Recording> recordings_titled(const std::string& file, const std::string& title);

}  // namespace verger::client::test
