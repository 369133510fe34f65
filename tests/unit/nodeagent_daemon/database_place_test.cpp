#include "nodeagent/daemon/detail/database_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/results.h"

namespace verger::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DatabasePlace : public ::testing::Test {
 protected:
  DatabasePlace() { ok(files_.make_directories("/data")); }
  void add(const char* name) { ASSERT_TRUE(files_.open(Path("/data") / name, OpenMode::kCreate)); }
  Error refused(const char* directory) {
    const auto checked = check_database_place(files_, directory, /*init=*/false);
    return checked ? Error{Errc::kIo, "not refused"} : checked.error();
  }
  MemoryFileSystem files_;
};

TEST_F(DatabasePlace, IsADatabaseOrAnEmptyDirectory) {
  EXPECT_TRUE(check_database_place(files_, "/data", false));
  for (const auto* name : {"verger.lock", "writer.chk"}) {
    add(name);  // as after a first start that was killed
    EXPECT_TRUE(check_database_place(files_, "/data", false)) << name;
  }
  add("chunk-000000.000000");
  add("a.note");
  EXPECT_TRUE(check_database_place(files_, "/data", false));
}

TEST_F(DatabasePlace, IsNoDirectoryThatIsNotThereUnlessANewDatabaseIsMeant) {
  const auto error = refused("/dta");
  EXPECT_EQ(error.code, Errc::kInvalidArgument);
  EXPECT_THAT(error.message, AllOf(HasSubstr("--db /dta: there is no such directory"),
                                   HasSubstr("--init"), HasSubstr("mkdir /dta")));
  EXPECT_TRUE(check_database_place(files_, "/dta", true));
}

TEST_F(DatabasePlace, IsNoDirectoryOfOtherFilesUnlessANewDatabaseIsMeant) {
  add("photo.jpg");
  const auto error = refused("/data");
  EXPECT_EQ(error.code, Errc::kInvalidArgument);
  EXPECT_THAT(error.message, AllOf(HasSubstr("holds other files"), HasSubstr("--init")));
  EXPECT_TRUE(check_database_place(files_, "/data", true));
}

}  // namespace
}  // namespace verger::agent
