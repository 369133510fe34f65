#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace verger::controller {

class CertificateSigner;  // the signer.h of the operation that signs

/// What the operator of this controller configured for operations. Never in a plan, the journal or
/// an answer of the API.
struct OperationSettings {
  /// Of authorities and commands that sign requests; null: nothing can be signed.
  std::shared_ptr<CertificateSigner> signer{};
  /// The values that each run of the cluster has kept (kKeptValues), ended ones and the present
  /// ones; not set: they are not known. Called once the executor has started.
  std::function<std::vector<std::map<std::string, std::string>>(std::string_view cluster)>
      kept_by_runs{};
};

}  // namespace verger::controller
