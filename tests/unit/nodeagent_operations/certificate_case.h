#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/memory_file_system.h"
#include "nodeagent/operations/certificates/certificate_access.h"

namespace verger::agent {

/// A certificate authority with EC keys, whose certificates are valid now.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  struct Leaf {
    std::string certificate;
    std::string key;
  };
  [[nodiscard]] Leaf leaf(const std::string& common_name = "node") const;
  [[nodiscard]] const std::string& root() const { return root_; }
  /// A certificate for a request's key.
  [[nodiscard]] std::string sign(const std::string& request) const;

 private:
  std::string root_;
  std::string key_;
};

/// Writes a file durably, with its directories.
void put_file(FileSystem& files, const Path& path, const std::string& content);
std::string text_of_file(FileSystem& files, const Path& path);
/// Everything below a directory: path and content.
std::map<std::string, std::string> all_files(FileSystem& files, const Path& directory);

/// The certificates of a server on the disk of a test: /node/node.crt, /node/node.key, /node/ca.
struct NodeDirectory {
  explicit NodeDirectory(FileSystem& on) : files(on) {}
  void write(const TestAuthority::Leaf& leaf, const std::map<std::string, std::string>& roots);
  [[nodiscard]] std::map<std::string, std::string> content() const {
    return all_files(files, "/node");
  }
  static CertificatePlaces places() {
    return {.certificate = "/node/node.crt",
            .private_key = "/node/node.key",
            .trusted_roots = "/node/ca"};
  }
  FileSystem& files;
};

/// What a server does with its certificates: it shows what it has loaded, refuses clients that do
/// not chain to its roots, and keeps what it has where a new set does not fit together.
class FakeServer {
 public:
  explicit FakeServer(FileSystem& files) : files_(files) {}
  /// False: it keeps what it has.
  bool reload();
  [[nodiscard]] Result<http::Handshake> shake_hands(const http::ClientMaterial& shown) const;
  [[nodiscard]] const std::string& served() const { return chain_; }
  [[nodiscard]] const std::string& roots() const { return roots_; }

  bool ignores_reloads = false;
  bool down = false;
  int reloads = 0;

 private:
  FileSystem& files_;
  std::string chain_;
  std::string roots_;
};

}  // namespace verger::agent
