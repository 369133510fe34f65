#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/cipher.h"
#include "engine/base/random.h"
#include "engine/base/result.h"

namespace verger::redaction {

/// Where bytes of a text were found.
struct Occurrence {
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t length = 0;
  std::size_t text = 0;           ///< which of the texts, counted as they were added
  std::uint64_t text_offset = 0;  ///< of the part that was found
  bool whole = false;             ///< all of the text, not a part
  /// In the record of this event ("12@orders-7") of a live chunk; empty: elsewhere, or not looked
  /// up (found_in_events.h).
  std::string event{};
  friend bool operator==(const Occurrence&, const Occurrence&) = default;
};

/// What is kept of texts so that they can be found later without having them: of each a few windows
/// of 32 bytes (8 in texts below 64 bytes), side by side and one at its end, and of each window an
/// HMAC-SHA-256 and a rolling hash, both with one random key.
///
/// Every occurrence of a whole text is found, and in longer texts every part of 63 bytes or more
/// (from 32 bytes on by chance). Windows that repeat one byte or two are left out: files are full
/// of them. The bytes are searched as they are: other encodings of a text (compressed, escaped,
/// Base64) are other texts. Key and digests together can be tried against guessed texts: what
/// encode() gives is a secret, to be kept no longer than a search needs it. Immutable once filled;
/// then safe from any thread.
class PlaintextDigests {
 public:
  explicit PlaintextDigests(Random& random);
  ~PlaintextDigests();
  PlaintextDigests(PlaintextDigests&&) noexcept;
  PlaintextDigests& operator=(PlaintextDigests&&) noexcept;

  /// False: it cannot be searched for, being shorter than 8 bytes or nothing but repetitions. It
  /// has a number all the same. The text itself is not kept.
  bool add(ByteView text);
  [[nodiscard]] std::size_t text_count() const;
  [[nodiscard]] std::size_t searchable_count() const;

  /// Key and digests, for a search after this process has ended. Format:
  /// docs/formats/noted-texts.md.
  [[nodiscard]] Bytes encode() const;
  /// Errors: kUnsupported (another version), kCorruption.
  static Result<PlaintextDigests> decode(ByteView bytes);

 private:
  friend class PlaintextScanner;
  struct State;
  explicit PlaintextDigests(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Looks through one file's bytes in order. One thread; the digests outlive it.
class PlaintextScanner {
 public:
  /// Of more occurrences only their number is kept.
  static constexpr std::size_t kMostKept = 100'000;

  explicit PlaintextScanner(const PlaintextDigests& digests);
  ~PlaintextScanner();
  PlaintextScanner(PlaintextScanner&&) noexcept;
  PlaintextScanner& operator=(PlaintextScanner&&) noexcept;

  /// The next bytes of the file.
  void feed(ByteView bytes);
  struct Found {
    std::vector<Occurrence> occurrences{};  ///< by offset
    std::uint64_t count = 0;                ///< of all, also those not kept
  };
  /// At the file's end; ends the scanner.
  Found finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::redaction
