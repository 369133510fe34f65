#include "nodeagent/operations/online_scavenge/chunk_lock.h"

#include <fmt/format.h>
#include <vector>

#include <boost/asio/this_coro.hpp>

#include "engine/base/failpoint.h"
#include "engine/streams/stream_names.h"

namespace verger::agent::beside {
namespace {

using std::chrono::milliseconds;

/// A redaction holds the lock for seconds, a scavenge for hours: each attempt waits twice as long
/// as the one before, and half a minute (1 + 2 + 4 + 8 + 16 s) outlasts the former. For the latter
/// the controller waits: it tries the whole step again, and no attempt is spent.
constexpr milliseconds kFirstLockBackOff{1'000};
constexpr int kLockAttempts = 6;

}  // namespace

net::awaitable<Ended> take_lock(Shared work) {
  std::string why;
  auto pause = kFirstLockBackOff;
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (attempt > 0) {
      work->report("waiting for the chunk lock");
      // In pieces, so that a cancel ends it at once.
      for (milliseconds waited{0}; waited < pause && !work->stopping(); waited += kServerPoll) {
        co_await work->node.timers.sleep_for(kServerPoll);
      }
      pause *= 2;
    }
    if (work->stopping()) {
      co_return stopped();
    }
    work->drop_lock();
    auto connected = work->node.online->connect(co_await net::this_coro::executor);
    if (!connected) {
      why = connected.error().message;
      continue;
    }
    work->client = *std::move(connected);
    auto taken = co_await work->client->lock();
    if (taken.done()) {
      work->lock = std::move(*taken.value);
      VERGER_FAILPOINT("online.lock.taken");
      co_return std::nullopt;
    }
    why = taken.why;
    if (taken.refused() && taken.code != "chunk_lock_held" && taken.code != "unreachable" &&
        taken.code != "not_ready") {
      co_return OnlineFailure{.code = "refused", .text = why};
    }
  }
  co_return OnlineFailure{.code = "lock_held",
                          .text = fmt::format("the node's chunk lock could not be taken: {}", why)};
}

net::awaitable<Result<std::optional<online_scavenge::Resumable>>> look_for_left_over(Shared work) {
  const auto found = std::make_shared<std::optional<online_scavenge::Resumable>>();
  VERGER_CO_RETURN_IF_ERROR(co_await call(work, [work, found]() -> Result<void> {
    VERGER_TRY(*found, online_scavenge::find_resumable(work->machine.files, work->place));
    return {};
  }));
  co_return std::move(*found);
}

net::awaitable<Ended> take_lock_again(Shared work) {
  work->drop_lock();
  if (!co_await server_is_there(work)) {
    co_return work->stopping()
        ? stopped()
        : OnlineFailure{.code = "no_answer",
                        .text = "the server does not answer, since chunks were switched"};
  }
  if (auto failed = co_await take_lock(work)) {
    co_return failed;
  }
  const auto left_over = co_await look_for_left_over(work);
  if (!left_over) {
    co_return failure_of(left_over.error());
  }
  if (!*left_over) {
    co_return OnlineFailure{
        .code = "lock_held",
        .text =
            "another scavenge has worked on the node since its chunk lock was lost; "
            "chunks that were switched stay, and the next scavenge does the rest"};
  }
  co_return std::nullopt;
}

/// The lock is an open call on one connection: another call on it is answered only by the process
/// that gave the lock.
net::awaitable<bool> lock_is_held(Shared work) {
  if (!work->lock || work->lock_is_lost) {
    co_return false;
  }
  std::vector<client::EventToFind> any{
      {.stream = std::string(streams::kScavengePointsStream), .number = EventNumber(0)}};
  const auto answer = co_await work->client->positions(std::move(any));
  co_return answer.code != "unreachable" && answer.code != "no_answer";
}

net::awaitable<void> release(Shared work) {
  if (work->lock) {
    if (const auto released = co_await work->lock->release(); !released.done()) {
      // The end of the connection frees it in any case.
      work->node.log.warning("the chunk lock was not given back in order",
                             {{"reason", released.why}});
    }
  }
  work->drop_lock();
}

}  // namespace verger::agent::beside
