#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace verger::api {

class JsonMembers;
class JsonView;

/// JSON from outside that is read once and not changed. Its values stay in the text, which must
/// outlive it: a tenth of the work of a tree of nlohmann's values. What a controller receives from
/// each node and agent several times a second is read so. It takes and refuses the same texts as
/// parse_json(), with the same errors; only a NUL ends no document.
class JsonDocument {
 public:
  static Result<JsonDocument> parse(std::string_view text, std::string_view what);
  [[nodiscard]] JsonView root() const;

 private:
  friend class JsonMembers;
  friend class JsonView;
  class Parser;
  enum class Kind : std::uint8_t {
    kNull,
    kTrue,
    kFalse,
    kInteger,
    kFraction,
    kString,
    kList,
    kMap
  };
  /// A place in the text, or among the elements: no document of this kind has 4 GiB.
  using Place = std::uint32_t;
  /// In the order of the text; a map's members are a string and a value each.
  struct Element {
    Place begin = 0;   ///< in the text; of a string after its quote
    Place end = 0;     ///< of a string before its quote
    Place next = 0;    ///< index of the first element behind this one and all in it
    Place length = 0;  ///< of a list or a map: values in it
    Kind kind = Kind::kNull;
    bool escaped = false;  ///< of a string: it is not as it stands
  };
  std::string_view text_;
  std::vector<Element> elements_;
};

/// A value in a document, which must outlive it.
class JsonView {
 public:
  [[nodiscard]] bool is_null() const { return kind() == Kind::kNull; }
  [[nodiscard]] bool is_object() const { return kind() == Kind::kMap; }
  [[nodiscard]] bool is_array() const { return kind() == Kind::kList; }
  [[nodiscard]] bool is_string() const { return kind() == Kind::kString; }
  [[nodiscard]] bool is_boolean() const { return kind() == Kind::kTrue || kind() == Kind::kFalse; }
  /// No fraction, no exponent, and within the range of one of both 64-bit types.
  [[nodiscard]] bool is_integer() const { return kind() == Kind::kInteger; }

  [[nodiscard]] bool boolean() const { return kind() == Kind::kTrue; }
  [[nodiscard]] std::string string() const;
  /// Of an integer; nullopt: only the other type holds it.
  [[nodiscard]] std::optional<std::int64_t> signed_number() const;
  [[nodiscard]] std::optional<std::uint64_t> unsigned_number() const;
  /// As it stands in the text.
  [[nodiscard]] std::string_view text() const;

  /// Of a list or an object: it has nothing in it.
  [[nodiscard]] bool is_empty() const { return element().length == 0; }
  /// Of a list or an object: how many values it has.
  [[nodiscard]] std::size_t size() const { return element().length; }
  /// The last member of that name.
  [[nodiscard]] std::optional<JsonView> find(std::string_view name) const;
  /// The names of an object's members, strings; empty where it is none.
  [[nodiscard]] std::vector<JsonView> names() const;
  /// The values of a list; empty where it is none.
  [[nodiscard]] std::vector<JsonView> values() const;

 private:
  friend class JsonDocument;
  friend class JsonMembers;
  using Kind = JsonDocument::Kind;
  JsonView(const JsonDocument& document, std::size_t index) : document_(&document), index_(index) {}
  [[nodiscard]] const JsonDocument::Element& element() const {
    return document_->elements_[index_];
  }
  [[nodiscard]] Kind kind() const { return element().kind; }

  const JsonDocument* document_;
  std::size_t index_;
};

/// An object of which many members are looked up: as JsonView::find(), without a look at all the
/// others each time. The document must outlive it.
class JsonMembers {
 public:
  /// Of what is no object nothing is found.
  explicit JsonMembers(JsonView object);
  [[nodiscard]] std::optional<JsonView> find(std::string_view name) const;

 private:
  static constexpr std::size_t kBuckets = 32;
  struct Member {
    std::uint32_t key = 0;   ///< index of its element
    std::uint32_t next = 0;  ///< in its bucket, one up; 0: the last
  };
  static std::size_t bucket_of(std::string_view name);
  JsonView object_;
  std::vector<Member> members_;
  std::array<std::uint32_t, kBuckets> newest_{};  ///< one up; 0: none
};

}  // namespace verger::api
