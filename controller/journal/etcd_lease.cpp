#include "controller/journal/etcd_lease.h"

#include <algorithm>

namespace verger::controller {

net::awaitable<Result<std::shared_ptr<EtcdLease>>> EtcdLease::grant(EtcdClient& client,
                                                                    std::chrono::seconds ttl,
                                                                    Clock& clock) {
  const auto asked = clock.monotonic();
  VERGER_CO_TRY(const auto id, co_await client.grant_lease(ttl));
  co_return std::make_shared<EtcdLease>(id, ttl, asked + ttl, clock);
}

net::awaitable<Result<void>> EtcdLease::renew(std::shared_ptr<EtcdLease> self, EtcdClient& client) {
  const auto asked = self->clock_.monotonic();
  auto kept = co_await client.keep_lease(self->id_);
  if (kept) {
    self->until_ = std::max(self->until_, asked + self->ttl_);
  } else if (kept.error().code == Errc::kNotFound) {
    self->over_ = true;
  }
  co_return kept;
}

net::awaitable<Result<void>> EtcdLease::revoke(std::shared_ptr<EtcdLease> self,
                                               EtcdClient& client) {
  self->over_ = true;
  auto revoked = co_await client.revoke_lease(self->id_);
  if (!revoked && revoked.error().code == Errc::kNotFound) {
    co_return Result<void>{};
  }
  co_return revoked;
}

}  // namespace verger::controller
