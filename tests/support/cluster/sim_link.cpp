#include "tests/support/cluster/detail/sim_link.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace verger::testing {

namespace {

class SimConnection final : public http::FrameConnection {
 public:
  SimConnection(std::shared_ptr<SimLink> link, std::size_t end,
                const net::any_io_executor& executor)
      : link_(std::move(link)), end_(end), signal_(std::make_shared<SimSignal>(executor, 1)) {
    link_->ends[end_].signal = signal_;
  }
  ~SimConnection() override { link_->close(end_); }
  SimConnection(const SimConnection&) = delete;
  SimConnection& operator=(const SimConnection&) = delete;

  net::awaitable<Result<void>> send(Bytes frame) override {
    co_return link_->send(end_, std::move(frame));
  }

  net::awaitable<Result<Bytes>> receive() override {
    const auto link = link_;
    const auto signal = signal_;
    auto& mine = link->ends[end_];
    while (mine.arrived.empty()) {
      if (mine.closed) {
        co_return Error{Errc::kUnavailable,
                        fmt::format("{}: the link is closed", link->ends[1 - end_].host->name())};
      }
      const auto [error] = co_await signal->async_receive(net::as_tuple(net::use_awaitable));
      if (error) {
        throw boost::system::system_error(net::error::operation_aborted);
      }
    }
    auto frame = std::move(mine.arrived.front());
    mine.arrived.pop_front();
    co_return frame;
  }

  void close() override { link_->close(end_); }

 private:
  std::shared_ptr<SimLink> link_;
  std::size_t end_;
  std::shared_ptr<SimSignal> signal_;
};

}  // namespace

bool SimLink::joins(const std::string& a, const std::string& b) const {
  const auto& x = ends[0].host->name();
  const auto& y = ends[1].host->name();
  return (x == a && y == b) || (x == b && y == a);
}

bool SimLink::alive(std::size_t end) const {
  const auto& which = ends[end];
  return which.host->up() && !which.host->dying() && which.host->incarnation_ == which.incarnation;
}

void SimLink::wake(std::size_t end) {
  if (!alive(end)) {
    return;  // the signal's context may be gone
  }
  if (const auto signal = ends[end].signal.lock()) {
    ends[end].host->wake();
    signal->try_send(boost::system::error_code{});
  }
}

void SimLink::after_delay(std::size_t to, std::function<void(SimLink&)> action) {
  auto& last = last_arrival_[to];
  last = std::max(last, world.local_now() + world.delay());
  world.schedule_for_hosts(
      last - world.local_now(), [self = shared_from_this(), to, action = std::move(action)] {
        if (self->alive(to) && !self->ends[to].closed &&
            self->world.connected(self->ends[0].host->name(), self->ends[1].host->name())) {
          action(*self);
        }
      });
}

Result<void> SimLink::send(std::size_t from, Bytes frame) {
  auto& sender = ends[from];
  if (sender.closed) {
    return Error{Errc::kUnavailable,
                 fmt::format("{}: the link is closed", ends[1 - from].host->name())};
  }
  if (!alive(from)) {
    return {};
  }
  if (world.faults.break_link > 0 && world.random_.below(1000) < world.faults.break_link) {
    ++world.counts.links_broken;
    break_both();
    return Error{Errc::kUnavailable,
                 fmt::format("{}: the link broke", ends[1 - from].host->name())};
  }
  after_delay(1 - from, [from, sent = std::make_shared<Bytes>(std::move(frame))](SimLink& link) {
    link.world.deliver({.kind = SimMessage::Kind::kFrame,
                        .from = link.ends[from].host->name(),
                        .to = link.ends[1 - from].host->name(),
                        .size = sent->size()});
    link.ends[1 - from].arrived.push_back(std::move(*sent));
    link.wake(1 - from);
  });
  return {};
}

void SimLink::close(std::size_t from) {
  auto& end = ends[from];
  if (end.closed) {
    return;
  }
  end.closed = true;
  wake(from);
  if (end.host->incarnation_ == end.incarnation && end.host->silent_) {
    return;
  }
  after_delay(1 - from, [from](SimLink& link) {
    link.ends[1 - from].closed = true;
    link.wake(1 - from);
  });
}

void SimLink::break_both() {
  for (std::size_t end = 0; end < ends.size(); ++end) {
    ends[end].closed = true;
    wake(end);
  }
}

std::shared_ptr<http::FrameConnection> SimLink::join(SimWorld& world, SimHost& from,
                                                     const http::Endpoint& to) {
  auto* host = world.find(to.host);
  if (host == nullptr || !host->up() || host->dying()) {
    return nullptr;
  }
  const auto handler = host->process_->frames.find(to.port);
  if (handler == host->process_->frames.end()) {
    return nullptr;
  }
  auto link = std::make_shared<SimLink>(world);
  link->ends[0].host = &from;
  link->ends[0].incarnation = from.incarnation_;
  link->ends[1].host = host;
  link->ends[1].incarnation = host->incarnation_;
  world.links_.push_back(link);
  host->spawn(handler->second(std::make_shared<SimConnection>(link, 1, host->executor())));
  return std::make_shared<SimConnection>(link, 0, from.executor());
}

net::awaitable<Result<std::shared_ptr<http::FrameConnection>>> SimTransport::connect(
    http::Endpoint to, std::chrono::milliseconds deadline) {
  co_await host_.timers().sleep_for(
      std::chrono::ceil<std::chrono::milliseconds>(world_.delay() + world_.delay()));
  if (host_.dying()) {
    co_return Error{Errc::kUnavailable, "the process is ending"};
  }
  if (!world_.connected(host_.name(), to.host)) {
    ++world_.counts.partitioned;
    co_await host_.timers().sleep_for(deadline);
    co_return Error{Errc::kUnavailable, to.url() + ": no answer before the deadline"};
  }
  auto connection = SimLink::join(world_, host_, to);
  if (!connection) {
    co_return Error{Errc::kUnavailable, to.url() + ": connection refused"};
  }
  co_return connection;
}

}  // namespace verger::testing
