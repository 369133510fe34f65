#include "engine/redaction/plaintext_digests.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/base/byte_reader.h"

namespace verger::redaction {
namespace {

/// Far more than a record holds.
constexpr std::uint64_t kMostTextSize = std::uint64_t{1} << 32U;
constexpr std::size_t kShortWindow = 8;
constexpr std::size_t kLongWindow = 32;
/// Texts from here on have long windows.
constexpr std::size_t kLongText = 2 * kLongWindow;
constexpr unsigned kFilterBits = 20;

constexpr std::string_view kEncodedMagic = "VGRDIGS";
constexpr std::uint8_t kEncodedVersion = 1;

/// One window of a text.
struct Window {
  std::size_t text = 0;
  std::uint64_t offset = 0;  ///< in the text
  Sha256Digest digest{};
};

/// Of each text.
struct TextFacts {
  std::uint64_t size = 0;
  std::uint64_t windows = 0;  ///< that are looked for; 0: it cannot be searched for
};

/// Zeros, blanks, 0xFF, and other fillings of one or two bytes.
bool repeats(ByteView window) {
  for (std::size_t i = 2; i < window.size(); ++i) {
    if (window[i] != window[i - 2]) {
      return false;
    }
  }
  return true;
}

/// The windows of one size.
struct WindowSet {
  std::size_t size = 0;
  std::uint64_t out_factor = 1;  ///< of the byte that leaves the window
  std::unordered_multimap<std::uint64_t, Window> windows;
  /// Most positions of a file end here.
  std::vector<bool> filter = std::vector<bool>(std::size_t{1} << kFilterBits);

  static std::size_t slot(std::uint64_t hash) {
    return static_cast<std::size_t>(hash >> (64U - kFilterBits));
  }
  void insert(std::uint64_t hash, const Window& window) {
    windows.emplace(hash, window);
    filter[slot(hash)] = true;
  }
};

/// A number that the key gives for a purpose.
std::uint64_t derived_number(const Key256& key, std::uint64_t purpose) {
  Bytes message;
  append_le(message, purpose);
  return load_le<std::uint64_t>(keyed_digest(key, message).data());
}

}  // namespace

struct PlaintextDigests::State {
  Key256 key{};
  std::array<std::uint64_t, 256> byte_values{};  ///< secret as the key is
  std::uint64_t factor = 1;
  std::array<WindowSet, 2> sets{};
  std::vector<TextFacts> texts{};

  /// The rolling hash is as secret as the key, and derived from it.
  explicit State(const Key256& its_key) : key(its_key) {
    for (std::size_t n = 0; n < byte_values.size(); ++n) {
      byte_values[n] = derived_number(key, n);
    }
    factor = derived_number(key, byte_values.size()) | 1U;
    sets[0].size = kShortWindow;
    sets[1].size = kLongWindow;
    for (auto& set : sets) {
      for (std::size_t n = 0; n < set.size; ++n) {
        set.out_factor *= factor;
      }
    }
  }

  [[nodiscard]] std::uint64_t value_of(std::byte byte) const {
    return byte_values[std::to_integer<std::size_t>(byte)];
  }
  [[nodiscard]] std::uint64_t hash(ByteView window) const {
    std::uint64_t hash = 0;
    for (const auto byte : window) {
      hash = hash * factor + value_of(byte);
    }
    return hash;
  }
};

PlaintextDigests::PlaintextDigests(Random& random)
    : state_(std::make_unique<State>(random_key(random))) {}
PlaintextDigests::PlaintextDigests(std::unique_ptr<State> state) : state_(std::move(state)) {}
PlaintextDigests::~PlaintextDigests() = default;
PlaintextDigests::PlaintextDigests(PlaintextDigests&&) noexcept = default;
PlaintextDigests& PlaintextDigests::operator=(PlaintextDigests&&) noexcept = default;

bool PlaintextDigests::add(ByteView text) {
  State& s = *state_;
  const auto number = s.texts.size();
  auto& facts = s.texts.emplace_back(TextFacts{.size = text.size()});
  if (text.size() < kShortWindow) {
    return false;
  }
  auto& set = s.sets[text.size() < kLongText ? 0 : 1];
  const auto add_window = [&](std::size_t offset) {
    const auto window = text.subspan(offset, set.size);
    if (repeats(window)) {
      return;
    }
    set.insert(s.hash(window),
               {.text = number, .offset = offset, .digest = keyed_digest(s.key, window)});
    ++facts.windows;
  };
  std::size_t at = 0;
  for (; at + set.size <= text.size(); at += set.size) {
    add_window(at);
  }
  if (at != text.size()) {
    add_window(text.size() - set.size);
  }
  return facts.windows > 0;
}

std::size_t PlaintextDigests::text_count() const { return state_->texts.size(); }
std::size_t PlaintextDigests::searchable_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(state_->texts, [](const auto& text) { return text.windows > 0; }));
}

