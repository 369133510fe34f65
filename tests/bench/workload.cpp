#include "tests/bench/workload.h"

#include <bit>
#include <fmt/format.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/streams/event_store.h"

namespace verger::bench {
namespace {

namespace flags = log::prepare_flags;

constexpr std::uint16_t kSingle =
    flags::kData | flags::kTransactionBegin | flags::kTransactionEnd | flags::kIsCommitted;
constexpr std::uint64_t kWritesPerFlush = 1U << 18U;
/// 2024-01-01; a microsecond from write to write.
constexpr std::int64_t kStart = 638396640000000000;
constexpr std::int64_t kTicksPerWrite = 10;

/// Visits each of `count` numbers once, in a scattered order that `round` changes.
class Scattered {
 public:
  Scattered(std::uint64_t count, std::uint64_t round)
      : count_(count), mask_(std::bit_ceil(count) - 1), at_(round * 0x9E3779B97F4A7C15U) {}
  std::uint64_t next() {
    do {
      at_ = at_ * 6364136223846793005U + 1442695040888963407U;
    } while ((at_ & mask_) >= count_);
    return at_ & mask_;
  }

 private:
  std::uint64_t count_;
  std::uint64_t mask_;  // the low bits of such a generator have their full period
  std::uint64_t at_;
};

class Writer {
 public:
  Writer(log::TransactionLog& log, std::size_t data_size) : log_(log), data_(data_size) {
    for (auto& byte : data_) {
      byte = static_cast<std::byte>(random_.next());
    }
  }

  Result<void> write(std::string_view stream, std::int64_t number, std::string_view type,
                     ByteView data, std::uint16_t more_flags) {
    log::Prepare prepare;
    prepare.flags = kSingle | more_flags;
    prepare.transaction_position = kNoPosition;
    prepare.expected_version = number - 1;
    prepare.stream = stream;
    prepare.event_id = random_.uuid();
    prepare.correlation_id = random_.uuid();
    prepare.timestamp = Ticks(kStart + static_cast<std::int64_t>(written_) * kTicksPerWrite);
    prepare.type = type;
    prepare.data = data;
    VERGER_TRY(const auto positions, log_.append(std::span(&prepare, 1)));
    static_cast<void>(positions);
    return ++written_ % kWritesPerFlush == 0 ? log_.flush() : Result<void>();
  }

  Result<void> event(std::string_view stream, std::int64_t number) {
    store_le(data_.data(), random_.next());
    return write(stream, number, "measured", data_, 0);
  }

 private:
  log::TransactionLog& log_;
  SeededRandom random_{1};
  Bytes data_;
  std::uint64_t written_ = 0;
};

Result<void> write_log(const Workload& workload, const Path& directory, Random& random) {
  VERGER_TRY(const auto log, log::TransactionLog::open(posix_file_system(), directory,
                                                       {.access = log::Access::kWrite,
                                                        .chunk_size = workload.chunk_size,
                                                        .assume_stopped = true,
                                                        .create = true},
                                                       system_clock(), random, null_log()));
  Writer writer(*log, workload.data_size);
  const auto limits = fmt::format(R"({{"$maxCount":{}}})", workload.max_count);
  for (std::uint64_t round = 0; round < workload.events_each; ++round) {
    Scattered order(workload.streams, round);
    for (std::uint64_t n = 0; n < workload.streams; ++n) {
      const auto stream = order.next();
      const auto name = fmt::format("account-{:09}", stream);
      VERGER_CHECK(writer.event(name, static_cast<std::int64_t>(round)));
      if (round == 0 && stream % 100 < static_cast<std::uint64_t>(workload.limited_percent)) {
        VERGER_CHECK(writer.write("$$" + name, 0, "$metadata", as_bytes(limits), flags::kIsJson));
      }
    }
  }
  VERGER_CHECK(log->flush());
  return log->flush_checkpoints();
}

}  // namespace

Result<void> generate(const Workload& workload, const Path& directory) {
  SeededRandom random(2);
  VERGER_CHECK(write_log(workload, directory, random));
  streams::DatabaseOptions options;
  options.log.access = log::Access::kWrite;
  options.log.assume_stopped = true;
  options.index.stream_existence_filter_size = 0;
  // The missing index is built at opening.
  VERGER_TRY(const auto database,
             streams::Database::open(posix_file_system(), directory, options, true, system_clock(),
                                     random, null_log()));
  return {};
}

}  // namespace verger::bench
