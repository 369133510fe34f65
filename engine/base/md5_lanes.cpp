#include "engine/base/md5_lanes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/base/assert.h"
#include "engine/base/detail/lane_words.h"

namespace verger {
namespace {

using detail::kNarrow;
using detail::kWide;
using detail::NarrowWords;
using detail::WideWords;

constexpr std::size_t kBlockSize = 64;
static_assert(kWide == Md5Lanes::kLanes);

/// RFC 1321, 3.4: the sine table and the rotations of each round.
constexpr std::array<std::uint32_t, 64> kSines = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
constexpr std::array<std::array<int, 4>, 4> kRotations = {
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

/// One step; which one is known when it is compiled.
template <std::size_t kStep, class Word>
[[gnu::always_inline]] inline void step(Word& a, const Word& b, const Word& c, const Word& d,
                                        const Word* words) {
  constexpr std::size_t kRound = kStep / 16;
  constexpr std::size_t kIndex = kRound == 0   ? kStep
                                 : kRound == 1 ? (5 * kStep + 1) % 16
                                 : kRound == 2 ? (3 * kStep + 5) % 16
                                               : (7 * kStep) % 16;
  constexpr int kRotation = kRotations[kRound][kStep % 4];
  Word sum = a + words[kIndex] + kSines[kStep];
  // `b` comes last: what does not need it is ready by then.
  if constexpr (kRound == 0) {
    sum += d ^ (b & (c ^ d));
  } else if constexpr (kRound == 1) {
    sum += ~d & c;
    sum += d & b;
  } else if constexpr (kRound == 2) {
    sum += (c ^ d) ^ b;
  } else {
    sum += c ^ (b | ~d);
  }
  a = b + ((sum << kRotation) | (sum >> (32 - kRotation)));
}

template <class Word, std::size_t... kFours>
[[gnu::always_inline]] inline void all_steps(Word& a, Word& b, Word& c, Word& d, const Word* words,
                                             std::index_sequence<kFours...> /*fours*/) {
  (..., (step<4 * kFours>(a, b, c, d, words), step<4 * kFours + 1>(d, a, b, c, words),
         step<4 * kFours + 2>(c, d, a, b, words), step<4 * kFours + 3>(b, c, d, a, words)));
}

template <class Word>
[[gnu::always_inline]] inline void compress(std::array<Word, 4>& state, const Word* words) {
  auto [a, b, c, d] = state;
  all_steps(a, b, c, d, words, std::make_index_sequence<16>());
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

/// Some lanes' states, word by word, and the blocks that follow.
struct Lanes {
  std::array<std::array<std::uint32_t, kWide>, 4> states;
  std::array<const std::byte*, kWide> data;
};

template <class Words>
[[gnu::always_inline]] inline void compress_lanes(Lanes& lanes, std::size_t blocks) {
  std::array<Words, 4> state;
  for (std::size_t word = 0; word < state.size(); ++word) {
    std::memcpy(&state[word], &lanes.states[word], sizeof(Words));
  }
  for (std::size_t block = 0; block < blocks; ++block) {
    Words words[16];
    detail::load_words(lanes.data.data(), kBlockSize * block, words);
    detail::load_words(lanes.data.data(), kBlockSize * block + kBlockSize / 2, words + 8);
    compress(state, words);
  }
  for (std::size_t word = 0; word < state.size(); ++word) {
    std::memcpy(&lanes.states[word], &state[word], sizeof(Words));
  }
}

/// Of the first kNarrow lanes, or of all.
[[gnu::always_inline]] inline void compress_some(Lanes& lanes, std::size_t count,
                                                 std::size_t blocks) {
  if (count <= kNarrow) {
    compress_lanes<NarrowWords>(lanes, blocks);
  } else {
    compress_lanes<WideWords>(lanes, blocks);
  }
}

using Compress = void (*)(Lanes&, std::size_t count, std::size_t blocks);

void compress_plain(Lanes& lanes, std::size_t count, std::size_t blocks) {
  compress_some(lanes, count, blocks);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void compress_avx2(Lanes& lanes, std::size_t count, std::size_t blocks) {
  compress_some(lanes, count, blocks);
}
[[gnu::target("avx2,avx512f,avx512vl")]] void compress_avx512(Lanes& lanes, std::size_t count,
                                                              std::size_t blocks) {
  compress_some(lanes, count, blocks);
}
#endif

Compress best_compress() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
    return compress_avx512;
  }
  if (__builtin_cpu_supports("avx2")) {
    return compress_avx2;
  }
#endif
  return compress_plain;
}

void compress_one(std::array<std::uint32_t, 4>& state, const std::byte* data, std::size_t blocks) {
  for (std::size_t block = 0; block < blocks; ++block) {
    std::array<std::uint32_t, 16> words;
    std::memcpy(words.data(), data + kBlockSize * block, kBlockSize);
    compress(state, words.data());
  }
}

}  // namespace

Md5Lanes::Md5Lanes() { std::ranges::for_each(messages_, start); }

void Md5Lanes::start(Message& message) {
  message.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  message.size = 0;
}

void Md5Lanes::update(std::span<const ByteView> pieces) {
  VERGER_ASSERT(pieces.size() <= kLanes);
  static const Compress kCompress = best_compress();
  std::array<ByteView, kLanes> left{};
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    if (pieces[n].empty()) {
      continue;
    }
    left[n] = pieces[n];
    auto& message = messages_[n];
    const auto in_tail = message.size % kBlock;
    message.size += pieces[n].size();
    if (in_tail > 0) {
      const auto more = std::min(kBlock - in_tail, left[n].size());
      std::copy_n(left[n].begin(), more, message.tail.begin() + in_tail);
      left[n] = left[n].subspan(more);
      if (in_tail + more == kBlock) {
        compress_one(message.state, message.tail.data(), 1);
      }
    }
  }
  for (;;) {
    std::array<std::size_t, kLanes> busy{};
    std::size_t count = 0;
    auto blocks = std::numeric_limits<std::size_t>::max();
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      if (const auto full = left[n].size() / kBlock; full > 0) {
        blocks = std::min(blocks, full);
        busy[count++] = n;
      }
    }
    if (count == 0) {
      break;
    }
    if (count == 1) {
      compress_one(messages_[busy[0]].state, left[busy[0]].data(), blocks);
      left[busy[0]] = left[busy[0]].subspan(blocks * kBlock);
      continue;
    }
    Lanes lanes;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      // A lane too many repeats the first one.
      const auto n = busy[lane < count ? lane : 0];
      lanes.data[lane] = left[n].data();
      for (std::size_t word = 0; word < lanes.states.size(); ++word) {
        lanes.states[word][lane] = messages_[n].state[word];
      }
    }
    kCompress(lanes, count, blocks);
    for (std::size_t lane = 0; lane < count; ++lane) {
      const auto n = busy[lane];
      for (std::size_t word = 0; word < lanes.states.size(); ++word) {
        messages_[n].state[word] = lanes.states[word][lane];
      }
      left[n] = left[n].subspan(blocks * kBlock);
    }
  }
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    if (!left[n].empty()) {
      std::ranges::copy(
          left[n], messages_[n].tail.begin() +
                       static_cast<std::ptrdiff_t>((messages_[n].size - left[n].size()) % kBlock));
    }
  }
}

Md5Digest Md5Lanes::finish(std::size_t lane) {
  auto& message = messages_[lane];
  std::array<std::byte, 2 * kBlock> end{};
  const auto in_tail = message.size % kBlock;
  std::copy_n(message.tail.begin(), in_tail, end.begin());
  end[in_tail] = std::byte{0x80};
  const std::size_t blocks = in_tail + 9 <= kBlock ? 1 : 2;
  store_le(end.data() + blocks * kBlock - 8, message.size * 8);
  compress_one(message.state, end.data(), blocks);
  Md5Digest digest;
  std::memcpy(digest.data(), message.state.data(), digest.size());
  start(message);
  return digest;
}

}  // namespace verger
