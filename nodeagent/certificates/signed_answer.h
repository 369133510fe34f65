#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/issuing.h"

namespace verger::certificates {

/// What an authority answered to a request, put in order. PEM.
struct SignedAnswer {
  std::string chain{};  ///< leaf first, each of the others behind the one that it issued
  std::string roots{};  ///< those that came along; servers refuse them behind a leaf
  CertificateInfo leaf{};
};

/// Finds the certificate of the request's key among those in `answer`, in whichever order they
/// are. Error kInvalidArgument: none is of that key, it has another common name than `terms` or
/// lacks one of their names, or it is an authority's. Dates and usages are lint's to judge.
Result<SignedAnswer> take_answer(std::string_view request, const CertificateTerms& terms,
                                 std::string_view answer);

}  // namespace verger::certificates
