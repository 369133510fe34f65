#pragma once

#include <cstdint>
#include <google/protobuf/message.h>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace verger::testing {

std::string from_hex(const std::string& hex);
/// tests/fixtures/grpc/NAME.
nlohmann::json recording(const std::string& name);

/// An empty message of the type with which a method answers; `call`: "package.Service/Method".
std::unique_ptr<google::protobuf::Message> empty_response(const std::string& call);

/// Takes what differs from run to run out of a message: times, ids that the server makes,
/// addresses, rates. Returns its positions in the log, in order.
std::vector<std::uint64_t> take_what_differs(google::protobuf::Message& message);

}  // namespace verger::testing
