#include "tests/support/cluster/sim_world.h"

#include <stdexcept>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/support/cluster/detail/sim_link.h"
#include "tests/support/cluster/detail/sim_process.h"

namespace verger::testing {

namespace {

std::pair<std::string, std::string> pair_of(const std::string& a, const std::string& b) {
  return a < b ? std::pair(a, b) : std::pair(b, a);
}

}  // namespace

SimWorld::SimWorld(std::uint64_t seed) : random_(seed) {}

SimWorld::~SimWorld() {
  for (auto& [name, host] : hosts_) {
    host->crash(/*power=*/false);
  }
}

SimHost& SimWorld::add_host(const std::string& name) {
  auto& host = hosts_[name];
  if (host) {
    throw std::logic_error("two hosts are called " + name);
  }
  host = std::unique_ptr<SimHost>(new SimHost(*this, name));
  return *host;
}

SimHost* SimWorld::find(const std::string& name) {
  const auto found = hosts_.find(name);
  return found == hosts_.end() ? nullptr : found->second.get();
}

SimHost& SimWorld::host(const std::string& name) {
  auto* found = find(name);
  if (found == nullptr) {
    throw std::logic_error("no host is called " + name);
  }
  return *found;
}

Monotonic SimWorld::local_now() const {
  return running_ == nullptr ? now_ : std::max(now_, running_->busy_until_);
}

Ticks SimWorld::wall() const { return Ticks(start.value() + local_now().count() / 100); }

std::chrono::nanoseconds SimWorld::delay() {
  const std::chrono::nanoseconds longest =
      faults.long_delay > 0 && random_.below(1000) < faults.long_delay
          ? (++counts.delayed_long, std::chrono::nanoseconds(faults.longest_delay))
          : std::chrono::nanoseconds(faults.max_delay);
  const std::chrono::nanoseconds least = faults.min_delay;
  const auto range =
      static_cast<std::uint64_t>(std::max<std::int64_t>((longest - least).count(), 0));
  return least + std::chrono::nanoseconds(random_.below(range + 1));
}

void SimWorld::cut(const std::string& a, const std::string& b) {
  cuts_.insert(pair_of(machine_of(a), machine_of(b)));
  std::erase_if(links_, [](const auto& link) { return link.expired(); });
  for (const auto& weak : std::vector(links_)) {
    if (const auto link = weak.lock(); link && link->joins(a, b)) {
      ++counts.links_broken;
      link->break_both();
    }
  }
}

void SimWorld::isolate(const std::string& name) {
  for (const auto& [other, host] : hosts_) {
    if (host->machine != machine_of(name)) {
      cut(name, other);
    }
  }
}

void SimWorld::heal() { cuts_.clear(); }

bool SimWorld::connected(const std::string& a, const std::string& b) const {
  if (cuts_.empty() || a == b) {
    return true;
  }
  const auto& from = machine_of(a);
  const auto& to = machine_of(b);
  return from == to || !cuts_.contains(pair_of(from, to));
}

const std::string& SimWorld::machine_of(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? host : found->second->machine;
}

void SimWorld::schedule(std::chrono::nanoseconds delay, Action action) {
  put(delay, {std::move(action)});
}

void SimWorld::schedule_for_hosts(std::chrono::nanoseconds delay, Action action) {
  put(delay, {std::move(action), /*any_host=*/false});
}

void SimWorld::put(std::chrono::nanoseconds delay, Event event) {
  std::size_t index = events_.size();
  if (unused_events_.empty()) {
    events_.push_back(std::move(event));
  } else {
    index = unused_events_.back();
    unused_events_.pop_back();
    events_[index] = std::move(event);
  }
  queue_.push({local_now() + delay, next_sequence_++, index});
}

void SimWorld::bury_the_dead() {
  if (!std::exchange(any_dying_, false)) {
    return;
  }
  for (auto& [name, host] : hosts_) {
    if (host->dying()) {
      host->bury();
    }
  }
}

void SimWorld::poll() {
  while (any_woken_ || any_dying_) {
    any_woken_ = false;
    for (auto& [name, host] : hosts_) {
      if (std::exchange(host->woken_, false)) {
        running_ = host.get();
        host->poll();
        running_ = nullptr;
      }
    }
    bury_the_dead();
  }
}

void SimWorld::wake_all() {
  for (auto& [name, host] : hosts_) {
    host->wake();
  }
}

bool SimWorld::step() {
  wake_all();
  poll();
  if (queue_.empty()) {
    return false;
  }
  carry_out_next();
  return true;
}

void SimWorld::carry_out_next() {
  if (before_event) {
    before_event();
    bury_the_dead();
  }
  const auto due = queue_.top();
  queue_.pop();
  // Taken out before it runs: it may schedule.
  auto event = std::move(events_[due.event]);
  unused_events_.push_back(due.event);
  now_ = due.at;
  ++carried_out_;
  event.action();
  if (event.any_host) {
    wake_all();
  }
}

void SimWorld::run_for(std::chrono::milliseconds duration) {
  run_until([] { return false; }, duration);
}

bool SimWorld::run_until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const auto end = now_ + limit;
  wake_all();  // the caller may have given any of them work
  for (;;) {
    poll();
    if (done()) {
      return true;
    }
    poll();
    if (queue_.empty() || queue_.top().at > end) {
      now_ = end;
      return false;
    }
    carry_out_next();
  }
}

