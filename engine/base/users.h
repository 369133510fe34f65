#pragma once

#include <cstdint>
#include <vector>

namespace verger {

/// All groups of a user of this machine, by their ids; empty where the user is not known here.
std::vector<std::uint32_t> groups_of_user(std::uint32_t user);

}  // namespace verger
