#pragma once

#include <memory>

namespace verger::controller {

class CertificateSigner;  // the signer.h of the operation that signs

/// What the operator of this controller configured for operations. Never in a plan, the journal or
/// an answer of the API.
struct OperationSettings {
  /// Of authorities and commands that sign requests; null: nothing can be signed.
  std::shared_ptr<CertificateSigner> signer{};
};

}  // namespace verger::controller
