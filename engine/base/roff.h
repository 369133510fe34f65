#pragma once

#include <string>
#include <string_view>

namespace verger {

/// Text as it stands in a manual page: what roff takes for commands is escaped.
[[nodiscard]] std::string roff_escaped(std::string_view text);

}  // namespace verger
