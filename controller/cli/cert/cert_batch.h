#pragma once

#include <string>
#include <vector>

#include "controller/cli/cert/cert_create.h"

namespace verger::cli {

/// What a batch file is to make, in the order in which it can be made: authorities as they stand,
/// then nodes, then users. YAML, `ca-certs`, `node-certs` and `user-certs`, below `certificates` or
/// at the top (docs/operations/certificates.md). Error: kInvalidArgument, with the line.
Result<std::vector<NewCertificateOptions>> parse_batch(const std::string& yaml);

struct BatchResult {
  std::vector<MadeCertificate> made{};  ///< those before an error, too
  Result<void> outcome{};
};
/// Makes them one after the other. Nothing is made where an entry is wrong or one of the files is
/// there. `force`: replaces all of them.
BatchResult make_batch(const std::string& file, bool force, Ticks now);

}  // namespace verger::cli
