#pragma once

#include <string>
#include <string_view>

#include "tests/support/object_store/s3_server.h"

namespace verger::test {

/// All but letters, digits and "-._~" as %XX; '/' too, unless it is kept.
std::string percent_encoded(std::string_view text, bool keep_slash);

/// The signature (AWS version 4) that a request with this Authorization header should have: of its
/// method, path, query, signed headers and announced body, for the service s3.
std::string expected_signature(const S3Call& call, const std::string& secret);
/// What follows `name`= in a request's Authorization header, up to the next ','.
std::string authorization_part(const S3Call& call, const std::string& name);

}  // namespace verger::test
