#pragma once

#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "planner/plan.h"

namespace verger::planner::detail {

/// Writes what hashed_json() or, with `whole`, to_json() would give, members in the order of their
/// names, and hashes it piece by piece: a plan of a thousand nodes has megabytes of it.
class HashedText {
 public:
  /// With `digest` the text goes there, and what is left of it is the result.
  explicit HashedText(Sha256* digest, bool whole = false) : digest_(digest), whole_(whole) {}
  std::string of(const Plan& plan);

 private:
  template <class T, class Write>
  void list(const std::vector<T>& values, const Write& write_one);
  void plain(std::string_view text);
  void text(std::string_view before, std::string_view value);
  void number(std::string_view before, std::int64_t value);
  void write(const BasisNode& node);
  void write(const Stage& stage);
  void write(const Step& step);
  void write_gates(const std::vector<Gate>& gates);
  /// Room for so many more characters.
  void make_room(std::size_t size);
  void hand_on();

  Sha256* digest_;
  bool whole_;  ///< with what does not count for the hash
  std::string out_;
  std::size_t used_ = 0;  ///< of out_; the rest is room
  /// The steps of a plan have few different lists of gates.
  struct KnownGates {
    const std::vector<Gate>* gates;
    std::string text;
  };
  std::vector<KnownGates> known_gates_;
};

}  // namespace verger::planner::detail
