#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::scavenge::detail {

/// Reads chunks side by side, while what they say is taken in their order: of the first one only,
/// until that is read to its end and all of it has been taken. With one thread both alternate in
/// the calling one. One thread uses it.
///
/// A `Source` is one chunk. `Source::Part` is what some of its records say, with `bytes()`, `ended`
/// (nothing follows) and an optional `error` (after all of that; nothing follows either).
/// `Part Source::read(std::uint32_t records)` says what about so many records, or less, mean. It is
/// called by one thread at a time, while `Source` members that read() does not touch may be used.
template <class Source>
class ReadingAhead {
 public:
  using Part = typename Source::Part;

  struct Bounds {
    std::size_t threads = 1;  ///< so many sources are read side by side
    std::size_t sources = 1;  ///< at least as many: also those that wait to be taken
    std::size_t bytes = 0;    ///< of all parts, apart from what each thread is reading
  };
  struct Opened {
    Source source;
    bool ended = false;  ///< there is nothing to read
  };

  explicit ReadingAhead(Bounds bounds)
      : bounds_(bounds),
        own_runner_(bounds.threads > 1 ? make_thread_runner(static_cast<int>(bounds.threads))
                                       : nullptr) {}

  /// Opens sources until there are as many as may be. `next` opens the one after those it has
  /// opened; nullopt: there is none. Its error is reported once that source would be the first:
  /// until then it is asked for it again by each call.
  template <class Next>
  Result<void> open(const Next& next) {
    auto are_read = static_cast<std::size_t>(std::ranges::count(lanes_, false, &Lane::ended));
    while (are_read < bounds_.threads && lanes_.size() < bounds_.sources) {
      Result<std::optional<Opened>> opened = next();
      if (!opened && lanes_.empty()) {
        return std::move(opened).error();
      }
      if (!opened || !*opened) {
        break;
      }
      are_read += (*opened)->ended ? 0 : 1;
      lanes_.emplace_back(std::move((*opened)->source), (*opened)->ended);
    }
    return {};
  }

  [[nodiscard]] bool empty() const { return lanes_.empty(); }
  /// Unless it is empty.
  [[nodiscard]] Source& first() { return lanes_.front().source; }
  /// Is the first one read to its end, and all of it taken?
  [[nodiscard]] bool first_is_taken() const {
    const auto& lane = lanes_.front();
    return lane.ended && lane.read.empty();
  }
  void drop_first() { lanes_.pop_front(); }
  void drop_all() { lanes_.clear(); }
  /// Its threads end; what follows is done by the calling one.
  void end_threads() { own_runner_.reset(); }
  [[nodiscard]] auto sources() const { return std::views::transform(lanes_, &Lane::source); }

  /// Takes what had been read of the first source when this was called, and reads about `records`
  /// records of each that has not ended; as many again as long as that is being taken, and there is
  /// room for what they say. Unless it is empty.
  ///
  /// `Result<bool> take(Part&, bool may_wait)` takes one part, in the calling thread or in another;
  /// false: not now, and nothing behind it either. `may_wait`: nothing is read meanwhile, so that
  /// it may wait for something. Errors: those of `take`.
  template <class Take>
  Result<void> step(std::uint32_t records, const Take& take) {
    records = std::clamp<std::uint32_t>(records, 1,
                                        own_runner_ == nullptr ? kMostRecords : kMostRecordsAhead);
    std::atomic<std::size_t> held = 0;
    for (const auto& lane : lanes_) {
      // Counted here: what was read of the first one is being taken while more of it is read.
      held += lane.bytes();
    }
    const bool reads =
        held < bounds_.bytes && std::ranges::any_of(lanes_, std::not_fn(&Lane::ended));
    std::atomic<bool> enough = false;
    Result<void> taken;
    std::vector<std::function<void()>> pieces;
    pieces.emplace_back([&, this] {
      taken = take_read(take, /*may_wait=*/!reads);
      enough.store(true, std::memory_order_relaxed);
    });
    for (auto& lane : lanes_) {
      if (!lane.ended) {
        pieces.emplace_back([&, this] { read(lane, records, held, enough); });
      }
    }
    (own_runner_ == nullptr ? inline_runner() : *own_runner_).run(pieces);
    for (auto& lane : lanes_) {
      std::ranges::move(lane.fresh, std::back_inserter(lane.read));
      lane.fresh.clear();
    }
    return taken;
  }

 private:
  /// Of a step: a stop and a rest are never far away.
  static constexpr std::uint32_t kMostRecords = 8192;
  static constexpr std::uint32_t kMostRecordsAhead = 32'768;

  /// A source that is being read, or has been and waits to be taken.
  struct Lane {
    Lane(Source of, bool has_ended) : source(std::move(of)), ended(has_ended) {}

    Source source;
    std::deque<Part> read;   ///< to be taken
    std::deque<Part> fresh;  ///< by the step that is under way
    bool ended;              ///< read to its end, or to an error

    [[nodiscard]] std::size_t bytes() const {
      std::size_t sum = 0;
      for (const auto& part : read) {
        sum += part.bytes();
      }
      return sum;
    }
  };

  void read(Lane& lane, std::uint32_t records, std::atomic<std::size_t>& held,
            const std::atomic<bool>& enough) const {
    const auto has_room = [&] { return held.load(std::memory_order_relaxed) < bounds_.bytes; };
    if (&lane != &lanes_.front() && !has_room()) {
      return;  // the first one is needed before anything can be taken
    }
    do {
      const auto& part = lane.fresh.emplace_back(lane.source.read(records));
      lane.ended = part.ended || part.error.has_value();
      held += part.bytes();
    } while (!lane.ended && has_room() && !enough.load(std::memory_order_relaxed));
  }

  template <class Take>
  Result<void> take_read(const Take& take, bool may_wait) {
    auto& waiting = lanes_.front().read;
    while (!waiting.empty()) {
      Result<bool> taken = take(waiting.front(), may_wait);
      if (!taken) {
        return std::move(taken).error();
      }
      if (!*taken) {
        return {};
      }
      waiting.pop_front();
    }
    return {};
  }

  Bounds bounds_;
  std::deque<Lane> lanes_;
  std::unique_ptr<ParallelRunner> own_runner_;
};

}  // namespace verger::scavenge::detail