Bytes PlaintextDigests::encode() const {
  const State& s = *state_;
  Bytes out;
  append_bytes(out, as_bytes(kEncodedMagic));
  append_le(out, kEncodedVersion);
  append_bytes(out, s.key);
  append_le(out, static_cast<std::uint32_t>(s.texts.size()));
  for (const auto& text : s.texts) {
    append_le(out, text.size);
    append_le(out, text.windows);
  }
  append_le(out, static_cast<std::uint32_t>(s.sets[0].windows.size() + s.sets[1].windows.size()));
  for (std::size_t n = 0; n < s.sets.size(); ++n) {
    for (const auto& [hash, window] : s.sets.at(n).windows) {
      append_le(out, static_cast<std::uint8_t>(n));
      append_le(out, hash);
      append_le(out, static_cast<std::uint32_t>(window.text));
      append_le(out, window.offset);
      append_bytes(out, window.digest);
    }
  }
  append_bytes(out, sha256(out));
  return out;
}

Result<PlaintextDigests> PlaintextDigests::decode(ByteView bytes) {
  const Error damaged{Errc::kCorruption, "digests of texts: damaged"};
  Sha256Digest check{};
  if (bytes.size() < check.size()) {
    return damaged;
  }
  const auto content = bytes.first(bytes.size() - check.size());
  ByteReader in(content);
  if (as_text(in.bytes(kEncodedMagic.size())) != kEncodedMagic) {
    return damaged;
  }
  if (const auto version = in.integer<std::uint8_t>(); in.ok() && version != kEncodedVersion) {
    return Error{Errc::kUnsupported, "digests of texts: of another version"};
  }
  if (!same_bytes(sha256(content), bytes.last(check.size()))) {
    return damaged;
  }
  auto state = std::make_unique<State>(in.array<sizeof(Key256)>());
  const auto texts = in.integer<std::uint32_t>();
  for (std::uint32_t n = 0; n < texts && in.ok(); ++n) {
    auto& text = state->texts.emplace_back();
    text.size = in.integer<std::uint64_t>();
    text.windows = in.integer<std::uint64_t>();
    if (text.size > kMostTextSize) {
      return damaged;
    }
  }
  const auto windows = in.integer<std::uint32_t>();
  std::vector<std::uint64_t> windows_of(state->texts.size());
  for (std::uint32_t n = 0; n < windows && in.ok(); ++n) {
    const auto set = in.integer<std::uint8_t>();
    const auto hash = in.integer<std::uint64_t>();
    Window window;
    window.text = in.integer<std::uint32_t>();
    window.offset = in.integer<std::uint64_t>();
    window.digest = in.array<sizeof(Sha256Digest)>();
    if (set >= state->sets.size() || window.text >= state->texts.size() ||
        window.offset > state->texts[window.text].size) {
      return damaged;
    }
    ++windows_of[window.text];
    state->sets.at(set).insert(hash, window);
  }
  const bool whole = in.ok() && in.left() == 0 &&
                     std::ranges::equal(windows_of, state->texts, {}, {}, &TextFacts::windows);
  return whole ? Result<PlaintextDigests>(PlaintextDigests(std::move(state)))
               : Result<PlaintextDigests>(damaged);
}

/// Windows are found at the place in the file where their text would begin; those of one such place
/// are one occurrence.
struct PlaintextScanner::State {
  explicit State(const PlaintextDigests::State& of) : digests(&of) {}

