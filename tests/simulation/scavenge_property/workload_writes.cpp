// What a workload writes: events, metadata, deletes, scavenge points, and odd records.
#include <fmt/format.h>

#include "engine/log/record.h"
#include "tests/simulation/scavenge_property/workload.h"
#include "tests/support/results.h"

namespace verger::test {

void Workload::write_something() {
  const auto& stream = names_[random_.below(names_.size())];
  const auto base = stream.starts_with("$$") ? stream.substr(2) : stream;
  if (odd_ && one_in(3)) {
    write_odd(base);
    return;
  }
  if (tombstoned_.contains(base)) {
    return;
  }
  const bool soft = soft_deleted_.contains(base);
  switch (random_.below(24)) {
    case 0:
    case 1:
    case 2:
    case 3:
      write_metadata(base);
      return;
    case 4:
      if (!soft && one_in(2)) {
        builder_->write("$$" + base, 1);  // counts as metadata that says nothing
      }
      return;
    case 5:
      if (!soft && value(builder_->database().last_event_number(base)) >= EventNumber(0)) {
        builder_->soft_delete(base);
        soft_deleted_.insert(base);
      }
      return;
    case 6:
      if (one_in(2)) {
        builder_->hard_delete(base);
        tombstoned_.insert(base);
      }
      return;
    case 7:
    case 8:
      if (!soft) {
        builder_->transaction(base, 1 + static_cast<int>(random_.below(3)), one_in(4));
      }
      return;
    case 9:
      builder_->clock().advance_seconds(static_cast<std::int64_t>(random_.below(900)));
      return;
    case 10:
      if (!monotonic_) {
        builder_->clock().advance_seconds(-static_cast<std::int64_t>(random_.below(200)));
      }
      return;
    case 11:
      if (one_in(4)) {
        reopen();
      }
      return;
    default:
      builder_->write(base, 1 + static_cast<int>(random_.below(3)), 16 + random_.below(250));
      soft_deleted_.erase(base);
  }
}

void Workload::write_metadata(const std::string& stream) {
  builder_->metadata(stream, metadata_text());
}

std::string Workload::metadata_text() {
  const auto small = random_.below(6);
  const auto age = 1 + random_.below(900);
  const std::string texts[] = {
      fmt::format(R"({{"$maxCount":{}}})", small),
      fmt::format(R"({{"$maxAge":{}}})", age),
      fmt::format(R"({{"$maxAge":{},"$maxCount":{}}})", age, small + 1),
      fmt::format(R"({{"$tb":{}}})", small * 2),
      fmt::format(R"({{"$tb":{},"$maxAge":{}}})", small, age),
      fmt::format(R"({{"$maxCount":{},"$tb":{},"$acl":{{"$r":"$admins"}}}})", small + 2, small),
      R"({"$acl":{"$r":["a","b"],"$w":"$ops"}})",
      R"({"$acl":{"unheard":"of"},"$maxCount":1})",
      R"({"$maxCount":"2","$tb":1})",
      R"({"$maxAge":1000000000000,"$maxCount":1})",
      R"({"$tb":-1,"unknown":{"$maxCount":1}})",
      "{}",
      "not json",
  };
  // Half of the time one of the first: limits that limit.
  return texts[one_in(2) ? random_.below(6) : random_.below(std::size(texts))];
}

LogPosition Workload::append(const std::string& stream, std::uint16_t flags, std::int64_t number,
                             std::string_view data, LogPosition transaction, std::int32_t offset) {
  log::Prepare prepare;
  prepare.version = one_in(2) ? 0 : 1;
  prepare.position = kNoPosition;
  prepare.flags = flags;
  prepare.transaction_position = transaction;
  prepare.transaction_offset = offset;
  prepare.expected_version = number - 1;
  prepare.stream = stream;
  prepare.event_id = random_.uuid();
  prepare.correlation_id = random_.uuid();
  prepare.timestamp = builder_->clock().now();
  prepare.type = "odd";
  prepare.data = as_bytes(data);
  return value(builder_->database().transaction_log().append(std::span(&prepare, 1))).front();
}

void Workload::write_odd(const std::string& stream) {
  namespace flags = log::prepare_flags;
  constexpr std::uint16_t kAlone =
      flags::kTransactionBegin | flags::kTransactionEnd | flags::kIsCommitted;
  constexpr std::uint16_t kUnknown = 0x1010;
  auto& database = builder_->database();
  auto& log = database.transaction_log();
  const auto current = [&](const std::string& name) {
    return tombstoned_.contains(stream) ? std::int64_t{7}
                                        : value(database.last_event_number(name)).value();
  };
  const auto near = [&](std::int64_t number) {
    return std::max<std::int64_t>(0, number - 2 + static_cast<std::int64_t>(random_.below(6)));
  };
  const auto meta = "$$" + stream;
  const auto commit = [&](LogPosition transaction, std::int64_t number) {
    log::Commit record;
    record.version = one_in(2) ? 0 : 1;
    record.transaction_position = transaction;
    record.first_event_number = EventNumber(number);
    record.correlation_id = random_.uuid();
    record.timestamp = builder_->clock().now();
    value(log.append(record));
  };
  const auto text = metadata_text();
  switch (random_.below(12)) {
    case 0:
    case 1:
    case 2:
      append(stream, flags::kData | kAlone | (one_in(3) ? kUnknown : 0), near(current(stream)),
             std::string(random_.below(200), 'o'));
      break;
    case 3:
      append(stream, kAlone, std::max<std::int64_t>(0, current(stream) + 1), "", kNoPosition, -1);
      break;
    case 4: {
      const auto number = current(stream) + 1;
      commit(append(stream, flags::kData | flags::kTransactionBegin | flags::kTransactionEnd,
                    number, "old"),
             number);
      break;
    }
    case 5:
    case 6:
      append(meta, flags::kData | kAlone | (one_in(2) ? flags::kIsJson : 0), near(current(meta)),
             one_in(4) ? R"({"$tb":2147483647})" : text);
      break;
    case 7: {
      const auto number = std::max<std::int64_t>(0, current(meta) + 1);
      commit(append(meta, flags::kData | flags::kTransactionBegin | flags::kTransactionEnd, number,
                    text),
             number);
      break;
    }
    case 8:
      append("$$" + meta, flags::kData | kAlone, near(current("$$" + meta)), text);
      break;
    case 9:
      if (one_in(3)) {
        append(stream, flags::kStreamDelete | kAlone, kDeletedStream.value(), "");
        tombstoned_.insert(stream);
      }
      break;
    case 10:
      if (one_in(3)) {
        const auto number = current(stream) + 1;
        commit(
            append(stream, flags::kStreamDelete | flags::kTransactionBegin | flags::kTransactionEnd,
                   number, ""),
            number);
        tombstoned_.insert(stream);
      }
      break;
    default: {
      const auto last = log.epochs().last();
      value(log.append_epoch(EpochNumber(last ? last->number.value() + 1 : 0), random_.uuid()));
    }
  }
  value(log.flush());
  value(database.commit_up_to(log.end()));
  builder_->clock().advance_seconds(1);
}

streams::ScavengePoint Workload::write_point() {
  const std::int32_t thresholds[] = {-1, 1, 2, 5, 20};
  return builder_->point(zero_threshold_ ? 0 : thresholds[random_.below(5)]);
}

}  // namespace verger::test
