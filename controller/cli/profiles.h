#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::cli {

/// Where a vergerd is and who talks to it, as `verger login` stored it.
struct Profile {
  std::vector<std::string> controllers{};  ///< URLs; of a pair both
  std::string ca_file{};                   ///< roots for https; empty: none
  std::string token_file{};                ///< mode 0600, the token on its first line
};

/// The profiles of one person: profiles.json in a directory of mode 0700, and beside it a file for
/// each token and each root that was copied there.
class Profiles {
 public:
  /// $XDG_CONFIG_HOME/verger or $HOME/.config/verger; nullopt where neither is set.
  static std::optional<Path> directory_of_environment();
  /// Without a file there are none. Error: kInvalidArgument: the file is no list of profiles.
  static Result<Profiles> load(Path directory);

  [[nodiscard]] const std::map<std::string, Profile>& all() const { return profiles_; }
  /// The one that counts where none is named; empty: there is none.
  [[nodiscard]] const std::string& current() const { return current_; }
  /// Error: kNotFound, naming those that there are.
  [[nodiscard]] Result<Profile> find(std::string_view name) const;

  /// Stores a profile in place of one of that name, and makes it the current one. `root`: PEM,
  /// copied; empty: `profile.ca_file` counts as it is. Errors: kInvalidArgument (the name), the
  /// disk's.
  Result<void> log_in(const std::string& name, Profile profile, const std::string& token,
                      const std::string& root);
  /// Errors: kNotFound, the disk's.
  Result<void> use(const std::string& name);
  /// Its token and its copied root too. Errors: kNotFound, the disk's.
  Result<void> remove(const std::string& name);

 private:
  explicit Profiles(Path directory) : directory_(std::move(directory)) {}
  [[nodiscard]] Path token_file_of(const std::string& name) const;
  [[nodiscard]] Path root_file_of(const std::string& name) const;
  Result<void> write() const;

  Path directory_;
  std::string current_;
  std::map<std::string, Profile> profiles_;
};

}  // namespace verger::cli
