#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/support/cluster/sim_world.h"

namespace verger::testing {

using SimSignal = net::experimental::channel<void(boost::system::error_code)>;

class SimTimers final : public http::Timers {
 public:
  SimTimers(SimWorld& world, SimHost& host) : world_(world), host_(host) {}
  net::awaitable<void> sleep_for(std::chrono::milliseconds duration) override;

 private:
  SimWorld& world_;
  SimHost& host_;
};

class SimClock final : public Clock {
 public:
  SimClock(SimWorld& world, SimHost& host) : world_(world), host_(host) {}
  Ticks now() override;
  Monotonic monotonic() override { return world_.local_now(); }

 private:
  SimWorld& world_;
  SimHost& host_;
};

/// One end's view of the network: requests and links of one process.
class SimTransport final : public http::Client, public http::FrameTransport {
 public:
  SimTransport(SimWorld& world, SimHost& host)
      : world_(world), host_(host), incarnation_(host.incarnation_) {}
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override;
  net::awaitable<Result<std::shared_ptr<http::FrameConnection>>> connect(
      http::Endpoint to, std::chrono::milliseconds deadline) override;

 private:
  friend class SimHost;
  struct Call;
  struct Answering;
  static void arrive(SimWorld& world, const std::shared_ptr<Call>& call, bool answer);
  static net::awaitable<void> serve(http::Handler handler, std::shared_ptr<Answering> answering);
  static SimHost* alive(SimWorld& world, const std::string& name, std::uint64_t incarnation);

  SimWorld& world_;
  SimHost& host_;
  std::uint64_t incarnation_;
};

/// What is declared first ends last: coroutines end with the context, and may use the rest.
struct SimHost::Process {
  Process(SimWorld& world, SimHost& host)
      : timers(world, host), clock(world, host), transport(world, host) {}
  ~Process();
  SimTimers timers;
  SimClock clock;
  SimTransport transport;
  std::map<std::uint16_t, http::Handler> http;
  std::map<std::uint16_t, http::FrameHandler> frames;
  bool dying = false;
  net::io_context context{1};
  std::vector<std::shared_ptr<void>> kept;
};

}  // namespace verger::testing
