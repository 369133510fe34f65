#include "engine/base/sha256_lanes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/detail/lane_words.h"

namespace verger {
namespace {

using detail::kWide;
using detail::WideWords;

constexpr std::size_t kSha256Block = 64;
constexpr std::size_t kStateWords = 8;
/// With fewer messages one after the other is faster.
constexpr std::size_t kFewestTogether = 4;

/// FIPS 180-4, 5.3.3 and 4.2.2.
constexpr std::array<std::uint32_t, kStateWords> kStart = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<std::uint32_t, 64> kCubeRoots = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// The sum in `to` and the words rotated right by three numbers, or the last one shifted. Vectors
/// are not returned: how that is done depends on the processor.
template <int kFirst, int kSecond, int kThird, bool kShifted = false>
[[gnu::always_inline]] inline void add_rotated(const WideWords& words, WideWords& to) {
  auto mixed = ((words >> kFirst) | (words << (32 - kFirst))) ^
               ((words >> kSecond) | (words << (32 - kSecond)));
  if constexpr (kShifted) {
    mixed ^= words >> kThird;
  } else {
    mixed ^= (words >> kThird) | (words << (32 - kThird));
  }
  to += mixed;
}

/// What is left to be done of each lane: the states word by word, and the blocks that follow.
struct Sha256Lanes {
  std::array<std::array<std::uint32_t, kWide>, kStateWords> states;
  std::array<const std::byte*, kWide> data;
};

/// The state as it is before a step: what is `a` for one step is `b` for the next, in place.
template <std::size_t kStep>
[[gnu::always_inline]] inline void step(WideWords* state, const WideWords& word) {
  constexpr auto kAt = [](std::size_t letter) { return (letter + 64 - kStep) % kStateWords; };
  const auto& a = state[kAt(0)];
  const auto& b = state[kAt(1)];
  const auto& c = state[kAt(2)];
  auto& d = state[kAt(3)];
  const auto& e = state[kAt(4)];
  const auto& f = state[kAt(5)];
  const auto& g = state[kAt(6)];
  auto& h = state[kAt(7)];
  h += word + kCubeRoots[kStep];
  h += g ^ (e & (f ^ g));
  add_rotated<6, 11, 25>(e, h);
  d += h;
  h += (a & b) | (c & (a | b));
  add_rotated<2, 13, 22>(a, h);
}

/// The message schedule: the word for this step, in the place of the one sixteen steps before.
template <std::size_t kStep>
[[gnu::always_inline]] inline const WideWords& scheduled(WideWords* words) {
  auto& word = words[kStep % 16];
  if constexpr (kStep >= 16) {
    word += words[(kStep + 9) % 16];
    add_rotated<7, 18, 3, true>(words[(kStep + 1) % 16], word);
    add_rotated<17, 19, 10, true>(words[(kStep + 14) % 16], word);
  }
  return word;
}

template <std::size_t... kSteps>
[[gnu::always_inline]] inline void all_steps(WideWords* state, WideWords* words,
                                             std::index_sequence<kSteps...> /*steps*/) {
  (..., step<kSteps>(state, scheduled<kSteps>(words)));
}

[[gnu::always_inline]] inline void swap_bytes(WideWords& words) {
  words = (words >> 24) | ((words >> 8) & 0xff00) | ((words << 8) & 0xff0000) | (words << 24);
}

[[gnu::always_inline]] inline void compress_lanes(Sha256Lanes& lanes, std::size_t blocks) {
  WideWords state[kStateWords];
  std::memcpy(&state, lanes.states.data(), sizeof state);
  for (std::size_t block = 0; block < blocks; ++block) {
    WideWords words[16];
    detail::load_words(lanes.data.data(), kSha256Block * block, words);
    detail::load_words(lanes.data.data(), kSha256Block * block + kSha256Block / 2, words + 8);
    for (auto& word : words) {
      swap_bytes(word);
    }
    WideWords next[kStateWords];
    std::memcpy(&next, &state, sizeof state);
    all_steps(next, words, std::make_index_sequence<64>());
    for (std::size_t word = 0; word < kStateWords; ++word) {
      state[word] += next[word];
    }
  }
  std::memcpy(lanes.states.data(), &state, sizeof state);
}

using CompressSha256 = void (*)(Sha256Lanes&, std::size_t blocks);

#if defined(__x86_64__)
[[gnu::target("avx2")]] void compress_avx2(Sha256Lanes& lanes, std::size_t blocks) {
  compress_lanes(lanes, blocks);
}
[[gnu::target("avx2,avx512f,avx512vl,avx512bw")]] void compress_avx512(Sha256Lanes& lanes,
                                                                       std::size_t blocks) {
  compress_lanes(lanes, blocks);
}
#endif

/// nullptr: OpenSSL is as fast, with one message after the other; also where a processor has
/// instructions for SHA-256 and no registers for sixteen messages.
CompressSha256 best_sha256() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw")) {
    return compress_avx512;
  }
  if (__builtin_cpu_supports("avx2") && !__builtin_cpu_supports("sha")) {
    return compress_avx2;
  }
#endif
  return nullptr;
}

