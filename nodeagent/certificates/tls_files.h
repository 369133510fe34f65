#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"

/// The files that one side of TLS connections is configured with.
namespace verger::certificates {

/// Where the material of one side is: PEM, certificates DER too.
struct TlsFiles {
  /// Leaf first, then intermediates. Empty: a client that shows none.
  std::string certificate{};
  std::string private_key{};
  /// Of an encrypted private key.
  std::string private_key_password{};
  /// A file with one or more roots, or a directory of .crt, .cert, .cer, .pem and .der files.
  /// Nothing else is trusted, not the system's roots either. Intermediates among them are no roots,
  /// and refused with check_own_chain.
  std::string trusted_roots{};
  /// The common name, or a pattern such as "*.db.example.com", by which a node's certificate is
  /// known (Peer::certificate_is_node). Empty: that of the own certificate.
  std::string reserved_common_name{};
  /// A node's rules: the own certificate must chain to `trusted_roots`, be valid now, have no
  /// self-signed intermediate and fit `reserved_common_name`; the roots must all be self-signed,
  /// and of each file of a directory the first counts; the key file has nothing but the key. As a
  /// client the node shows its leaf alone, and its own intermediates help to verify what others
  /// show.
  bool check_own_chain = false;
  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

/// The files in which a server looks for roots: `path` itself, or those of the directory with its
/// extensions (.crt, .cert, .cer, .pem, .der), in order of their names. Error: kIo.
Result<std::vector<std::string>> root_files(const std::string& path);

}  // namespace verger::certificates
