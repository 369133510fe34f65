#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"
#include "nodeagent/api/json_answer.h"

namespace verger::controller {

using api::json_answer;
using api::problem;

/// The problem an Error of the executor, the registry or the journal is to a client.
http::Response problem_of(const Error& error);
/// 204.
http::Response no_content();
http::Response no_route(const http::Request& request);
http::Response wrong_method(const http::Request& request, std::string_view allowed);

/// A page of a list: at most `limit` (1 to 1000, else 500) of the items whose keys come after that
/// of the query's `cursor`. The answer is {member: items, "next_cursor": TEXT or null}. Keys are
/// unique; an item that came or went between two pages makes no other come twice or not at all. An
/// item's error becomes the answer.
http::Response paged_answer(std::string_view member, const std::vector<std::string>& keys,
                            const http::Target& target,
                            const std::function<Result<nlohmann::json>(std::size_t)>& item);
/// The same with the members of `beside`, which belong to every page.
http::Response paged_answer(std::string_view member, const std::vector<std::string>& keys,
                            const http::Target& target,
                            const std::function<Result<nlohmann::json>(std::size_t)>& item,
                            nlohmann::json beside);

/// Gives a good answer to a GET an ETag, where it has none, and makes it 304 where If-None-Match
/// names that.
void answer_conditionally(const http::Request& request, http::Response& response);

/// A JSON object; an empty body is an empty one. Error: kInvalidArgument.
Result<nlohmann::json> parse_body(const std::string& body);

}  // namespace verger::controller
