#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/cipher.h"
#include "engine/base/file_system.h"
#include "engine/base/random.h"
#include "engine/base/result.h"

namespace verger::backup {

/// A key that objects of a repository are sealed with.
struct SealingKey {
  std::string id;  ///< 1 to 32 of a-z, 0-9, '.', '-'; stands in the clear in each sealed object
  Key256 key{};
};

/// The content of a key file (docs/operations/backup.md, "Encryption").
class KeyRing {
 public:
  /// Of the first line; what is written is sealed with it.
  [[nodiscard]] const SealingKey& writing() const { return keys_.front(); }
  [[nodiscard]] const std::vector<SealingKey>& keys() const { return keys_; }
  /// nullptr: it has no such key.
  [[nodiscard]] const SealingKey* find(std::string_view id) const;
  /// Gives stored content its names. Stays as it is for as long as the repository.
  [[nodiscard]] const Key256& name_key() const { return name_key_; }

  /// One key, and one for names.
  static KeyRing make(Random& random);
  /// A new first key.
  void add_key(Random& random);
  /// Error: kInvalidArgument, naming the line.
  static Result<KeyRing> parse(std::string_view text);
  [[nodiscard]] std::string to_text() const;

 private:
  KeyRing() = default;
  std::vector<SealingKey> keys_;
  Key256 name_key_{};
};

/// Errors: kNotFound, kIo, kInvalidArgument (naming file and line), kRefused (every user of the
/// machine may read it).
Result<KeyRing> read_key_file(FileSystem& files, const Path& path);

}  // namespace verger::backup
