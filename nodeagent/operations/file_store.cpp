#include "nodeagent/operations/file_store.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/base/directories.h"
#include "engine/base/number_from_text.h"

namespace verger::agent {
namespace {

constexpr std::size_t kSha256Digits = 64;

Ticks ticks_of(std::int64_t unix_second) {
  return Ticks(kUnixEpoch.value() + unix_second * kTicksPerSecond);
}

}  // namespace

bool is_sha256(std::string_view text) {
  return text.size() == kSha256Digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<std::unique_ptr<FileStore>> FileStore::open(Path directory, Environment environment,
                                                   const FileStoreLimits& limits) {
  VERGER_RETURN_IF_ERROR(make_directories_durably(environment.files, directory));
  std::unique_ptr<FileStore> store(
      new FileStore(std::move(directory), std::move(environment), limits));
  VERGER_RETURN_IF_ERROR(store->load());
  store->collect();
  return store;
}

Result<void> FileStore::load() {
  VERGER_TRY(const auto found, environment_.files.list(directory_));
  std::vector<Path> stray;
  for (const auto& each : found) {
    const auto name = std::string_view(each.name);
    const auto dot = name.find('.');
    const auto second = dot == std::string_view::npos
                            ? std::nullopt
                            : number_from_text<std::int64_t>(name.substr(dot + 1));
    if (each.is_directory || !is_sha256(name.substr(0, dot))) {
      continue;
    }
    if (!second || *second < 0) {
      if (name.ends_with(".tmp")) {
        stray.push_back(directory_ / each.name);
      }
      continue;
    }
    const auto same = std::ranges::find(entries_, name.substr(0, dot), &Entry::sha256);
    const Entry entry{
        .sha256 = std::string(name.substr(0, dot)), .stored_second = *second, .bytes = each.size};
    if (same == entries_.end()) {
      entries_.push_back(entry);
    } else if (same->stored_second < *second) {  // a crash between rename and remove
      stray.push_back(path_of(*same));
      *same = entry;
    } else {
      stray.push_back(path_of(entry));
    }
  }
  std::ranges::sort(entries_, {}, &Entry::stored_second);
  for (const auto& path : stray) {
    VERGER_RETURN_IF_ERROR(environment_.files.remove(path));
  }
  return stray.empty() ? Result<void>() : environment_.files.sync_directory(directory_);
}

Result<api::StoredFile> FileStore::put(std::string_view sha256, ByteView content) {
  if (!is_sha256(sha256)) {
    return Error{Errc::kInvalidArgument,
                 "the name of a file is its SHA-256, 64 lower-case hexadecimal digits"};
  }
  if (content.size() > limits_.file_bytes) {
    return Error{Errc::kInvalidArgument, fmt::format("the file has {} bytes, at most {} are stored",
                                                     content.size(), limits_.file_bytes)};
  }
  if (const auto actual = to_hex(verger::sha256(content)); actual != sha256) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("the SHA-256 of the body is {}, not {}", actual, sha256)};
  }
  collect();
  std::uint64_t others = 0;
  for (const auto& entry : entries_) {
    others += entry.sha256 == sha256 ? 0 : entry.bytes;
  }
  if (others + content.size() > limits_.total_bytes) {
    return Error{Errc::kNoSpace,
                 fmt::format("the file store holds {} of {} bytes, the file needs {}; delete files "
                             "that are no longer needed (GET, DELETE /agent/v1/files)",
                             others, limits_.total_bytes, content.size())};
  }
  const Entry entry{
      .sha256 = std::string(sha256), .stored_second = now_second(), .bytes = content.size()};
  const auto* known = entry_of(sha256);
  if (known != nullptr && known->stored_second == entry.stored_second && read(sha256)) {
    return shown(*known);
  }
  // A crash before the rename leaves a draft, which load() removes.
  VERGER_RETURN_IF_ERROR(
      write_secret_file(environment_.files, environment_.make_private, path_of(entry), content));
  if (known != nullptr && known->stored_second != entry.stored_second) {
    // Until it is removed the older one is passed over.
    static_cast<void>(environment_.files.remove(path_of(*known)));
  }
  std::erase_if(entries_, [&](const Entry& each) { return each.sha256 == sha256; });
  entries_.push_back(entry);
  environment_.log.info("a file was stored",
                        {{"sha256", entry.sha256}, {"bytes", std::to_string(entry.bytes)}});
  return shown(entry);
}

