#include "nodeagent/node/persistent/source_position.h"

#include <fmt/format.h>

#include "engine/base/number_from_text.h"

namespace verger::node::persistent {

std::string to_text(const SourcePosition& position) {
  if (const auto* number = std::get_if<EventNumber>(&position)) {
    return fmt::format("{}", *number);
  }
  const auto& place = std::get<streams::AllPosition>(position);
  return fmt::format("C:{}/P:{}", place.commit, place.prepare);
}

std::optional<SourcePosition> parse_source_position(std::string_view text, bool all) {
  if (!all) {
    const auto number = number_from_text<std::int64_t>(text);
    return number ? std::optional<SourcePosition>(EventNumber(*number)) : std::nullopt;
  }
  const auto slash = text.find("/P:");
  if (!text.starts_with("C:") || slash == std::string_view::npos) {
    return std::nullopt;
  }
  constexpr std::size_t kCommitPrefix = 2;
  constexpr std::size_t kPreparePrefix = 3;
  const auto commit =
      number_from_text<std::int64_t>(text.substr(kCommitPrefix, slash - kCommitPrefix));
  const auto prepare = number_from_text<std::int64_t>(text.substr(slash + kPreparePrefix));
  if (!commit || !prepare) {
    return std::nullopt;
  }
  return streams::AllPosition{LogPosition(*commit), LogPosition(*prepare)};
}

}  // namespace verger::node::persistent
