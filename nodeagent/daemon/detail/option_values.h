#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "nodeagent/daemon/detours.h"
#include "nodeagent/http/client.h"

/// Values of options that are more than a text or a number.
namespace verger::agent {

/// "127.0.0.1:2111,127.0.0.1:2112". Error: kInvalidArgument, naming the option.
Result<std::vector<http::Endpoint>> parse_seeds(std::string_view text, bool tls);
/// Without empty ones.
std::vector<std::string> comma_separated(std::string_view text);
/// "127.0.0.1:2111=127.0.0.1:4001,127.0.0.1:1111=127.0.0.1:4002". Error: as above.
Result<Detours> parse_detours(std::string_view text, bool tls);
/// `given` is in KiB, as operators write it, where it could not be a number of bytes.
std::uint32_t page_size_in_bytes(std::uint32_t given);

}  // namespace verger::agent
