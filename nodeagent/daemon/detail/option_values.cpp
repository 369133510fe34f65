#include "nodeagent/daemon/detail/option_values.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace verger::agent {
namespace {

/// The largest page of SQLite.
constexpr std::uint32_t kMostKibibytes = 64;

}  // namespace

Result<std::vector<http::Endpoint>> parse_seeds(std::string_view text, bool tls) {
  std::vector<http::Endpoint> seeds;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto seed = text.substr(0, comma);
    auto endpoint = http::parse_endpoint((tls ? "https://" : "http://") + std::string(seed));
    if (!endpoint) {
      return endpoint.error().within(fmt::format("--gossip-seed {}", seed));
    }
    seeds.push_back(*std::move(endpoint));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return seeds;
}

std::vector<std::string> comma_separated(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (comma > 0) {
      out.emplace_back(text.substr(0, comma));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

Result<Detours> parse_detours(std::string_view text, bool tls) {
  Detours detours;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto detour = text.substr(0, comma);
    const auto equals = detour.find('=');
    const auto there = equals == std::string_view::npos ? "" : detour.substr(equals + 1);
    const std::string scheme(tls ? "https://" : "http://");
    auto from = http::parse_endpoint(scheme + std::string(detour.substr(0, equals)));
    auto to = http::parse_endpoint(scheme + std::string(there));
    if (!from || !to) {
      return (from ? to : from).error().within(fmt::format("--detours {}", detour));
    }
    detours.emplace(*std::move(from), *std::move(to));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return detours;
}

std::uint32_t page_size_in_bytes(std::uint32_t given) {
  return given <= kMostKibibytes ? given * 1024 : given;
}

}  // namespace verger::agent
