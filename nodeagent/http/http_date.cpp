#include "nodeagent/http/http_date.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <fmt/format.h>

#include "engine/base/number_from_text.h"
#include "engine/base/unix_time.h"

namespace verger::http {

Result<Ticks> parse_http_date(const std::string& text) {
  std::tm tm{};
  const char* end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &tm);
  const bool is_day =
      std::chrono::year_month_day(std::chrono::year(tm.tm_year + 1900),
                                  std::chrono::month(static_cast<unsigned>(tm.tm_mon + 1)),
                                  std::chrono::day(static_cast<unsigned>(tm.tm_mday)))
          .ok();
  if (end == nullptr || *end != '\0' || !is_day) {
    return Error{Errc::kInvalidArgument, fmt::format("\"{}\" is no date of HTTP", text)};
  }
  return ticks_at_unix(unix_seconds_of(tm));
}

std::optional<std::chrono::seconds> retry_after(const Response& answer, Ticks now) {
  const auto text = std::string(answer.headers.get("Retry-After").value_or(""));
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (const auto whole = number_from_text<std::uint32_t>(text.substr(0, digits))) {
    const auto rest = text.substr(digits);
    const bool is_fraction =
        rest.size() > 1 && rest[0] == '.' && rest.find_first_not_of("0123456789", 1) == rest.npos;
    if (!rest.empty() && !is_fraction) {
      return std::nullopt;
    }
    return std::chrono::seconds(*whole) + std::chrono::seconds(is_fraction ? 1 : 0);
  }
  const auto until = parse_http_date(text);
  if (!until) {
    return std::nullopt;
  }
  const auto sent = parse_http_date(std::string(answer.headers.get("Date").value_or("")));
  const auto left = until->value() - (sent ? *sent : now).value();
  return std::chrono::seconds(std::max(std::int64_t{0}, left / kTicksPerSecond));
}

}  // namespace verger::http