  struct Candidate {
    std::uint64_t windows = 0;
    std::uint64_t first = 0;  ///< in the text
    std::uint64_t end = 0;
  };
  /// Where the text would begin, which may be before the file does: then it is a part of it.
  struct Place {
    std::int64_t start = 0;
    std::size_t text = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  const PlaintextDigests::State* digests;
  std::array<std::uint64_t, 2> hashes{};
  Bytes tail;            ///< up to kLongWindow bytes before what is fed next
  std::uint64_t at = 0;  ///< bytes fed before
  std::map<Place, Candidate> open;
  Found found;

  void look(const WindowSet& set, std::uint64_t hash, ByteView window, std::uint64_t end) {
    const auto [first, last] = set.windows.equal_range(hash);
    if (first == last) {
      return;
    }
    const auto digest = keyed_digest(digests->key, window);
    for (auto entry = first; entry != last; ++entry) {
      const auto& known = entry->second;
      if (known.digest != digest) {
        continue;
      }
      const auto start =
          static_cast<std::int64_t>(end - set.size) - static_cast<std::int64_t>(known.offset);
      auto& candidate = open[{start, known.text}];
      if (candidate.windows++ == 0) {
        candidate.first = known.offset;
      }
      candidate.end = std::max(candidate.end, known.offset + set.size);
    }
  }

  /// Those that cannot grow once `position` bytes were seen.
  void close(std::uint64_t position) {
    for (auto it = open.begin(); it != open.end();) {
      const auto& [place, candidate] = *it;
      const auto size = digests->texts[place.text].size;
      if (place.start + static_cast<std::int64_t>(size) > static_cast<std::int64_t>(position)) {
        ++it;
        continue;
      }
      settle(place, candidate);
      it = open.erase(it);
    }
  }

  void settle(const Place& place, const Candidate& candidate) {
    const auto& text = digests->texts[place.text];
    const bool whole = candidate.windows == text.windows;
    if (!whole && text.size < kLongText) {
      return;  // eight bytes alone say nothing
    }
    ++found.count;
    if (found.occurrences.size() < kMostKept) {
      const auto first = whole ? 0 : candidate.first;
      found.occurrences.push_back(
          {.offset = static_cast<std::uint64_t>(place.start + static_cast<std::int64_t>(first)),
           .length = whole ? text.size : candidate.end - candidate.first,
           .text = place.text,
           .text_offset = first,
           .whole = whole});
    }
  }
};

PlaintextScanner::PlaintextScanner(const PlaintextDigests& digests)
    : state_(std::make_unique<State>(*digests.state_)) {}
PlaintextScanner::~PlaintextScanner() = default;
PlaintextScanner::PlaintextScanner(PlaintextScanner&&) noexcept = default;
PlaintextScanner& PlaintextScanner::operator=(PlaintextScanner&&) noexcept = default;

void PlaintextScanner::feed(ByteView bytes) {
  State& s = *state_;
  const auto& digests = *s.digests;
  // Windows reach back into what was fed before.
  Bytes joined = s.tail;
  append_bytes(joined, bytes);
  const auto before = s.tail.size();
  for (std::size_t n = 0; n < digests.sets.size(); ++n) {
    const auto& set = digests.sets[n];
    if (set.windows.empty()) {
      continue;
    }
    auto hash = s.hashes[n];
    for (std::size_t i = before; i < joined.size(); ++i) {
      hash = hash * digests.factor + digests.value_of(joined[i]);
      if (i >= set.size) {
        hash -= digests.value_of(joined[i - set.size]) * set.out_factor;
      }
      if (i + 1 >= set.size && set.filter[WindowSet::slot(hash)]) {
        s.look(set, hash, ByteView(joined).subspan(i + 1 - set.size, set.size),
               s.at + (i + 1 - before));
      }
    }
    s.hashes[n] = hash;
  }
  s.at += bytes.size();
  const auto keep = std::min(joined.size(), kLongWindow);
  s.tail.assign(joined.end() - static_cast<std::ptrdiff_t>(keep), joined.end());
  s.close(s.at);
}

PlaintextScanner::Found PlaintextScanner::finish() {
  State& s = *state_;
  for (const auto& [place, candidate] : s.open) {
    s.settle(place, candidate);
  }
  s.open.clear();
  std::ranges::sort(s.found.occurrences, {}, &Occurrence::offset);
  return std::move(s.found);
}

}  // namespace verger::redaction
