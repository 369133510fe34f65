#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "nodeagent/http/message.h"

namespace verger::testing {

/// Ids of the recording and what the replayed cluster calls the same thing.
class Names {
 public:
  void learn(const std::string& recorded, const std::string& own);
  /// With the recording's ids replaced by ours; upper-case ones by ours in upper case.
  [[nodiscard]] std::string translate(std::string text) const;

 private:
  std::map<std::string, std::string> own_;
};

/// How `answer` differs from the recorded response, one line for each difference: status, reason
/// phrase, headers that matter, shape of the body. Values are compared where they decide
/// something (errors, flags, names of users and streams, relations of links).
std::vector<std::string> differences(const nlohmann::json& exchange, const http::Response& answer,
                                     const Names& names);

}  // namespace verger::testing
