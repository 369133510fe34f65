#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "engine/base/clock.h"
#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/frames.h"
#include "nodeagent/http/message.h"
#include "nodeagent/http/timers.h"

namespace verger::testing {

/// What the network does to messages; counted where it took effect. Probabilities are per mille.
struct NetworkFaults {
  std::chrono::microseconds min_delay{200};
  std::chrono::microseconds max_delay{1000};
  unsigned lose_request = 0;       ///< the request never arrives; the sender learns at its deadline
  unsigned lose_response = 0;      ///< carried out, but the answer is lost
  unsigned duplicate_request = 0;  ///< arrives a second time later; its answer is dropped
  unsigned long_delay = 0;         ///< up to `longest_delay` instead of max_delay
  std::chrono::milliseconds longest_delay{500};
  unsigned break_link = 0;  ///< a frame breaks its connection instead of arriving
};

struct FaultCounts {
  std::uint64_t requests_lost = 0;
  std::uint64_t responses_lost = 0;
  std::uint64_t requests_duplicated = 0;
  std::uint64_t delayed_long = 0;
  std::uint64_t links_broken = 0;
  std::uint64_t partitioned = 0;
  std::uint64_t crashes = 0;
};

/// A message that has reached its receiver, for those who watch.
struct SimMessage {
  enum class Kind : std::uint8_t { kRequest, kResponse, kFrame };
  Kind kind = Kind::kRequest;
  std::string_view from{};
  std::string_view to{};
  std::uint16_t port = 0;     ///< that was requested
  std::string_view method{};  ///< of the request, also with a response
  std::string_view target{};
  int status = 0;        ///< of a response
  std::size_t size = 0;  ///< of the body or the frame, in bytes
};

class SimHost;
class SimTimers;
class SimTransport;
struct SimLink;

/// 2024-01-02T00:00:00Z, a day after the time of built databases.
inline constexpr Ticks kStart{638'397'504'000'000'000};

/// Virtual time and the network. Not safe from several threads; nothing here starts one.
class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  /// A machine that is switched off; its name is its address ("n1").
  SimHost& add_host(const std::string& name);
  SimHost& host(const std::string& name);

  [[nodiscard]] Monotonic now() const { return now_; }
  /// As the running process has it, which is later than now() once it has been busy; else now().
  [[nodiscard]] Monotonic local_now() const;
  [[nodiscard]] Ticks wall() const;  ///< at local_now()
  /// The wall clock at now() = 0. Before anything runs.
  Ticks start = kStart;
  SeededRandom& random() { return random_; }
  NetworkFaults faults;
  FaultCounts counts;

  /// No messages between the two until heal(); links between them break.
  /// Names of hosts; all processes of their machines are meant.
  void cut(const std::string& a, const std::string& b);
  void isolate(const std::string& name);
  void heal();
  [[nodiscard]] bool connected(const std::string& a, const std::string& b) const;

  using Action = std::move_only_function<void()>;
  /// Runs `action` at now + delay, outside of any host. It may set any process to work.
  void schedule(std::chrono::nanoseconds delay, Action action);
  /// The same of what concerns no process, or names them by SimHost::wake() and spawn().
  void schedule_for_hosts(std::chrono::nanoseconds delay, Action action);
  /// Lets every host run until nothing is ready, then carries out the next event, moving time
  /// forward to it. False when nothing is left to happen.
  bool step();
  void run_for(std::chrono::milliseconds duration);
  /// True as soon as `done` holds; false when `limit` of virtual time has passed.
  bool run_until(const std::function<bool()>& done, std::chrono::milliseconds limit);
  /// Events carried out so far.
  [[nodiscard]] std::uint64_t events() const { return carried_out_; }

  /// Called before each event: the place for a simulation's random crashes. May crash hosts.
  std::function<void()> before_event;
  /// Called for each message, before its receiver sees it.
  std::function<void(const SimMessage&)> on_message;
  /// Asked about each answer that goes from one machine to another: true, and it is lost.
  std::function<bool(const SimMessage&)> lose_answer;
  /// The host whose process is running this very code; nullptr outside of all.
  [[nodiscard]] SimHost* running() const { return running_; }

 private:
  friend class SimHost;
  friend class SimTimers;
  friend class SimTransport;
  friend struct SimLink;
  struct Event {
    Action action;
    bool any_host = true;  ///< any process may have work after it, not only those that it wakes
  };
  /// What the queue moves around in place of events.
  struct Due {
    Monotonic at{};
    std::uint64_t sequence = 0;
    std::size_t event = 0;  ///< index in events_
    friend bool operator>(const Due& a, const Due& b) {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };
  void put(std::chrono::nanoseconds delay, Event event);
  /// Lets the processes that were woken run until nothing is ready.
  void poll();
  void wake_all();
  void carry_out_next();
  void bury_the_dead();
  void deliver(const SimMessage& message) const {
    if (on_message) {
      on_message(message);
    }
  }
  SimHost* find(const std::string& name);
  [[nodiscard]] const std::string& machine_of(const std::string& host) const;
  std::chrono::nanoseconds delay();

  Monotonic now_{0};
  SeededRandom random_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t carried_out_ = 0;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> queue_;
  std::vector<Event> events_;
  std::vector<std::size_t> unused_events_;
  std::map<std::string, std::unique_ptr<SimHost>> hosts_;
  std::set<std::pair<std::string, std::string>> cuts_;
  SimHost* running_ = nullptr;
  bool any_woken_ = false;
  bool any_dying_ = false;
  /// Links that may still be open, so that a cut can break them.
  std::vector<std::weak_ptr<SimLink>> links_;
};

/// One program on its machine. The disk stays; everything else belongs to the process and goes with
/// it.
class SimHost {
 public:
  ~SimHost();
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Programs on one machine reach each other even when the network is cut. Its name, by default.
  std::string machine;
  [[nodiscard]] bool up() const { return process_ != nullptr; }
  MemoryFileSystem& disk() { return *disk_; }
  /// Replaces the disk by a copy of another one; only while switched off.
  void set_disk(std::unique_ptr<MemoryFileSystem> disk);
  /// The wall clock is off by so much; monotonic time is not.
  std::chrono::milliseconds clock_skew{0};

  /// Starts a process. What the test puts into it (nodes) goes in by keep(), and is destroyed
  /// before its context at the end.
  void boot();
  void keep(std::shared_ptr<void> thing);
  /// The process is gone from one event to the next. With `power`, the disk keeps only what was
  /// synced (`torn_seed`: see MemoryFileSystem::cut_power); without, everything written.
  void crash(bool power, std::optional<std::uint64_t> torn_seed = std::nullopt);
  /// The same at this very instruction, also from inside of the process (a failpoint, an operation
  /// on its disk): what the code does from here on reaches neither disk nor network, and the
  /// process is gone before the next event.
  void die(bool power, std::optional<std::uint64_t> torn_seed = std::nullopt);
  [[nodiscard]] bool dying() const;

  /// What its process does next it does so much later: it blocks, in a sync of a slow disk, say.
  /// Its clock runs on, what it sends and its timers count from then, and what reaches it waits.
  void stay_busy(std::chrono::nanoseconds duration);

  // Of the running process; gone with it.
  net::any_io_executor executor();
  http::Timers& timers();
  Clock& clock();
  http::Client& client();
  http::FrameTransport& frames();
  void serve_http(std::uint16_t port, http::Handler handler);
  void serve_frames(std::uint16_t port, http::FrameHandler handler);
  void spawn(net::awaitable<void> work);

 private:
  friend class SimWorld;
  friend class SimTimers;
  friend class SimTransport;
  friend struct SimLink;
  struct Process;
  SimHost(SimWorld& world, std::string name);
  /// There may be something to do for its process.
  void wake();
  void poll();
  void bury();

  SimWorld& world_;
  std::string name_;
  std::unique_ptr<MemoryFileSystem> disk_;
  std::unique_ptr<Process> process_;
  /// Counts processes; what was meant for an earlier one does not reach a later one.
  std::uint64_t incarnation_ = 0;
  bool woken_ = false;
  Monotonic busy_until_{0};
  /// The last process ended with the power: peers learn it by silence only.
  bool silent_ = false;
};

}  // namespace verger::testing
