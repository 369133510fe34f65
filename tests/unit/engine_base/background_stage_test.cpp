#include "engine/base/background_stage.h"

#include <gtest/gtest.h>
#include <memory>

namespace verger {
namespace {

struct Number {
  int given = 0;
  int squared = 0;
};

TEST(BackgroundStage, WorksOnPiecesInTheOrderInWhichTheyAreGiven) {
  int last = -1;
  BackgroundStage<Number> stage([&](Number& number) {
    EXPECT_EQ(number.given, last + 1);
    last = number.given;
    number.squared = number.given * number.given;
  });
  EXPECT_EQ(stage.take(), nullptr);
  int taken = 0;
  const auto take = [&] {
    const auto number = stage.take();
    ASSERT_NE(number, nullptr);
    EXPECT_EQ(number->given, taken);
    EXPECT_EQ(number->squared, taken * taken);
    ++taken;
  };
  for (int given = 0; given < 500; ++given) {
    stage.give(std::make_unique<Number>(Number{.given = given}));
    if (stage.size() == 3) {
      take();
    }
  }
  while (stage.size() > 0) {
    take();
  }
  EXPECT_EQ(taken, 500);
  EXPECT_EQ(stage.take(), nullptr);
}

TEST(BackgroundStage, EndsWithWorkThatIsNotTaken) {
  BackgroundStage<Number> stage([](Number&) {});
  for (int given = 0; given < 50; ++given) {
    stage.give(std::make_unique<Number>());
  }
}

}  // namespace
}  // namespace verger
