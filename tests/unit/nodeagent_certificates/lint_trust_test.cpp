#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nodeagent_certificates/lint_case.h"

/// Whether nodes trust each other at each stage of a change, and what they show and trust now.
namespace verger::certificates {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Lint, ANewCaWithoutTrustOverlap) {
  const auto fresh = root("New root");
  for (auto& node : input_.nodes) {
    put(node, fresh, {});
  }
  trust_everywhere(fresh.certificates);
  input_.others = {{.path = "old.crt", .content = ca_.certificates}};
  EXPECT_THAT(codes(), ElementsAre("trust-gap"));
  EXPECT_THAT(message(), AllOf(HasSubstr("refuse each other in 12 of 24 cases"),
                               HasSubstr("n1 (old) is refused by n2 (new)")));
  // With both roots among the new ones old nodes still refuse new leaves.
  for (auto& node : input_.nodes) {
    node.next.roots.push_back({.path = "ca/old.crt", .content = ca_.certificates});
  }
  EXPECT_THAT(message(), HasSubstr("refuse each other in 6 of 24 cases"));
  // Trusting both first is the way.
  trust_everywhere(fresh.certificates);
  input_.trust_first = true;
  EXPECT_THAT(codes(), IsEmpty());
  const auto stages = lint(input_).stages;
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_TRUE(std::ranges::all_of(stages, &TrustStage::holds));
}

TEST_F(Lint, ANewIntermediateOfTheSameRoot) {
  const auto old_one = intermediate(ca_, "Old intermediate");
  const auto new_one = intermediate(ca_, "New intermediate");
  for (auto& node : input_.nodes) {
    put(node, old_one, {});
    node.served->chain = node.next.certificate.content + old_one.certificates;
    put(node, new_one, {});
    node.next.certificate.content += new_one.certificates;
  }
  EXPECT_THAT(codes(), ElementsAre("trust-gap"));
  EXPECT_THAT(message(), AllOf(HasSubstr("refuse each other in 12 of 24 cases"),
                               HasSubstr("shows its leaf alone"),
                               HasSubstr("does not have the intermediate CN=")));
  input_.trust_first = true;
  EXPECT_THAT(codes(), IsEmpty());
  // A new leaf of the same intermediate needs no such way.
  input_.trust_first = false;
  for (auto& node : input_.nodes) {
    put(node, old_one, {});
    node.next.certificate.content += old_one.certificates;
  }
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, OfAFileOfRootsTheFirstCounts) {
  const auto other = root("Other root");
  trust_everywhere(ca_.certificates + other.certificates);
  EXPECT_THAT(codes(), IsEmpty());
  EXPECT_THAT(codes(Severity::kWarning),
              ElementsAre("root-file-several", "root-file-several", "root-file-several"));
  trust_everywhere(other.certificates + ca_.certificates);
  input_.others = {{.path = "ca.crt", .content = ca_.certificates}};
  EXPECT_THAT(codes(), ElementsAre("root-unknown", "root-unknown", "root-unknown"));
}

TEST_F(Lint, AKeyFileThatServersDoNotRead) {
  const auto key = n1().next.key->content;
  n1().next.key->content = "Bag Attributes\n" + key;
  EXPECT_THAT(codes(), ElementsAre("key-format"));
  n1().next.key->content = key + "\n";
  EXPECT_THAT(codes(), ElementsAre("key-format"));
  EXPECT_THAT(message(), HasSubstr("after its END line"));
  n1().next.key->content = key.substr(0, key.size() - 1);
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Lint, WhatANodeTrustsNowHasToBeKnown) {
  const auto fresh = root("New root");
  for (auto& node : input_.nodes) {
    put(node, fresh, {});
  }
  trust_everywhere(fresh.certificates);
  EXPECT_THAT(codes(), ElementsAre("served-roots-unknown"));
  for (auto& node : input_.nodes) {
    node.served->roots = ca_.certificates + fresh.certificates;
    node.next.roots.push_back({.path = "ca/old.crt", .content = ca_.certificates});
  }
  EXPECT_THAT(codes(), IsEmpty());
}

/// n1 was not read: what it trusts while the others are changed is not made up from the new roots.
TEST_F(Lint, ANodeThatWasNotReadIsNotKnownUntilItsNewLeaf) {
  const auto fresh = root("New root");
  for (auto& node : input_.nodes) {
    node.served->roots = ca_.certificates;
    put(node, fresh, {});
  }
  n1().served.reset();
  trust_everywhere(fresh.certificates);
  input_.trust_first = true;
  EXPECT_THAT(codes(), IsEmpty());
  EXPECT_THAT(codes(Severity::kWarning), ElementsAre("served-not-read"));
  const auto stages = lint(input_).stages;
  ASSERT_EQ(stages.size(), 3U);
  const auto seen = [](const TrustStage& stage, const std::string& from, const std::string& to) {
    std::vector<std::string> out;
    for (const auto& cell : stage.cells) {
      if (cell.from == from && cell.to == to) {
        out.push_back(fmt::format("{}, {}: {}", text_of(cell.from_state), text_of(cell.to_state),
                                  cell.known ? cell.holds() ? "yes" : "no" : "?"));
      }
    }
    return out;
  };
  EXPECT_THAT(seen(stages[0], "n2", "n1"),
              ElementsAre("old, not known: ?", "trusts both, not known: ?"));
  EXPECT_THAT(seen(stages[1], "n2", "n1"),
              ElementsAre("trusts both, not known: ?", "trusts both, new leaf: ?",
                          "new leaf, not known: ?", "new leaf, new leaf: yes"));
  EXPECT_THAT(seen(stages[1], "n1", "n2"),
              ElementsAre("not known, trusts both: ?", "not known, new leaf: ?",
                          "new leaf, trusts both: yes", "new leaf, new leaf: yes"));
  EXPECT_FALSE(stages[1].holds());
  EXPECT_TRUE(stages[2].holds());
}

TEST_F(Lint, NewCertificatesAloneAreComparedWhereNoNodeWasRead) {
  for (auto& node : input_.nodes) {
    node.served.reset();
  }
  EXPECT_THAT(codes(Severity::kWarning), IsEmpty());
  EXPECT_EQ(lint(input_).stages.front().cells.size(), 6U);
  n1().served = ServedNow{.chain = n1().next.certificate.content};
  EXPECT_THAT(codes(Severity::kWarning),
              ElementsAre("certificate-unchanged", "served-not-read", "served-not-read"));
}

TEST_F(Lint, NothingWouldChange) {
  n1().served->chain = n1().next.certificate.content;
  EXPECT_THAT(codes(Severity::kWarning), ElementsAre("certificate-unchanged"));
}

}  // namespace
}  // namespace verger::certificates
