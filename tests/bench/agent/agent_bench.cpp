// Measures what an agent beside a server reads while nothing of Verger's is done there: an embedded
// node on a generated database stands for the server, both are processes of their own with the
// timings of production.
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/base/private_file.h"
#include "tests/bench/workload.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/processes/process_figures.h"
#include "tests/support/temp_directory.h"

namespace verger::bench {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::string_view kUsage =
    "usage: verger-bench-agent [--events N] [--seconds N]\n"
    "\n"
    "Generates a database (default: 12 million events, 4 GB, under $TMPDIR or /tmp), starts an\n"
    "embedded node on it and an agent beside that, and tells how many bytes the agent reads a\n"
    "minute: while nothing is written, and while an event is written every two seconds. Each is\n"
    "measured for --seconds (default: 60).\n";

constexpr std::uint64_t kStreams = 25'000;
constexpr seconds kBetweenWrites{2};
/// The agent tells what the log holds within seconds, but for its first look at a large one.
constexpr seconds kFirstLook{600};
constexpr const char* kToken = "a-token-of-the-bench-long-enough";

struct Options {
  std::uint64_t events = 12'000'000;
  std::uint64_t seconds = 60;
};

class NodeAndAgent {
 public:
  explicit NodeAndAgent(std::filesystem::path directory)
      : directory_(std::move(directory)),
        node_({.command = {test::program("verger-agent"), "--role", "node",
                           "--enable-atom-pub-over-http", "--db", path("db"), "--node-port",
                           std::to_string(ports_[0]), "--replication-port",
                           std::to_string(ports_[1]), "--end-after-seconds", "3600"},
               .environment = {},
               .output = path("node.log")}) {
    wait_for("the node", [this] {
      const auto answer = caller_.get(node_url(), "/gossip");
      return answer && answer->status == 200 && answer->body.contains("\"Leader\"");
    });
    if (auto kept =
            write_private_file(path("agents-token"), std::string(kToken) + '\n', IfThere::kReplace);
        !kept) {
      throw std::runtime_error(kept.error().message);
    }
    std::ofstream(path("credentials")) << "admin\nchangeit\n";
    agent_.emplace(test::Process::Options{
        .command = {test::program("verger-agent"), "--role", "agent", "--node", node_url(), "--db",
                    path("db"), "--state", path("agent"), "--agent-port", std::to_string(ports_[2]),
                    "--credentials-file", path("credentials"), "--controller-token-file",
                    path("agents-token"), "--end-after-seconds", "3600"},
        .environment = {},
        .output = path("agent.log")});
  }

  [[nodiscard]] pid_t agent() const { return agent_->pid(); }
  json facts() {
    http::Request request{.method = "GET", .target = "/agent/v1/facts"};
    request.headers.set("Authorization", std::string("Bearer ") + kToken);
    const auto answer = caller_.ask(fmt::format("http://127.0.0.1:{}", ports_[2]),
                                    std::move(request), /*with_password=*/false);
    return answer && answer->status == 200 ? json::parse(answer->body) : json::object();
  }
  /// When the agent last read the log up to its end; nullopt: not yet.
  std::optional<Ticks> as_of() {
    const auto text = facts().value("logAsOf", std::string());
    const auto at = parse_ticks(text);
    return at ? std::optional(*at) : std::nullopt;
  }
  void wait_until_known() {
    wait_for("what the agent knows of the log", [this] { return as_of().has_value(); });
  }
  void write_event(std::uint64_t number) {
    http::Request request{.method = "POST", .target = "/streams/bench", .body = "{}"};
    request.headers.set("Content-Type", "application/json");
    request.headers.set("ES-EventType", "written");
    request.headers.set("ES-EventId", fmt::format("00000000-0000-4000-8000-{:012}", number));
    const auto answer = caller_.ask(node_url(), std::move(request));
    if (!answer || answer->status != 201) {
      throw std::runtime_error(fmt::format(
          "an event is not written: {}",
          answer ? std::to_string(answer->status) + answer->body : answer.error().message));
    }
  }

