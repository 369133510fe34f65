#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "controller/journal/etcd_client.h"
#include "engine/base/clock.h"

namespace verger::controller {

/// The guarantee of etcd that no other acts until it has run out. It is counted from before each
/// renewal was requested, so the owner stops believing in it before etcd does.
class EtcdLease {
 public:
  static net::awaitable<Result<std::shared_ptr<EtcdLease>>> grant(EtcdClient& client,
                                                                  std::chrono::seconds ttl,
                                                                  Clock& clock);
  /// Error kNotFound: it is over. Others: it is not known, and time runs on.
  static net::awaitable<Result<void>> renew(std::shared_ptr<EtcdLease> self, EtcdClient& client);
  /// Gives it back, so that another one need not wait. Done where it was over already.
  static net::awaitable<Result<void>> revoke(std::shared_ptr<EtcdLease> self, EtcdClient& client);

  [[nodiscard]] std::int64_t id() const { return id_; }
  [[nodiscard]] bool held() const { return !over_ && clock_.monotonic() < until_; }
  /// A third of its time is gone.
  [[nodiscard]] bool wants_renewal() const {
    return held() && clock_.monotonic() > until_ - ttl_ * 2 / 3;
  }
  [[nodiscard]] std::chrono::seconds ttl() const { return ttl_; }
  /// From now on it is not held.
  void end() { over_ = true; }

  EtcdLease(std::int64_t id, std::chrono::seconds ttl, Monotonic until, Clock& clock)
      : id_(id), ttl_(ttl), until_(until), clock_(clock) {}

 private:
  std::int64_t id_;
  std::chrono::seconds ttl_;
  Monotonic until_;
  bool over_ = false;
  Clock& clock_;
};

}  // namespace verger::controller
