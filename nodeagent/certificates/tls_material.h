#pragma once

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

/// Reads certificate, key and roots and checks that they belong together, as far as TlsFiles says.
/// Errors: kNotFound, kIo: a file; kInvalidArgument: not PEM, a key that does not fit, no root, or
/// a chain that its own roots do not accept. The message names the file.
Result<TlsMaterial> load_material(const TlsFiles& files);

}  // namespace verger::certificates
