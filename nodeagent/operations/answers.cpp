#include "nodeagent/operations/answers.h"

namespace verger::agent {

http::Response problem_of(const Error& error) {
  switch (error.code) {
    case Errc::kInvalidArgument:
      return problem(400, "bad_request", error.message);
    case Errc::kNotFound:
      return problem(404, "not_found", error.message);
    case Errc::kRefused:
      return problem(409, "refused", error.message);
    case Errc::kConflict:
      return problem(409, "conflict", error.message);
    default:
      return problem(503, "unavailable", error.message);
  }
}

}  // namespace verger::agent