/// A lane's message: its whole blocks, then its end with the padding.
class LaneMessage {
 public:
  void begin(ByteView message, Sha256Digest& digest) {
    digest_ = &digest;
    left_ = message.size() / kSha256Block;
    data_ = message.data();
    const auto rest = message.subspan(left_ * kSha256Block);
    end_blocks_ = rest.size() + 9 <= kSha256Block ? 1 : 2;
    end_.fill(std::byte{0});
    std::ranges::copy(rest, end_.begin());
    end_[rest.size()] = std::byte{0x80};
    const auto bits = std::byteswap(std::uint64_t{message.size()} * 8);
    store_le(end_.data() + end_blocks_ * kSha256Block - sizeof bits, bits);
    if (left_ == 0) {
      begin_end();
    }
  }
  [[nodiscard]] bool busy() const { return digest_ != nullptr; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  /// Blocks that follow each other from data() on.
  [[nodiscard]] std::size_t left() const { return left_; }
  /// True: that was the message.
  bool advance(std::size_t blocks) {
    left_ -= blocks;
    data_ += blocks * kSha256Block;
    if (left_ == 0 && end_blocks_ > 0) {
      begin_end();
    }
    return left_ == 0;
  }
  void end(const Sha256Lanes& lanes, std::size_t lane) {
    for (std::size_t word = 0; word < kStateWords; ++word) {
      store_le(digest_->data() + word * sizeof(std::uint32_t),
               std::byteswap(lanes.states[word][lane]));
    }
    digest_ = nullptr;
  }

 private:
  void begin_end() {
    data_ = end_.data();
    left_ = std::exchange(end_blocks_, 0);
  }

  Sha256Digest* digest_ = nullptr;
  const std::byte* data_ = nullptr;
  std::size_t left_ = 0;
  std::size_t end_blocks_ = 0;  ///< not begun
  std::array<std::byte, 2 * kSha256Block> end_;
};

void hash_in_lanes(CompressSha256 compress, std::span<const ByteView> messages,
                   std::span<Sha256Digest> digests) {
  Sha256Lanes lanes;
  std::array<LaneMessage, kWide> under_way;
  std::size_t next = 0;
  for (;;) {
    auto blocks = std::size_t{0};
    const std::byte* any = nullptr;
    for (std::size_t lane = 0; lane < kWide; ++lane) {
      auto& message = under_way[lane];
      if (!message.busy() && next < messages.size()) {
        for (std::size_t word = 0; word < kStateWords; ++word) {
          lanes.states[word][lane] = kStart[word];
        }
        message.begin(messages[next], digests[next]);
        ++next;
      }
      if (message.busy()) {
        any = message.data();
        blocks = blocks == 0 ? message.left() : std::min(blocks, message.left());
      }
    }
    if (blocks == 0) {
      return;
    }
    for (std::size_t lane = 0; lane < kWide; ++lane) {
      // A lane without a message has one of the others' blocks; its state is not used.
      lanes.data[lane] = under_way[lane].busy() ? under_way[lane].data() : any;
    }
    compress(lanes, blocks);
    for (std::size_t lane = 0; lane < kWide; ++lane) {
      if (under_way[lane].busy() && under_way[lane].advance(blocks)) {
        under_way[lane].end(lanes, lane);
      }
    }
  }
}

}  // namespace

void sha256_of_each(std::span<const ByteView> messages, std::span<Sha256Digest> digests) {
  VERGER_ASSERT(messages.size() == digests.size());
  static const CompressSha256 kBest = best_sha256();
  if (kBest != nullptr && messages.size() >= kFewestTogether) {
    hash_in_lanes(kBest, messages, digests);
    return;
  }
  for (std::size_t n = 0; n < messages.size(); ++n) {
    digests[n] = sha256(messages[n]);
  }
}

}  // namespace verger