 private:
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string node_url() const { return fmt::format("http://127.0.0.1:{}", ports_[0]); }
  template <class Condition>
  void wait_for(const char* what, Condition condition) {
    if (!test::eventually(kFirstLook, condition)) {
      throw std::runtime_error(fmt::format("{} does not come:\n{}\n{}", what,
                                           test::file_text(path("node.log")),
                                           test::file_text(path("agent.log"))));
    }
  }

  std::filesystem::path directory_;
  test::PortLease ports_{3};
  test::HttpsCaller caller_;
  test::Process node_;
  std::optional<test::Process> agent_;
};

void measure(NodeAndAgent& both, const char* what, seconds window, bool writing) {
  const auto before = test::bytes_read(both.agent());
  const auto cpu = test::cpu_seconds(both.agent());
  const auto began = steady_clock::now();
  double oldest = 0;
  for (std::uint64_t number = 1; steady_clock::now() - began < window; ++number) {
    if (writing) {
      both.write_event(number);
    }
    std::this_thread::sleep_for(kBetweenWrites);
    const auto known = both.as_of();
    const auto age = known ? static_cast<double>(system_clock().now().value() - known->value()) /
                                 static_cast<double>(kTicksPerSecond)
                           : 1e9;
    oldest = std::max(oldest, age);
  }
  const auto minutes =
      std::chrono::duration<double, std::ratio<60>>(steady_clock::now() - began).count();
  const auto after = test::bytes_read(both.agent());
  const auto kib = [minutes](std::int64_t from, std::int64_t to) {
    return static_cast<double>(to - from) / 1024 / minutes;
  };
  std::cout << fmt::format(
      "{}: {:.1f} KiB read a minute, {:.1f} KiB of them from the disk; {:.2f} % of a core, {:.0f} "
      "MiB; what it tells of the log was at most {:.1f} s old\n",
      what, kib(before.asked, after.asked), kib(before.from_disk, after.from_disk),
      (test::cpu_seconds(both.agent()) - cpu) / minutes / 60 * 100,
      test::resident_mib(both.agent()), oldest);
}

std::optional<Options> parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    auto* into = name == "--events"    ? &options.events
                 : name == "--seconds" ? &options.seconds
                                       : nullptr;
    if (into == nullptr || i + 1 == arguments.size()) {
      return std::nullopt;
    }
    const std::string_view value = arguments[i + 1];
    const auto [end, error] = std::from_chars(value.begin(), value.end(), *into);
    if (error != std::errc() || end != value.end()) {
      return std::nullopt;
    }
  }
  return options.events < kStreams || options.seconds == 0 ? std::nullopt : std::optional(options);
}

int run(std::span<char*> arguments) {
  const auto options = parse(arguments);
  if (!options) {
    std::cerr << kUsage;
    return 64;
  }
  const test::TempDirectory directory;
  std::cout << fmt::format("generating {} events ...\n", options->events) << std::flush;
  const auto made = generate({.name = "agent",
                              .streams = kStreams,
                              .events_each = options->events / kStreams,
                              .max_count = 80},
                             directory.path() / "db");
  if (!made) {
    std::cerr << made.error().message << '\n';
    return 1;
  }
  NodeAndAgent both(directory.path());
  both.wait_until_known();
  const auto first = test::bytes_read(both.agent());
  std::cout << fmt::format("until it knew all: {:.1f} MiB read, in all\n",
                           static_cast<double>(first.asked) / (1 << 20))
            << std::flush;
  const seconds window(options->seconds);
  measure(both, "idle", window, /*writing=*/false);
  measure(both, "an event every 2 s", window, /*writing=*/true);
  return 0;
}

}  // namespace
}  // namespace verger::bench

int main(int argc, char** argv) {
  try {
    return verger::bench::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::cerr << "verger-bench-agent: " << error.what() << '\n';
    return 1;
  }
}
