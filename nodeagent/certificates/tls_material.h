#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "nodeagent/certificates/openssl.h"
#include "nodeagent/certificates/tls_files.h"

namespace verger::certificates {

/// What TlsFiles name, read once.
struct TlsMaterial {
  std::vector<Certificate> chain;  ///< leaf first; empty: none is shown
  Key key;
  std::vector<Certificate> roots;
};

/// Takes the lines that a server logs while it reads its certificates (node-interface.md, 4.5).
struct LoadingLines {
  /// SHA-1 of the leaf in use; empty: none.
  std::string previous_thumbprint{};
  std::function<void(std::string line)> write{};
};

/// Reads certificate, key and roots and checks that they belong together, as far as TlsFiles says:
/// in the server's order, so that of several faults the same one is found.
/// Errors: kNotFound, kIo: a file; kInvalidArgument: not PEM, a key that does not fit, no root, or
/// a chain that its own roots do not accept. The message names the file.
Result<TlsMaterial> load_material(const TlsFiles& files);
Result<TlsMaterial> load_material(const TlsFiles& files, const LoadingLines& lines);

}  // namespace verger::certificates
