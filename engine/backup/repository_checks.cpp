#include <algorithm>
#include <fmt/format.h>
#include <ranges>
#include <utility>

#include "engine/backup/detail/repository_names.h"
#include "engine/backup/repository.h"

namespace verger::backup {

Result<void> Repository::add_check(std::string_view id, const BackupCheck& check) {
  VERGER_TRY(const bool there,
             is_generation_id(id)
                 ? detail::is_there(*store_, detail::document_in(detail::kGenerations, id))
                 : Result<bool>(false));
  if (!there) {
    return Error{
        Errc::kNotFound,
        fmt::format("{}: backup {} is not there: its check is not recorded", store_->name(), id)};
  }
  VERGER_RETURN_IF_ERROR(store_->put(detail::document_in(detail::kChecks, check_name(id, check)),
                                     as_bytes(encode_check(check))));
  VERGER_TRY(auto names, store_->list(detail::kChecks));
  const auto prefix = check_prefix(id, check.kind);
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  for (std::size_t at = 0; at + kKeptChecks < names.size(); ++at) {
    VERGER_RETURN_IF_ERROR(store_->remove(detail::document_in(detail::kChecks, names[at])));
  }
  return {};
}

/// nullopt: it is damaged, or was removed meanwhile. A check says something of a backup, and can be
/// repeated; that one cannot be read makes nothing else unusable.
Result<std::optional<BackupCheck>> Repository::read_check(std::string_view name) const {
  const auto bytes = store_->get(detail::document_in(detail::kChecks, name));
  if (!bytes) {
    if (bytes.error().code == Errc::kNotFound || bytes.error().code == Errc::kCorruption) {
      return std::optional<BackupCheck>();
    }
    return bytes.error();
  }
  auto check = decode_check(*bytes);
  return check ? std::optional(*std::move(check)) : std::nullopt;
}

Result<std::vector<BackupCheck>> Repository::checks(std::string_view id) const {
  VERGER_TRY(const auto names, store_->list(detail::kChecks));
  std::vector<BackupCheck> found;
  for (const auto& name : names) {
    if (name.starts_with(check_prefix(id, BackupCheck::Kind::kVerify)) ||
        name.starts_with(check_prefix(id, BackupCheck::Kind::kDrill))) {
      VERGER_TRY(auto check, read_check(name));
      if (check) {
        found.push_back(*std::move(check));
      }
    }
  }
  std::ranges::sort(found, {},
                    [](const BackupCheck& check) { return std::pair(check.at, check.kind); });
  return found;
}

Result<std::map<std::string, LatestChecks>> Repository::latest_checks() const {
  VERGER_TRY(const auto names, store_->list(detail::kChecks));
  std::map<std::string, LatestChecks> found;
  for (const auto& name : names | std::views::reverse) {
    const std::string id = name.substr(0, name.find('.'));
    if (!is_generation_id(id)) {
      continue;
    }
    for (const auto kind : {BackupCheck::Kind::kVerify, BackupCheck::Kind::kDrill}) {
      auto& latest = found[id];
      auto& place = kind == BackupCheck::Kind::kVerify ? latest.verify : latest.drill;
      if (!place && name.starts_with(check_prefix(id, kind))) {
        VERGER_TRY(place, read_check(name));
      }
    }
  }
  return found;
}

Result<void> Repository::remove_checks_except(const std::set<std::string>& kept) {
  VERGER_TRY(const auto names, store_->list(detail::kChecks));
  for (const auto& name : names) {
    if (!kept.contains(name.substr(0, name.find('.')))) {
      VERGER_RETURN_IF_ERROR(store_->remove(detail::document_in(detail::kChecks, name)));
    }
  }
  return {};
}

}  // namespace verger::backup