Result<api::StoredFile> FileStore::find(std::string_view sha256) const {
  const auto* entry = entry_of(sha256);
  if (entry == nullptr) {
    return Error{Errc::kNotFound, fmt::format("file {} is not stored here", sha256)};
  }
  return shown(*entry);
}

Result<Bytes> FileStore::read(std::string_view sha256) const {
  const auto* entry = entry_of(sha256);
  if (entry == nullptr) {
    return Error{Errc::kNotFound, fmt::format("file {} is not stored here", sha256)};
  }
  VERGER_TRY(auto content, read_file(environment_.files, path_of(*entry), limits_.file_bytes));
  if (to_hex(verger::sha256(content)) != sha256) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: its content is no longer what was stored; store it again",
                             path_of(*entry).string())};
  }
  return content;
}

Result<void> FileStore::remove(std::string_view sha256) {
  if (entry_of(sha256) == nullptr) {
    return Error{Errc::kNotFound, fmt::format("file {} is not stored here", sha256)};
  }
  if (in_use(sha256)) {
    return Error{Errc::kConflict,
                 fmt::format("an operation that has not ended refers to file {}", sha256)};
  }
  return drop(sha256);
}

std::vector<api::StoredFile> FileStore::list() const {
  std::vector<api::StoredFile> out;
  out.reserve(entries_.size());
  for (const auto& entry : entries_) {
    out.push_back(shown(entry));
  }
  return out;
}

void FileStore::collect() {
  const auto limit = now_second() - std::chrono::seconds(limits_.age).count();
  std::vector<std::string> old;
  for (const auto& entry : entries_) {
    if (entry.stored_second < limit && !in_use(entry.sha256)) {
      old.push_back(entry.sha256);
    }
  }
  for (const auto& sha256 : old) {
    if (auto dropped = drop(sha256); !dropped) {
      environment_.log.warning("a file that is too old cannot be removed",
                               {{"sha256", sha256}, {"error", dropped.error().message}});
    }
  }
}

Result<void> FileStore::drop(std::string_view sha256) {
  if (auto removed = environment_.files.remove(path_of(*entry_of(sha256)));
      !removed && removed.error().code != Errc::kNotFound) {
    return removed;
  }
  environment_.log.info("a stored file was removed", {{"sha256", std::string(sha256)}});
  std::erase_if(entries_, [&](const Entry& each) { return each.sha256 == sha256; });
  return environment_.files.sync_directory(directory_);
}

std::int64_t FileStore::now_second() const {
  return std::max<std::int64_t>(
      0, (environment_.clock.now().value() - kUnixEpoch.value()) / kTicksPerSecond);
}

Path FileStore::path_of(const Entry& entry) const {
  return directory_ / fmt::format("{}.{}", entry.sha256, entry.stored_second);
}

const FileStore::Entry* FileStore::entry_of(std::string_view sha256) const {
  const auto found = std::ranges::find(entries_, sha256, &Entry::sha256);
  return found == entries_.end() ? nullptr : &*found;
}

bool FileStore::in_use(std::string_view sha256) const {
  return environment_.in_use && environment_.in_use(sha256);
}

api::StoredFile FileStore::shown(const Entry& entry) {
  return {.sha256 = entry.sha256,
          .bytes = static_cast<std::int64_t>(entry.bytes),
          .stored_at = format_ticks(ticks_of(entry.stored_second))};
}

}  // namespace verger::agent
