#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/base/secret.h"

namespace verger::controller::web {

/// How long a login lasts, whatever is done meanwhile.
inline constexpr std::chrono::hours kSessionLifetime{12};

/// A browser that logged in with a token of the API.
struct Session {
  std::string token;  ///< each request of the session is made with it
  std::string csrf;   ///< what a request that changes something has to show beside the cookie
};

/// The sessions of this process. They are nowhere else: after a restart each browser logs in again.
/// What a session may do is decided by the API at each request: a revoked token ends it. One
/// thread.
class Sessions {
 public:
  /// Beyond `limit` sessions the one that ends next is forgotten.
  Sessions(Random& random, Clock& clock, std::size_t limit = 1000)
      : random_(random), clock_(clock), limit_(limit) {}

  struct Opened {
    std::string cookie;  ///< the value; shown to the browser alone
    std::string csrf;
  };
  Opened open(std::string token);
  /// nullopt: there is none of that cookie, or its time is over.
  [[nodiscard]] std::optional<Session> find(std::string_view cookie) const;
  /// Nothing where there is none.
  void close(std::string_view cookie);
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }

 private:
  struct Kept {
    SaltedHash secret;
    Session session;
    Monotonic ends{};
  };
  /// Those whose time is over, and what is too many.
  void forget_old();

  Random& random_;
  Clock& clock_;
  std::size_t limit_;
  std::map<std::string, Kept, std::less<>> sessions_;  ///< by the id in the cookie
};

}  // namespace verger::controller::web
