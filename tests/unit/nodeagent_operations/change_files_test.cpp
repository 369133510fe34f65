#include "nodeagent/operations/certificates/change_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/digest.h"
#include "nodeagent/operations/certificates/change_plan.h"
#include "tests/unit/nodeagent_operations/certificate_case.h"

namespace verger::agent {
namespace {

using api::CertificatePhase;
using Look = ChangeFiles::Look;
using ::testing::HasSubstr;
using Content = std::map<std::string, std::string>;

constexpr std::array kPhases{CertificatePhase::kTrust, CertificatePhase::kLeaf,
                             CertificatePhase::kDrop};

FoundFile found(const Path& path, const std::string& content) {
  return {.path = path, .target = path, .content = content};
}

FoundCertificates new_set(const TestAuthority::Leaf& leaf,
                          const std::map<std::string, std::string>& roots) {
  FoundCertificates out{.certificate = found("new.crt", leaf.certificate),
                        .key = found("new.key", leaf.key)};
  out.roots.emplace();
  for (const auto& [name, content] : roots) {
    out.roots->push_back({.name = name, .file = found(name, content)});
  }
  return out;
}

/// A node with certificates of an old authority, and a set of a new one whose root file has the
/// name of the old one.
class ChangeFilesTest : public ::testing::Test {
 protected:
  ChangeFilesTest() { node().write(old_leaf_, {{"ca.crt", old_.root()}}); }

  NodeDirectory node() { return NodeDirectory(*disk_); }
  ChangeFiles change() { return {*disk_, access_, system_clock(), "/agent/certificates"}; }
  FoundCertificates live() {
    return CertificateReader(*disk_, access_, {}, {}).live(NodeDirectory::places());
  }
  Result<ChangeManifest> stage(const FoundCertificates& next) {
    return change().stage("run-1", live(), next);
  }
  FoundCertificates other_authority() { return new_set(new_leaf_, {{"ca.crt", new_.root()}}); }
  Content present() { return node().content(); }
  /// Of the server alone, without copies.
  Content servers() {
    auto out = present();
    std::erase_if(out, [](const auto& each) { return each.first.contains(".verger-"); });
    return out;
  }

  TestAuthority old_{"old"};
  TestAuthority new_{"new"};
  TestAuthority::Leaf old_leaf_ = old_.leaf();
  TestAuthority::Leaf new_leaf_ = new_.leaf();
  std::unique_ptr<MemoryFileSystem> disk_ = std::make_unique<MemoryFileSystem>();
  external::FileAccess access_;
};

TEST_F(ChangeFilesTest, GoesThroughThePhasesAndBackToTheSameBytes) {
  const auto before = present();
  auto manifest = stage(other_authority());
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(servers(), before) << "staging replaces nothing";
  auto files = change();
  std::vector<Content> states;
  for (const auto phase : kPhases) {
    states.push_back(servers());
    EXPECT_EQ(files.look(*manifest, phase), Look::kBefore);
    const auto done = files.switch_over(*manifest, phase, api::ReloadBy::kRoute);
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_TRUE(files.confirm_switch(*manifest, phase));
    EXPECT_EQ(files.look(*manifest, phase), Look::kAfter);
    EXPECT_EQ((*files.load())->state(phase), PhaseState::kSwitched);
    EXPECT_EQ(files.discard(*manifest).error().code, Errc::kConflict);
  }
  EXPECT_EQ(servers(), (Content{{"/node/node.crt", new_leaf_.certificate},
                                {"/node/node.key", new_leaf_.key},
                                {"/node/ca/ca.crt", new_.root()}}));
  for (const auto phase :
       {CertificatePhase::kDrop, CertificatePhase::kLeaf, CertificatePhase::kTrust}) {
    ASSERT_TRUE(files.restore(*manifest, phase));
    ASSERT_TRUE(files.confirm_restore(*manifest, phase));
    EXPECT_EQ(servers(), states.back());
    states.pop_back();
  }
  ASSERT_TRUE(files.discard(*manifest));
  EXPECT_EQ(present(), before);
  EXPECT_EQ(*files.load(), std::nullopt);
}

TEST_F(ChangeFilesTest, TrustsBothRootsInBetween) {
  auto manifest = stage(other_authority());
  ASSERT_TRUE(manifest);
  ASSERT_TRUE(change().switch_over(*manifest, CertificatePhase::kTrust, api::ReloadBy::kRoute));
  EXPECT_EQ(text_of_file(*disk_, "/node/ca/ca.crt"), old_.root());
  const auto other = "/node/ca/ca-" + to_hex(sha256(as_bytes(new_.root()))).substr(0, 8) + ".crt";
  EXPECT_EQ(text_of_file(*disk_, other), new_.root());
}

TEST_F(ChangeFilesTest, HasNothingToDoWithRootsThatStay) {
  const auto manifest = stage(new_set(old_.leaf(), {{"another-name.crt", old_.root()}}));
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_TRUE(manifest->of(CertificatePhase::kTrust).empty());
  EXPECT_TRUE(manifest->of(CertificatePhase::kDrop).empty());
  EXPECT_EQ(manifest->of(CertificatePhase::kLeaf).size(), 2U);
}

TEST_F(ChangeFilesTest, RefusesAnotherRootWhereAllRootsAreOneFile) {
  put_file(*disk_, "/node/roots.pem", old_.root());
  auto places = NodeDirectory::places();
  places.trusted_roots = "/node/roots.pem";
  const auto one_file = CertificateReader(*disk_, access_, {}, {}).live(places);
  const auto refused = change().stage("run-1", one_file, other_authority());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("/node/roots.pem"));
  EXPECT_EQ(why_not_replaceable(one_file, other_authority(), access_), refused.error().message);

