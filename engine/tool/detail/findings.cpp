#include "engine/tool/detail/findings.h"

#include <algorithm>
#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/tool/table.h"

namespace verger::tool {

namespace {
constexpr std::uint64_t kListedOfKind = 10;
}

void Findings::damage(const Path& file, std::optional<std::uint64_t> offset, std::string text) {
  findings_.push_back({true, file.string(), offset, std::move(text)});
}

void Findings::note(const Path& file, std::string text) {
  findings_.push_back({false, file.string(), std::nullopt, std::move(text)});
}

void Findings::damage_of_kind(std::string_view kind, const Path& file, std::string text) {
  auto found = std::ranges::find(kinds_, kind, &Kind::name);
  if (found == kinds_.end()) {
    found = kinds_.insert(kinds_.end(), Kind{std::string(kind)});
  }
  if (++found->count <= kListedOfKind) {
    damage(file, std::nullopt, std::move(text));
  }
}

std::size_t Findings::damage_count() const {
  auto count = static_cast<std::uint64_t>(std::ranges::count_if(findings_, &Finding::damage));
  for (const auto& kind : kinds_) {
    count += kind.count - std::min(kind.count, kListedOfKind);
  }
  return count;
}

void Findings::print(ToolContext& tool) const {
  for (const auto& finding : findings_) {
    if (tool.json) {
      nlohmann::ordered_json line = {{"finding", finding.damage ? "damage" : "note"},
                                     {"file", finding.file}};
      if (finding.offset) {
        line["offset"] = *finding.offset;
      }
      line["text"] = finding.text;
      tool.out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    } else {
      tool.out << fmt::format(
          "{}: {}{}: {}\n", finding.damage ? "DAMAGE" : "note", printable(finding.file),
          finding.offset ? fmt::format(" at {}", *finding.offset) : "", printable(finding.text));
    }
  }
  for (const auto& kind : kinds_) {
    if (kind.count > kListedOfKind && !tool.json) {
      tool.out << fmt::format("DAMAGE: … and {} more of the kind \"{}\"\n",
                              human_count(kind.count - kListedOfKind), kind.name);
    }
  }
}

}  // namespace verger::tool
