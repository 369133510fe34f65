// Measures the engine. Every action runs in a process of its own, between yardsticks of the same
// run; each result is a line of JSON, a table comes at the end.
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/bench/measures.h"
#include "tests/bench/workload.h"

namespace verger::bench {
namespace {

using nlohmann::json;

constexpr std::string_view kUsage =
    "usage: verger-bench [--small] [--case NAME]... [--repeat N] [--dir DIR] [--out FILE] "
    "[--keep] [--digest] [--backup] [--streams N] [--damage N [--seed S]]\n"
    "\n"
    "Generates each case's database in DIR (default: $TMPDIR or /tmp), measures the engine on it\n"
    "and two yardsticks in the same run, and removes it. Needs three times the database's size:\n"
    "12 GB for the cases in full.\n"
    "\n"
    "  --small      a twelfth of each case, with chunks as much smaller: about a minute\n"
    "  --case NAME  'few' (25,000 streams of 480 events), 'many' (3 million of 4) or\n"
    "               'huge' (10 million of 1, for memory; not among the defaults)\n"
    "  --digest     measure only reading, and the digests\n"
    "  --backup     measure only backups: full, verify, restore, differential of nothing new and\n"
    "               of 5 % growth; the yardstick is copying the same files with their SHA-256\n"
    "  --streams N  measure only the readable digest, over made-up events in N streams; the\n"
    "               yardstick is the SHA-256 of those events and names (x_copy: times that)\n"
    "  --damage N   change a byte at N positions of a small backup, over all kinds of files, and "
    "at\n"
    "               as many of one that is compressed and encrypted; tells how many a "
    "verification\n"
    "               finds, and ends with 1 unless that is all; --seed: other positions\n"
    "  --repeat N   measure everything N times (default 1)\n"
    "  --out FILE   append the lines of JSON to FILE, too\n";

std::vector<Workload> known_workloads() {
  return {{.name = "few", .streams = 25'000, .events_each = 480, .max_count = 80},
          {.name = "many", .streams = 3'000'000, .events_each = 4, .max_count = 2},
          {.name = "huge", .streams = 10'000'000, .events_each = 1, .max_count = 1}};
}

std::optional<Workload> find_workload(std::string_view name) {
  const auto known = known_workloads();
  const auto found = std::ranges::find(known, name, &Workload::name);
  return found == known.end() ? std::nullopt : std::optional(*found);
}

struct Options {
  bool small = false;
  bool keep = false;
  bool digest_only = false;
  bool backup_only = false;
  std::int64_t streams = 0;
  std::int64_t damage = 0;
  std::uint64_t seed = 1;
  int repeat = 1;
  std::vector<std::string> cases;
  Path directory;
  std::string out;
};

/// One process that ended well.
struct Outcome {
  double wall = 0;
  double cpu = 0;  ///< user and system
  double rss_mib = 0;
  json details;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

[[noreturn]] void fail(std::string_view message) {
  std::cerr << "verger-bench: " << message << "\n";
  std::exit(1);
}

Result<json> act(std::span<const std::string> arguments) {
  const auto& action = arguments[0];
  const Path directory = arguments[1];
  if (action == "generate") {
    auto workload = find_workload(arguments[2]);
    if (arguments[3] == "small") {
      workload->shrink();
    }
    VERGER_RETURN_IF_ERROR(generate(*workload, directory));
    return json{{"events", workload->events()}};
  }
  if (action == "read") {
    return read_sequentially(directory);
  }
  if (action == "copy") {
    return copy_with_md5(directory, arguments[2]);
  }
  if (action == "copy-beside-md5") {
    return copy_beside_md5(directory, arguments[2]);
  }
  if (action == "verify") {
    return verify(directory, std::stoi(arguments[2]));
  }
  if (action == "estimate") {
    return estimate(directory);
  }
  if (action == "copy-sha256") {
    return copy_with_sha256(directory, arguments[2]);
  }
  if (action == "backup") {
    return back_up(directory, arguments[2], std::stoi(arguments[3]));
  }
  if (action == "verify-backup") {
    return verify_backup(directory, std::stoi(arguments[2]));
  }
  if (action == "restore") {
    return restore_backup(directory, arguments[2], std::stoi(arguments[3]),
                          arguments[4] == "verify");
  }
  if (action == "damage") {
    return find_changed_bytes(directory, std::stoull(arguments[2]), std::stoull(arguments[3]));
  }
  if (action == "grow") {
    return grow(directory, std::stoi(arguments[2]));
  }
  if (action == "point") {
    return write_point(directory);
  }
  if (action == "scavenge") {
    return scavenge(directory, std::stoi(arguments[2]));
  }
  if (action == "digest") {
    return digest(directory);
  }
  if (action == "hash") {
    return hash_events(std::stoll(arguments[2]));
  }
  if (action == "streams") {
    return digest_streams(directory, std::stoll(arguments[2]));
  }
  if (action == "rebuild") {
    return rebuild_index(directory);
  }
  if (action == "open") {
    return open_database(directory);
  }
  return Error{Errc::kInvalidArgument, action + ": no such action"};
}

/// Runs an action in a child process: its memory and times are its own.
Outcome run(std::vector<std::string> arguments) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) {
    fail("no pipe");
  }
  arguments.insert(arguments.begin(), {"verger-bench", "--act"});
  std::vector<char*> argv;
  for (auto& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  const auto start = system_clock().monotonic();
  const auto child = ::fork();
  if (child == 0) {
    ::dup2(pipe_ends[1], STDOUT_FILENO);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  ::close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(pipe_ends[0]);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail(fmt::format("{} failed", arguments[2]));
  }
  Outcome outcome;
  outcome.wall = std::chrono::duration<double>(system_clock().monotonic() - start).count();
  outcome.cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.rss_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  outcome.details = json::parse(text);
  return outcome;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown";
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    if (!options.out.empty()) {
      out_.open(options.out, std::ios::app);
    }
  }

  void describe_machine() {
    utsname name{};
    ::uname(&name);
    emit({{"machine", processor()},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory_gib", static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                             static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1U << 30U)},
          {"kernel", name.release}});
  }

  void run_case(Workload workload) {
    if (options_.small) {
      workload.shrink();
    }
    workload_ = workload.name;
    const auto base = options_.directory / fmt::format("verger-bench-{}", ::getpid());
    const auto source = base / "source";
    std::cerr << fmt::format("generating '{}': {} events in {} streams ...\n", workload.name,
                             workload.events(), workload.streams);
    generated_ = run({"generate", source.string(), workload.name, options_.small ? "small" : ""});
    generated_.details["events_per_s"] = static_cast<double>(workload.events()) / generated_.wall;
    run({"point", source.string()});
    for (int n = 0; n < options_.repeat; ++n) {
      measure(source, base);
    }
    if (!options_.keep) {
      std::filesystem::remove_all(base);
    }
  }

  /// Without a database.
  void digest_streams() {
    workload_ = "made up";
    const auto streams = std::to_string(options_.streams);
    copy_ = run({"hash", options_.directory.string(), streams});
    report("hashing alone", copy_);
    report("readable digest", run({"streams", options_.directory.string(), streams}));
  }

  /// Whether every change was found.
  bool search_damage() {
    const auto base = options_.directory / fmt::format("verger-bench-{}", ::getpid());
    const auto outcome = run(
        {"damage", base.string(), std::to_string(options_.damage), std::to_string(options_.seed)});
    std::filesystem::remove_all(base);
    bool all = true;
    for (const auto& [how, result] : outcome.details.items()) {
      emit({{"case", how}, {"seed", options_.seed}, {"wall_s", outcome.wall}, {"result", result}});
      std::cerr << fmt::format("\n{:<26} {:>8} {:>10} {:>10} {:>10}\n", how, "objects", "bytes",
                               "changed", "found");
      for (const auto& [kind, count] : result.at("kinds").items()) {
        std::cerr << fmt::format(
            "{:<26} {:>8} {:>10} {:>10} {:>10}\n", kind, count.at("objects").get<std::uint64_t>(),
            count.at("bytes").get<std::uint64_t>(), count.at("changed").get<std::uint64_t>(),
            count.at("found").get<std::uint64_t>());
      }
      std::cerr << fmt::format(
          "{:<26} {:>8} {:>10} {:>10} {:>10}\n", "all", result.at("objects").get<std::uint64_t>(),
          "", result.at("changed").get<std::uint64_t>(), result.at("found").get<std::uint64_t>());
      all = all && result.at("found") == result.at("changed") && result.at("intact") == true;
    }
    return all;
  }

  void print_table() const {
    std::cerr << fmt::format("\n{:<6} {:<22} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "case", "what",
                             "wall s", "cpu s", "RSS MiB", "x copy", "x copy,cpu", "x beside");
    for (const auto& row : rows_) {
      std::cerr << fmt::format(
          "{:<6} {:<22} {:>9.2f} {:>9.2f} {:>9.0f} {:>9.3f} {:>9.3f} {:>9.3f}\n",
          row["case"].get<std::string>(), row["what"].get<std::string>(),
          row["wall_s"].get<double>(), row["cpu_s"].get<double>(), row["rss_mib"].get<double>(),
          row["x_copy"].get<double>(), row["x_copy_cpu"].get<double>(),
          row["x_beside"].get<double>());
    }
  }

 private:
  void measure(const Path& source, const Path& base) {
    const auto one = base / "one";
    const auto two = base / "two";
    report("read", run({"read", source.string()}));
    if (options_.digest_only) {
      report("digest", run({"digest", source.string()}));
      return;
    }
    if (options_.backup_only) {
      measure_backup(source, base);
      return;
    }
    copy_sources(source, one);
    report("generate", generated_);  // before the copy, once
    report("open", run({"open", one.string()}));
    report("digest", run({"digest", one.string()}));
    report("verify, 1 thread", run({"verify", one.string(), "1"}));
    report("verify, 2 threads", run({"verify", one.string(), "2"}));
    report("estimate", run({"estimate", one.string()}));
    report("index rebuild", run({"rebuild", one.string()}));
    report("scavenge, 1 thread", run({"scavenge", one.string(), "1"}));
    run({"point", one.string()});
    report("second run", run({"scavenge", one.string(), "1"}));
    report("open, scavenged", run({"open", one.string()}));
    std::filesystem::remove_all(one);
    // The yardsticks again, just before what they are for.
    copy_sources(source, two);
    report("scavenge, 2 threads", run({"scavenge", two.string(), "2"}));
    std::filesystem::remove_all(two);
  }

  /// Both yardsticks; the copy of the second one stays.
  void copy_sources(const Path& source, const Path& to) {
    copy_ = run({"copy", source.string(), to.string()});
    std::filesystem::remove_all(to);
    beside_ = run({"copy-beside-md5", source.string(), to.string()});
    report("copy+md5", copy_);
    report("copy beside md5", beside_);
  }

  void measure_backup(const Path& source, const Path& base) {
    const auto copied = base / "copied";
    const auto restored = base / "restored";
    // The yardstick again just before what it is for: a disk's speed varies within a run.
    const auto measure_copy = [&] {
      copy_ = run({"copy-sha256", source.string(), copied.string()});
      report("copy+sha256", copy_);
      std::filesystem::remove_all(copied);
    };
    for (const std::string threads : {"1", "2"}) {
      const auto repository = (base / ("repository-" + threads)).string();
      measure_copy();
      report("backup, full, " + threads, run({"backup", source.string(), repository, threads}));
      report("verify, " + threads, run({"verify-backup", repository, threads}));
      for (const std::string after : {"verify", "no-verify"}) {
        measure_copy();
        report(fmt::format("restore, {}, {}", after, threads),
               run({"restore", repository, restored.string(), threads, after}));
        std::filesystem::remove_all(restored);
      }
      report("nothing new, " + threads, run({"backup", source.string(), repository, threads}));
      run({"grow", source.string(), "5"});
      measure_copy();
      report("differential, " + threads, run({"backup", source.string(), repository, threads}));
      std::filesystem::remove_all(repository);
    }
  }

  void report(std::string_view what, const Outcome& outcome) {
    json row{{"case", workload_},
             {"what", what},
             {"wall_s", outcome.wall},
             {"cpu_s", outcome.cpu},
             {"rss_mib", outcome.rss_mib},
             {"x_copy", copy_.wall > 0 ? outcome.wall / copy_.wall : 0},
             {"x_copy_cpu", copy_.cpu > 0 ? outcome.cpu / copy_.cpu : 0},
             {"x_beside", beside_.wall > 0 ? outcome.wall / beside_.wall : 0}};
    row.update(outcome.details);
    emit(row);
    rows_.push_back(std::move(row));
  }

  void emit(const json& row) {
    std::cout << row.dump() << std::endl;
    if (out_.is_open()) {
      out_ << row.dump() << std::endl;
    }
  }

  const Options& options_;
  std::ofstream out_;
  std::string workload_;
  Outcome generated_;
  Outcome copy_;
  Outcome beside_;
  std::vector<json> rows_;
};

Options parse(std::span<const std::string> arguments) {
  Options options;
  const char* temporary = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): one thread
  options.directory = temporary == nullptr ? "/tmp" : temporary;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == arguments.size()) {
        fail(argument + ": a value is missing");
      }
      return arguments[++i];
    };
    if (argument == "--small") {
      options.small = true;
    } else if (argument == "--digest") {
      options.digest_only = true;
    } else if (argument == "--backup") {
      options.backup_only = true;
    } else if (argument == "--streams") {
      options.streams = std::stoll(value());
    } else if (argument == "--damage") {
      options.damage = std::stoll(value());
    } else if (argument == "--seed") {
      options.seed = std::stoull(value());
    } else if (argument == "--keep") {
      options.keep = true;
    } else if (argument == "--case") {
      options.cases.push_back(value());
    } else if (argument == "--repeat") {
      options.repeat = std::stoi(value());
    } else if (argument == "--dir") {
      options.directory = value();
    } else if (argument == "--out") {
      options.out = value();
    } else {
      std::cerr << kUsage;
      std::exit(argument == "--help" ? 0 : 64);
    }
  }
  if (options.cases.empty()) {
    options.cases = {"few", "many"};
  }
  return options;
}

int main_with(std::span<const std::string> arguments) {
  if (!arguments.empty() && arguments[0] == "--act") {
    const auto result = act(arguments.subspan(1));
    if (!result) {
      std::cerr << result.error().message << "\n";
      return 1;
    }
    std::cout << result->dump();
    return 0;
  }
  const auto options = parse(arguments);
  Bench bench(options);
  bench.describe_machine();
  if (options.damage > 0) {
    return bench.search_damage() ? 0 : 1;
  }
  if (options.streams > 0) {
    bench.digest_streams();
    bench.print_table();
    return 0;
  }
  for (const auto& name : options.cases) {
    const auto workload = find_workload(name);
    if (!workload) {
      fail(name + ": no such case");
    }
    bench.run_case(*workload);
  }
  bench.print_table();
  return 0;
}

}  // namespace
}  // namespace verger::bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return verger::bench::main_with(arguments);
}
