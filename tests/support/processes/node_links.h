#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace verger::test {

/// The network between real nodes: each connection from one of them to another one leads through
/// this object (the nodes' option --detours), one way and one port at a time, so that it can be cut
/// without privileges. Clients go to the nodes as ever. A thread of its own; safe from any one.
class NodeLinks {
 public:
  /// `ports`: of each node, those on which it listens for other nodes.
  explicit NodeLinks(std::vector<std::vector<std::uint16_t>> ports);
  ~NodeLinks();
  NodeLinks(const NodeLinks&) = delete;
  NodeLinks& operator=(const NodeLinks&) = delete;

  /// The value of --detours for a node.
  [[nodiscard]] std::string detours_of(std::size_t node) const;

  /// From now on nothing that `from` sends to `to` arrives, on either's connection; what the other
  /// one sends does. Connections stay open, and new ones between the two are made and lead nowhere.
  void silence(std::size_t from, std::size_t to);
  /// Connections that `from` has made to `to` are reset; new ones are refused, after the first if
  /// there were none to reset.
  void refuse(std::size_t from, std::size_t to);
  /// Nothing listens at this node: connections to it are refused, those that are open do not
  /// change.
  void set_down(std::size_t node, bool down);

  enum class Held : std::uint8_t {
    kArrives,  ///< late, as after a cut that TCP has outlived
    kLost,     ///< connections that held something are reset
  };
  /// Ends silence and refusal both ways between the two.
  void heal(std::size_t a, std::size_t b, Held held);

  /// What took effect so far.
  struct Counts {
    int reset = 0;  ///< connections, by refuse()
    int held = 0;   ///< pieces and ends of what was sent, and new connections, by silence()
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verger::test
