#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/file_system.h"

namespace verger::verify {

/// What a verification found: damage, and what is worth knowing. One thread.
class Findings {
 public:
  struct Finding {
    bool damage = true;  ///< false: worth knowing, nothing is wrong
    std::string kind;    ///< empty for what is always listed
    std::string file;
    std::optional<std::uint64_t> offset;
    std::string text;
  };

  void damage(const Path& file, std::optional<std::uint64_t> offset, std::string text);
  void note(const Path& file, std::string text);
  /// Counts what would otherwise fill pages: each kind is listed ten times, then counted.
  void damage_of_kind(std::string_view kind, const Path& file, std::optional<std::uint64_t> offset,
                      std::string text);
  /// Adds what `others` found behind what is here.
  void take(const Findings& others);

  const std::vector<Finding>& all() const { return findings_; }
  std::size_t damage_count() const;
  struct Kind {
    std::string name;
    std::uint64_t count = 0;
    std::uint64_t listed = 0;  ///< of these, in all()
  };
  const std::vector<Kind>& kinds() const { return kinds_; }

 private:
  void add(Finding finding);
  std::vector<Finding> findings_;
  std::vector<Kind> kinds_;
};

}  // namespace verger::verify