// --- hosts

SimHost::SimHost(SimWorld& world, std::string name)
    : machine(name),
      world_(world),
      name_(std::move(name)),
      disk_(std::make_unique<MemoryFileSystem>()) {}

SimHost::~SimHost() = default;

SimHost::Process::~Process() {
  // Coroutines and what was kept may refer to each other: the things first, as in production.
  while (!kept.empty()) {
    kept.pop_back();
  }
}

void SimHost::set_disk(std::unique_ptr<MemoryFileSystem> disk) {
  if (up()) {
    throw std::logic_error(name_ + " is running on its disk");
  }
  disk_ = std::move(disk);
}

void SimHost::boot() {
  if (up()) {
    throw std::logic_error(name_ + " is running already");
  }
  ++incarnation_;
  silent_ = false;
  busy_until_ = Monotonic(0);
  process_ = std::make_unique<Process>(world_, *this);
  wake();
}

void SimHost::keep(std::shared_ptr<void> thing) { process_->kept.push_back(std::move(thing)); }

bool SimHost::dying() const { return process_ != nullptr && process_->dying; }

void SimHost::die(bool power, std::optional<std::uint64_t> torn_seed) {
  if (process_ == nullptr || process_->dying) {
    return;
  }
  process_->dying = true;
  world_.any_dying_ = true;
  silent_ = power;
  ++world_.counts.crashes;
  power ? disk_->cut_power(torn_seed) : disk_->kill_process();
  process_->context.stop();
  // Files that were open fail by themselves; nothing else may reach the disk either.
  disk_->set_fault_hook([](const DiskOperation& operation) -> std::optional<Error> {
    return Error{Errc::kIo, operation.path.string() + ": the process has ended"};
  });
}

void SimHost::bury() {
  process_.reset();
  disk_->set_fault_hook(nullptr);
}

void SimHost::crash(bool power, std::optional<std::uint64_t> torn_seed) {
  if (world_.running() == this) {
    throw std::logic_error(name_ + " cannot be crashed from inside; use die()");
  }
  die(power, torn_seed);
  bury();
}

void SimHost::wake() {
  woken_ = true;
  world_.any_woken_ = true;
}

void SimHost::stay_busy(std::chrono::nanoseconds duration) {
  busy_until_ = std::max(busy_until_, world_.now()) + duration;
  world_.schedule_for_hosts(busy_until_ - world_.local_now(), [this] { wake(); });
}

void SimHost::poll() {
  if (process_ != nullptr && !process_->dying && busy_until_ <= world_.now()) {
    process_->context.restart();
    process_->context.poll();
  }
}

net::any_io_executor SimHost::executor() { return process_->context.get_executor(); }
http::Timers& SimHost::timers() { return process_->timers; }
Clock& SimHost::clock() { return process_->clock; }
http::Client& SimHost::client() { return process_->transport; }
http::FrameTransport& SimHost::frames() { return process_->transport; }

void SimHost::serve_http(std::uint16_t port, http::Handler handler) {
  process_->http[port] = std::move(handler);
}

void SimHost::serve_frames(std::uint16_t port, http::FrameHandler handler) {
  process_->frames[port] = std::move(handler);
}

void SimHost::spawn(net::awaitable<void> work) {
  wake();
  net::co_spawn(process_->context, std::move(work), [](std::exception_ptr failure) {
    if (failure) {
      std::rethrow_exception(failure);  // out of the world's loop: the test fails
    }
  });
}

Ticks SimClock::now() {
  return Ticks(world_.wall().value() + host_.clock_skew.count() * kTicksPerMillisecond);
}

net::awaitable<void> SimTimers::sleep_for(std::chrono::milliseconds duration) {
  const auto signal = std::make_shared<SimSignal>(co_await net::this_coro::executor, 1);
  // The coroutine alone owns the channel: it must not outlive the process.
  world_.schedule_for_hosts(duration, [weak = std::weak_ptr(signal), &host = host_] {
    if (const auto sleeper = weak.lock()) {
      host.wake();
      sleeper->try_send(boost::system::error_code{});
    }
  });
  const auto [error] = co_await signal->async_receive(net::as_tuple(net::use_awaitable));
  if (error) {
    throw boost::system::system_error(net::error::operation_aborted);
  }
}

}  // namespace verger::testing
