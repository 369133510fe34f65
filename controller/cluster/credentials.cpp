#include "controller/cluster/credentials.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/bytes.h"
#include "engine/base/number_from_text.h"

namespace verger::controller {
namespace {

std::string take_line(std::string_view& text) {
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return std::string(line);
}

constexpr std::uint64_t kCredentialsFileBytes = 64U << 10U;
/// Each look at a cluster asks several times.
constexpr std::chrono::seconds kReadAgainAfter{5};

struct HostAndPort {
  std::string_view host;
  std::string_view port;  ///< empty: the node's usual one; "*": any
};

/// "[::1]:2111" -> "::1", "2111"
HostAndPort split(std::string_view pattern) {
  if (pattern.starts_with('[')) {
    const auto close = pattern.find(']');
    const auto rest = close == std::string_view::npos ? "" : pattern.substr(close + 1);
    return {pattern.substr(1, close == std::string_view::npos ? close : close - 1),
            rest.starts_with(':') ? rest.substr(1) : std::string_view()};
  }
  const auto colon = pattern.rfind(':');
  return colon == std::string_view::npos
             ? HostAndPort{pattern, {}}
             : HostAndPort{pattern.substr(0, colon), pattern.substr(colon + 1)};
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool fits(std::string_view pattern, const http::Endpoint& endpoint) {
  const auto [host, port] = split(pattern);
  if (port != "*" &&
      endpoint.port !=
          (port.empty() ? http::kNodePort : number_from_text<std::uint16_t>(port).value_or(0))) {
    return false;
  }
  if (host.starts_with("*.")) {
    const auto dot = endpoint.host.find('.');
    return dot != std::string::npos && dot > 0 &&
           same_name(std::string_view(endpoint.host).substr(dot), host.substr(1));
  }
  return same_name(host, endpoint.host);
}

/// A pattern that fits every host would bind to none.
bool is_host(std::string_view pattern) {
  const auto [host, port] = split(pattern);
  const auto name = host.starts_with("*.") ? host.substr(2) : host;
  return !name.empty() && name.find('*') == std::string_view::npos &&
         name.find_first_of("/@") == std::string_view::npos &&
         (port.empty() ? !pattern.ends_with(':')
                       : port == "*" || number_from_text<std::uint16_t>(port).value_or(0) > 0);
}

Result<std::vector<std::string>> parse_hosts(std::string_view text, const Path& file) {
  constexpr std::string_view kBetween = " \t,";
  std::vector<std::string> out;
  for (int number = 3; !text.empty(); ++number) {
    const auto whole = take_line(text);
    std::string_view line = whole;
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const auto begin = std::min(line.find_first_not_of(kBetween), line.size());
      line.remove_prefix(begin);
      const auto word = line.substr(0, line.find_first_of(kBetween));
      line.remove_prefix(word.size());
      if (word.empty()) {
        continue;
      }
      if (!is_host(word)) {
        return Error{Errc::kInvalidArgument,
                     fmt::format("{}, line {}: \"{}\" is no host; it takes n1.db.example.com, "
                                 "*.db.example.com, 127.0.0.1:2111",
                                 file.string(), number, word)};
      }
      out.emplace_back(word);
    }
  }
  return out;
}

}  // namespace

bool Credentials::are_for(const http::Endpoint& endpoint) const {
  return std::ranges::any_of(hosts,
                             [&](const std::string& pattern) { return fits(pattern, endpoint); });
}

Result<void> check_host(const Credentials& credentials, std::string_view name,
                        const http::Endpoint& endpoint) {
  if (credentials.are_for(endpoint)) {
    return {};
  }
  const auto url = endpoint.url();
  return Error{
      Errc::kUnauthorized,
      fmt::format("the credentials \"{}\" are not for {}, so they are not sent there: {}; where "
                  "that is wrong, add the line {} to the file of that name in vergerd's "
                  "credentials directory",
                  name, url,
                  credentials.hosts.empty()
                      ? "their file names no hosts"
                      : fmt::format("they are for {}", fmt::join(credentials.hosts, ", ")),
                  url.substr(url.find("://") + 3))};
}

Result<Credentials> CredentialDirectory::find(std::string_view name) {
  const auto now = clock_.monotonic();
  if (const auto known = read_.find(name);
      known != read_.end() && now - known->second.at < kReadAgainAfter) {
    return known->second.credentials;
  }
  auto found = read(name);
  if (found) {
    read_.insert_or_assign(std::string(name), Read{.credentials = *found, .at = now});
  } else if (const auto known = read_.find(name); known != read_.end()) {
    read_.erase(known);
  }
  return found;
}

Result<Credentials> CredentialDirectory::read(std::string_view name) {
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string_view::npos) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("credentials \"{}\": the name of a file in {} is expected", name,
                             directory_.string())};
  }
  const auto path = directory_ / name;
  auto content = read_file(files_, path, kCredentialsFileBytes);
  if (!content) {
    auto error = content.error().within(fmt::format("credentials \"{}\"", name));
    error.message +=
        "; vergerd reads the user from its first line, the password from its second, "
        "the hosts they are for from the third on";
    return error;
  }
  auto text = as_text(*content);
  Credentials out;
  out.user = take_line(text);
  out.password = take_line(text);
  if (out.user.empty() || out.password.empty()) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}: the first line must be the user, the second the password", path.string())};
  }
  VERGER_TRY(out.hosts, parse_hosts(text, path));
  out.warning = exposed_secret(files_, path);
  if (out.warning.empty()) {
    warned_of_.erase(std::string(name));
  } else if (warned_of_.insert(std::string(name)).second) {
    log_.warning(out.warning, {{"credentials", std::string(name)}});
  }
  return out;
}

}  // namespace verger::controller
