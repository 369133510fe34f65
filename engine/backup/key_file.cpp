#include "engine/backup/key_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "engine/backup/blob_store.h"
#include "engine/base/digest.h"

namespace verger::backup {
namespace {

constexpr std::string_view kNames = "names";
constexpr std::size_t kLongestKeyId = 32;

bool is_key_id(std::string_view id) {
  return !id.empty() && id.size() <= kLongestKeyId && id != kNames &&
         std::ranges::all_of(id, [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                  letter == '.' || letter == '-';
         });
}

SealingKey new_key(Random& random) {
  return {.id = fmt::format("key-{:012x}", random.next() >> 16U), .key = random_key(random)};
}

Error bad_line(std::size_t number, std::string_view what) {
  return {Errc::kInvalidArgument, fmt::format("line {}: {}", number, what)};
}

}  // namespace

const SealingKey* KeyRing::find(std::string_view id) const {
  const auto found = std::ranges::find(keys_, id, &SealingKey::id);
  return found == keys_.end() ? nullptr : &*found;
}

KeyRing KeyRing::make(Random& random) {
  KeyRing ring;
  ring.name_key_ = random_key(random);
  ring.keys_.push_back(new_key(random));
  return ring;
}

void KeyRing::add_key(Random& random) { keys_.insert(keys_.begin(), new_key(random)); }

Result<KeyRing> KeyRing::parse(std::string_view text) {
  KeyRing ring;
  std::optional<Key256> names;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    const auto space = line.find(' ');
    const auto id = line.substr(0, space);
    // A key has the form of a digest: 64 hexadecimal digits. No message shows it.
    const auto key = digest_from_hex(space == std::string_view::npos ? std::string_view()
                                                                     : line.substr(space + 1));
    if (!key || (id != kNames && !is_key_id(id))) {
      return bad_line(number,
                      "should be ID KEY: 1 to 32 of a-z, 0-9, '.', '-', one space, and 64 "
                      "lower-case hexadecimal digits");
    }
    if (id == kNames) {
      if (names) {
        return bad_line(number, "a second key \"names\": a file has one");
      }
      names = *key;
    } else if (ring.find(id) != nullptr) {
      return bad_line(number, fmt::format("a second key \"{}\": give each its own id", id));
    } else {
      ring.keys_.push_back({.id = std::string(id), .key = *key});
    }
  }
  if (ring.keys_.empty() || !names) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("holds no {}; `verger-db backup key create FILE` makes a key file",
                             ring.keys_.empty() ? "key" : "key \"names\"")};
  }
  ring.name_key_ = *names;
  return ring;
}

std::string KeyRing::to_text() const {
  std::string text =
      "# Keys of encrypted backups. Without this file they cannot be read: keep a copy apart from "
      "them.\n"
      "# The first key is used for writing, all for reading. \"names\" never changes.\n";
  for (const auto& key : keys_) {
    text += fmt::format("{} {}\n", key.id, to_hex(key.key));
  }
  return text + fmt::format("{} {}\n", kNames, to_hex(name_key_));
}

Result<KeyRing> read_key_file(FileSystem& files, const Path& path) {
  constexpr std::uint64_t kLargest = 64U << 10U;
  VERGER_TRY(const auto content, read_file(files, path, kLargest));
  VERGER_TRY(const bool open_to_all, files.readable_by_anybody(path));
  if (open_to_all) {
    return Error{Errc::kRefused,
                 fmt::format("{}: holds keys of backups, and every user of this machine may read "
                             "it: chmod 600 it, and make a new key if others were here",
                             path.string())};
  }
  auto ring = KeyRing::parse(as_text(content));
  if (!ring) {
    return ring.error().within(path.string());
  }
  return ring;
}

}  // namespace verger::backup
