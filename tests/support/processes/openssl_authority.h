#pragma once

#include <filesystem>
#include <string>

namespace verger::test {

/// A certificate authority of the `openssl` program, as a person without other tools makes one: EC
/// keys, valid for a day. Throws when the program fails.
class OpensslAuthority {
 public:
  /// Makes root and key in `directory`.
  OpensslAuthority(std::filesystem::path directory, const std::string& name);

  [[nodiscard]] std::filesystem::path root() const { return directory_ / "ca.crt"; }
  [[nodiscard]] std::filesystem::path key() const { return directory_ / "ca.key"; }
  /// Writes `base`.crt and `base`.key, each in one step. `names`: "IP:127.0.0.1,DNS:localhost"; may
  /// be empty. The certificate's serial, as the programs show it.
  std::string issue(const std::filesystem::path& base, const std::string& common_name,
                    const std::string& names,
                    const std::string& usages = "serverAuth,clientAuth") const;

 private:
  std::filesystem::path directory_;
};

}  // namespace verger::test
