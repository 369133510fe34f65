#include "nodeagent/external/start_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <system_error>

namespace verger::external {
namespace {

constexpr std::size_t kLargest = 4U << 20U;
/// Of servers of all versions, and of the embedded node.
constexpr std::array<std::string_view, 3> kPrefixes{"eventstore", "kurrentdb", "vergernode"};

/// Files of /proc have no size.
Result<std::string> text_of(const Path& path) {
  const auto opened = posix_file_system().open(path, OpenMode::kRead);
  if (!opened) {
    return Error{Errc::kRefused, opened.error().message};
  }
  std::string out;
  Bytes piece(1U << 16U);
  for (;;) {
    const auto read = (*opened)->read_at(out.size(), piece);
    if (!read || out.size() > kLargest) {
      return Error{Errc::kRefused, fmt::format("{}: cannot be read", path.string())};
    }
    if (*read == 0) {
      return out;
    }
    out += as_text(ByteView(piece).first(*read));
  }
}

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\0', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string plain_form(std::string_view name) {
  std::string out;
  for (const char each : name) {
    if (each != '-' && each != '_') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    }
  }
  return out;
}

struct GivenValue {
  std::string shown;  ///< as it was given
  std::string value;
};

std::optional<GivenValue> flag_of(const std::vector<std::string>& arguments,
                                  const std::string& wanted) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& each = arguments[i];
    const auto equals = std::min(each.find('='), each.size());
    if (!each.starts_with('-') || plain_form(each.substr(0, equals)) != wanted) {
      continue;
    }
    if (equals < each.size()) {
      return GivenValue{each, each.substr(equals + 1)};
    }
    const auto next = i + 1 < arguments.size() ? arguments[i + 1] : std::string();
    return GivenValue{next.empty() ? each : fmt::format("{} {}", each, next), next};
  }
  return std::nullopt;
}

std::optional<GivenValue> variable_of(const std::vector<std::string>& environment,
                                      const std::string& wanted) {
  for (const auto& each : environment) {
    const auto equals = std::min(each.find('='), each.size());
    const auto name = plain_form(each.substr(0, equals));
    if (std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
          return name == std::string(prefix) + wanted;
        })) {
      return GivenValue{each, each.substr(std::min(equals + 1, each.size()))};
    }
  }
  return std::nullopt;
}

}  // namespace

Result<StartOptions> start_options_of(std::int64_t process, const Path& proc) {
  const auto directory = proc / std::to_string(process);
  VERGER_TRY(const auto arguments, text_of(directory / "cmdline"));
  VERGER_TRY(const auto environment, text_of(directory / "environ"));
  StartOptions out{.arguments = parts_of(arguments), .environment = parts_of(environment)};
  if (!out.arguments.empty()) {
    out.arguments.erase(out.arguments.begin());
  }
  std::error_code unknown;
  out.directory = std::filesystem::read_symlink(directory / "cwd", unknown);
  out.program = std::filesystem::read_symlink(directory / "exe", unknown);
  return out;
}

std::string given_at_start(const StartOptions& options, std::string_view option) {
  const auto wanted = plain_form(option);
  if (const auto flag = flag_of(options.arguments, wanted)) {
    return flag->shown;
  }
  const auto variable = variable_of(options.environment, wanted);
  return variable ? variable->shown : std::string();
}

Path config_file_given(const StartOptions& options) {
  auto given = flag_of(options.arguments, "config");
  if (!given) {
    given = variable_of(options.environment, "config");
  }
  const Path path = given ? Path(given->value) : Path();
  return path.empty() || path.is_absolute() ? path : (options.directory / path).lexically_normal();
}

Path application_directory(const StartOptions& options) {
  if (options.program.filename() == "dotnet" && !options.arguments.empty() &&
      options.arguments.front().ends_with(".dll")) {
    return (options.directory / options.arguments.front()).lexically_normal().parent_path();
  }
  return options.program.parent_path();
}

}  // namespace verger::external