  const auto same_root = new_set(old_.leaf(), {{"ca.crt", old_.root()}});
  EXPECT_EQ(why_not_replaceable(one_file, same_root, access_), "");
  const auto manifest = change().stage("run-2", one_file, same_root);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->of(CertificatePhase::kLeaf).size(), 2U);
  EXPECT_TRUE(manifest->of(CertificatePhase::kTrust).empty());
}

TEST_F(ChangeFilesTest, NamesWhatCannotBeReplacedBeforeAnythingIsStaged) {
  // Only the directory of the certificate and the key can be written.
  struct ReadOnlyRoots final : external::FileAccess {
    std::string not_writable(const Path& directory) override {
      return directory == "/node/ca" ? "/node/ca cannot be written" : "";
    }
  } read_only;
  EXPECT_EQ(why_not_replaceable(live(), other_authority(), read_only),
            "/node/ca cannot be written");
  EXPECT_EQ(why_not_replaceable(live(), new_set(old_.leaf(), {{"ca.crt", old_.root()}}), read_only),
            "")
      << "the roots stay";
  auto own = other_authority();
  own.certificate.target = "/node/node.crt";
  EXPECT_THAT(why_not_replaceable(live(), own, access_), HasSubstr("the node's own file"));
}

TEST_F(ChangeFilesTest, RefusesWhatDoesNotFitTogether) {
  const auto before = present();
  auto swapped = other_authority();
  swapped.key->content = old_leaf_.key;
  EXPECT_EQ(stage(swapped).error().code, Errc::kInvalidArgument);
  auto own = other_authority();
  own.certificate.target = "/node/node.crt";
  EXPECT_EQ(stage(own).error().code, Errc::kInvalidArgument) << "nothing could be restored";
  auto no_root = other_authority();
  no_root.roots->front().file.content = "nothing";
  EXPECT_EQ(stage(no_root).error().code, Errc::kInvalidArgument);
  auto link = live();
  link.roots->front().file.target = "/elsewhere/ca.crt";
  const auto refused = change().stage("run-1", link, other_authority());
  EXPECT_EQ(refused.error().code, Errc::kRefused) << refused.error().message;
  EXPECT_EQ(present(), before);
}

