#pragma once

#include <span>
#include <string_view>

namespace verger::controller::web {

/// A file of the dashboard, embedded in the program.
struct Asset {
  std::string_view name;  ///< below /ui/: "app.js"
  std::string_view content_type;
  std::string_view etag;  ///< with its quotes; another one for another content
  std::string_view text;
};

/// All of them, ordered by name.
std::span<const Asset> assets();

}  // namespace verger::controller::web
