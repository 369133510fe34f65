#include "engine/verify/findings.h"

#include <algorithm>

namespace verger::verify {

namespace {

constexpr std::uint64_t kListedOfKind = 10;

/// Errors name their file, which stands before each finding anyway.
std::string without_file(const Path& file, std::string text) {
  const auto prefix = file.string() + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

void Findings::damage(const Path& file, std::optional<std::uint64_t> offset, std::string text) {
  add({.damage = true,
       .kind = {},
       .file = file.string(),
       .offset = offset,
       .text = without_file(file, std::move(text))});
}

void Findings::note(const Path& file, std::string text) {
  add({.damage = false,
       .kind = {},
       .file = file.string(),
       .offset = std::nullopt,
       .text = std::move(text)});
}

void Findings::damage_of_kind(std::string_view kind, const Path& file,
                              std::optional<std::uint64_t> offset, std::string text) {
  add({.damage = true,
       .kind = std::string(kind),
       .file = file.string(),
       .offset = offset,
       .text = std::move(text)});
}

void Findings::add(Finding finding) {
  if (!finding.kind.empty()) {
    auto found = std::ranges::find(kinds_, finding.kind, &Kind::name);
    if (found == kinds_.end()) {
      found = kinds_.insert(kinds_.end(), Kind{.name = finding.kind});
    }
    ++found->count;
    if (found->listed == kListedOfKind) {
      return;
    }
    ++found->listed;
  }
  findings_.push_back(std::move(finding));
}

void Findings::take(const Findings& others) {
  for (const auto& finding : others.findings_) {
    add(finding);
  }
  for (const auto& kind : others.kinds_) {
    if (kind.count > kind.listed) {  // then it is listed, and known here
      std::ranges::find(kinds_, kind.name, &Kind::name)->count += kind.count - kind.listed;
    }
  }
}

std::size_t Findings::damage_count() const {
  auto count = static_cast<std::uint64_t>(std::ranges::count_if(findings_, &Finding::damage));
  for (const auto& kind : kinds_) {
    count += kind.count - kind.listed;
  }
  return count;
}

}  // namespace verger::verify