TEST_F(ChangeFilesTest, LeavesNothingBehindOnAFullDisk) {
  const auto before = present();
  for (std::uint64_t free = 0;; free += 150) {
    SCOPED_TRACE(free);
    disk_->set_free_space(free);
    const auto staged = stage(other_authority());
    disk_->set_free_space(std::nullopt);
    if (staged) {
      EXPECT_GT(free, 2'000U) << "there was a disk too full for it";
      break;
    }
    EXPECT_EQ(staged.error().code, Errc::kNoSpace) << staged.error().message;
    EXPECT_EQ(present(), before);
    EXPECT_EQ(*change().load(), std::nullopt);
  }
}

TEST_F(ChangeFilesTest, NeedsNoSpaceToRestore) {
  const auto before = present();
  auto manifest = stage(other_authority());
  ASSERT_TRUE(manifest);
  ASSERT_TRUE(change().switch_over(*manifest, CertificatePhase::kLeaf, api::ReloadBy::kRoute));
  disk_->set_free_space(0);
  const auto restored = change().restore(*manifest, CertificatePhase::kLeaf);
  EXPECT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(servers(), before);
}

TEST_F(ChangeFilesTest, LeavesFilesThatSomeoneElseHasReplaced) {
  auto manifest = stage(other_authority());
  ASSERT_TRUE(manifest);
  put_file(*disk_, "/node/node.crt", "by hand");
  EXPECT_EQ(
      change().switch_over(*manifest, CertificatePhase::kLeaf, api::ReloadBy::kRoute).error().code,
      Errc::kConflict);
  EXPECT_EQ(text_of_file(*disk_, "/node/node.key"), old_leaf_.key);
  put_file(*disk_, "/node/node.crt", old_leaf_.certificate);
  ASSERT_TRUE(change().switch_over(*manifest, CertificatePhase::kLeaf, api::ReloadBy::kRoute));
  put_file(*disk_, "/node/node.crt", "by hand");
  EXPECT_EQ(change().look(*manifest, CertificatePhase::kLeaf), Look::kForeign);
  EXPECT_EQ(change().restore(*manifest, CertificatePhase::kLeaf).error().code, Errc::kConflict);
  EXPECT_EQ(text_of_file(*disk_, "/node/node.crt"), "by hand");
  EXPECT_EQ(text_of_file(*disk_, "/node/node.key"), new_leaf_.key);
}

/// Does `work` again and again, each time with a power cut one operation later, until it gets
/// through; what is left goes to `check`, with the power back.
template <class Prepare, class Work, class Check>
void cut_power_everywhere(std::unique_ptr<MemoryFileSystem>& disk, Prepare prepare, Work work,
                          Check check) {
  const auto clean = disk->clone();
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    disk = clean->clone();
    prepare();
    disk->reset_count();
    bool cut = false;
    auto* const raw = disk.get();
    disk->set_fault_hook([&cut, raw, nth](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.number == nth && !cut) {
        cut = true;
        raw->cut_power(nth);
      }
      return cut ? std::optional(Error{Errc::kIo, "no power"}) : std::nullopt;
    });
    work();
    disk->set_fault_hook(nullptr);
    check();
    if (!cut) {
      ASSERT_GT(nth, 4U) << "it did something";
      break;
    }
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  disk = clean->clone();
}

TEST_F(ChangeFilesTest, APowerCutInTheMiddleOfASwitchCanBeRestoredToTheSameBytes) {
  for (const auto phase : kPhases) {
    SCOPED_TRACE(api::to_string(phase));
    Content before;
    cut_power_everywhere(
        disk_,
        [&] {
          auto manifest = stage(other_authority());
          ASSERT_TRUE(manifest);
          for (const auto earlier : kPhases) {
            if (earlier == phase) {
              break;
            }
            ASSERT_TRUE(change().switch_over(*manifest, earlier, api::ReloadBy::kRoute));
            ASSERT_TRUE(change().confirm_switch(*manifest, earlier));
          }
          before = servers();
        },
        [&] {
          auto manifest = *change().load();
          static_cast<void>(change().switch_over(*manifest, phase, api::ReloadBy::kRoute));
        },
        [&] {
          auto files = change();
          auto manifest = files.load();
          ASSERT_TRUE(manifest && *manifest);
          const auto found = files.look(**manifest, phase);
          ASSERT_TRUE(found);
          EXPECT_NE(*found, Look::kForeign) << "a file is the one or the other, never in parts";
          if (*found != Look::kBefore) {
            EXPECT_NE((*manifest)->state(phase), PhaseState::kStaged)
                << "it is known that a switch began";
          }
          const auto restored = files.restore(**manifest, phase);
          ASSERT_TRUE(restored) << restored.error().message;
          EXPECT_EQ(servers(), before);
        });
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(ChangeFilesTest, APowerCutInTheMiddleOfARestoreIsFinishedByTheNext) {
  const auto before = servers();
  cut_power_everywhere(
      disk_,
      [&] {
        auto manifest = stage(other_authority());
        ASSERT_TRUE(manifest);
        ASSERT_TRUE(
            change().switch_over(*manifest, CertificatePhase::kLeaf, api::ReloadBy::kRoute));
      },
      [&] {
        auto manifest = *change().load();
        static_cast<void>(change().restore(*manifest, CertificatePhase::kLeaf));
      },
      [&] {
        auto manifest = *change().load();
        const auto restored = change().restore(*manifest, CertificatePhase::kLeaf);
        ASSERT_TRUE(restored) << restored.error().message;
        EXPECT_EQ(servers(), before);
        ASSERT_TRUE(change().confirm_restore(*manifest, CertificatePhase::kLeaf));
        ASSERT_TRUE(change().discard(*manifest));
        EXPECT_EQ(present(), before) << "no copy is left";
      });
}

TEST_F(ChangeFilesTest, APowerCutInTheMiddleOfStagingLeavesTheServersFilesAlone) {
  const auto before = present();
  cut_power_everywhere(
      disk_, [] {}, [&] { static_cast<void>(stage(other_authority())); },
      [&] {
        EXPECT_EQ(servers(), before);
        const auto manifest = change().load();
        ASSERT_TRUE(manifest);
        if (*manifest) {
          ASSERT_TRUE(change().discard(**manifest));
        }
        EXPECT_EQ(present(), before);
      });
}

}  // namespace
}  // namespace verger::agent
