#include "nodeagent/node/detail/lenient_words.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace verger::node {

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

const nlohmann::ordered_json* member_of(const nlohmann::ordered_json& object,
                                        std::string_view name) {
  if (!object.is_object()) {
    return nullptr;
  }
  if (const auto exact = object.find(name); exact != object.end()) {
    return &*exact;
  }
  for (const auto& [key, value] : object.items()) {
    if (same_word(key, name)) {
      return &value;
    }
  }
  return nullptr;
}

std::optional<Uuid> parse_guid(std::string_view text) {
  constexpr std::size_t kDashed = 36;
  constexpr std::size_t kDigits = 32;
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  if (text.size() == kDashed + 2 && ((text.front() == '{' && text.back() == '}') ||
                                     (text.front() == '(' && text.back() == ')'))) {
    text = text.substr(1, kDashed);
  }
  auto uuid =
      text.size() == kDigits
          ? Uuid::parse(fmt::format("{}-{}-{}-{}-{}", text.substr(0, 8), text.substr(8, 4),
                                    text.substr(12, 4), text.substr(16, 4), text.substr(20)))
          : Uuid::parse(text);
  return uuid ? std::optional(*uuid) : std::nullopt;
}

}  // namespace verger::node
